"""Points of a sweep: models of one operator or a few, whose operands are drawn by a seed, as rows of a JSON file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser, printer

ONNXRUNTIME = "com.microsoft"

OPSET = 22
"""The version of ONNX's operators, where an operator needs no other one."""

OPSETS: Mapping[str, int] = {
    **dict.fromkeys(["Attention", "RMSNormalization", "RotaryEmbedding"], 23),
    **dict.fromkeys(["TensorScatter", "Swish"], 24),
    **dict.fromkeys(["BitCast", "CumProd"], 26),
    **{"Upsample": 9, "Scatter": 10, "DFT": 20},
    **dict.fromkeys(["MaxRoiPool", "GlobalLpPool", "Multinomial", "RoiAlign"], 21),
    **dict.fromkeys(["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"], 21),
}
"""Operator → its version where it is not `OPSET`: operators that are newer, and some that were taken back."""

ELEMENTS: Mapping[str, str] = {
    **{"f32": "float32", "f16": "float16", "f64": "float64", "bool": "bool", "string": "str"},
    **{"i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64"},
}
"""Name of an element type → numpy's."""

WORDS = ["alpha", "Beta", "gamma delta", "the", "epsilon", "zeta eta theta", "a", "42", "x=1"]
"""What strings consist of."""


@dataclass(frozen=True)
class Operand:
    """
    An operand: its shape, its element type (a key of `ELEMENTS`), and its elements.

    `fill` is one of those of `_FILLS`, with its numbers behind it (`from 0 9`); `values` are given one by one.
    `free` leaves the first size open in the model.
    """

    shape: Sequence[int]
    dtype: str = "f32"
    fill: str = "normal"
    constant: bool = False
    values: Sequence[Any] | None = None
    free: bool = False

    def array(self, random: np.random.Generator) -> np.ndarray:
        """Its elements, drawn."""
        element = np.dtype(object if self.dtype == "string" else ELEMENTS[self.dtype])
        if self.values is not None:
            return np.array(self.values, element).reshape(self.shape)
        word, *numbers = self.fill.split()
        return _FILLS[word](random, tuple(self.shape), element, *map(float, numbers))


def given(values: Sequence[Any] | float, dtype: str = "i64", constant: bool = True) -> Operand:
    """An operand with these elements, a constant of the model."""
    array = np.asarray(values)
    return Operand(array.shape, dtype, "", constant, array.reshape(-1).tolist())


def weight(shape: Sequence[int], dtype: str = "f32", fill: str = "normal") -> Operand:
    """An operand that is a constant of the model."""
    return Operand(shape, dtype, fill, constant=True)


def _normal(random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any]) -> np.ndarray:
    if element.kind == "O":
        return random.choice(np.array(WORDS, object), shape)
    if element.kind in "iub":
        low, high = {"i": (-9, 10), "u": (0, 20), "b": (0, 2)}[element.kind]
        return random.integers(low, high, shape).astype(element)
    return random.standard_normal(shape).astype(element)


def _between(
    random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any], low: float, high: float
) -> np.ndarray:
    """Floats or integers in [`low`, `high`)."""
    if element.kind in "iu":
        return random.integers(int(low), int(high), shape).astype(element)
    return random.uniform(low, high, shape).astype(element)


def _codes(random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any]) -> np.ndarray:
    """All values of an integer type."""
    limits = np.iinfo(element)
    return random.integers(limits.min, limits.max, shape, element, endpoint=True)


def _share(random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any], share: float) -> np.ndarray:
    """Ones, and zeros elsewhere."""
    return (random.random(shape) < share).astype(element)


def _distinct(random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any], count: float) -> np.ndarray:
    """Distinct indices below `count` along the last axis."""
    rows = np.stack([random.permutation(int(count))[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))])
    return rows.reshape(shape).astype(element)


def _boxes(random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any], extent: float) -> np.ndarray:
    """Boxes as two corners, up to `extent`."""
    corners = random.uniform(0, extent * 0.8, (*shape[:-1], 2))
    return np.concatenate([corners, corners + random.uniform(extent * 0.02, extent * 0.2, corners.shape)], -1).astype(
        element
    )


def _rows(random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any], extent: float) -> np.ndarray:
    """Indices of several axes, each below its own extent at most `extent`."""
    return random.integers(0, int(extent), shape).astype(element)


