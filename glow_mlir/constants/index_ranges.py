"""Range checks of index operands, as far as constants decide them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.storage import Storage, constant_array, splat_array
from glow_mlir.constants.weights import deferred_weights
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.index_ranges import IndexRange
from glow_mlir.dialects.glow_high.storage import ConstantOp, GetOp, SplatOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.memory import WeightOp, has_default_layout
from glow_mlir.dialects.properties import text
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.support.symbols import are_numbers


def is_in_range(numbers: np.ndarray, allowed: IndexRange) -> bool | None:
    """Whether all numbers of an operand are in range; `None` if that depends on symbols."""
    if isinstance(allowed.bound, int):
        return _are_below(numbers, allowed, allowed.bound)
    if _are_below(numbers, allowed, allowed.bound.least):
        return True
    return None if _are_below(numbers, allowed, allowed.bound.most) else False


def _are_below(numbers: np.ndarray, allowed: IndexRange, bound: int) -> bool:
    """Whether the numbers of an operand are allowed under a bound."""
    part = numbers if allowed.columns is None else numbers[..., slice(*allowed.columns)]
    part = part.astype(np.int64)
    is_right = bool(np.all((part >= allowed.least) & (part < bound)))
    if allowed.ascends is not None:
        own = np.indices(part.shape, sparse=True)[allowed.ascends]
        is_right &= bool(np.all((part < 0) | (part > own)))
    if allowed.covers:
        ends = part.reshape(-1)
        is_right &= bool(np.all(np.diff(ends, prepend=0) >= 0)) and int(ends[-1:].sum()) == bound - 1
    return is_right


def failure_of(op: Operation, storage: Storage | None = None) -> str:
    """
    The reason why an operator or instruction may fail at run time; empty if it never does.

    Operators may define it. Index operands never fail if all are constants in range. Callers that query many operators
    pass the `storage` of their module, which is built for each query otherwise.
    """
    if not isinstance(op, HighOp | DerivedInstruction):
        return ""
    if (own := op.properties.get("failure")) is not None:
        return text(own)
    kind = _kind_of(op)
    return "" if _has_ranges(kind) and all(_verdicts(op, storage)) else kind.FAILURE


def wrong_constant(op: Operation, storage: Storage) -> bool:
    """Whether an operator or instruction has a constant, from the storage of its module, with a number out of range."""
    return any(found is False for found in _verdicts(op, storage))


def _kind_of(op: HighOp | DerivedInstruction) -> type[HighOp]:
    return op.OPERATOR if isinstance(op, DerivedInstruction) else type(op)


def _has_ranges(kind: type[HighOp]) -> bool:
    """Whether an operator has index operands."""
    return kind.index_ranges is not HighOp.index_ranges


def _verdicts(op: Operation, storage: Storage | None) -> list[bool | None]:
    """For each range, whether the numbers are in it; `None` if they are not constants."""
    if not isinstance(op, HighOp | DerivedInstruction) or not _has_ranges(_kind_of(op)):
        return []
    ranges: Sequence[IndexRange] = cast("Any", _kind_of(op)).index_ranges(op)
    return [_verdict(getattr(op, allowed.operand), allowed, storage) for allowed in ranges]


def _verdict(value: SSAValue, allowed: IndexRange, storage: Storage | None) -> bool | None:
    """Whether the numbers of an operand are in range; `None` if that is unknown before the call."""
    owner = value.owner
    if isinstance(owner, SplatOp):
        return is_in_range(splat_array(owner), allowed) if are_numbers(sizes_of(value)) else None
    constant = _constant_behind(value, storage)
    if constant is None:
        return None
    if constant.weights is None:
        return is_in_range(constant_array(constant), allowed)
    return _of_weights(constant.weights.data, allowed)


def _of_weights(digest: str, allowed: IndexRange) -> bool | None:
    """Whether the numbers of stored weights are in range; cached per array of the store."""
    array = deferred_weights(digest)
    known = _KNOWN.setdefault(array, {})
    if allowed not in known:
        known[allowed] = is_in_range(array.array(), allowed)
    return known[allowed]


_KNOWN: WeakKeyDictionary[Deferred, dict[IndexRange, bool | None]] = WeakKeyDictionary()
"""Cached answers for arrays of the store: a digest may later refer to another array."""


def _constant_behind(value: SSAValue, storage: Storage | None) -> ConstantOp | None:
    """The constant behind a value, if the value is the whole constant in its layout; else `None`."""
    owner = value.owner
    if not isinstance(owner, GetOp | WeightOp):
        return None
    if storage is None:
        module = owner.get_toplevel_object()
        if not isinstance(module, ModuleOp):
            return None
        storage = Storage(module)
    op = storage.by_name.get(owner.storage_name)
    is_whole = isinstance(owner, GetOp) or has_default_layout(value)
    return op if isinstance(op, ConstantOp) and is_whole and sizes_of(op.tensor_type) == sizes_of(value) else None
