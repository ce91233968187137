"""A function of JAX that computes an ONNX graph node by node, for the operators of the benchmark's models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

# Any: neither jax nor all of onnx has annotations here, and jax is only in its engine's environment.
Values = list[Any]
Attributes = dict[str, Any]

jnp: Any = import_module("jax.numpy")
lax: Any = import_module("jax.lax")
nn: Any = import_module("jax.nn")
special: Any = import_module("jax.scipy.special")
helper: Any = import_module("onnx.helper")
numpy_helper: Any = import_module("onnx.numpy_helper")

LAYOUT = ("NHWC", "HWIO", "NHWC")
"""The order of dimensions of images, filters and results: what JAX's own networks use, and XLA computes fastest."""


def _pads(attributes: Attributes) -> list[tuple[int, int]]:
    """The pads of both spatial dimensions; raises `NotImplementedError` where the sizes decide them."""
    if attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise NotImplementedError("automatic pads")
    top, left, bottom, right = attributes.get("pads", [0] * 4)
    return [(top, bottom), (left, right)]


def _convolve(values: Values, attributes: Attributes) -> Any:
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    result = lax.conv_general_dilated(
        values[0],
        values[1],
        strides,
        _pads(attributes),
        rhs_dilation=dilations,
        dimension_numbers=LAYOUT,
        feature_group_count=attributes.get("group", 1),
    )
    return result + values[2] if len(values) > 2 else result


def _normalize(values: Values, attributes: Attributes) -> Any:
    x, scale, bias, mean, variance = values
    factor = scale * lax.rsqrt(variance + attributes.get("epsilon", 1e-5))
    return x * factor + (bias - mean * factor)


def _pooled(x: Any, start: float, function: Any, attributes: Attributes) -> Any:
    size = (1, *attributes["kernel_shape"], 1)
    strides = (1, *attributes.get("strides", [1, 1]), 1)
    return lax.reduce_window(x, start, function, size, strides, [(0, 0), *_pads(attributes), (0, 0)])


def _max_pool(values: Values, attributes: Attributes) -> Any:
    return _pooled(values[0], -jnp.inf, lax.max, attributes)


def _average_pool(values: Values, attributes: Attributes) -> Any:
    if any(attributes.get("pads", ())):
        raise NotImplementedError("average pools with pads")
    return _pooled(values[0], 0.0, lax.add, attributes) / math.prod(attributes["kernel_shape"])


def _layer_norm(values: Values, attributes: Attributes) -> Any:
    x, scale, bias = values
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + attributes.get("epsilon", 1e-5)) * scale + bias


def _gemm(values: Values, attributes: Attributes) -> Any:
    a = values[0].T if attributes.get("transA") else values[0]
    b = values[1].T if attributes.get("transB") else values[1]
    product = a @ b * attributes.get("alpha", 1.0)
    return product + values[2] * attributes.get("beta", 1.0) if len(values) > 2 else product


def _flatten(values: Values, attributes: Attributes) -> Any:
    x, axis = values[0], attributes.get("axis", 1)
    return x.reshape(math.prod(x.shape[:axis]), -1)


def _reshape(values: Values, _: Attributes) -> Any:
    x, shape = values
    return x.reshape([x.shape[axis] if size == 0 else int(size) for axis, size in enumerate(shape)])


def _axes(values: Values, attributes: Attributes) -> tuple[int, ...]:
    return tuple(cast("Sequence[int]", attributes["axes"] if "axes" in attributes else values[1].tolist()))


def _clip(values: Values, attributes: Attributes) -> Any:
    low, high = (*values[1:], attributes.get("min"), attributes.get("max"))[:2]
    return jnp.clip(values[0], low, high)


def _sum(values: Values, _: Attributes) -> Any:
    return sum(values[1:], values[0])


def _cast(values: Values, attributes: Attributes) -> Any:
    return values[0].astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))


def _lstm(values: Values, attributes: Attributes) -> Any:
    """One plain forward layer of ONNX, whose gates are input, output, forget and cell."""
    if len(values) != 4 or set(attributes) - {"hidden_size"}:
        raise NotImplementedError("an LSTM with more than weights and biases")
    x, (inputs,), (recurrent,), (bias,) = values
    hidden = attributes["hidden_size"]
    scores = x @ inputs.T + (bias[: 4 * hidden] + bias[4 * hidden :])
    zero = jnp.zeros((x.shape[1], hidden), x.dtype)

    def step(state: Any, score: Any) -> Any:
        i, o, f, c = jnp.split(score + state[0] @ recurrent.T, 4, -1)
        cell = nn.sigmoid(f) * state[1] + nn.sigmoid(i) * jnp.tanh(c)
        output = nn.sigmoid(o) * jnp.tanh(cell)
        return (output, cell), output

    return lax.scan(step, (zero, zero), scores)[1][:, None]


