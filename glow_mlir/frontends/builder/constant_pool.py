"""The large constants of a process, identified without hashing all of their content."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from itertools import count

import numpy as np

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.weights import is_large
from glow_mlir.support.dtypes import name_of

_NUMBERS = count()
"""Numbers of arrays in this process."""

SAMPLES, SAMPLE_BYTES = 16, 64


class ConstantPool:
    """
    Give large arrays names that are valid in this process only.

    Hashing the content of all weights takes longer than packing them. Arrays of equal content get the same name: arrays
    are compared if samples of their content agree.
    """

    def __init__(self) -> None:
        self._known: defaultdict[bytes, list[Stored]] = defaultdict(list)

    def stored(self, array: np.ndarray) -> Deferred:
        """Store an array, which must not change; returns an earlier one if its content is equal."""
        new = Stored(array)
        if not is_large(new):
            return new
        similar = self._known[_fingerprint(array)]
        for known in similar:
            if _are_equal(known, new):
                return known
        similar.append(Stored(array, f"array {next(_NUMBERS)}"))
        return similar[-1]


def _fingerprint(array: np.ndarray) -> bytes:
    """A hash of type, shape and samples of the content."""
    data = _content(array)
    state = hashlib.sha256(f"{name_of(array.dtype)}{array.shape}".encode())
    last = max(data.size - SAMPLE_BYTES, 0)
    for number in range(SAMPLES):
        begin = last * number // (SAMPLES - 1)
        state.update(data[begin : begin + SAMPLE_BYTES].data)
    return state.digest()


def _content(array: np.ndarray) -> np.ndarray:
    """The bytes of an array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _are_equal(left: Stored, right: Stored) -> bool:
    """Whether arrays of the same type and shape have the same bytes."""
    one, other = (Stored(_content(array.array())) for array in (left, right))
    equal = all(np.array_equal(one.part(0, *span), other.part(0, *span)) for span in one.spans(0))
    one.forget()
    other.forget()
    return equal
