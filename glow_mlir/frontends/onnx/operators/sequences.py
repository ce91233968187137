"""ONNX's sequences, whose lengths are known at import: a sequence is represented by its elements."""

from __future__ import annotations

import numpy as np
import onnx
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ConcatOp, ReshapeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.shapes import normalize_axis, rank_of, sizes_of
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.slices import cut
from glow_mlir.frontends.onnx.models.types import tensor_type
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.values import OptionalValue, Strings, TensorSequence, Value, takes_values, type_of_value
from glow_mlir.ir.registry import onnx_operator


def sequence_of(node: Node, position: int = 0) -> TensorSequence:
    """The operand, a sequence or an optional with one; raises `ModelError` for anything else."""
    value = node.operand(position)
    if isinstance(value, OptionalValue) and value.value is not None:
        value = value.value
    if not isinstance(value, TensorSequence):
        raise ModelError(f"{node.kind}: operand {position} is not a sequence", node=node.name)
    return value


def _position(node: Node, position: int, length: int, default: int, most: int) -> int:
    """The position in a sequence given by an operand; raises `ModelError` if it is out of range."""
    index = default
    if node.optional(position) is not None:
        index = int(node.array(position, "the position").item())
    if not -length <= index <= most:
        reason = f"{node.kind}: position {index} is out of range for a sequence of {length}"
        raise ModelError(reason, node=node.name, hint="positions start at 0, or count from the end, from -1")
    return index + length if index < 0 else index


@onnx_operator("SequenceEmpty")
def sequence_empty(node: Node) -> TensorSequence:
    """An empty sequence of tensors of an element type."""
    return TensorSequence((), tensor_type(node.int("dtype", 1)))


@onnx_operator("SequenceConstruct")
@takes_values
def sequence_construct(node: Node) -> TensorSequence:
    """The operands as a sequence."""
    return TensorSequence(tuple(node.operand(position) for position in range(len(node.operands))))


@onnx_operator("SequenceLength")
@takes_values
def sequence_length(node: Node) -> SSAValue:
    """The number of elements."""
    return node.constant(np.array(len(sequence_of(node).items), np.int64))


@onnx_operator("SequenceAt")
@takes_values
def sequence_at(node: Node) -> Value:
    """The element at a position; for a computed position, the elements are stacked."""
    items = sequence_of(node).items
    if node.known(1) is None and items and (found := _computed_element(node, items)) is not None:
        return found
    return items[_position(node, 1, len(items), 0, len(items) - 1)]


def _computed_element(node: Node, items: tuple[Value, ...]) -> Value | None:
    """The element at a computed position; `None` if the elements' types differ."""
    tensors = [item.numbers if isinstance(item, Strings) else item for item in items]
    values = [value for value in tensors if isinstance(value, SSAValue)]
    if len(values) < len(items) or any(value.type != values[0].type for value in values):
        return None
    rows = [node.emit(ReshapeOp, value, shape=(1, *sizes_of(value))) for value in values]
    found = node.emit(GatherOp, node.emit(ConcatOp, rows, axis=0), node.input(1), axis=0)
    found = node.emit(ReshapeOp, found, shape=sizes_of(values[0]))
    return Strings(found) if isinstance(items[0], Strings) else found


@onnx_operator("SequenceInsert")
@takes_values
def sequence_insert(node: Node) -> TensorSequence:
    """Insert an element before a position, by default at the end."""
    sequence = sequence_of(node)
    items = list(sequence.items)
    items.insert(_position(node, 2, len(items), len(items), len(items)), node.operand(1))
    return TensorSequence(tuple(items), sequence.element)


@onnx_operator("SequenceErase")
@takes_values
def sequence_erase(node: Node) -> TensorSequence:
    """Remove the element at a position, by default the last."""
    sequence = sequence_of(node)
    items = list(sequence.items)
    del items[_position(node, 1, len(items), -1, len(items) - 1)]
    return TensorSequence(tuple(items), sequence.element)


