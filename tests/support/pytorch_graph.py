"""The nodes of random networks as calls of PyTorch, which differentiates them: `torch` has to be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from contest.torch_module import OPERATORS as COMMON

torch: Any = import_module("torch")
functional: Any = import_module("torch.nn.functional")

Values = list[Any]
Attributes = dict[str, Any]
Operator = Callable[[Values, Attributes], Any]


def _rank(values: Values) -> int:
    """How many axes an image has besides those of batch and channels."""
    return values[0].dim() - 2


def _padding(pads: list[int]) -> list[int]:
    """Pads of some axes, all begins and then all ends, in PyTorch's order: pairs, from the last axis on."""
    rank = len(pads) // 2
    return [pads[place] for axis in reversed(range(rank)) for place in (axis, axis + rank)]


def _convolve(values: Values, attributes: Attributes) -> Any:
    rank = _rank(values)
    padded = functional.pad(values[0], _padding(attributes.get("pads", [0] * 2 * rank)))
    given = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    strides, dilations = given
    convolve = getattr(functional, f"conv{rank}d")
    return convolve(padded, *values[1:], stride=strides, dilation=dilations, groups=attributes.get("group", 1))


def _pool(kind: str) -> Operator:
    """A pool whose pads are as wide at the end of an axis as at its begin."""

    def pool(values: Values, attributes: Attributes) -> Any:
        rank = _rank(values)
        given: Attributes = {"padding": attributes["pads"][:rank], "stride": attributes["strides"]}
        if kind == "avg":
            given["count_include_pad"] = bool(attributes.get("count_include_pad", 0))
        return getattr(functional, f"{kind}_pool{rank}d")(values[0], attributes["kernel_shape"], **given)

    return pool


def _pad(values: Values, attributes: Attributes) -> Any:
    rank = _rank(values)
    widths = [*values[1][2 : 2 + rank], *values[1][4 + rank :]]
    mode = attributes.get("mode", b"constant").decode().replace("edge", "replicate")
    return functional.pad(values[0], _padding(widths), mode=mode)


def _resize(values: Values, attributes: Attributes) -> Any:
    scales = values[2].tolist()[2:]
    if attributes["mode"] == b"nearest":
        return functional.interpolate(values[0], scale_factor=scales, mode="nearest")
    mode = ("linear", "bilinear", "trilinear")[len(scales) - 1]
    return functional.interpolate(values[0], scale_factor=scales, mode=mode, align_corners=False)


def _slice(values: Values, _: Attributes) -> Any:
    x, (start,), (end,), (axis,), (step,) = values
    places = range(*slice(start, end, step).indices(x.shape[axis]))
    return x.index_select(axis, torch.tensor(list(places)))


def _spatial_mean(values: Values, _: Attributes) -> Any:
    return values[0].mean(tuple(range(2, values[0].dim())), keepdim=True)


OPERATORS: Mapping[str, Operator] = {
    **COMMON,
    "AveragePool": _pool("avg"),
    "Concat": lambda v, a: torch.cat(v, a["axis"]),
    "Conv": _convolve,
    "ConvTranspose": lambda v, a: functional.conv_transpose2d(*v, stride=a["strides"]),
    "Cos": lambda v, _: v[0].cos(),
    "Elu": lambda v, a: functional.elu(v[0], a.get("alpha", 1.0)),
    "GlobalAveragePool": _spatial_mean,
    "HardSigmoid": lambda v, a: (v[0] * a.get("alpha", 0.2) + a.get("beta", 0.5)).clamp(0, 1),
    "HardSwish": lambda v, _: functional.hardswish(v[0]),
    "InstanceNormalization": lambda v, a: functional.instance_norm(v[0], None, None, v[1], v[2], eps=a["epsilon"]),
    "LeakyRelu": lambda v, a: functional.leaky_relu(v[0], a["alpha"]),
    "MaxPool": _pool("max"),
    "PRelu": lambda v, _: torch.where(v[0] < 0, v[0] * v[1], v[0]),
    "Pad": _pad,
    "ReduceMean": lambda v, a: v[0].mean(v[1], keepdim=bool(a["keepdims"])),
    "Resize": _resize,
    "Sin": lambda v, _: v[0].sin(),
    "Slice": _slice,
    "Softplus": lambda v, _: functional.softplus(v[0]),
    "Split": lambda v, a: v[0].split(v[1], a["axis"]),
    "Sqrt": lambda v, _: v[0].sqrt(),
}
"""ONNX operator → what PyTorch calls for it. Integers that are constant come as lists."""


def gradients(model: onnx.ModelProto, sources: Mapping[str, np.ndarray], weights: np.ndarray) -> dict[str, np.ndarray]:
    """
    The gradients of the first output, each element times a weight, by inputs and initializers that have these values.

    Raises `KeyError` for an operator that is not in the table.
    """
    values: dict[str, Any] = {"": None}
    for name, array in ((tensor.name, numpy_helper.to_array(tensor)) for tensor in model.graph.initializer):
        values[name] = torch.from_numpy(array.copy()) if array.dtype.kind == "f" else array.tolist()
    leaves = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in sources.items()}
    values |= leaves
    for node in model.graph.node:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        result = OPERATORS[node.op_type]([values[name] for name in node.input], attributes)
        values.update(zip(node.output, result if len(node.output) > 1 else [result], strict=True))
    total = (values[model.graph.output[0].name] * torch.from_numpy(weights)).sum()
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return {name: gradient.numpy() for name, gradient in zip(leaves, found, strict=True)}
