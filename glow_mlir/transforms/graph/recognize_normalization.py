"""`recognize-normalization`: recognize normalization over trailing axes written as arithmetic."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.normalization import LayerNormalizationOp, RmsNormalizationOp
from glow_mlir.dialects.glow_high.reductions import ReduceMeanOp, ReduceSumOp
from glow_mlir.dialects.properties import integer
from glow_mlir.dialects.shapes import Shape, element_of, normalize_axis, rank_of, shape_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import PatternPass, Walk
from glow_mlir.rewriting.formulas import Apply, Formula, Number, Reduced, Shared, Variable
from glow_mlir.rewriting.matching import Match
from glow_mlir.rewriting.recognition import Recognition
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class RecognizeNormalizationPass(PatternPass):
    """
    Replace differences from the mean over the root of their mean square by a layer normalization, values over the root
    of their mean square by an RMS normalization, and merge scale and bias into them (Glow's FoldLayerNormArithmetic).

    A sum over the number of its elements is a mean. The means must run over the last axes. Scale and bias must be
    constants or bindings of the shape of those axes.
    """

    name = "recognize-normalization"

    def walks(self) -> tuple[Walk, ...]:
        return (WALK,)


@dataclass(frozen=True)
class OverTrailingAxes:
    """Builds a normalization of `x` over the axes of the means, with the `scale` and `bias` of the match, if any."""

    operator: type[HighOp]

    def __call__(self, match: Match, emit: Emitter) -> SSAValue | None:
        x = match.values["x"]
        shape, axes = shape_of(x), match.axes or ()
        if not axes or axes != tuple(range(len(shape) - len(axes), len(shape))):
            return None
        parameters = {name: match.values[name] for name in ("scale", "bias") if name in match.values}
        trailing = shape[axes[0] :]
        if not all(has_trailing_shape(value, trailing) for value in parameters.values()):
            return None
        scale = parameters.pop("scale", None)
        if scale is None:
            scale = emit.constant(np.ones(trailing, numpy_dtype(element_of(x))), "ones")
        epsilon = match.numbers.get("epsilon", 0.0)
        return emit(self.operator, x, scale, *parameters.values(), axis=axes[0] - len(shape), epsilon=epsilon)


def has_trailing_shape(value: SSAValue, trailing: Shape) -> bool:
    """Whether a value has one element, or one per position along the trailing axes."""
    shape = shape_of(value)
    extra = max(0, len(shape) - len(trailing))
    return set(shape[:extra]) <= {1} and shape[extra:] in (trailing, (1,) * (len(shape) - extra))


NORMALIZED = (LayerNormalizationOp, RmsNormalizationOp)
"""Operators that have a scale; the first also has a bias."""


def _parameters(match: Match) -> tuple[LayerNormalizationOp | RmsNormalizationOp, Shape]:
    """The normalization of a match, and the shape it normalizes over."""
    op = next(op for op in match.ops if isinstance(op, NORMALIZED))
    axis = normalize_axis(integer(op.axis), rank_of(op.input))
    return op, shape_of(op.input)[axis:]


def _scaled(match: Match, emit: Emitter) -> SSAValue | None:
    """Merge a factor into a normalization without bias whose scale is all ones or a constant."""
    op, trailing = _parameters(match)
    factor, scale = match.values["factor"], emit.known(op.scale)
    if scale is None or not has_trailing_shape(factor, trailing):
        return None
    if not (scale == 1).all():
        known = emit.known(factor)
        if known is None:
            return None
        product = scale * known
        extra = max(0, product.ndim - len(trailing))  # Axes of size 1, as `has_trailing_shape` says.
        factor = emit.constant(np.broadcast_to(product.reshape(product.shape[extra:]), trailing), "scale")
    return emit(type(op), op.input, factor, axis=op.axis, epsilon=op.epsilon)


def _biased(match: Match, emit: Emitter) -> SSAValue | None:
    """Merge an addend into a layer normalization without bias."""
    op, trailing = _parameters(match)
    bias = match.values["bias"]
    if not has_trailing_shape(bias, trailing):
        return None
    return emit(LayerNormalizationOp, op.input, op.scale, bias, axis=op.axis, epsilon=op.epsilon)


def mean(x: Formula) -> Formula:
    """The mean over the axes."""
    return Reduced(ReduceMeanOp, x)


def _mean_of_sum(match: Match, emit: Emitter) -> SSAValue | None:
    """The mean of elements whose sum is divided by their number; `None` for another divisor."""
    x, axes = match.values["x"], match.axes or ()
    count = math.prod(shape_of(x)[axis] for axis in axes)
    if not math.isclose(match.numbers["factor"] * count, 1, rel_tol=1e-6):
        return None
    return emit(ReduceMeanOp, x, axes=axes, keepdims=True)


X, SCALE, BIAS, FACTOR, EPSILON = (
    Variable("x"),
    Variable("scale"),
    Variable("bias"),
    Variable("factor"),
    Number("epsilon"),
)
SUM = Reduced(ReduceSumOp, X)
MEAN = Shared("mean", mean(X))
CENTRED = Shared("centred", X - MEAN)
VARIANCES = (EPSILON + mean(CENTRED**2), EPSILON + mean(X**2) - MEAN**2, EPSILON + mean((X - MEAN) ** 2))
MEAN_SQUARE = EPSILON + mean(X**2)


def _affine(inverse: Formula) -> Formula:
    """`x·i + (bias - mean·i)`, the form of TensorFlow's batch normalization."""
    shared = Shared("inverse", inverse)
    return X * shared + BIAS - MEAN * shared


PATTERNS: tuple[Recognition, ...] = (
    Recognition("recognize-mean", (SUM * Number("factor"),), _mean_of_sum),
    Recognition(
        "recognize-layer-normalization",
        (
            *(CENTRED * variance**-0.5 for variance in VARIANCES[:2]),
            *(CENTRED * (variance**-0.5 * SCALE) for variance in VARIANCES[:2]),
            *(_affine(variance**-0.5 * SCALE) for variance in VARIANCES[1:]),
            *(_affine(variance**-0.5) for variance in VARIANCES[1:]),
        ),
        OverTrailingAxes(LayerNormalizationOp),
    ),
    Recognition(
        "recognize-rms-normalization",
        (X * MEAN_SQUARE**-0.5, X * (MEAN_SQUARE**-0.5 * SCALE)),
        OverTrailingAxes(RmsNormalizationOp),
    ),
    Recognition(
        "fold-factor-into-normalization",
        tuple(Apply(operator, (X, SCALE)) * FACTOR for operator in NORMALIZED),
        _scaled,
    ),
    Recognition("fold-addend-into-normalization", (Apply(LayerNormalizationOp, (X, SCALE)) + BIAS,), _biased),
)
"""Formulas of normalization; the mean of squares also as the difference of two means."""

WALK = Walk(PATTERNS)
