"""Parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, SliceOp
from glow_mlir.dialects.shapes import normalize_axis
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator


@tflite_operator("STRIDED_SLICE")
def strided_slice(node: TfliteNode) -> SSAValue:
    """
    A part by begin, end and step along each axis; bits of masks leave out a begin, an end, or an axis.

    Other bits stand for new axes, or for all axes that no number is for. If the options say so, ends are relative to
    begins.
    """
    begins, ends, steps = (_numbers(node, *operand) for operand in ((1, "the begin"), (2, "the end"), (3, "the step")))
    begin_mask, end_mask, ellipsis, new_axis, shrink = (node.options.number(field, "i") for field in range(5))
    is_relative = bool(node.options.number(5, "?"))
    if is_relative and end_mask:
        raise node.unsupported("with ends that are relative and left out is not supported")
    if not len(begins) == len(ends) == len(steps):
        raise node.unsupported(f"begin, end and step do not fit {len(node.shape(0))} axes")
    found: list[range] = []
    for index, size in zip(_positions(node, len(begins), ellipsis, new_axis), node.shape(0), strict=True):
        if index is None:
            found.append(range(size))
            continue
        if not (step := steps[index]):
            raise node.unsupported("has a step of 0")
        begin = None if begin_mask >> index & 1 else begins[index]
        end = None if end_mask >> index & 1 else ends[index]
        if is_relative and end is not None:
            end += slice(begin, None, step).indices(size)[0]
        if shrink >> index & 1:
            begin = 0 if begin is None else normalize_axis(begin, size)
            end, step = begin + 1, 1
        found.append(range(*slice(begin, end, step).indices(size)))
    return node.emit(ReshapeOp, taken(node, node.input(0), found), shape=node.output().shape)


def _positions(node: TfliteNode, count: int, ellipsis: int, new_axis: int) -> list[int | None]:
    """For each axis, the position of its begin among `count` numbers; `None` for axes that are taken whole."""
    rank, found = len(node.shape(0)), list[int | None]()
    missing = rank - sum(not (ellipsis | new_axis) >> index & 1 for index in range(count))
    for index in range(count):
        if ellipsis >> index & 1:
            found += [None] * missing
        elif not new_axis >> index & 1:
            found.append(index)
    found += [None] * (rank - len(found))
    if missing < 0 or len(found) != rank:
        raise node.unsupported(f"begin, end and step do not fit {rank} axes")
    return found


def _numbers(node: TfliteNode, position: int, role: str) -> list[int]:
    """The integers of a constant operand."""
    return node.integers(position, role).reshape(-1).tolist()


def taken(node: TfliteNode, value: SSAValue, parts: Sequence[range]) -> SSAValue:
    """The elements at these indices along each axis."""
    starts, ends, steps = zip(*((part.start, part.stop, part.step) for part in parts), strict=True)
    return node.emit(SliceOp, value, starts=starts, ends=ends, steps=steps)


@tflite_operator("SLICE")
def slice_(node: TfliteNode) -> SSAValue:
    """A part by begin and size along each axis; a size of -1 is all that is left."""
    begins, sizes, whole = _numbers(node, 1, "the begin"), _numbers(node, 2, "the size"), node.shape(0)
    if not len(begins) == len(sizes) == len(whole):
        raise node.unsupported(f"begin and size do not fit {len(whole)} axes")
    bounds = zip(begins, sizes, whole, strict=True)
    ends = [own if size == -1 else begin + size for begin, size, own in bounds]
    return node.emit(SliceOp, node.input(0), starts=begins, ends=ends)


@tflite_operator("SPLIT", "SPLIT_V")
def split(node: TfliteNode) -> Sequence[SSAValue]:
    """Parts along an axis, one for each result."""
    value, axis = (1, 0) if node.kind == "SPLIT" else (0, 2)
    whole = node.shape(value)
    if any(len(node.output(position).shape) != len(whole) for position in range(len(node.operator.outputs))):
        raise node.unsupported(f"has parts without the {len(whole)} axes of its operand")
    along = normalize_axis(node.whole(axis, "the axis"), len(whole))
    parts: list[SSAValue] = []
    begin = 0
    for position in range(len(node.operator.outputs)):
        end = begin + node.output(position).shape[along]
        bounds = [(begin, end) if other == along else (0, size) for other, size in enumerate(whole)]
        starts, ends = zip(*bounds, strict=True)
        parts.append(node.emit(SliceOp, node.input(value), starts=starts, ends=ends))
        begin = end
    return parts
