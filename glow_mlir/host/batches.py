"""Batches of requests: their samples are concatenated along the first axis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from glow_mlir.errors import InputError, UnsupportedError
from glow_mlir.host.requests import Outputs
from glow_mlir.runtime.device_array import Tensor, on_host
from glow_mlir.runtime.signature import Argument

WORD = re.compile(r"[^\W\d][\w.]*")
"""A dimension in the expression of a size."""


def batch_dimension(name: str, inputs: Sequence[Argument]) -> str:
    """
    The free dimension that is the first axis of all inputs; raises `UnsupportedError` if there is none.

    An unnamed dimension is labelled by its input, such as `x.0`, so it cannot be shared with other inputs.
    """
    found = {argument.shape[0] if argument.shape else None for argument in inputs}
    if len(found) == 1 and isinstance(label := found.pop(), str):
        return label
    listed = ", ".join(f"{argument.name}: {argument}" for argument in inputs)
    reason = f"'{name}' cannot batch requests: its inputs are {listed}"
    raise UnsupportedError(reason, hint="give the first axis of all inputs one free dimension, or batch=1")


def _check_output(argument: Argument, dimension: str, inputs: Sequence[Argument]) -> None:
    """Raise `UnsupportedError` for an output that cannot be split by request."""
    first, *others = argument.shape or ("",)
    known = {label for item in inputs for label in item.free if label != dimension}
    words = {word for size in others if isinstance(size, str) for word in WORD.findall(size)}
    if first != dimension or not words <= known:
        reason = f"output '{argument.name}' is {argument}, which cannot be split by request"
        raise UnsupportedError(reason, hint=f"only the first size may depend on {dimension}, or batch=1")


class Batches:
    """The layout of samples in the inputs and outputs of a network whose requests are batched."""

    def __init__(self, dimension: str, inputs: Sequence[Argument], outputs: Sequence[Argument], size: int) -> None:
        """Raises `UnsupportedError` for outputs in which samples are not along the first axis."""
        for argument in outputs:
            _check_output(argument, dimension, inputs)
        self._size = size
        self._names = tuple(argument.name for argument in inputs)
        self._free = tuple(argument.name for argument in inputs if len(argument.free) > 1 or argument.shape is None)
        """Inputs with other free sizes, which have to be equal within a call."""

    def rows(self, inputs: Mapping[str, Tensor]) -> int:
        """
        The number of samples of a request; raises `InputError` for inputs that disagree, for none, and for too many.
        """
        counts = {name: inputs[name].shape[0] for name in self._names}
        rows = counts[self._names[0]]
        if any(count != rows for count in counts.values()):
            listed = ", ".join(f"'{name}' {count}" for name, count in counts.items())
            raise InputError(f"inputs have different numbers of samples: {listed}", hint="one batch in a request")
        if rows < 1:
            raise InputError("a request has no samples", hint="at least one")
        if rows > self._size:
            reason = f"expected at most {self._size} samples in a request, got {rows}"
            raise InputError(reason, hint="split it into several requests")
        return rows

    def key(self, inputs: Mapping[str, Tensor]) -> object:
        """The batching key of a request: the sizes of a sample. Only requests with equal keys are batched."""
        return tuple(inputs[name].shape[1:] for name in self._free)

    def joined(self, inputs: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """The inputs of a batch, from those of its requests."""
        return {name: np.concatenate([on_host(own[name]) for own in inputs]) for name in self._names}

    def parts(self, rows: Sequence[int], outputs: Mapping[str, np.ndarray]) -> list[Outputs]:
        """The outputs of each request, as views of the outputs of the call; `rows` are the samples of each request."""
        found: list[Outputs] = []
        begin = 0
        for count in rows:
            found.append({name: value[begin : begin + count] for name, value in outputs.items()})
            begin += count
        return found


class NoBatches(Batches):
    """Requests are not batched: each is a call of its own."""

    def __init__(self) -> None:
        """Inputs need no batch dimension."""

    def rows(self, inputs: Mapping[str, Tensor]) -> int:
        return 1

    def key(self, inputs: Mapping[str, Tensor]) -> object:
        return None

    def joined(self, inputs: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        raise AssertionError("requests are not computed together")


def wanted_of(outputs: Mapping[str, Any], wanted: Sequence[str] | None) -> Outputs:
    """The outputs that a request asks for."""
    return dict(outputs) if wanted is None else {name: outputs[name] for name in wanted}
