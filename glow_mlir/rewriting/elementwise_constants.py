"""Elementwise operators on large constants, computed when the constants are written: what is narrow stays narrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import SSAValue

from glow_mlir.constants.deferred import Deferred, Stored
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.weights import is_deferred
from glow_mlir.dialects.element_types import numpy_dtype, storage_of
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.scalar_body import is_elementwise
from glow_mlir.dialects.shapes import element_of, shape_of
from glow_mlir.interpreter.semantics import elementwise_function


class Computed(Deferred):
    """
    An elementwise function of another array and of `others`, which broadcast to it.

    `function` takes all operands in order; the array is number `position` of them. `name` identifies the function.
    With `keeps_numbers`, it converts elements to a type that has all of their numbers.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Sequence[np.ndarray]], np.ndarray],
        source: Deferred,
        position: int,
        others: Sequence[np.ndarray],
        dtype: np.dtype,
        *,
        keeps_numbers: bool = False,
    ) -> None:
        self.keeps_numbers = keeps_numbers
        self.name, self.function, self.source, self.position = name, function, source, position
        self.others = tuple(
            np.reshape(array, (1,) * (len(source.shape) - array.ndim) + array.shape) for array in others
        )
        self.shape, self.dtype = source.shape, dtype

    @property
    def recipe(self) -> str:
        return " ".join((self.name, self.source.digest, *(Stored(array).digest for array in self.others)))

    @property
    def sources(self) -> Sequence[Deferred]:
        return (self.source,)

    def with_sources(self, sources: Sequence[Deferred]) -> Deferred:
        return Computed(
            self.name,
            self.function,
            sources[0],
            self.position,
            self.others,
            self.dtype,
            keeps_numbers=self.keeps_numbers,
        )

    @property
    def unwidened(self) -> Deferred:
        return self.source.unwidened if self.keeps_numbers else self

    def part(self, axis: int, begin: int, end: int) -> np.ndarray:
        picked = (slice(None),) * axis + (slice(begin, end),)
        operands = [array[picked] if array.shape[axis] > 1 else array for array in self.others]
        operands.insert(self.position, self.source.part(axis, begin, end))
        return self.function(operands)

    def separable(self, axis: int) -> bool:
        return self.source.separable(axis)


def widened_constant(op: HighOp, operands: Sequence[SSAValue], storage: Storage) -> Computed | None:
    """
    The result of an elementwise operator that widens one large constant, or computes on a widened one, or on one whose
    elements differ between layers.

    `operands` are the operator's, and constants; all but one broadcast to the shape of the result. `None` for other
    operators: their results take no more memory than their operands.
    """
    shape = shape_of(op.results[0])
    whole = [number for number, value in enumerate(operands) if shape_of(value) == shape]
    if not is_elementwise(op) or len(whole) != 1 or not shape:
        return None
    (position,) = whole
    source, element = storage.deferred(operands[position]), element_of(op.results[0])
    dtype = numpy_dtype(storage_of(element))
    if source is None or not is_deferred(source):
        return None
    if dtype.itemsize <= source.dtype.itemsize and not isinstance(source, Computed) and not source.is_per_layer:
        return None
    others = [storage.value_of(value) for number, value in enumerate(operands) if number != position]
    known = [array for array in others if array is not None]
    name = f"{op.name} {sorted(map(str, op.properties.items()))} {element} {[str(value.type) for value in op.operands]}"
    keeps_numbers = isinstance(op, CastOp) and element == f32 and element_of(operands[position]) in (f16, bf16)
    return Computed(name, elementwise_function(op), source, position, known, dtype, keeps_numbers=keeps_numbers)
