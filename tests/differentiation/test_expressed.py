"""Gradients of what expressions define are those of the expressions, folds and all."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients import Emit, check_gradients
from xdsl.ir import SSAValue

from glow_mlir.dialects import expressions as ex
from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.generic_form import generic_form, operand_tensors
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp
from glow_mlir.dialects.glow_high.generic import GenericOp
from glow_mlir.dialects.glow_high.gradient import GradientOp
from glow_mlir.dialects.glow_high.normalization import (
    LayerNormalizationOp,
    LogSoftmaxOp,
    LrnOp,
    RmsNormalizationOp,
    SoftmaxOp,
)
from glow_mlir.dialects.index_notation import Signature
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.errors import GlowError
from glow_mlir.frontends.builder.module_builder import named_location

RNG = np.random.default_rng(29)
X = RNG.standard_normal((3, 4))
W = RNG.standard_normal(4)
V = RNG.standard_normal((2, 3, 4))
TAPS = RNG.standard_normal((2, 3))
CUBE = RNG.standard_normal((3, 4, 4))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("kind", [SoftmaxOp, LogSoftmaxOp])
def test_softmax(kind: type[SoftmaxOp], axis: int) -> None:
    check_gradients(lambda emit, v: emit(MulOp, emit(kind, v["x"], axis=axis), v["w"]), {"x": X, "w": W})


@pytest.mark.parametrize("axis", [1, 2])
def test_layer_normalization(axis: int) -> None:
    shape = V.shape[axis:]
    given = {"x": V, "s": RNG.standard_normal(shape), "b": RNG.standard_normal(shape), "w": W}
    check_gradients(
        lambda emit, v: emit(MulOp, emit(LayerNormalizationOp, v["x"], v["s"], v["b"], axis=axis), v["w"]), given
    )


def test_rms_normalization() -> None:
    check_gradients(
        lambda emit, v: emit(MulOp, emit(RmsNormalizationOp, v["x"], v["s"], axis=1), v["w"]),
        {"x": X, "s": W + 1, "w": W},
    )


def generic(signature: str, *operands: SSAValue, root: Any) -> GenericOp:
    """`generic` of an expression, which a function gives of its operands."""
    spelled = Signature.parse(signature).expanded([len(sizes_of(value)) for value in operands])
    elements, shapes = [element_of(value) for value in operands], [sizes_of(value) for value in operands]
    form = generic_form(spelled, root(*operand_tensors(spelled, elements)), elements, shapes)
    return GenericOp.of(operands, form, named_location("generic"))


def largest(x: Tensor) -> Tensor:
    return ex.reduce_max(x, "j")


def normalized(x: Tensor, y: Tensor) -> Tensor:
    deviation = x - ex.reduce_mean(x, "j")
    return deviation / ex.sqrt(ex.reduce_mean(deviation * deviation, "j") + 0.1) * y


def smallest_over_sum(x: Tensor, y: Tensor) -> Tensor:
    return ex.reduce_min(x * y, "j") / (ex.reduce_sum(ex.exp(x), "j") + 1.0)


def products(x: Tensor) -> Tensor:
    return ex.reduce_prod(x, "j") * 2.0


def chosen(x: Tensor, y: Tensor) -> Tensor:
    return ex.where(x > y, x * y, ex.maximum(x, 0.0)) + ex.cast(ex.cast(x, "int32"), "float64")


def square(x: Tensor) -> Tensor:
    return x * x


def product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def spread(x: Tensor, y: Tensor) -> Tensor:
    return ex.reduce_sum(y, "j") * x + ex.reduce_max(x, "i")


def weighed(x: Tensor, at: Tensor, w: Tensor) -> Tensor:
    return ex.reduce_sum(x * x * w, "k")


AT = np.array([[0, 2, 0, -1], [1, -2, 1, 1], [2, 2, 2, 0]])
"""Indices of which some are equal, from the front and from the back."""


def summed(x: Tensor) -> Tensor:
    return ex.reduce_sum(x, "k")


def mean_of_squares(x: Tensor) -> Tensor:
    return ex.sqrt(ex.reduce_mean(x * x, "k") + 0.5)


def largest_of_window(x: Tensor) -> Tensor:
    return ex.reduce_max(x, "k")


def response(x: Tensor, near: Tensor) -> Tensor:
    return x / (ex.reduce_sum(near * near, "k") + 1.5) ** 0.75


def filtered(x: Tensor, w: Tensor) -> Tensor:
    return ex.reduce_sum(x * w, ["k", "c"])


def taps(x: Tensor, t: Tensor) -> Tensor:
    return ex.reduce_sum(ex.exp(x) * t, ["k", "q"])


def above(x: Tensor, b: Tensor) -> Tensor:
    return ex.reduce_sum(ex.maximum(x, b), "k") * ex.reduce_max(x, "k")


LINE = RNG.standard_normal((2, 7))
PLANE = RNG.standard_normal((2, 5, 6))
"""Signals and images, of which windows are read."""

CASES: dict[str, tuple[str, tuple[np.ndarray, ...], Callable[..., Tensor]]] = {
    "largest": ("x[i, j] -> z[i]", (X,), largest),
    "normalized": ("x[i, j], y[j] -> z[i, j]", (X, W), normalized),
    "smallest over sum": ("x[..., j], y[j] -> z[...]", (V, W), smallest_over_sum),
    "products": ("x[i, j] -> z[i]", (X,), products),
    "products with a zero": ("x[i, j] -> z[i]", (np.where(X == X[0, 0], 0.0, X),), products),
    "products with zeros": ("x[i, j] -> z[i]", (X * [0, 1, 0, 1],), products),
    "chosen": ("x[i, j], y[j] -> z[i, j]", (X, W), chosen),
    "spread": ("x[i, j], y[j] -> z[i, j]", (X, W), spread),
    "transposed": ("x[i, j] -> z[j, i]", (X,), square),
    "rows": ("x[at[i, k], j], at[i, k], w[i, k] -> z[i, j]", (X, AT, X), weighed),
    "elements": ("x[i, at[i, k]], at[i, k], w[i, k] -> z[i]", (X, AT, X), weighed),
    "tuples": ("x[at[i, 0], at[i, 3], k], at[i, c], w[i, k] -> z[i]", (CUBE, AT, X), weighed),
    "batches of tuples": ("x[i, at[i, 1], k], at[i, c], w[i, k] -> z[i]", (CUBE, AT, X), weighed),
    "several indices": ("x[at[i, k], j, at[i, 2]], at[i, k], w[i, k] -> z[j, i]", (CUBE, AT, X), weighed),
    "windows": ("x[n, h + k - 1] -> z[n, h]; k < 3", (LINE,), summed),
    "windows that are few": ("x[n, 2*h + 2*k - 1] -> z[n, h]; h < 2, k < 3", (LINE,), summed),
    "means of windows": ("x[n, h + 2*k - 2] -> z[h, n]; k < 3", (LINE,), mean_of_squares),
    "means of windows apart": ("x[n, 3*h + k - 1] -> z[n, h]; k < 2", (LINE,), mean_of_squares),
    "extremes of windows": ("x[n, 2*h + k - 1] -> z[n, h]; k < 3", (LINE,), largest_of_window),
    "one operand read twice": ("x[n, h], near[n, h + k - 1] -> z[n, h]; k < 4", (LINE, LINE), response),
    "a convolution": ("x[n, h + k, c], w[k, c] -> z[n, h]", (PLANE, RNG.standard_normal((3, 6))), filtered),
    "windows of images": ("x[n, h + k - 1, 2*w + q], t[k, q] -> z[n, h, w]", (PLANE, TAPS), taps),
    "beside windows": ("x[n, h + k - 1], b[n] -> z[n, h]; k < 3", (LINE, W[:2]), above),
    "one element broadcasts": ("x[i, j], y[1] -> z[i, j]", (X, W[:1]), product),
}


@pytest.mark.parametrize(
    ("signature", "operands", "root", "message"),
    [
        ("x[n, 2*h + w + k] -> z[n, h, w]; h < 2, w < 2, k < 2", (LINE,), summed, "an axis '2*d1 + d2 + d3'"),
        ("x[n, h + k], b[n, 2*h + k] -> z[n, h]; h < 2, k < 2", (LINE, LINE), above, "x1[d0, 2*d1 + d2], beside"),
    ],
)
def test_windows_that_are_not_transposed(
    signature: str, operands: tuple[np.ndarray, ...], root: Callable[..., Tensor], message: str
) -> None:
    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return emit.insert(generic(signature, *values.values(), root=root)).results[0]

    with pytest.raises(GlowError, match=re.escape(message)):
        check_gradients(graph, {f"x{place}": value for place, value in enumerate(operands)})


def test_second_derivative_of_windows() -> None:
    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        y = emit(LrnOp, values["x"], size=3, axis=1, alpha=0.5)
        slope = emit(GradientOp, emit(MulOp, y, y), None, [values["x"]])
        return emit(MulOp, slope, slope)

    check_gradients(graph, {"x": LINE}, rtol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_generic(name: str) -> None:
    signature, operands, root = CASES[name]
    given = {f"x{place}": value for place, value in enumerate(operands)}

    def graph(emit: Emit, values: dict[str, SSAValue]) -> SSAValue:
        return emit.insert(generic(signature, *values.values(), root=root)).results[0]

    check_gradients(graph, given)
