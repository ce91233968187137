"""
Direct calls for repeated input shapes: inputs are checked once, and later inputs of the same shapes go straight to
code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from glow_mlir.runtime.device_array import Tensor
from glow_mlir.runtime.executable import DirectCall, EntryPoint, Shapes

MOST = 64
"""The number of remembered input shapes."""

_FITTING = 0x101
"""numpy's flags of C-contiguous, aligned arrays, in one number, which is read in less time than two."""


class DirectCalls:
    """The direct calls of an entry, by the shapes of its inputs."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self._inputs = [(argument.name, argument.numpy_dtype) for argument in point.inputs]
        self._calls: dict[Shapes, DirectCall] = {}
        self._tried: dict[Shapes, int] = {}
        """The number of calls without a direct call, by shapes."""

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
        """The outputs of a direct call; `None` if the inputs do not allow one."""
        # Untyped callers may pass anything; comparing the class with dict is fastest.
        if not self._calls or type(cast("object", inputs)) is not dict or len(inputs) != len(self._inputs):
            return None
        arrays: list[np.ndarray] = []
        shapes: Shapes = ()
        for name, dtype in self._inputs:
            array = inputs.get(name)
            if type(array) is not np.ndarray or array.dtype is not dtype:
                return None
            if array.flags.num & _FITTING != _FITTING:
                return None
            arrays.append(array)
            shapes += (array.shape,)
        call = self._calls.get(shapes)
        if call is None:
            return None
        if (found := call(arrays)) is None:
            self._calls.pop(shapes, None)
            self._tried.pop(shapes, None)
        return found

    def learn(self, inputs: Mapping[str, Tensor]) -> None:
        """Prepare a direct call for inputs of these shapes; failed attempts make further attempts rarer."""
        shapes = tuple([value.shape for value in inputs.values() if isinstance(value, np.ndarray)])
        if len(shapes) != len(self._inputs):
            return
        count = self._tried[shapes] = self._tried.get(shapes, 0) + 1
        if count & (count - 1):
            return
        if len(self._tried) > MOST:
            self._tried.clear()
            self._calls.clear()
        if (call := self._point.direct(shapes)) is not None:
            self._calls[shapes] = call