@onnx_operator("ConcatFromSequence")
@takes_values
def concat_from_sequence(node: Node) -> Value:
    """Concatenate the elements along `axis`, or stack them along a new axis with `new_axis`."""
    items = sequence_of(node).items
    if not items:
        raise ModelError("ConcatFromSequence: a sequence without elements has no shape", node=node.name)
    tensors = [item.numbers if isinstance(item, Strings) else item for item in items]
    values = [value for value in tensors if isinstance(value, SSAValue)]
    if len(values) < len(items):
        raise ModelError("ConcatFromSequence: an element is not a tensor", node=node.name)
    is_new = node.flag("new_axis")
    axis = normalize_axis(node.int("axis"), rank_of(values[0]) + is_new)
    if is_new:
        around = [(sizes_of(value)[:axis], sizes_of(value)[axis:]) for value in values]
        values = [
            node.emit(ReshapeOp, value, shape=(*before, 1, *behind))
            for value, (before, behind) in zip(values, around, strict=True)
        ]
    found = node.emit(ConcatOp, values, axis=axis)
    return Strings(found) if isinstance(items[0], Strings) else found


@onnx_operator("SplitToSequence")
@takes_values
def split_to_sequence(node: Node) -> TensorSequence:
    """
    Split a tensor along `axis` into parts of the given sizes, of one size, or by default of single elements.

    Parts of single elements lose the axis unless `keepdims`.
    """
    value = node.operand()
    tensor = value.numbers if isinstance(value, Strings) else node.input()
    axis = normalize_axis(node.int("axis", 0), rank_of(tensor))
    size = sizes_of(tensor)[axis]
    if not isinstance(size, int):
        raise node.unsupported(f"the length of the sequence depends on the run-time size of axis {axis}")
    lengths = _lengths(node, size)
    starts = [sum(lengths[:position]) for position in range(len(lengths))]
    parts = [cut(node, tensor, {axis: (start, start + n)}) for start, n in zip(starts, lengths, strict=True)]
    if node.optional(1) is None and not node.flag("keepdims", True):
        sizes = sizes_of(tensor)
        parts = [node.emit(ReshapeOp, part, shape=(*sizes[:axis], *sizes[axis + 1 :])) for part in parts]
    items: list[Value] = [Strings(part) if isinstance(value, Strings) else part for part in parts]
    return TensorSequence(tuple(items), _without_shape(value))


def _lengths(node: Node, size: int) -> list[int]:
    """The sizes of the parts along the axis; raises `ModelError` if their sum is not `size`."""
    if node.optional(1) is None:
        return [1] * size
    lengths_given = node.array(1, "the sizes of the parts")
    if lengths_given.ndim:
        lengths: list[int] = lengths_given.tolist()
    else:
        part = int(lengths_given.item())
        if part <= 0:
            raise ModelError(f"SplitToSequence: parts cannot have {part} elements", node=node.name)
        lengths = [min(part, size - start) for start in range(0, size, part)]
    if sum(lengths) != size or min(lengths, default=0) < 0:
        raise ModelError(f"SplitToSequence: parts of {lengths} do not make up {size} elements", node=node.name)
    return lengths


def _without_shape(value: Value) -> onnx.TypeProto:
    """The type of a value, without its shape."""
    found = type_of_value(value)
    found.tensor_type.ClearField("shape")
    return found


@onnx_operator("SequenceMap")
@takes_values
def sequence_map(node: Node) -> list[Value | None] | None:
    """Apply the body to each element of sequences of the same length; tensors are passed to each call unchanged."""
    first = sequence_of(node)
    others = [node.operand(position) for position in range(1, len(node.operands))]
    for position, other in enumerate(others, 1):
        if isinstance(other, TensorSequence) and len(other.items) != len(first.items):
            reason = (
                f"SequenceMap: operand {position} has {len(other.items)} elements, and the first {len(first.items)}"
            )
            raise ModelError(reason, node=node.name)
    columns: list[list[Value]] = [[] for _ in node.results]
    for number, item in enumerate(first.items):
        given = [other.items[number] if isinstance(other, TensorSequence) else other for other in others]
        found = node.outputs_of("body", [item, *given])
        if found is None:
            return None
        for column, value in zip(columns, found, strict=True):
            if value is None:
                raise node.unsupported("its body yields an absent value")
            column.append(value)
    elements = [output.type for output in node.subgraph("body").output]
    return [TensorSequence(tuple(column), element) for column, element in zip(columns, elements, strict=True)]
