"""Elementwise activation functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import f64
from xdsl.ir import Attribute
from xdsl.irdl import operand_def

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high import activation_functions as functions
from glow_mlir.dialects.glow_high.elementwise import Binary, Unary
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.ranges import POSITIVE, SIGNED_UNIT, UNIT, Range, above_zero
from glow_mlir.dialects.operand_types import FLOATS
from glow_mlir.dialects.properties import float_prop, number, text, text_prop
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import require
from glow_mlir.xdsl_patches.definitions import op_definition


class Activation(Unary):
    """An activation function: one float operand."""

    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    input = operand_def(FLOATS)


@op_definition
class ReluOp(Unary):
    """max(x, 0) (ONNX Relu)."""

    name = "glow_high.relu"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    def scales_channels(self) -> bool:
        return True

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.relu(b, x)


@op_definition
class SigmoidOp(Activation):
    """1 / (1 + exp(-x)) (ONNX Sigmoid)."""

    name = "glow_high.sigmoid"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.sigmoid(b, x)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return UNIT


@op_definition
class TanhOp(Activation):
    """Hyperbolic tangent (ONNX Tanh)."""

    name = "glow_high.tanh"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.unary("tanh", x)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return SIGNED_UNIT


@op_definition
class LeakyReluOp(Activation):
    """x, below zero `alpha`·x (ONNX LeakyRelu)."""

    name = "glow_high.leaky_relu"
    alpha = float_prop(0.01)

    def scales_channels(self) -> bool:
        return True

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.leaky_relu(b, x, number(self.alpha))

    def result_range(self, operands: Sequence[Range]) -> Range:
        return above_zero(operands[0])


@op_definition
class EluOp(Activation):
    """x, below zero `alpha`·(exp(x) - 1) (ONNX Elu)."""

    name = "glow_high.elu"
    alpha = float_prop(1.0)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.elu(b, x, number(self.alpha))

    def result_range(self, operands: Sequence[Range]) -> Range:
        return above_zero(operands[0])


@op_definition
class SeluOp(Activation):
    """`gamma`·x, below zero `gamma`·`alpha`·(exp(x) - 1) (ONNX Selu)."""

    name = "glow_high.selu"
    alpha = float_prop(1.67326319217681884765625)
    gamma = float_prop(1.05070102214813232421875)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return b.select(x > 0.0, x, b.unary("expm1", x) * number(self.alpha)) * number(self.gamma)


@op_definition
class CeluOp(Activation):
    """max(x, 0) + min(0, `alpha`·(exp(x / `alpha`) - 1)) (ONNX Celu)."""

    name = "glow_high.celu"
    alpha = float_prop(1.0)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        alpha = number(self.alpha)
        below = b.unary("expm1", x / alpha) * alpha
        return b.maximum(x, 0.0) + b.minimum(below, 0.0)


@op_definition
class HardSigmoidOp(Activation):
    """`alpha`·x + `beta`, limited to [0, 1] (ONNX HardSigmoid)."""

    name = "glow_high.hard_sigmoid"
    alpha = float_prop(0.2)
    beta = float_prop(0.5)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.hard_sigmoid(b, x, number(self.alpha), number(self.beta))

    def result_range(self, operands: Sequence[Range]) -> Range:
        return UNIT


@op_definition
class HardSwishOp(Activation):
    """x·min(max(x/6 + 1/2, 0), 1) (ONNX HardSwish)."""

    name = "glow_high.hard_swish"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return x * b.clamp(x * (1.0 / 6.0) + 0.5, 0.0, 1.0)


@op_definition
class SwishOp(Activation):
    """x·sigmoid(`alpha`·x) (ONNX Swish)."""

    name = "glow_high.swish"
    alpha = float_prop(1.0)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return x / (1.0 + b.unary("exp", -(x * number(self.alpha))))


@op_definition
class GeluOp(Activation):
    """x·Φ(x) (ONNX Gelu); `approximate` is `none` (by erf) or `tanh`."""

    name = "glow_high.gelu"
    approximate = text_prop("none")

    def check_elements(self) -> Attribute:
        mode = text(self.approximate)
        require(mode in ("none", "tanh"), f"approximate must be 'none' or 'tanh', not '{mode}'")
        return Activation.check_elements(self)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        if text(self.approximate) == "tanh":
            inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
            return x * 0.5 * (b.unary("tanh", inner) + 1.0)
        return x * 0.5 * (b.unary("erf", x * math.sqrt(0.5)) + 1.0)


@op_definition
class SoftplusOp(Activation):
    """log(1 + exp(x)) (ONNX Softplus), without overflow for large x."""

    name = "glow_high.softplus"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.softplus(b, x)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return POSITIVE


@op_definition
class SoftsignOp(Activation):
    """x / (1 + |x|) (ONNX Softsign)."""

    name = "glow_high.softsign"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.softsign(b, x)

    def result_range(self, operands: Sequence[Range]) -> Range:
        return SIGNED_UNIT


@op_definition
class MishOp(Activation):
    """x·tanh(softplus(x)) (ONNX Mish)."""

    name = "glow_high.mish"

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return x * b.unary("tanh", functions.softplus(b, x))


@op_definition
class ThresholdedReluOp(Activation):
    """x where it exceeds `alpha`, else 0 (ONNX ThresholdedRelu)."""

    name = "glow_high.thresholded_relu"
    alpha = float_prop(1.0)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        return functions.thresholded_relu(b, x, number(self.alpha))

    def is_discontinuous(self) -> bool:
        return True


@op_definition
class ShrinkOp(Unary):
    """x moved towards zero by `bias` beyond ±`lambd`, 0 between (ONNX Shrink); in f64, truncated, for integers."""

    name = "glow_high.shrink"
    bias = float_prop(0.0)
    lambd = float_prop(0.5)

    def scalar(self, b: ScalarBuilder, x: Scalar) -> Scalar:
        bias, limit = number(self.bias), number(self.lambd)
        real = x if is_float(x.element) else b.convert(x, f64)
        moved = b.select(real < -limit, real + bias, b.select(real > limit, real - bias, 0))
        return b.convert(moved, x.element)

    def is_discontinuous(self) -> bool:
        return True


@op_definition
class PReluOp(Binary):
    """x, below zero `slope`·x (ONNX PRelu)."""

    name = "glow_high.prelu"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.ARITHMETIC

    def scalar(self, b: ScalarBuilder, x: Scalar, slope: Scalar) -> Scalar:
        return b.select(x < 0, x * slope, x)
