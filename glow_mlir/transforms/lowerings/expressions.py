"""The lowering of all operators defined by an expression: elementwise operators and simple reductions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_bool, numpy_dtype
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.folds import known_fold
from glow_mlir.dialects.generic_form import dimension_sizes, operand_tensors, rounded
from glow_mlir.dialects.glow_high import elementwise_math as unary
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp, SliceOp, TransposeOp
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.reductions import (
    ArgMaxOp,
    ArgMinOp,
    ReduceMaxOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceSumOp,
    Reduction,
)
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.index_notation import Access
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.dialects.sizes import largest
from glow_mlir.dialects.stages import POSITION_FOLDS, RUNNING_FOLDS
from glow_mlir.dialects.staging import postorder
from glow_mlir.frontends.builder.emission import KNOWN, emitted_operation
from glow_mlir.ir.emitter import Emitter
from glow_mlir.support.symbols import Size, Sizes, are_numbers, numbers_in

FOLDS: Mapping[str, type[Reduction]] = {
    "add": ReduceSumOp,
    "mul": ReduceProdOp,
    "max": ReduceMaxOp,
    "min": ReduceMinOp,
    "or": ReduceMaxOp,
    "and": ReduceMinOp,
}
"""Fold → reduction; `or` and `and` are for truth values."""


def lowered(op: Expressed, emit: Emitter) -> SSAValue | None:
    """Lower an operator's expression to simpler operators; `None` if a part has no operator."""
    signature = op.notation()
    elements = op.read_elements()
    root = rounded(op.expression(*operand_tensors(signature, elements)), elements[0])
    is_plain = not any(access.is_windowed or access.indices for access in signature.operands)
    if not is_plain or not all(map(_is_known, postorder(root))):
        return None
    values = [_shaped(value, view, emit) for value, view in zip(op.read_values(), op.views(), strict=True)]
    sizes = dimension_sizes(signature, op.views())
    order = [name for name in sizes if name != "1"]
    lowering = Lowering(order, sizes, emit)
    for part in postorder(root):
        lowering.add(part, values, signature.operands)
    found = lowering.arranged(lowering.made[root], order, signature.result.axes)
    seen = tuple(sizes[name] if name in sizes and name != "1" else 1 for name in signature.result.axes)
    whole = found if sizes_of(found) == seen else emit(ExpandOp, found, shape=seen)
    return _shaped(whole, sizes_of(op.results[0]), emit)


def _shaped(value: SSAValue, shape: Sizes, emit: Emitter) -> SSAValue:
    """Reshape a value to `shape`."""
    return value if sizes_of(value) == shape else emit(ReshapeOp, value, shape=shape)


def _fold_name(part: Tensor) -> str:
    """The type-independent name of the fold of a part."""
    return "" if part.word in (*POSITION_FOLDS, *RUNNING_FOLDS) else known_fold(part.word, part.element).name


def _is_known(part: Tensor) -> bool:
    """Whether a part of an expression has an operator."""
    if part.along:
        is_fold = _fold_name(part) in FOLDS and (part.word not in ("and", "or") or is_bool(part.element))
        return is_fold or part.word in POSITION_FOLDS
    return part.operand is not None or part.word in KNOWN or part.word in ("size", "index")


class Lowering:
    """Emits an expression; values have one axis per dimension in `order`, of size 1 if absent."""

    def __init__(self, order: Sequence[str], sizes: Mapping[str, Size], emit: Emitter) -> None:
        self.order, self.sizes, self.emit = list(order), sizes, emit
        self.made: dict[Tensor, SSAValue] = {}

    def add(self, part: Tensor, values: Sequence[SSAValue], accesses: Sequence[Access]) -> None:
        """Emit a part whose arguments have been emitted."""
        if part.operand is not None:
            self.made[part] = self.arranged(values[part.operand], accesses[part.operand].axes, self.order)
        elif part.word == "size":
            self.made[part] = self._count(part)
        elif part.word == "index":
            self.made[part] = self._indices(part)
        elif part.word in POSITION_FOLDS:
            self.made[part] = self._position(part)
        elif part.along:
            axes = sorted(self.order.index(name) for name in part.along)
            self.made[part] = self.emit(FOLDS[_fold_name(part)], self.made[part.parts[0]], axes=axes, keepdims=True)
        else:
            self.made[part] = emitted_operation(part, self.made, self.emit)

    def arranged(self, value: SSAValue, names: Sequence[str], wanted: Sequence[str]) -> SSAValue:
        """Transpose and reshape a value with axes `names` to axes `wanted`; absent axes get size 1."""
        present = [name for name in wanted if name in names and name != "1"]
        axes, sizes = [names.index(name) for name in present], dict(zip(names, sizes_of(value), strict=True))
        if axes != sorted(axes):
            rest = [axis for axis in range(len(names)) if axis not in axes]
            value = self.emit(TransposeOp, value, permutation=(*axes, *rest))
        return _shaped(value, tuple(sizes[name] if name in present else 1 for name in wanted), self.emit)

    def _count(self, part: Tensor) -> SSAValue:
        """The number of indices of some dimensions."""
        sizes = [self.sizes[name] for name in part.counted]
        ones = (1,) * len(self.order)
        if are_numbers(sizes):
            return self.emit.splat(math.prod(numbers_in(sizes)), part.element, ones)
        counted = self.emit(ReduceProdOp, self.emit(ShapeOp, sizes=tuple(sizes)), axes=(0,))
        return _shaped(self.emit(unary.CastOp, counted, to=part.element), ones, self.emit)

    def _indices(self, part: Tensor) -> SSAValue:
        """The indices of a dimension."""
        (name,) = part.dimensions
        shape = tuple(self.sizes[own] if own == name else 1 for own in self.order)
        every = np.arange(largest(self.sizes[name]), dtype=numpy_dtype(part.element))
        found = self.emit.constant(every.reshape([-1 if own == name else 1 for own in self.order]), "indices")
        return found if sizes_of(found) == shape else self.emit(SliceOp, found, starts=(0,) * len(shape), ends=shape)

    def _position(self, part: Tensor) -> SSAValue:
        """The index of an extreme element."""
        (name,), (extreme, is_last) = part.along, POSITION_FOLDS[part.word]
        operator = ArgMaxOp if extreme.startswith("max") else ArgMinOp
        axis = self.order.index(name)
        found = self.emit(operator, self.made[part.parts[0]], axis=axis, select_last_index=is_last)
        return self.emit(unary.CastOp, found, to=part.element)
