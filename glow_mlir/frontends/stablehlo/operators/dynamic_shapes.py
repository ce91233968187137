"""Operations whose sizes are operands, which are known, or follow from free dimensions, when a model is compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.dynamic_slices import DynamicSliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.sizes import ShapeOp
from glow_mlir.dialects.shapes import declared_shape, size_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.emission import positions
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.builder.slices import Bound, computed_part, cut, part_of, scalar
from glow_mlir.frontends.stablehlo.node import StablehloNode, Value, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.data_movement import broadcast, expanded, spread
from glow_mlir.support.symbols import Size, SymbolicSize


@stablehlo_operator("get_dimension_size")
def get_dimension_size(node: StablehloNode) -> SSAValue:
    """The size of a dimension."""
    size = sizes_of(node.input())[node.integer("dimension")]
    if isinstance(size, int):
        return node.constant(np.array(size, numpy_dtype(node.element())))
    found = node.emit(ReshapeOp, node.emit(ShapeOp, sizes=(size,)), shape=())
    return node.cast(found, node.element())


@stablehlo_operator("set_dimension_size")
def set_dimension_size(node: StablehloNode) -> SSAValue:
    """A tensor as it is, if the size is that of the dimension."""
    value, axis = node.input(), node.integer("dimension")
    (size,) = node.required_sizes(node.input(1), "size")
    if size != sizes_of(value)[axis]:
        raise node.unsupported(f"to {size} of {sizes_of(value)[axis]} elements is not supported")
    return value


@stablehlo_operator("dynamic_broadcast_in_dim", moves=True)
def dynamic_broadcast_in_dim(node: StablehloNode) -> SSAValue:
    """A tensor whose axes become given axes of a larger one, along which it is repeated."""
    shape = node.required_sizes(node.input(1), "shape")
    return broadcast(node, node.input(), node.integers("broadcast_dimensions"), shape)


@stablehlo_operator("dynamic_reshape", moves=True)
def dynamic_reshape(node: StablehloNode) -> SSAValue:
    """The same elements in another shape."""
    return node.reshaped(node.input(), node.required_sizes(node.input(1), "shape"))


@stablehlo_operator("dynamic_iota")
def dynamic_iota(node: StablehloNode) -> SSAValue:
    """The positions along a dimension."""
    shape, dimension = node.required_sizes(node.input(), "shape"), node.integer("iota_dimension")
    line = node.cast(positions(shape[dimension], i64, node), node.element())
    apart = [shape[dimension] if axis == dimension else 1 for axis in range(len(shape))]
    return expanded(node, node.reshaped(line, apart), shape)


@stablehlo_operator("dynamic_pad", moves=True)
def dynamic_pad(node: StablehloNode) -> SSAValue:
    """Elements in front of, behind, and between those of each axis; negative widths in front and behind cut off."""
    value, fill = node.inputs(0, 2)
    low, high, interior = (node.required_sizes(node.input(position), "widths") for position in (2, 3, 4))
    for axis, count in enumerate(interior):
        if isinstance(count, SymbolicSize):
            raise node.unsupported("by a number of elements between others that is not known is not supported")
        value = spread(node, value, fill, axis, count)
    widths = list(zip(low, high, strict=True))
    if any(isinstance(width, SymbolicSize) for pair in widths for width in pair):
        raise node.unsupported("by widths that depend on free dimensions is not supported")
    return pad_value(node, value, widths, "constant", fill)  # pyright: ignore


@stablehlo_operator("real_dynamic_slice", moves=True)
def real_dynamic_slice(node: StablehloNode) -> SSAValue:
    """Every so many elements of a part of each axis, whose ends are operands."""
    value = node.input()
    starts, ends = (_bounds(node, node.input(position)) for position in (1, 2))
    steps = node.required_integers(node.input(3), "steps")
    for axis, size in enumerate(_lengths(node, node.input(1), node.input(2))):
        value = _part(node, value, axis, starts[axis], ends[axis], steps[axis], size)
    return value


def _numbers(found: np.ndarray) -> list[Size]:
    """Known sizes."""
    return [size if isinstance(size, SymbolicSize) else int(size) for size in found.reshape(-1)]


def _bounds(node: StablehloNode, value: SSAValue) -> list[Bound]:
    """The elements of a vector: sizes if they are known, else scalars, as i64."""
    found = node.symbolic_value(value)
    if found is not None:
        return list[Bound](_numbers(found))
    if isinstance(op := value.owner, ConcatOp):
        return [bound for part in op.inputs() for bound in _bounds(node, part)]
    if size_of(value) == 1:
        return [node.reshaped(node.cast(value, i64), ())]
    wide = node.cast(value, i64)
    scalars = [part_of(node, wide, position) for position in range(size_of(value))]
    return [
        scalars[at] if known is None else known.item() for at, known in enumerate(map(node.symbolic_value, scalars))
    ]


def _lengths(node: StablehloNode, start: SSAValue, end: SSAValue) -> list[Size | None]:
    """What the ends of parts are more than their starts, where they are sums of these; `None` where not known."""
    declared = declared_shape(node.declared())
    if isinstance(op := end.owner, AddOp) and start in op.inputs():
        one, other = op.inputs()
        found = node.symbolic_value(other if one is start else one)
        if found is not None:
            return list[Size | None](_numbers(found))
    return [size if size >= 0 else None for size in declared]


def _part(
    node: StablehloNode, value: SSAValue, axis: int, start: Bound, end: Bound, step: int, size: Size | None
) -> SSAValue:
    """Every `step`-th element of an axis from `start` up to, but not including, `end`; there are `size`, if known."""
    if step == 1 and not isinstance(start, SSAValue) and not isinstance(end, SSAValue):
        return cut(node, value, {axis: (start, end)})
    if step == 1 and size == sizes_of(value)[axis]:
        return value
    if step == 1 and size is not None:
        return node.emit(DynamicSliceOp, value, scalar(node, start), axis=axis, size=size)  # pyright: ignore
    return computed_part(node, value, axis, start, end, step)


@stablehlo_operator("dynamic_conv")
def dynamic_conv(node: StablehloNode) -> Value | Sequence[Value]:
    """A convolution whose padding is an operand."""
    widths = node.required_integers(node.input(2), "padding")
    properties = {**node.properties, "padding": DenseArrayBase.from_list(i64, list(widths))}
    return node.delegated("stablehlo.convolution", [node.value(0), node.value(1)], properties)


def dynamic_reduce_window(node: StablehloNode) -> Value | Sequence[Value]:
    """Folds of windows whose sizes, strides, dilations and padding are the last five operands, by a function."""
    count = node.count - len(_OF_WINDOWS)
    widths = zip(_OF_WINDOWS, node.inputs(count), strict=True)
    numbers = {name: node.required_integers(value, "windows") for name, value in widths}
    padding = numbers.pop("padding")
    properties: dict[str, Attribute] = {
        name: DenseArrayBase.from_list(i64, list(values)) for name, values in numbers.items()
    }
    properties["padding"] = DenseIntOrFPElementsAttr.from_list(TensorType(i64, (len(padding) // 2, 2)), padding)
    operands = [node.value(position) for position in range(count)]
    return node.delegated("stablehlo.reduce_window", operands, properties, node.called_computations())


_OF_WINDOWS = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
"""The properties of `reduce_window` that are operands of the call for windows of sizes that are computed."""


def checked(node: StablehloNode) -> Sequence[Value]:
    """Nothing, for a check of sizes; raises `ModelError` with its message if it is known to fail."""
    holds = node.fold(node.input())
    message = node.op.attributes.get("error_message")
    if holds is not None and not holds.all():
        text = getattr(message, "data", "sizes do not fit").partition(". ")[0]
        raise ModelError(f"{node.kind}: {text}", node=node.name, hint="give sizes that the program was exported for")
    return []