IMAGES: dict[str, Callable[[Values, Attributes], Any]] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _normalize,
    "Conv": _convolve,
    "GlobalAveragePool": lambda v, _: v[0].mean((1, 2), keepdims=True),
    "MaxPool": _max_pool,
}
"""ONNX operator on images, whose channels are the last dimension here → what JAX calls for it."""

ELEMENTWISE: dict[str, Callable[[Values, Attributes], Any]] = {
    "Abs": lambda v, _: jnp.abs(v[0]),
    "Add": lambda v, _: v[0] + v[1],
    "Clip": _clip,
    "Div": lambda v, _: v[0] / v[1],
    "Dropout": lambda v, _: v[0],
    "Erf": lambda v, _: special.erf(v[0]),
    "Exp": lambda v, _: jnp.exp(v[0]),
    "Max": lambda v, _: jnp.maximum(v[0], v[1]),
    "Min": lambda v, _: jnp.minimum(v[0], v[1]),
    "Mul": lambda v, _: v[0] * v[1],
    "Relu": lambda v, _: nn.relu(v[0]),
    "Sigmoid": lambda v, _: nn.sigmoid(v[0]),
    "Sub": lambda v, _: v[0] - v[1],
    "Sum": _sum,
    "Tanh": lambda v, _: jnp.tanh(v[0]),
}
"""ONNX operator on elements → what JAX calls for it, in any order of dimensions that all operands have."""

OTHERS: dict[str, Callable[[Values, Attributes], Any]] = {
    "Cast": _cast,
    "Flatten": _flatten,
    "Gather": lambda v, a: jnp.take(v[0], v[1], axis=a.get("axis", 0)),
    "Gemm": _gemm,
    "LayerNormalization": _layer_norm,
    "LSTM": _lstm,
    "MatMul": lambda v, _: v[0] @ v[1],
    "Reshape": _reshape,
    "Softmax": lambda v, a: nn.softmax(v[0], a.get("axis", -1)),
    "Squeeze": lambda v, a: jnp.squeeze(v[0], _axes(v, a)),
    "Transpose": lambda v, a: jnp.transpose(v[0], a["perm"]),
    "Unsqueeze": lambda v, a: jnp.expand_dims(v[0], _axes(v, a)),
}
"""Other ONNX operator → what JAX calls for it. Integer operands that are constant come as arrays of numpy."""


class Graph:
    """
    The nodes of an ONNX model; `weights` are its floats, filters with their outputs last.

    Raises `NotImplementedError` that names an operator, or a form of one, that is not translated.
    """

    def __init__(self, model: Any) -> None:
        arrays = {t.name: np.array(numpy_helper.to_array(t)) for t in model.graph.initializer}
        known = {*IMAGES, *ELEMENTWISE, *OTHERS}
        if missing := {n.op_type for n in model.graph.node} - known:
            raise NotImplementedError(f"operators without translation: {', '.join(sorted(missing))}")
        filters = {n.input[1] for n in model.graph.node if n.op_type == "Conv"}
        if any(arrays[name].ndim != 4 for name in filters):
            raise NotImplementedError("convolutions of other than two dimensions")
        self.inputs = [value.name for value in model.graph.input if value.name not in arrays]
        self.results = [value.name for value in model.graph.output]
        self.weights: dict[str, np.ndarray] = {
            name: np.ascontiguousarray(array.transpose(2, 3, 1, 0)) if name in filters else array
            for name, array in arrays.items()
            if array.dtype.kind == "f" and array.ndim
        }
        self._numbers = {name: array for name, array in arrays.items() if name not in self.weights}
        self._nodes = list(model.graph.node)

    def __call__(self, weights: dict[str, Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of the model."""
        values = {**self._numbers, **weights, **dict(zip(self.inputs, inputs, strict=True))}
        images: set[str] = set()
        for node in self._nodes:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            names, result = [name for name in node.input if name], node.output[0]
            if node.op_type in IMAGES:
                first = self._in_order(values, names[0], images, is_image=True)
                values[result] = IMAGES[node.op_type]([first, *(values[name] for name in names[1:])], attributes)
                images.add(result)
                continue
            is_image = node.op_type in ELEMENTWISE and all(n in images or np.ndim(values[n]) == 0 for n in names)
            operands = [self._in_order(values, name, images, is_image and name in images) for name in names]
            values[result] = (ELEMENTWISE | OTHERS)[node.op_type](operands, attributes)
            images |= {result} if is_image and not images.isdisjoint(names) else set()
        return tuple(self._in_order(values, name, images, is_image=False) for name in self.results)

    @staticmethod
    def _in_order(values: dict[str, Any], name: str, images: set[str], is_image: bool) -> Any:
        """A value with its channels last, as images have them, or in the order of ONNX."""
        if is_image == (name in images):
            return values[name]
        return jnp.transpose(values[name], (0, 2, 3, 1) if is_image else (0, 3, 1, 2))
