"""Operators that move elements without computing on them: shape, order, selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def, var_operand_def
from xdsl.pattern_rewriter import RewritePattern

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import storage_of
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.independence import Runs, reshaped_runs
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.ranges import ZERO, Range, joined
from glow_mlir.dialects.glow_high.samples import (
    Samples,
    assembled_axis,
    broadcast_samples,
    is_apart,
    one_axis,
    reshaped_samples,
    resized,
)
from glow_mlir.dialects.glow_high.transposition import (
    PerAxis,
    Untransposed,
    untransposed_reshape,
)
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.properties import (
    int_prop,
    integer,
    ints,
    ints_prop,
    optional_ints_prop,
    sizes,
    sizes_prop,
    text,
    text_prop,
)
from glow_mlir.dialects.shapes import (
    Shape,
    element_of,
    normalize_axis,
    rank_of,
    require,
    require_broadcast_to,
    require_equal,
    shape_of,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import largest, smallest, static
from glow_mlir.support.symbols import Size, product_of
from glow_mlir.xdsl_patches.definitions import op_definition


class DataMovement(HighOp, HasFolderInterface, HasCanonicalizationPatternsInterface):
    """An operator that moves elements; if it moves none, it is folded to its first operand."""

    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.MOVEMENT

    def is_identity(self) -> bool:
        """Whether the result always equals the first operand."""
        return False

    def moves_only(self) -> bool:
        """Whether each element of the result is an element of an operand, for any element type."""
        return True

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        return (self.operands[0],) if self.is_identity() else None

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from glow_mlir.dialects.glow_high.canonicalization import data_movement, slices

        return (*data_movement.PATTERNS.get(cls, ()), *slices.PATTERNS.get(cls, ()))


@op_definition
class ReshapeOp(DataMovement):
    """
    The same elements in the same order under another `shape` (ONNX Reshape, Flatten, Squeeze, Unsqueeze).

    ```mlir
    %y = glow_high.reshape %x {shape = [1, 2048]} : tensor<1x2048xf32>
    ```
    """

    name = "glow_high.reshape"
    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {"shape": PerAxis.EXTENT}
    NOTATION: ClassVar[str] = "input[*] -> result[*]"
    IS_VIEW: ClassVar[bool] = True

    input = operand_def(TENSOR)
    shape = sizes_prop()
    result = result_def(TENSOR)

    def is_identity(self) -> bool:
        return sizes_of(self.input) == sizes_of(self.result)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape = sizes(self.shape)
        count, given = product_of(shape), product_of(sizes_of(self.input))
        require_equal(count, given, f"shape {shape} has {count} elements, the input {given}")
        return (tensor(shape, element_of(self.input)),)

    def over_rows(self, is_row: Sequence[bool], count: Size) -> Mapping[str, Attribute] | None:
        return {"shape": to_attribute((count, *sizes(self.shape)))}

    def runs(self, operands: Sequence[Runs | None], batch: int) -> Runs | None:
        (runs,) = operands
        return None if runs is None else reshaped_runs(runs, shape_of(self.input), shape_of(self.result), batch)

    def untransposed(self, permutation: Shape) -> Untransposed | None:
        """For shapes that split or merge axes: groups of axes that the reshape does not mix are permuted as a whole."""
        return untransposed_reshape(self, shape_of(self.input), shape_of(self.result), permutation)

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        return [reshaped_samples(operands[0], shape_of(self.result))]

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0]


@op_definition
class TransposeOp(DataMovement):
    """
    The axes in another order: axis i of the result is axis `permutation`[i] of the input (ONNX Transpose).

    ```mlir
    %y = glow_high.transpose %x {permutation = [0, 2, 3, 1]} : tensor<1x224x224x3xf32>
    ```
    """

    name = "glow_high.transpose"

    input = operand_def(TENSOR)
    permutation = ints_prop()
    result = result_def(TENSOR)

    def is_identity(self) -> bool:
        return ints(self.permutation) == tuple(range(rank_of(self.input)))

    def access_map(self) -> AccessMap:
        order = ints(self.permutation)
        axes = tuple(f"d{axis}" for axis in range(len(order)))
        return AccessMap((axes,), (tuple(axes[axis] for axis in order),), 0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        permutation = ints(self.permutation)
        rank = rank_of(self.input)
        require(sorted(permutation) == list(range(rank)), f"{permutation} is no permutation of {rank} axes")
        shape = sizes_of(self.input)
        return (tensor([shape[axis] for axis in permutation], element_of(self.input)),)

    def over_rows(self, is_row: Sequence[bool], count: Size) -> Mapping[str, Attribute] | None:
        return {"permutation": to_attribute((0, *(axis + 1 for axis in ints(self.permutation))))}

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0]


@op_definition
class ConcatOp(DataMovement):
    """
    The concatenation of the operands along `axis` (ONNX Concat).

    ```mlir
    %y = glow_high.concat %a, %b {axis = 3} : tensor<1x56x56x128xf32>
    ```
    """

    name = "glow_high.concat"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)
    TRANSPOSES_ALL: ClassVar[bool] = True

    parts = var_operand_def(TENSOR)
    axis = int_prop()
    result = result_def(TENSOR)

    def is_identity(self) -> bool:
        return len(self.parts) == 1

    def access_map(self) -> AccessMap:
        return self.aligned((normalize_axis(integer(self.axis), rank_of(self.result)),), tiled=0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        require(len(self.parts) > 0, "concat needs at least one operand")
        shapes = [sizes_of(operand) for operand in self.parts]
        axis = normalize_axis(integer(self.axis), len(shapes[0]))
        for shape in shapes:
            message = f"shapes {shapes[0]} and {shape} differ outside axis {axis}"
            require(len(shape) == len(shapes[0]), message)
            require_equal((*shape[:axis], *shape[axis + 1 :]), (*shapes[0][:axis], *shapes[0][axis + 1 :]), message)
        total: Size = 0
        for shape in shapes:
            total = shape[axis] + total
        element = element_of(self.parts[0])
        require(all(element_of(operand) == element for operand in self.parts), "operands differ in element type")
        return (tensor((*shapes[0][:axis], total, *shapes[0][axis + 1 :]), element),)

    def extended(self) -> SSAValue | None:
        first = self.parts[0]
        return None if isinstance(sizes_of(first)[integer(self.axis)], int) else first

    def runs(self, operands: Sequence[Runs | None], batch: int) -> Runs | None:
        axis = normalize_axis(integer(self.axis), rank_of(self.result))
        parts = [part for part in operands if part is not None and part.axis == axis]
        if len(parts) < len(operands) or any(part.inner != parts[0].inner for part in parts):
            return None
        return Runs(axis, sum(part.outer for part in parts), parts[0].inner)

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        shape = shape_of(self.result)
        axis = normalize_axis(integer(self.axis), len(shape))
        along = [part.axes[axis] for part in operands]
        slices = [part.with_axes([*part.axes[:axis], (), *part.axes[axis + 1 :]]) for part in operands]
        found = broadcast_samples(slices, (*shape[:axis], 1, *shape[axis + 1 :]))
        whole = next(filter(is_apart, along), ())
        assembled = assembled_axis(operands, whole, shape[axis])
        return [found.with_axes([*found.axes[:axis], assembled, *found.axes[axis + 1 :]])]

    def result_range(self, operands: Sequence[Range]) -> Range:
        return joined(operands)


@op_definition
class SliceOp(DataMovement):
    """
    Every `steps`-th element from `starts` up to, but excluding, `ends` along each axis (ONNX Slice, Split).

    Bounds never count from the back. A negative step walks down from `starts`; its end is -1 where it takes element 0.
    Starts and ends may be known at run time only.

    ```mlir
    %y = glow_high.slice %x {starts = [0, 9], ends = [1, -1], steps = [1, -1]} : tensor<1x10xf32>
    ```
    """

    name = "glow_high.slice"
    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {
        "starts": PerAxis.EXTENT,
        "ends": PerAxis.EXTENT,
        "steps": PerAxis.FACTOR,
    }

    input = operand_def(TENSOR)
    starts = sizes_prop()
    ends = sizes_prop()
    steps = optional_ints_prop()
    result = result_def(TENSOR)

    def bounds(self) -> tuple[tuple[Size, Size, int], ...]:
        """Start, end and step along each axis."""
        starts, ends = sizes(self.starts), sizes(self.ends)
        steps = ints(self.steps) or (1,) * len(starts)
        require(len(starts) == len(ends) == len(steps), "starts, ends and steps differ in length")
        require(0 not in steps, "the step must not be 0")
        return tuple(zip(starts, ends, steps, strict=True))

    def ranges(self) -> tuple[range, ...]:
        """
        The indices taken along each axis; the maximum range if it depends on symbols.

        Raises `RunTimeSizeError` for a start that is known at run time only.
        """
        bounds = self.bounds()
        firsts = static(tuple(start for start, _, _ in bounds))
        return tuple(range(first, largest(end), step) for first, (_, end, step) in zip(firsts, bounds, strict=True))

    @property
    def is_view(self) -> bool:
        """Whether the result is a view with static strides and offset, and positive steps."""
        return all(isinstance(start, int) and step > 0 for start, _, step in self.bounds())

    def is_identity(self) -> bool:
        return self.moves_nothing() and sizes_of(self.input) == sizes_of(self.result)

    def moves_nothing(self) -> bool:
        """Whether it takes the first elements along each axis."""
        return all(start == 0 and step == 1 for start, _, step in self.bounds())

    def access_map(self) -> AccessMap:
        cut = zip(self.bounds(), sizes_of(self.input), strict=True)
        return self.aligned((axis for axis, (bound, size) in enumerate(cut) if bound != (0, size, 1)), tiled=0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, bounds = sizes_of(self.input), self.bounds()
        require(len(bounds) == len(shape), f"starts must have {len(shape)} elements, one for each axis")
        taken = [taken_of(axis, size, *part) for axis, (size, part) in enumerate(zip(shape, bounds, strict=True))]
        return (tensor(taken, element_of(self.input)),)

    def runs(self, operands: Sequence[Runs | None], batch: int) -> Runs | None:
        (runs,) = operands
        if runs is None:
            return None
        (start, end, step), length = self.bounds()[runs.axis], batch * runs.inner
        if not (isinstance(start, int) and isinstance(end, int)) or step != 1:
            return None
        is_whole = start < end and start % length == 0 and end % length == 0
        return runs._replace(outer=(end - start) // length) if is_whole else None

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        (operand,) = operands
        taken = list(zip(self.ranges(), shape_of(self.input), operand.axes, strict=True))
        axes = [axis if part == range(size) else resized(axis, len(part)) for part, size, axis in taken]
        some = any(is_apart(axis) and len(part) < size for part, size, axis in taken)
        return [Samples(tuple(axes), operand.partial or some)]

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0]


def taken_of(axis: int, size: Size, start: Size, end: Size, step: int) -> Size:
    """The number of elements of an axis that a slice takes; raises `VerifyException` if it may exceed the axis."""
    if isinstance(start, int) and isinstance(end, int):
        part = range(start, end, step)
        inside = not part or (0 <= part[0] < smallest(size) and 0 <= part[-1] < smallest(size))
        require(inside, f"[{start}, {end}) leaves axis {axis} of {size} elements")
        return len(part)
    between = end - start if step > 0 else start - end
    if step > 0:
        inside = smallest(start) >= 0 and smallest(size - end) >= 0
    else:
        inside = smallest(end) >= -1 and smallest(size - start) >= 1
    require(inside, f"[{start}, {end}) may leave axis {axis} of {size} elements")
    require(smallest(between) > -abs(step), f"[{start}, {end}) may be no part of axis {axis}")
    return (between + (abs(step) - 1)) // abs(step)


PAD_MODES = ("constant", "edge", "reflect", "wrap")
"""The content of a pad's border: `value`, the nearest element, the input mirrored, the input repeated."""


