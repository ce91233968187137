"""Repeated calls of a model that is compiled when it is called: they search its code only when it may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from glow_mlir.runtime.executable import DirectCall
from glow_mlir.runtime.specialization import Specialization

if TYPE_CHECKING:
    from glow_mlir.runtime.specializations import Specializations

MAX_VALUES = 64
"""The number of values of inputs whose direct calls are remembered."""


class BoundCall:
    """
    A call on memory that stays the same.

    The code for it is searched only if that may have changed: values of inputs that determine shapes may be others in
    each call, and code may be evicted.
    """

    def __init__(
        self, model: Specializations, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> None:
        self._model = model
        self._inputs, self._outputs = inputs, outputs
        self._leased: Callable[[], Specialization | None] | None = None

    def __call__(self) -> dict[str, np.ndarray]:
        """The outputs; raises the errors of `EntryPoint.bound`."""
        if self._leased is not None and (kept := self._leased()) is not None:
            return self._run(kept)
        found = self._model.serve(self._inputs, self._run)
        shapes = tuple((name, array.shape) for name, array in self._inputs.items())
        self._leased = self._model.lease(shapes, lambda found: self in found.bound)
        return found

    def _run(self, found: Specialization) -> dict[str, np.ndarray]:
        """Run a specialization; keep the prepared call with it, so that both are evicted together."""
        if (call := found.bound.get(self)) is None:
            fitting = found.fitting(self._inputs)
            call = found.entry.bound(fitting, self._outputs)
            if fitting is self._inputs:  # Otherwise each call copies the inputs.
                found.bound[self] = call
        return call()


class CallsByValues:
    """
    Direct calls of a model in which values of the inputs `names` determine shapes.

    They take arrays of fixed shapes for the inputs in `order`. The bytes of these values select the code.
    """

    def __init__(self, model: Specializations, names: tuple[str, ...], order: Sequence[str]) -> None:
        self._model = model
        self._names = names
        self._order = tuple(order)
        self._positions = [self._order.index(name) for name in names]
        self._calls: dict[tuple[bytes, ...], DirectCall] = {}

    def __call__(self, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
        """The outputs; `None` once values of other inputs determine shapes. Raises the errors of `EntryPoint.run`."""
        if self._model.value_names != self._names:
            return None
        values = tuple([arrays[position].tobytes() for position in self._positions])
        call = self._calls.get(values)
        if call is not None and (found := call(arrays)) is not None:
            return found
        inputs = dict(zip(self._order, arrays, strict=True))
        results = self._model.serve(inputs, lambda found: found.run(inputs))
        if call is None:
            self._learn(values, inputs)
        else:  # Its code is gone, or the call may be cancelled.
            self._calls.pop(values, None)
        return results

    def _learn(self, values: tuple[bytes, ...], inputs: Mapping[str, np.ndarray]) -> None:
        """Remember the direct call for some values, if there is one."""
        if len(self._calls) >= MAX_VALUES:
            self._calls.clear()
        shapes = tuple((name, array.shape) for name, array in inputs.items())
        if (call := self._model.direct_for(self._model.wanted(inputs), shapes)) is not None:
            self._calls[values] = call
