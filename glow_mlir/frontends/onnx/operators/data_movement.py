"""ONNX's operators that move elements without indices: reshape, transpose, slice, pad and repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import (
    ConcatOp,
    ExpandOp,
    ReshapeOp,
    SliceOp,
    TileOp,
    TransposeOp,
)
from glow_mlir.dialects.glow_high.elementwise_binary import DivOp, MaxOp
from glow_mlir.dialects.shapes import Shape, broadcast, normalize_axis, rank_of, require, sizes_of
from glow_mlir.dialects.sizes import RunTimeSizeError, largest, smallest
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.agreement import is_of_data, reshaped, stretched, with_size
from glow_mlir.frontends.builder.padding import pad_value
from glow_mlir.frontends.builder.slices import (
    Bound,
    bound_number,
    bounds_of,
    computed_part,
    computed_parts,
    cut,
    equal_parts,
    gathered,
    scalar,
)
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.attribute_map import AttributeMap, integer
from glow_mlir.frontends.onnx.operators.operator_map import PlainOperator
from glow_mlir.frontends.onnx.operators.plain_operators import plain_importer
from glow_mlir.frontends.onnx.values import Value, takes_values
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size, Sizes, product_of, quotient, symbols_of

# Shape and order


@onnx_operator("Identity")
@takes_values
def identity(node: Node) -> Value:
    """The operand itself, of any type."""
    return node.operand()


@onnx_operator("Reshape")
def reshape_attribute(node: Node) -> SSAValue:
    """The shape as an attribute, up to opset 4."""
    return _reshape(node, node.ints("shape"))


@onnx_operator("Reshape", since=5)
def reshape(node: Node) -> SSAValue:
    """The shape as an operand."""
    return _reshape(node, node.known_sizes(1, "the shape"))


def _reshape(node: Node, sizes: Sequence[Size]) -> SSAValue:
    """Reshape; a size of 0 keeps an axis (unless `allowzero`), and -1 stands for the remaining elements."""
    wanted, shape = list(sizes), node.sizes()
    if not node.flag("allowzero"):
        wanted = [shape[axis] if size == 0 and axis < len(shape) else size for axis, size in enumerate(wanted)]
    if wanted.count(-1) > 1 or min((size for size in wanted if isinstance(size, int)), default=0) < -1:
        raise ModelError(f"Reshape: {wanted} is not a valid shape", node=node.name)
    if -1 in wanted:
        rest = product_of(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = _left(node, product_of(shape), 1 if rest == 0 else rest)
    return reshaped(node, node.input(), tuple(wanted))


def _left(node: Node, total: Size, rest: Size) -> Size:
    """
    `total / rest`, the size that -1 stands for.

    Raises `RunTimeSizeError` if the quotient is not a size for all values of the symbols. If data decides the sizes, it
    is computed at run time.
    """
    if isinstance(total, int) and isinstance(rest, int):
        return total // rest
    found = quotient(total, rest)
    if found is None and not is_of_data(node, total) and not is_of_data(node, rest):
        raise RunTimeSizeError(f"({total}) / ({rest})")
    if found is None and isinstance(rest, int):
        return total // rest
    if found is None:
        some = node.emit(MaxOp, scalar(node, rest), scalar(node, 1))
        found = bound_number(node, node.emit(DivOp, scalar(node, total), some), largest(total))
    return found


@onnx_operator("Flatten")
def flatten(node: Node) -> SSAValue:
    """Merge the axes before `axis` into one, and the others into a second one."""
    shape, axis = node.sizes(), first_coerced_axis(node)
    return node.emit(ReshapeOp, node.input(), shape=(product_of(shape[:axis]), product_of(shape[axis:])))


def first_coerced_axis(node: Node) -> int:
    """The first `axis` of those that are merged; may be the rank. Raises `VerifyException` if out of range."""
    rank, axis = node.rank(), node.int("axis", 1)
    return axis if axis == max(rank, 1) else normalize_axis(axis, rank)


def _axes_operand(node: Node, position: int = 1) -> tuple[int, ...] | None:
    """The axes of Squeeze and Unsqueeze: an attribute up to opset 12, then an operand."""
    if node.has("axes"):
        return node.ints("axes")
    return node.integers(position, "the axes") if node.optional(position) is not None else None


@onnx_operator("Squeeze")
def squeeze(node: Node) -> SSAValue:
    """Remove the given axes of size one, by default all of them."""
    value, shape, axes = node.input(), node.sizes(), _axes_operand(node)
    dropped = {axis for axis, size in enumerate(shape) if size == 1}
    free = [size for size in shape if {symbol.name for symbol in symbols_of([size])} & node.builder.input_symbols]
    unknown = [size for size in free if smallest(size) <= 1 < largest(size)]
    if axes is None and unknown:
        raise RunTimeSizeError(unknown[0])  # If it is 1, its axis is removed.
    if axes is not None:
        require(bool(shape) or not axes, f"axes {list(axes)} are out of range for rank 0")
        chosen = {normalize_axis(axis, len(shape)) for axis in axes}
        for axis in sorted(chosen - dropped):
            if is_of_data(node, shape[axis]):
                value = with_size(node, value, axis, 1)
                dropped.add(axis)
        if wrong := sorted(chosen - dropped):
            raise ModelError(f"Squeeze: axis {wrong[0]} has size {shape[wrong[0]]}, not 1", node=node.name)
        dropped = chosen
    kept = [size for axis, size in enumerate(shape) if axis not in dropped]
    return node.emit(ReshapeOp, value, shape=kept)


@onnx_operator("Unsqueeze")
def unsqueeze(node: Node) -> SSAValue:
    """Insert axes of size one at the given positions of the result."""
    axes = _axes_operand(node) or ()
    rank = node.rank() + len(axes)
    new = {normalize_axis(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise ModelError(f"Unsqueeze: axes {list(axes)} name an axis twice", node=node.name)
    sizes = iter(node.sizes())
    return node.emit(ReshapeOp, node.input(), shape=[1 if axis in new else next(sizes) for axis in range(rank)])


@onnx_operator("Transpose")
def transpose(node: Node) -> SSAValue:
    """Permute the axes, by default into reverse order."""
    return node.emit(TransposeOp, node.input(), permutation=node.ints("perm", tuple(reversed(range(node.rank())))))


@onnx_operator("DepthToSpace")
def depth_to_space(node: Node) -> SSAValue:
    """Blocks of channels become blocks of pixels; the block is the outer part of the channel (CRD: the inner)."""
    block, mode = node.int("blocksize"), node.text("mode", "DCR")
    batch, channels, height, width = _image(node)
    depth = quotient(channels, block**2)
    if mode not in ("DCR", "CRD") or depth is None:
        raise ModelError(f"DepthToSpace: mode '{mode}' with blocks of {block} does not fit", node=node.name)
    split, order = {
        "DCR": ((batch, block, block, depth, height, width), (0, 3, 4, 1, 5, 2)),
        "CRD": ((batch, depth, block, block, height, width), (0, 1, 4, 2, 5, 3)),
    }[mode]
    return _rearranged(node, node.input(), split, order, (batch, depth, height * block, width * block))


@onnx_operator("SpaceToDepth")
def space_to_depth(node: Node) -> SSAValue:
    """Blocks of pixels become blocks of channels, the block the outer part of the channel (CRD: the inner)."""
    block, mode = node.int("blocksize"), node.text("mode", "DCR")
    batch, channels, height, width = _image(node)
    if mode not in ("DCR", "CRD") or any(isinstance(size, int) and size % block for size in (height, width)):
        raise ModelError(f"SpaceToDepth: mode '{mode}' with blocks of {block} does not fit", node=node.name)
    # If a symbolic size is no multiple of the block, reading whole blocks makes the call fail.
    rows, columns = ((size + (block - 1)) // block for size in (height, width))
    image = node.input()
    for axis, (count, size) in enumerate(((rows, height), (columns, width)), start=2):
        if count * block != size:
            image = gathered(node, image, axis, scalar(node, 0), count * block)
    split = (batch, channels, rows, block, columns, block)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return _rearranged(node, image, split, order, (batch, channels * block**2, rows, columns))


def _image(node: Node) -> Sizes:
    if node.rank() != 4:
        raise ModelError(f"{node.kind} takes [N, C, H, W], not shape {node.sizes()}", node=node.name)
    return node.sizes()


def _rearranged(node: Node, image: SSAValue, split: Sizes, order: Shape, shape: Sizes) -> SSAValue:
    """Split the axes of an image, permute them, and merge them."""
    parts = node.emit(ReshapeOp, image, shape=split)
    return node.emit(ReshapeOp, node.emit(TransposeOp, parts, permutation=order), shape=shape)


# Parts


@onnx_operator("Slice")
def slice_attributes(node: Node) -> SSAValue:
    """Bounds as attributes, up to opset 9."""
    starts = node.ints("starts")
    return _slice(node, starts, node.ints("ends"), node.ints("axes", range(len(starts))), (1,) * len(starts))


@onnx_operator("Slice", since=10)
def slice_operands(node: Node) -> SSAValue:
    """Bounds as operands, which may depend on data."""
    starts = bounds_of(node, node.input(1), "the start")
    axes = range(len(starts)) if node.optional(3) is None else node.integers(3, "the axes")
    steps = (1,) * len(starts) if node.optional(4) is None else node.integers(4, "the step")
    return _slice(node, starts, bounds_of(node, node.input(2), "the end"), axes, steps)


def _slice(
    node: Node, starts: Sequence[Bound], ends: Sequence[Bound], axes: Sequence[int], steps: Sequence[int]
) -> SSAValue:
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ModelError(f"{node.kind}: starts, ends, axes and steps do not fit each other", node=node.name)
    shape = node.sizes()
    if wrong := [axis for axis in axes if not -len(shape) <= axis < len(shape)]:
        raise ModelError(
            f"{node.kind}: shape {shape} has no axis {wrong[0]}", node=node.name, hint=f"axes are {list(axes)}"
        )
    first: list[Size] = [0] * len(shape)
    last, stride = list(shape), [1] * len(shape)
    computed: dict[int, tuple[Bound, Bound, int]] = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        offset = normalize_axis(axis, len(shape))
        known = _part(start, end, step, shape[offset])
        if known is None:
            computed[offset] = start, end, step
        else:
            first[offset], last[offset], stride[offset] = known
    found = node.input()
    if len(computed) < len(axes) or not axes:
        found = node.emit(SliceOp, found, starts=first, ends=last, steps=stride)
    for offset, (start, end, step) in computed.items():
        found = computed_part(node, found, offset, start, end, step)
    return found


def _part(start: Bound, end: Bound, step: int, size: Size) -> tuple[Size, Size, int] | None:
    """Start, end and step of a slice of an axis, clamped to it; `None` if they are computed or cannot be decided."""
    if isinstance(start, SSAValue) or isinstance(end, SSAValue):
        return None
    if isinstance(start, int) and isinstance(end, int) and isinstance(size, int):
        taken = _taken(start, end, step, size)
        return taken.start, taken.stop, taken.step
    least, most = (0, size) if step > 0 else (-1, size - 1)
    first = _limited(_from_front(start, size), 0, most)
    last = _limited(_from_front(end, size), least, most)
    count = None if first is None or last is None else (last - first) * (1 if step > 0 else -1)
    if first is None or last is None or count is None or smallest(count) < 0 < largest(count):
        return None
    if largest(count) <= 0:
        return 0, 0, 1
    return first, last, step


def _from_front(bound: Size, size: Size) -> Size | None:
    """A bound of a slice, counted from the end if negative; `None` if its sign depends on symbols."""
    if largest(bound) < 0:
        return bound + size
    return bound if smallest(bound) >= 0 else None


def _limited(bound: Size | None, least: Size, most: Size) -> Size | None:
    """A bound clamped to `least` and `most`, or `most` if that is less; `None` if the choice depends on symbols."""
    if bound is None:
        return None
    if largest(most - least) < 0:
        return most
    if largest(bound - least) <= 0:
        return least if smallest(most - least) >= 0 else None
    if smallest(bound - most) >= 0:
        return most
    return bound if smallest(bound - least) >= 0 and smallest(most - bound) >= 0 else None


def _taken(start: int, end: int, step: int, size: int) -> range:
    """
    The positions that a slice takes of an axis: negative bounds count from the end, and bounds are clamped to the axis.

    Unlike Python, ONNX begins at the first element if a negative step has a start before the axis.
    """
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    least, most = (0, size) if step > 0 else (-1, size - 1)
    taken = range(min(max(start, 0), most), min(max(end, least), most), step)
    if not size or not taken:
        return range(0)
    # The step of a slice of one element does not matter: make it 1.
    return taken if len(taken) > 1 else range(taken[0], taken[0] + 1)


@onnx_operator("Split")
def split(node: Node) -> list[SSAValue]:
    """Split along `axis` into parts of the given or equal sizes; with `num_outputs` the last may be smaller."""
    axis = normalize_axis(node.int("axis", 0), node.rank())
    size = node.sizes()[axis]
    parts = _parts(node, size)
    sizes = [part for part in parts if not isinstance(part, SSAValue)]
    missing = size - sum(sizes) if len(sizes) == len(parts) else None
    if (isinstance(missing, int) and missing) or min(map(largest, sizes), default=0) < 0:
        lengths = ", ".join("?" if isinstance(part, SSAValue) else str(part) for part in parts)
        raise ModelError(f"Split: parts of [{lengths}] do not make up {size} elements", node=node.name)
    if missing != 0 or min(map(smallest, sizes), default=0) < 0:
        return computed_parts(node, node.input(), axis, parts)
    starts = [sum(sizes[:position]) for position in range(len(sizes))]
    positions = zip(starts, sizes, strict=True)
    return [cut(node, node.input(), {axis: (start, start + length)}) for start, length in positions]


def _parts(node: Node, size: Size) -> list[Bound]:
    """The sizes of the parts into which a Split divides `size` elements."""
    lengths: list[Bound] | None = None
    if node.has("split"):
        lengths = list(node.ints("split"))
    elif node.optional(1) is not None:
        lengths = bounds_of(node, node.input(1), "the sizes")
    outputs = len(node.proto.output)
    count = node.int("num_outputs", outputs) if lengths is None else len(lengths)
    if count != outputs:
        hint = "there are as many sizes, or num_outputs, as the node has outputs"
        raise ModelError(f"Split: {outputs} outputs cannot take {count} parts", node=node.name, hint=hint)
    if lengths is not None:
        return lengths
    may_differ = node.has("num_outputs")
    if isinstance(size, int):
        if size % count and not may_differ:
            hint = "num_outputs, from opset 18 on, takes a smaller part, or give the sizes of all"
            raise ModelError(f"Split: {size} elements do not make up {count} equal parts", node=node.name, hint=hint)
        part = -(-size // count)
        return [max(0, min(part, size - part * position)) for position in range(count)]
    equal = quotient(size, count)
    return equal_parts(node, size, count, may_differ) if equal is None else [equal] * count


_CONCAT = PlainOperator("Concat", ConcatOp, AttributeMap(integer("axis", 1)))
"""The form up to opset 3, in which the axis has a default."""

onnx_operator(_CONCAT.kind)(plain_importer(_CONCAT))


# Borders


def _pad(node: Node, pads: Sequence[int], axes: Sequence[int], fill: SSAValue | None) -> SSAValue:
    if len(pads) != 2 * len(axes):
        raise ModelError(f"Pad: {len(pads)} widths do not fit {len(axes)} axes", node=node.name)
    widths = [(0, 0)] * node.rank()
    for position, axis in enumerate(axes):
        widths[normalize_axis(axis, node.rank())] = (pads[position], pads[position + len(axes)])
    return pad_value(node, node.input(), widths, node.text("mode", "constant"), fill)


def _pad_by(attribute: str) -> Callable[[Node], SSAValue]:
    """Widths and value as attributes, up to opset 10."""

    def pad(node: Node) -> SSAValue:
        fill = node.float("value", 0.0)
        value = node.constant(fill, like=node.input()) if fill else None
        return _pad(node, node.ints(attribute), range(node.rank()), value)

    return pad


onnx_operator("Pad")(_pad_by("paddings"))
onnx_operator("Pad", since=2)(_pad_by("pads"))


@onnx_operator("Pad", since=11)
def pad_operands(node: Node) -> SSAValue:
    """Widths, value and axes as operands; the value may depend on an input."""
    fill = node.optional(2)
    if fill is not None and rank_of(fill):
        fill = node.emit(ReshapeOp, fill, shape=())
    axes = range(node.rank()) if node.optional(3) is None else node.integers(3, "the axes")
    return _pad(node, node.integers(1, "the border"), axes, fill)


@onnx_operator("CenterCropPad")
def center_crop_pad(node: Node) -> SSAValue:
    """Crop or pad with zeros on both sides to a shape; an odd remainder goes to the end."""
    axes = node.ints("axes", range(node.rank()))
    widths = [(0, 0)] * node.rank()
    sizes = node.integers(1, "the shape")
    if len(sizes) != len(axes):
        raise ModelError(f"CenterCropPad: {len(sizes)} sizes do not fit {len(axes)} axes", node=node.name)
    for axis, size in zip(axes, sizes, strict=True):
        offset = normalize_axis(axis, node.rank())
        missing = size - node.shape()[offset]
        half = abs(missing) // 2
        widths[offset] = (half, missing - half) if missing > 0 else (-half, missing + half)
    return pad_value(node, node.input(), widths, "constant", None)


# Repetition


@onnx_operator("Expand")
def expand(node: Node) -> SSAValue:
    """Broadcast the operand's shape with the given one."""
    value, lengths = node.input(), node.known_sizes(1, "the shape")
    value = stretched(node, value, lengths)
    shape = broadcast(sizes_of(value), lengths)
    return value if shape == sizes_of(value) else node.emit(ExpandOp, value, shape=shape)


@onnx_operator("Tile")
def tile_axis(node: Node) -> SSAValue:
    """Repeat the operand along one axis, up to opset 5."""
    count, axis = (node.integers(i, role)[0] for i, role in ((1, "the number of copies"), (2, "the axis")))
    offset = normalize_axis(axis, node.rank())
    return node.emit(TileOp, node.input(), repeats=[count if i == offset else 1 for i in range(node.rank())])


@onnx_operator("Tile", since=6)
def tile(node: Node) -> SSAValue:
    """Repeat the operand along each axis."""
    return node.emit(TileOp, node.input(), repeats=node.integers(1, "the number of copies"))
