"""What random ONNX models are made with: nodes in nested graphs, values with shapes, and numbers drawn for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

Item = TypeVar("Item")
Arrays = Mapping[str, np.ndarray]
Size = int | str
"""An extent, or the name of one that is not known before the call."""

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Value:
    """A tensor of a graph under construction; `kind` is the name of its numpy type."""

    name: str
    shape: tuple[Size, ...]
    kind: str = "float32"

    @property
    def info(self) -> onnx.ValueInfoProto:
        """It as ONNX declares it; a size that data decides stays open."""
        shape = [size if isinstance(size, int) or size.isidentifier() else None for size in self.shape]
        return helper.make_tensor_value_info(self.name, element_type(self.kind), shape)


def element_type(kind: str) -> int:
    """ONNX's number of a numpy type."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(kind))


@dataclass(frozen=True)
class Case:
    """A model, bounds of its free dimensions, and what it is called with, one call after the other."""

    model: onnx.ModelProto
    calls: Sequence[Arrays]
    dimensions: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    codes: bool = False
    """Whether floats are rounded to codes in it, so that a rounding error may become a step of a code."""
    may_fail: bool = False
    """Whether there may be calls that have to fail, here and in onnxruntime."""


@dataclass
class Drawn:
    """A graph under construction, and the random numbers that it follows; graphs inside it share both."""

    rng: np.random.Generator
    names: Iterator[int] = field(default_factory=itertools.count)
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float = 0.5) -> bool:
        """True as often as the probability says."""
        return bool(self.rng.random() < probability)

    def one_of(self, items: Sequence[Item]) -> Item:
        """One of some items."""
        return items[int(self.rng.integers(len(items)))]

    def inner(self) -> Drawn:
        """A graph inside this one, which may read its values."""
        return Drawn(self.rng, self.names)

    def weight(self, array: Any, kind: str = "float32") -> str:
        """An initializer, of numbers of that type."""
        name = f"w{next(self.names)}"
        self.weights.append(
            numpy_helper.from_array(np.ascontiguousarray(array, np.dtype(kind)).reshape(np.shape(array)), name)
        )
        return name

    def integers(self, *numbers: int) -> str:
        """An initializer with a list of whole numbers."""
        return self.weight(numbers, "int64")

    def normal(self, *shape: int, scale: float = 1.0) -> str:
        """An initializer of normal numbers."""
        return self.weight(self.rng.standard_normal(shape) * scale)

    def several(self, kind: str, inputs: Sequence[str], outputs: int, domain: str = "", **attributes: Any) -> list[str]:
        """A node; the names of its outputs."""
        made = [f"{kind.lower()}{next(self.names)}" for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, made, name=f"node_{made[0]}", domain=domain, **attributes))
        return made

    def node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node with one output; its name."""
        return self.several(kind, inputs, 1, domain, **attributes)[0]

    def graph(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> onnx.GraphProto:
        """The graph, whose outputs are told apart from each other and from inputs by copies of them."""
        results = [Value(self.node("Identity", value.name), value.shape, value.kind) for value in outputs]
        name = f"graph{next(self.names)}"
        infos = [value.info for value in inputs], [value.info for value in results]
        return helper.make_graph(self.nodes, name, *infos, self.weights)

    def model(self, inputs: Sequence[Value], outputs: Sequence[Value], opset: int = 20) -> onnx.ModelProto:
        """The model."""
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(self.graph(inputs, outputs), opset_imports=opsets, ir_version=9)