@op_definition
class PadOp(DataMovement):
    """
    The input surrounded by a border (ONNX Pad), which is filled according to `mode`.

    `pads` holds the leading widths of all axes, then all trailing ones, none negative. The mode is `constant` (`value`,
    a scalar; 0 where it is absent), `edge`, `reflect` or `wrap`.

    ```mlir
    %y = glow_high.pad %x {pads = [0, 1, 1, 0, 0, 1, 1, 0], mode = "reflect"} : tensor<1x58x58x64xf32>
    ```
    """

    name = "glow_high.pad"
    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {"pads": PerAxis.ENDS}

    input = operand_def(TENSOR)
    value = opt_operand_def(TENSOR)
    pads = ints_prop()
    mode = text_prop("constant")
    result = result_def(TENSOR)

    def widths(self) -> tuple[tuple[int, int], ...]:
        """Leading and trailing width of each axis."""
        pads = ints(self.pads)
        rank = len(pads) // 2
        return tuple(zip(pads[:rank], pads[rank:], strict=True))

    def is_identity(self) -> bool:
        return not any(ints(self.pads))

    def access_map(self) -> AccessMap:
        return self.aligned((axis for axis, width in enumerate(self.widths()) if any(width)), tiled=0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, pads, mode = sizes_of(self.input), ints(self.pads), text(self.mode)
        require(mode in PAD_MODES, f"mode must be one of {', '.join(PAD_MODES)}, not '{mode}'")
        require(len(pads) == 2 * len(shape), f"pads must have {2 * len(shape)} elements, two for each axis")
        require(min(pads, default=0) >= 0, "pads must not be negative; slice instead")
        if self.value is not None:
            require(mode == "constant", f"mode '{mode}' takes no value")
            require(sizes_of(self.value) == (), f"the value must be a scalar, not of shape {sizes_of(self.value)}")
            require(element_of(self.value) == element_of(self.input), "the value has another element type")
        else:
            element = element_of(self.input)
            is_known = mode != "constant" or storage_of(element) == element
            require(is_known, "a border of {} takes a value, or is one of integers behind a storage_cast", element)
        widths = tuple(zip(pads[: len(shape)], pads[len(shape) :], strict=True))
        if mode != "constant":
            empty = any(smallest(size) == 0 and max(width) > 0 for size, width in zip(shape, widths, strict=True))
            require(not empty, f"mode '{mode}' needs an element to repeat along each axis that it pads")
        padded = [before + size + after for size, (before, after) in zip(shape, widths, strict=True)]
        return (tensor(padded, element_of(self.input)),)

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        padded = zip(operands[0].axes, shape_of(self.result), self.widths(), strict=True)
        axes = [assembled_axis(operands, axis, size) if any(width) else axis for axis, size, width in padded]
        return [Samples(tuple(axes), any(operand.partial for operand in operands))]

    def result_range(self, operands: Sequence[Range]) -> Range:
        if text(self.mode) != "constant":
            return operands[0]
        return operands[0].join(operands[1] if self.value is not None else ZERO)


@op_definition
class ExpandOp(DataMovement):
    """
    The input repeated along axes of size one, and along new leading axes, to `shape` (ONNX Expand; Glow's Broadcast).

    ```mlir
    %y = glow_high.expand %x {shape = [8, 128]} : tensor<8x128xf32>
    ```
    """

    name = "glow_high.expand"
    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {"shape": PerAxis.EXTENT}

    input = operand_def(TENSOR)
    shape = sizes_prop()
    result = result_def(TENSOR)

    def is_identity(self) -> bool:
        return sizes_of(self.input) == sizes_of(self.result)

    def access_map(self) -> AccessMap:
        return self.aligned(tiled=0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, given = sizes(self.shape), sizes_of(self.input)
        require_broadcast_to(given, shape, f"shape {given} does not broadcast to {shape}")
        return (tensor(shape, element_of(self.input)),)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0]


@op_definition
class TileOp(DataMovement):
    """
    The whole input repeated `repeats` times along each axis (ONNX Tile; Glow's Tile and InsertTensor).

    ```mlir
    %y = glow_high.tile %x {repeats = [1, 3]} : tensor<2x12xf32>
    ```
    """

    name = "glow_high.tile"
    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {"repeats": PerAxis.FACTOR}

    input = operand_def(TENSOR)
    repeats = ints_prop()
    result = result_def(TENSOR)

    def is_identity(self) -> bool:
        return all(count == 1 for count in ints(self.repeats))

    def access_map(self) -> AccessMap:
        return self.aligned((axis for axis, count in enumerate(ints(self.repeats)) if count != 1), tiled=0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, repeats = sizes_of(self.input), ints(self.repeats)
        require(len(repeats) == len(shape), f"repeats must have {len(shape)} elements, one for each axis")
        require(min(repeats, default=0) >= 0, "repeats must not be negative")
        tiled = [size * count for size, count in zip(shape, repeats, strict=True)]
        return (tensor(tiled, element_of(self.input)),)

    def runs(self, operands: Sequence[Runs | None], batch: int) -> Runs | None:
        (runs,) = operands
        count = 0 if runs is None else ints(self.repeats)[runs.axis]
        return runs._replace(outer=runs.outer * count) if runs is not None and count else None

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        repeated = zip(operands[0].axes, ints(self.repeats), strict=True)
        return [operands[0].with_axes([(*one_axis(count), *axis) for axis, count in repeated])]

    def result_range(self, operands: Sequence[Range]) -> Range:
        return operands[0]
