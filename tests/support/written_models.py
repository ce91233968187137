"""Models in the syntax of onnx's parser, with random weights and inputs, as exporters write those that people use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

Weight = Sequence[int] | np.ndarray
"""The shape of a random weight, or a weight itself."""


@dataclass(frozen=True)
class Case:
    """A model, and what it is given."""

    model: onnx.ModelProto
    inputs: Mapping[str, np.ndarray]
    reference: onnx.ModelProto | None = None
    """Another model that means the same, where onnxruntime does not know the forms of this one."""


def drawn(rng: np.random.Generator, name: str, weight: Weight) -> np.ndarray:
    """
    A weight; of a random one the name says what it is.

    `s…` are scales and variances around 1, `b…` biases around 0, and others filters and matrices that keep magnitudes:
    of shape [outputs, inputs, …], but of two axes [inputs, outputs].
    """
    if isinstance(weight, np.ndarray):
        return weight
    shape = tuple(weight)
    if name.startswith("s"):
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    if name.startswith("b"):
        return rng.normal(0, 0.1, shape).astype(np.float32)
    fan_in = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
    return rng.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)


def written(
    signature: str,
    body: str,
    weights: Mapping[str, Weight],
    opset: int = 17,
    sizes: Mapping[str, int] | None = None,
    inputs: Mapping[str, np.ndarray] | None = None,
    limit: int = 30,
    tail: str = "",
) -> Case:
    """
    A case of a graph with that signature and those nodes; `tail` are functions behind it.

    Inputs without a value are random, integers below `limit`, with `sizes` for free dimensions.
    """
    rng = np.random.default_rng(len(body))
    domains = ', "local": 1' if tail else ""
    text = f'<ir_version: 8, opset_import: ["": {opset}{domains}]> graph {signature} {{ {body} }} {tail}'
    model = parser.parse_model(text)
    model.graph.initializer.extend(
        numpy_helper.from_array(drawn(rng, name, weight), name) for name, weight in weights.items()
    )
    given: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        known = (inputs or {}).get(value.name)
        given[value.name] = _random(rng, value.type.tensor_type, sizes or {}, limit) if known is None else known
    return Case(model, given)


# Any: onnx's protobuf messages have no types for their nested parts.
def _random(rng: np.random.Generator, described: Any, sizes: Mapping[str, int], limit: int) -> np.ndarray:
    shape = [sizes[item.dim_param] if item.dim_param else item.dim_value for item in described.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(described.elem_type)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else limit, shape).astype(dtype)
