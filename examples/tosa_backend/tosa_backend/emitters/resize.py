"""Resampled images, where places of the result are fractions that RESIZE has."""

from __future__ import annotations

from fractions import Fraction

from xdsl.dialects.builtin import f32, i8
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.resize import ResizeOp
from glow_mlir.dialects.properties import flag, text
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.support.dataclass import dataclass
from tosa_backend.builder import TosaBuilder
from tosa_backend.dialect import ResizeMode, ResizeModeAttr
from tosa_backend.elements import held
from tosa_backend.rules import emits

MODES = {"nearest": ResizeMode.NEAREST_NEIGHBOR, "linear": ResizeMode.BILINEAR}
MAX_SCALE = 256
"""The largest scale at the level 8K of TOSA."""


@dataclass(frozen=True)
class Axis:
    """Places along an axis: (index · `step` + `offset`) / `scale`; `border` follows from the sizes."""

    scale: int
    step: int
    offset: int
    border: int


def _axis_of(op: ResizeOp, axis: int) -> Axis | None:
    """The places along an axis; `None` where TOSA has none such."""
    before, after = shape_of(op.input)[axis], shape_of(op.result)[axis]
    rule = text(op.coordinates)
    if rule == "align_corners":
        stride, first = Fraction(before - 1, max(after - 1, 1)), Fraction(0)
    elif rule in ("asymmetric", "half_pixel") and op.ratios()[axis] == after / before:
        stride = Fraction(before, after)
        first = Fraction(0) if rule == "asymmetric" else stride / 2 - Fraction(1, 2)
    else:
        return None
    scale = 2 * stride.denominator  # Of halves, too.
    step, offset = int(stride * scale), first * scale
    if offset.denominator > 1 or scale > MAX_SCALE:
        return None
    found = int(offset) + (_shift(text(op.rounding), scale) if text(op.mode) == "nearest" else 0)
    border = (after - 1) * step - (before - 1) * scale + found
    fits = -scale <= found < 16 * scale and -16 * scale <= border < scale and 0 < step < 16 * scale
    return Axis(scale, step, found, border) if fits else None


def _shift(rounding: str, scale: int) -> int:
    """What makes a place whose nearest element TOSA takes, halves up, that of another rule."""
    return {"round_prefer_ceil": 0, "round_prefer_floor": -1, "floor": -(scale // 2), "ceil": scale // 2 - 1}[rounding]


def _can_resize(op: ResizeOp) -> bool:
    is_image = rank_of(op.input) == 4 and all(op.ratios()[axis] == 1 for axis in (0, 3)) and not flag(op.antialias)
    element, mode = held(element_of(op.input)), text(op.mode)
    has_mode = (mode == "nearest" and element in (f32, i8)) or (mode == "linear" and element == f32)
    return is_image and has_mode and not flag(op.exclude_outside) and all(_axis_of(op, axis) for axis in (1, 2))


@emits(ResizeOp, when=_can_resize)
def resize(op: ResizeOp, b: TosaBuilder) -> SSAValue:
    """RESIZE; what lies beyond the border is the last element."""
    axes = [found for axis in (1, 2) if (found := _axis_of(op, axis)) is not None]
    scale = b.sizes([number for axis in axes for number in (axis.scale, axis.step)])
    offset, border = (b.sizes(numbers) for numbers in zip(*((axis.offset, axis.border) for axis in axes), strict=True))
    mode = ResizeModeAttr(MODES[text(op.mode)])
    return b("resize", b.value(op.input), scale, offset, border, shape=shape_of(op.result), mode=mode)
