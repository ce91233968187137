"""What PyTorch, TensorFlow and others export for one operator becomes that operator, alone, and computes the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from models import GraphBuilder
from onnx import helper
from validation import assert_text_round_trips, validate

from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.driver.pipelines import OPTIMIZE
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context

SHAPE = [2, 4, 8]
CONTEXT = new_context()


class Export(GraphBuilder):
    """A graph of the input `x`; numbers and lists as operands are initializers of its type."""

    def __init__(self, dtype: type[np.floating[Any]] = np.float32) -> None:
        super().__init__(0)
        self.dtype = dtype

    def __call__(self, kind: str, *operands: str | float | list[float], **attributes: Any) -> str:
        names = [item if isinstance(item, str) else self.weight(np.asarray(item, self.dtype)) for item in operands]
        return self.node(kind, *names, **attributes)

    def over(self, kind: str, operand: str, axis: int = -1) -> str:
        """A reduction along one axis, which is an operand of sums in these versions of ONNX, and else an attribute."""
        if kind == "ReduceSum":
            return self.node(kind, operand, self.weight(np.array([axis], np.int64)))
        return self.node(kind, operand, axes=[axis])


Build = Callable[[Export], str]


def hard_swish(g: Export) -> str:
    """As PyTorch wrote it before opset 14."""
    return g("Div", g("Mul", "x", g("Clip", g("Add", "x", 3), 0, 6)), 6)


def hard_swish_of_keras(g: Export) -> str:
    """x · (relu6(x + 3) · (1 / 6))."""
    return g("Mul", "x", g("Mul", g("Clip", g("Add", "x", 3), 0, 6), 1 / 6))


def gelu(g: Export) -> str:
    """As PyTorch writes it before opset 20."""
    erf = g("Erf", g("Div", "x", math.sqrt(2)))
    return g("Mul", g("Mul", "x", g("Add", erf, 1)), 0.5)


def gelu_of_keras(g: Export) -> str:
    """0.5 · x · (1 + erf(x · c))."""
    return g("Mul", g("Mul", 0.5, "x"), g("Add", [1.0], g("Erf", g("Mul", "x", math.sqrt(0.5)))))


def gelu_by_tanh(g: Export) -> str:
    """As GPT-2 writes it."""
    inner = g("Mul", g("Add", "x", g("Mul", g("Pow", "x", 3), 0.044715)), math.sqrt(2 / math.pi))
    return g("Mul", g("Mul", "x", 0.5), g("Add", g("Tanh", inner), 1))


def gelu_factored(g: Export) -> str:
    """As `gelu_fast` writes it."""
    cube = g("Add", g("Mul", g("Mul", "x", 0.044715), "x"), 1)
    return g("Mul", g("Mul", "x", 0.5), g("Add", g("Tanh", g("Mul", g("Mul", "x", 0.7978845608), cube)), 1))


def hard_swish_by_hard_sigmoid(g: Export) -> str:
    """As PyTorch wrote it in opset 13; attributes are f32."""
    return g("Mul", "x", g("HardSigmoid", "x", alpha=1 / 6, beta=0.5))


def prelu_of_keras(g: Export) -> str:
    """relu(x) + (-slope) · relu(-x)."""
    slope = g("Neg", [float(place) for place in range(8)])
    return g("Add", g("Relu", "x"), g("Mul", slope, g("Relu", g("Neg", "x"))))


def elu(g: Export) -> str:
    """A choice by the sign."""
    return g("Where", g("Greater", "x", 0), "x", g("Mul", g("Sub", g("Exp", "x"), 1), 0.5))


def softmax(g: Export) -> str:
    """As TensorFlow spells it out."""
    powers = g("Exp", g("Sub", "x", g.over("ReduceMax", "x")))
    return g("Div", powers, g.over("ReduceSum", powers))


def softmax_over_channels(g: Export) -> str:
    """Without maximum, along another axis."""
    powers = g("Exp", "x")
    return g("Mul", powers, g("Reciprocal", g.over("ReduceSum", powers, 1)))


def log_softmax(g: Export) -> str:
    """As TensorFlow spells it out."""
    shifted = g("Sub", "x", g.over("ReduceMax", "x"))
    return g("Sub", shifted, g("Log", g.over("ReduceSum", g("Exp", shifted))))


SCALE, BIAS = [float(place + 1) for place in range(8)], [0.5 * place for place in range(8)]


def layer_norm(g: Export) -> str:
    """As PyTorch writes it before opset 17, with the difference computed twice."""
    centred, again = (g("Sub", "x", g.over("ReduceMean", "x")) for _ in range(2))
    variance = g.over("ReduceMean", g("Pow", again, 2))
    return g("Add", g("Mul", g("Div", centred, g("Sqrt", g("Add", variance, 1e-5))), SCALE), BIAS)


def layer_norm_by_reciprocal(g: Export) -> str:
    """With products for square and quotient, and without scale and bias."""
    centred = g("Sub", "x", g.over("ReduceMean", "x"))
    variance = g.over("ReduceMean", g("Mul", centred, centred))
    return g("Mul", g("Reciprocal", g("Sqrt", g("Add", 1e-5, variance))), centred)


def layer_norm_of_tensorflow(g: Export) -> str:
    """Like a batch normalization: x · i + (bias - mean · i)."""
    mean = g.over("ReduceMean", "x")
    difference = g("Sub", "x", mean)
    variance = g.over("ReduceMean", g("Mul", difference, difference))
    inverse = g("Mul", g("Reciprocal", g("Sqrt", g("Add", variance, 1e-3))), SCALE)
    return g("Add", g("Mul", "x", inverse), g("Sub", BIAS, g("Mul", mean, inverse)))


def layer_norm_by_squares(g: Export) -> str:
    """The variance as mean of squares minus square of the mean, as Flax and Keras 3 have it."""
    mean = g.over("ReduceMean", "x")
    variance = g("Sub", g.over("ReduceMean", g("Mul", "x", "x")), g("Mul", mean, mean))
    inverse = g("Mul", g("Reciprocal", g("Sqrt", g("Add", variance, 1e-3))), SCALE)
    return g("Add", g("Mul", g("Sub", "x", mean), inverse), BIAS)


def rms_norm(g: Export) -> str:
    """As PyTorch writes Llama's."""
    squares = g.over("ReduceMean", g("Pow", "x", 2))
    return g("Mul", SCALE, g("Mul", "x", g("Div", 1, g("Sqrt", g("Add", squares, 1e-6)))))


