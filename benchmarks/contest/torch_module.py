"""A torch module that runs an ONNX graph node by node, for the operators of the benchmark's models."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np

# Any: neither torch nor all of onnx has annotations here, and torch is only in its engine's environment.
Values = list[Any]
Attributes = dict[str, Any]

torch: Any = import_module("torch")
functional: Any = import_module("torch.nn.functional")
helper: Any = import_module("onnx.helper")
numpy_helper: Any = import_module("onnx.numpy_helper")


def _pads(attributes: Attributes) -> list[int]:
    """The pads of both spatial dimensions; raises `NotImplementedError` where begin and end differ."""
    top, left, bottom, right = attributes.get("pads", [0] * 4)
    if (top, left) != (bottom, right) or attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise NotImplementedError("pads that differ")
    return [top, left]


def _convolve(values: Values, attributes: Attributes) -> Any:
    bias = values[2] if len(values) > 2 else None
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    group = attributes.get("group", 1)
    return torch.conv2d(values[0], values[1], bias, strides, _pads(attributes), dilations, group)


def _normalize(values: Values, attributes: Attributes) -> Any:
    x, scale, bias, mean, variance = values
    return torch.batch_norm(x, scale, bias, mean, variance, False, 0.0, attributes.get("epsilon", 1e-5), False)


def _layer_norm(values: Values, attributes: Attributes) -> Any:
    x, scale, bias = values
    return functional.layer_norm(x, scale.shape, scale, bias, attributes.get("epsilon", 1e-5))


def _gemm(values: Values, attributes: Attributes) -> Any:
    a = values[0].t() if attributes.get("transA") else values[0]
    b = values[1].t() if attributes.get("transB") else values[1]
    product = a @ b * attributes.get("alpha", 1.0)
    return product + values[2] * attributes.get("beta", 1.0) if len(values) > 2 else product


def _max_pool(values: Values, attributes: Attributes) -> Any:
    return torch.max_pool2d(values[0], attributes["kernel_shape"], attributes["strides"], _pads(attributes))


def _average_pool(values: Values, attributes: Attributes) -> Any:
    return functional.avg_pool2d(values[0], attributes["kernel_shape"], attributes["strides"], _pads(attributes))


def _flatten(values: Values, attributes: Attributes) -> Any:
    return torch.flatten(values[0], attributes.get("axis", 1))


def _axes(values: Values, attributes: Attributes) -> list[int]:
    return cast("list[int]", attributes["axes"] if "axes" in attributes else values[1])


def _unsqueeze(values: Values, attributes: Attributes) -> Any:
    result = values[0]
    for axis in sorted(_axes(values, attributes)):
        result = result.unsqueeze(axis)
    return result


def _squeeze(values: Values, attributes: Attributes) -> Any:
    return values[0].squeeze(tuple(_axes(values, attributes)))


def _softmax(values: Values, attributes: Attributes) -> Any:
    return torch.softmax(values[0], attributes.get("axis", -1))


def _clip(values: Values, attributes: Attributes) -> Any:
    low, high = (*values[1:], attributes.get("min"), attributes.get("max"))[:2]
    return values[0].clamp(low, high)


def _sum(values: Values, _: Attributes) -> Any:
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def _gather(values: Values, attributes: Attributes) -> Any:
    if attributes.get("axis", 0) != 0:
        raise NotImplementedError("Gather along another axis than the first")
    return functional.embedding(values[1], values[0])


def _cast(values: Values, attributes: Attributes) -> Any:
    if attributes["to"] != 1:
        raise NotImplementedError("Cast to another type than float")
    return values[0].float()


def _transpose(values: Values, attributes: Attributes) -> Any:
    """
    A permutation; the keys of attention, transposed in one step with their heads, are so in two.

    Inductor takes any permutation there for a transposition of the last two dimensions, and fails.
    """
    if attributes["perm"] == [0, 2, 3, 1]:
        return values[0].permute(0, 2, 1, 3).transpose(-2, -1)
    return values[0].permute(attributes["perm"])


OPERATORS: dict[str, Callable[[Values, Attributes], Any]] = {
    "Abs": lambda v, _: v[0].abs(),
    "Add": lambda v, _: v[0] + v[1],
    "AveragePool": _average_pool,
    "BatchNormalization": _normalize,
    "Cast": _cast,
    "Clip": _clip,
    "Conv": _convolve,
    "Div": lambda v, _: v[0] / v[1],
    "Dropout": lambda v, _: v[0],
    "Erf": lambda v, _: v[0].erf(),
    "Exp": lambda v, _: v[0].exp(),
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda v, _: v[0].mean((2, 3), keepdim=True),
    "LayerNormalization": _layer_norm,
    "MatMul": lambda v, _: v[0] @ v[1],
    "Max": lambda v, _: v[0].maximum(v[1]),
    "MaxPool": _max_pool,
    "Min": lambda v, _: v[0].minimum(v[1]),
    "Mul": lambda v, _: v[0] * v[1],
    "Relu": lambda v, _: v[0].relu(),
    "Reshape": lambda v, _: v[0].reshape(v[1]),
    "Sigmoid": lambda v, _: v[0].sigmoid(),
    "Softmax": _softmax,
    "Squeeze": _squeeze,
    "Sub": lambda v, _: v[0] - v[1],
    "Sum": _sum,
    "Tanh": lambda v, _: v[0].tanh(),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""ONNX operator → what torch calls for it. Integer operands that are constant come as lists."""