def _places(random: np.random.Generator, shape: tuple[int, ...], element: np.dtype[Any], *sizes: float) -> np.ndarray:
    """Distinct places of a tensor whose first sizes are `sizes`: rows of indices, one for each of these axes."""
    extents = [int(size) for size in sizes]
    flat = random.permutation(int(np.prod(extents)))[: int(np.prod(shape[:-1]))]
    return np.stack(np.unravel_index(flat, extents), -1).reshape(shape).astype(element)


_FILLS: Mapping[str, Any] = {
    **{"normal": _normal, "from": _between, "codes": _codes, "share": _share, "distinct": _distinct},
    **{"boxes": _boxes, "below": _rows, "places": _places},
}
"""Word of a fill → what draws it."""


@dataclass(frozen=True)
class Application:
    """An operator with its operands (`None` where absent), attributes, and how many results it has."""

    operator: str
    operands: Sequence[Operand | None]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    results: int = 1
    domain: str = ""

    def point(self, name: str, seed: int) -> Point:
        """The point of a model with that one node."""
        names = ["" if operand is None else f"x{place}" for place, operand in enumerate(self.operands)]
        outputs = [f"y{place}" for place in range(self.results)]
        node = helper.make_node(self.operator, names, outputs, domain=self.domain, **self.attributes)
        operands = {name: operand for name, operand in zip(names, self.operands, strict=True) if operand is not None}
        return point_of(name, self.operator, [node], operands, outputs, seed=seed)


@dataclass(frozen=True)
class Composed:
    """A graph of some nodes, with its operands and results by name."""

    operator: str
    nodes: Sequence[onnx.NodeProto]
    operands: Mapping[str, Operand]
    outputs: Collection[str] = ("y",)

    def point(self, name: str, seed: int, kind: str = "sweep") -> Point:
        """The point of a model with those nodes."""
        return point_of(name, self.operator, self.nodes, self.operands, self.outputs, kind, seed)


@dataclass(frozen=True)
class Point:
    """
    One point: a name, the operator it is of, a kind, the graph in ONNX's text, its operands, and the seed.

    All operands are inputs in the text; those that are constants become so in `model`.
    """

    name: str
    operator: str
    kind: str
    graph: str
    operands: Mapping[str, Operand]
    seed: int

    def arrays(self) -> dict[str, np.ndarray]:
        """All operands, drawn by the seed."""
        random = np.random.default_rng(self.seed)
        return {name: operand.array(random) for name, operand in self.operands.items()}

    def model(self) -> onnx.ModelProto:
        """The model, with constants in place."""
        model = parser.parse_model(self.graph)
        constants = {name: array for name, array in self.arrays().items() if self.operands[name].constant}
        inputs = [value for value in model.graph.input if value.name not in constants]
        del model.graph.input[:]
        model.graph.input.extend(inputs)
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
        return model

    def feeds(self) -> dict[str, np.ndarray]:
        """The operands that are no constants, by name."""
        return {name: array for name, array in self.arrays().items() if not self.operands[name].constant}

    def elements(self) -> str:
        """Element types of the operands, each once."""
        return "/".join(dict.fromkeys(operand.dtype for operand in self.operands.values()))

    def as_data(self) -> dict[str, Any]:
        """A row of a JSON file."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Point:
        """The point of a row."""
        operands: Any = {name: Operand(**operand) for name, operand in data["operands"].items()}
        return cls(**{**data, "operands": operands})


def point_of(
    name: str,
    operator: str,
    nodes: Sequence[onnx.NodeProto],
    operands: Mapping[str, Operand],
    outputs: Collection[str],
    kind: str = "sweep",
    seed: int = 0,
) -> Point:
    """The point of a model with these nodes; raises `ParseError` where ONNX's text does not say it."""
    inputs = [
        helper.make_tensor_value_info(
            name,
            onnx.TensorProto.STRING
            if operand.dtype == "string"
            else helper.np_dtype_to_tensor_dtype(np.dtype(ELEMENTS[operand.dtype])),
            ["N", *operand.shape[1:]] if operand.free else operand.shape,
        )
        for name, operand in operands.items()
    ]
    graph = helper.make_graph(list(nodes), "point", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
    opset = max([OPSETS.get(node.op_type, OPSET) for node in nodes if not node.domain] or [OPSET])
    if any(node.op_type in OPSETS and OPSETS[node.op_type] < OPSET and not node.domain for node in nodes):
        opset = min(OPSETS.get(node.op_type, OPSET) for node in nodes)
    domains = {node.domain for node in nodes if node.domain}
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset < 23 else 12)
    return Point(name, operator, kind, printer.to_text(model), dict(operands), seed)