def attention(g: Export) -> str:
    """Of the input to itself, with a scale that f32 rounds."""
    scores = g("Mul", g("MatMul", "x", g.node("Transpose", "x", perm=[0, 2, 1])), 1 / math.sqrt(3))
    return g("MatMul", g.node("Softmax", scores, axis=-1), "x")


EXPORTS: dict[str, list[Build]] = {
    "attention": [attention],
    "elu": [elu],
    "gelu": [gelu, gelu_of_keras, gelu_by_tanh, gelu_factored],
    "hard_swish": [
        hard_swish,
        hard_swish_of_keras,
        hard_swish_by_hard_sigmoid,
    ],
    "layer_normalization": [
        layer_norm,
        layer_norm_by_reciprocal,
        layer_norm_of_tensorflow,
        layer_norm_by_squares,
    ],
    "leaky_relu": [
        lambda g: g("Max", "x", g("Mul", "x", 0.25)),
        lambda g: g("Where", g("Less", "x", 0), g("Mul", 0.25, "x"), "x"),
    ],
    "log_softmax": [log_softmax, lambda g: g("Log", g("Softmax", "x", axis=1))],
    "mish": [lambda g: g("Mul", "x", g("Tanh", g("Softplus", "x")))],
    "prelu": [prelu_of_keras],
    "rms_normalization": [rms_norm],
    "sigmoid": [
        lambda g: g("Reciprocal", g("Add", 1, g("Exp", g("Neg", "x")))),
        lambda g: g("Div", [1.0], g("Add", g("Exp", g("Mul", "x", -1)), 1)),
    ],
    "softmax": [softmax, softmax_over_channels],
    "softsign": [lambda g: g("Div", "x", g("Add", 1, g("Abs", "x")))],
    "swish": [
        lambda g: g("Mul", "x", g("Sigmoid", "x")),
        lambda g: g("Mul", g("Sigmoid", g("Mul", 1.702, "x")), "x"),
        lambda g: g("Div", "x", g("Add", 1, g("Exp", g("Neg", "x")))),
    ],
}
"""Operator → what exporters write for it."""


COARSE = (gelu_factored, hard_swish_by_hard_sigmoid)
"""Exports with rounded numbers, which in f64 are others than those of the operator."""


def model_of(build: Build, dtype: type[np.floating[Any]] = np.float32) -> onnx.ModelProto:
    """The model that computes one export of the input `x`."""
    g = Export(dtype)
    result = build(g)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return g.model({"x": (kind, SHAPE)}, {result: SHAPE}, kind=kind)


CASES = [(name, build) for name, builds in EXPORTS.items() for build in builds]


@pytest.mark.parametrize(("name", "build"), CASES, ids=[f"{name}-{place}" for place, (name, _) in enumerate(CASES)])
def test_one_operator_remains(name: str, build: Build) -> None:
    module = import_model(model_of(build))
    inputs = {"x": np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)}
    validate(module, OPTIMIZE.passes(), inputs, rtol=1e-4, atol=1e-5, context=CONTEXT)
    assert [op.name for op in module.walk() if isinstance(op, HighOp)] == [f"glow_high.{name}"]


@pytest.mark.parametrize(("name", "build"), CASES, ids=[f"{name}-{place}" for place, (name, _) in enumerate(CASES)])
def test_the_operator_of_f64_has_its_numbers(name: str, build: Build) -> None:
    """Inputs are small, so that an epsilon rounded to f32 shows; the text of the operator keeps it as well."""
    module = import_model(model_of(build, np.float64))
    inputs = {"x": 0.01 * np.random.default_rng(0).standard_normal(SHAPE)}
    validate(module, OPTIMIZE.passes(), inputs, rtol=1e-12, atol=1e-15, context=CONTEXT)
    kinds = [op.name for op in module.walk() if isinstance(op, HighOp)]
    assert (kinds == [f"glow_high.{name}"]) is (build not in COARSE)
    assert_text_round_trips(module, CONTEXT)
