"""ONNX's resizing operators: Resize, and its predecessor Upsample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.shapes import has_static_shape, normalize_axis, sizes_of
from glow_mlir.dialects.sizes import HINT, largest, static
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.slices import MAX_POSITIONS
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.operators.operator_map import ATTRIBUTE_MAPS
from glow_mlir.ir.registry import onnx_operator
from glow_mlir.support.symbols import Size, SymbolicSize, quotient

if TYPE_CHECKING:
    from fractions import Fraction

T = TypeVar("T")

_MAX_EXACT = 1 << 24
"""f32 represents all integers up to this one."""

_LARGEST = float(np.finfo(np.float32).max)
"""The largest f32 number, to which larger ones are clamped: both are too large for a size."""


_NEAREST_ONLY, _WITHOUT_NEAREST_ONLY = "tf_half_pixel_for_nn", 19
"""A rule for coordinates, and the first opset version without it."""


def _scales(node: Node, position: int) -> list[float]:
    """The operand of scales; raises `ModelError` unless they are positive and finite."""
    scales = [float(scale) for scale in node.array(position, "the scale").reshape(-1)]
    return _checked(node, scales)


def _checked(node: Node, scales: Sequence[float]) -> list[float]:
    if wrong := [scale for scale in scales if not 0 < scale < math.inf]:
        raise ModelError(f"{node.kind}: the scale {wrong[0]} is invalid", node=node.name)
    return list(scales)


_MAX_PARTS = 64
"""The largest denominator of a scale for sizes that are known at run time only."""


def _scaled(node: Node, size: Size, scale: float) -> Size:
    """A size times a scale, rounded down; raises `UnsupportedError` if a symbolic size has no exact quotient."""
    # In f32, as in ONNX's shape inference: 3 elements times f32(5/3) are 5, although the exact product is less.
    factor = np.float32(min(scale, _LARGEST))
    if isinstance(size, int):
        with np.errstate(over="ignore"):
            return math.floor(min(float(np.float32(size) * factor), _LARGEST))
    from fractions import Fraction  # Rarely needed.

    part = Fraction(scale).limit_denominator(_MAX_PARTS)
    # Sizes beyond f32's exact integers are refused: there may be too many to check all of them.
    if max(scale, 1.0) * size.most >= _MAX_EXACT or not _is_quotient(size, factor, part):
        reason = f"{node.kind}: {size} elements scaled by {scale} have no size that is a quotient"
        raise UnsupportedError(reason, node=node.name, hint=HINT)
    return size * part.numerator // part.denominator


def _is_quotient(size: SymbolicSize, factor: np.float32, part: Fraction) -> bool:
    """Whether a fraction and a factor give the same result for all values of a size."""
    sizes = np.arange(size.least, size.most + 1)
    by_scale, exact = np.floor(sizes.astype(np.float32) * factor), sizes * float(part.numerator) // part.denominator
    return np.array_equal(by_scale, exact)


def _simple(node: Node, scales: Sequence[float]) -> SSAValue:
    """The rules of Upsample, and of Resize before opset 11: positions are scaled, without half pixels."""
    if len(scales) != node.rank():
        raise ModelError(f"{node.kind}: {len(scales)} scales do not fit {node.rank()} axes", node=node.name)
    if node.text("mode", "nearest") in ("linear", "bilinear"):
        return resized(node, node.input(), scales, "linear", "floor")
    # The nearest element is before a position, but after it along axes that shrink.
    grown = resized(node, node.input(), [max(scale, 1.0) for scale in scales], "nearest", "floor")
    return resized(node, grown, [min(scale, 1.0) for scale in scales], "nearest", "ceil")


def resized(
    node: Node, value: SSAValue, scales: Sequence[float], mode: str, rounding: str, coordinates: str = "asymmetric"
) -> SSAValue:
    """Resize a value by one scale per axis."""
    if all(scale == 1.0 for scale in scales):
        return value
    if not has_static_shape(value) and _repeats(scales, (mode, coordinates, rounding)):
        return _repeated(node, value, scales)
    shape = [_scaled(node, size, scale) for size, scale in zip(sizes_of(value), scales, strict=True)]
    node.check_size(*map(largest, shape))
    if max(map(largest, shape), default=0) > MAX_POSITIONS:
        raise node.unsupported(f"an axis of {max(map(largest, shape))} elements is longer than {MAX_POSITIONS}")
    scales = [float(scale) for scale in scales]
    return node.emit(ResizeOp, value, shape=shape, scales=scales, mode=mode, coordinates=coordinates, rounding=rounding)


REPEATS = {
    ("nearest", "asymmetric", "floor"),
    ("nearest", "half_pixel", "round_prefer_floor"),
    ("nearest", "half_pixel", "round_prefer_ceil"),
}
"""Mode, coordinates and rounding for which resizing by an integer scale repeats each element."""


def _run_time_sizes(node: Node, axes: Sequence[int]) -> tuple[list[Size], list[float]]:
    """Sizes and scales of a Resize for all axes, if some sizes are known at run time only."""
    shape, scales = list(node.sizes()), [1.0] * node.rank()
    if not _given(node, 3):
        for axis, scale in _per_axis(node, _scales(node, 2), axes, "scales").items():
            shape[axis], scales[axis] = _scaled(node, shape[axis], scale), scale
        return shape, scales
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise node.unsupported("keep_aspect_ratio_policy needs constant sizes")
    for axis, wanted in _per_axis(node, node.known_sizes(3, "the size"), axes, "sizes").items():
        shape[axis], scales[axis] = wanted, _ratio(node, shape[axis], wanted)
    return shape, scales


def _ratio(node: Node, before: Size, after: Size) -> float:
    """
    The scale from one size to the other, 0 if both are known.

    Raises `UnsupportedError` if it depends on symbols.
    """
    if isinstance(before, int) and isinstance(after, int):
        return 0.0
    scale = 1 if before == after else quotient(after, before)
    if not isinstance(scale, int):
        reason = f"{node.kind}: {before} elements become {after} by a scale that depends on the sizes"
        raise UnsupportedError(reason, node=node.name, hint=HINT)
    return float(scale)


def _repeats(scales: Sequence[float], rule: tuple[str, str, str]) -> bool:
    """Whether resizing only repeats elements."""
    return rule in REPEATS and all(scale >= 1 and float(scale).is_integer() for scale in scales)


def _repeated(node: Node, value: SSAValue, factors: Sequence[float]) -> SSAValue:
    """Repeat each element along each axis by an integer factor; sizes may be symbolic."""
    sizes, times = sizes_of(value), [int(factor) for factor in factors]
    pairs = list(zip(sizes, times, strict=True))
    apart = node.emit(ReshapeOp, value, shape=[item for size in sizes for item in (size, 1)])
    repeated = node.emit(ExpandOp, apart, shape=[item for pair in pairs for item in pair])
    return node.emit(ReshapeOp, repeated, shape=[size * count for size, count in pairs])


@onnx_operator("Upsample")
def upsample_image(node: Node) -> SSAValue:
    """Scales for height and width as attributes, up to opset 6."""
    return _simple(node, _checked(node, [1.0, 1.0, node.float("height_scale"), node.float("width_scale")]))


@onnx_operator("Upsample", since=7)
def upsample_attributes(node: Node) -> SSAValue:
    """Scales as an attribute, up to opset 8."""
    return _simple(node, _checked(node, node.floats("scales")))


@onnx_operator("Upsample", since=9)
@onnx_operator("Resize")
def upsample(node: Node) -> SSAValue:
    """Scales as an operand."""
    return _simple(node, _scales(node, 1))


@onnx_operator("Resize", since=11)
def resize(node: Node) -> SSAValue:
    """Scales or sizes as operands; attributes choose the rules."""
    axes = [normalize_axis(axis, node.rank()) for axis in node.ints("axes", range(node.rank()))]
    properties = ATTRIBUTE_MAPS["Resize"].import_from(node)
    mode, coordinates, rounding = (str(properties[name]) for name in ("mode", "coordinates", "rounding"))
    shape: Sequence[Size]
    if has_static_shape(node.input()):
        shape, scales = _by_sizes(node, axes) if _given(node, 3) else _by_scales(node, axes)
    else:
        shape, scales = _run_time_sizes(node, axes)
        if _repeats(scales, (mode, coordinates, rounding)):
            return _repeated(node, node.input(), scales)
    node.check_size(*map(largest, shape))
    if coordinates == _NEAREST_ONLY and node.version >= _WITHOUT_NEAREST_ONLY:
        reason = f"opset {node.version} has no coordinates '{coordinates}'"
        node.doubt(reason, "they are those of opset 13", "half_pixel replaced them")
    return node.emit(
        ResizeOp,
        node.input(),
        shape=shape,
        scales=scales,
        **properties,
        roi=_region(node, axes) if coordinates == "tf_crop_and_resize" else None,
    )


def _given(node: Node, position: int) -> bool:
    """Whether an operand is present and not empty; before opset 13, absent operands were written as empty ones."""
    return node.optional(position) is not None and 0 not in node.shape(position)


def _per_axis(node: Node, values: Sequence[T], axes: Sequence[int], role: str) -> dict[int, T]:
    if len(values) != len(axes):
        raise ModelError(f"Resize: {len(values)} {role} do not fit {len(axes)} axes", node=node.name)
    return dict(zip(axes, values, strict=True))


def _by_scales(node: Node, axes: Sequence[int]) -> tuple[list[int], list[float]]:
    scales = _per_axis(node, _scales(node, 2), axes, "scales")
    shape = [static((_scaled(node, size, scales.get(axis, 1.0)),))[0] for axis, size in enumerate(node.shape())]
    return shape, [scales.get(axis, 1.0) for axis in range(node.rank())]


def _by_sizes(node: Node, axes: Sequence[int]) -> tuple[list[int], list[float] | None]:
    sizes = _per_axis(node, node.integers(3, "the size"), axes, "sizes")
    shape = node.shape()
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [int(sizes.get(axis, size)) for axis, size in enumerate(shape)], None
    if policy not in ("not_larger", "not_smaller"):
        raise ModelError(f"Resize: keep_aspect_ratio_policy '{policy}' does not exist", node=node.name)
    if 0 in shape:
        hint = "check the shape of the operand"
        raise ModelError(f"Resize: shape {shape} has no elements to resize", node=node.name, hint=hint)
    scale = (min if policy == "not_larger" else max)(sizes[axis] / shape[axis] for axis in axes)
    kept = [math.floor(scale * size + 0.5) if axis in sizes else size for axis, size in enumerate(shape)]
    return kept, [scale if axis in sizes else 1.0 for axis in range(len(shape))]


def _region(node: Node, axes: Sequence[int]) -> list[float]:
    region = node.array(1, "the region of interest").reshape(-1).tolist()
    starts = _per_axis(node, region[: len(axes)], axes, "region starts")
    ends = _per_axis(node, region[len(axes) :], axes, "region ends")
    every = range(node.rank())
    return [*(float(starts.get(axis, 0.0)) for axis in every), *(float(ends.get(axis, 1.0)) for axis in every)]