def _reordered(array: np.ndarray) -> np.ndarray:
    """Weights of an LSTM from ONNX's order of the gates (input, output, forget, cell) to torch's (i, f, c, o)."""
    i, o, f, c = np.split(array, 4)
    return np.concatenate([i, f, c, o])


def _lstm_module(weights: list[np.ndarray], attributes: Attributes) -> Any:
    """A layer of torch for an LSTM node; raises `NotImplementedError` for other than one plain forward layer."""
    if len(weights) != 3 or set(attributes) - {"hidden_size"}:
        raise NotImplementedError("an LSTM with more than weights and biases")
    inputs, recurrent, bias = (array[0] for array in weights)
    hidden = attributes["hidden_size"]
    layer = torch.nn.LSTM(inputs.shape[1], hidden)
    parts = (inputs, recurrent, bias[: 4 * hidden], bias[4 * hidden :])
    with torch.no_grad():
        for name, part in zip(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"), parts, strict=True):
            getattr(layer, name).copy_(torch.from_numpy(_reordered(part)))
    return layer


class Graph(torch.nn.Module):
    """
    The nodes of an ONNX model as steps; the results are a tuple.

    Raises `NotImplementedError` that names an operator, or a form of one, that is not translated.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        arrays = {t.name: np.array(numpy_helper.to_array(t)) for t in model.graph.initializer}
        if missing := {n.op_type for n in model.graph.node} - {*OPERATORS, "LSTM"}:
            raise NotImplementedError(f"operators without translation: {', '.join(sorted(missing))}")
        self.inputs = [value.name for value in model.graph.input if value.name not in arrays]
        self.results = [value.name for value in model.graph.output]
        self.constants: dict[str, Any] = {}
        self.weight_names: dict[str, str] = {}
        self.steps: list[tuple[Callable[[Values, Attributes], Any], list[str], str, Attributes]] = []
        for name, array in arrays.items():
            self._add_constant(name, array)
        for node in model.graph.node:
            self._add_step(node, arrays)

    def _add_constant(self, name: str, array: np.ndarray) -> None:
        """Weights become parameters, so that they are frozen; integers (shapes and axes) are lists, numbers floats."""
        if array.dtype.kind == "f" and array.size == 1:
            self.constants[name] = float(array.item())
        elif array.dtype.kind == "f":
            self.weight_names[name] = f"weight_{len(self.weight_names)}"
            parameter = torch.nn.Parameter(torch.from_numpy(array), requires_grad=False)
            self.register_parameter(self.weight_names[name], parameter)
        else:
            self.constants[name] = array.tolist()

    def _add_step(self, node: Any, arrays: dict[str, np.ndarray]) -> None:
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        operands = list(node.input)
        if node.op_type != "LSTM":
            self.steps.append((OPERATORS[node.op_type], operands, node.output[0], attributes))
            return
        layer = _lstm_module([arrays[name] for name in operands[1:] if name], attributes)
        self.add_module(f"layer_{len(self.steps)}", layer)
        # ONNX has a dimension of directions behind that of time.
        self.steps.append((lambda v, _: layer(v[0])[0].unsqueeze(1), operands[:1], node.output[0], attributes))

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        """Run all steps."""
        values = {**self.constants, **dict(zip(self.inputs, inputs, strict=True))}
        for name, parameter in self.weight_names.items():
            values[name] = getattr(self, parameter)
        for function, operands, result, attributes in self.steps:
            values[result] = function([values[name] for name in operands], attributes)
        return tuple(values[name] for name in self.results)
