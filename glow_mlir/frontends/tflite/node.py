"""One operator of a TensorFlow Lite model under import."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES, is_integer
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.quantization import StorageCastOp
from glow_mlir.dialects.quant import UniformQuantizedType
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of
from glow_mlir.frontends.builder.module_builder import ModuleBuilder, named_location
from glow_mlir.frontends.builder.node_builder import NodeBuilder
from glow_mlir.frontends.tflite.file import CUSTOM, INTEGERS, Operator, Quantization, Tensor
from glow_mlir.frontends.tflite.flexbuffer import Value, read_flexbuffer
from glow_mlir.frontends.tflite.variables import Variables
from glow_mlir.ir.registry import Part
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.flatbuffer import Table

Importer = Callable[["TfliteNode"], SSAValue | Sequence[SSAValue] | None]
"""Emits the operators of a node, and returns its results; `None` if it has none."""

Function = TypeVar("Function", bound=Importer)

IMPORTERS: Part[Importer] = Part("tflite_importers")
"""Name of an operator, of a custom one behind `CUSTOM`, → its importer."""

ACTIVATIONS: Mapping[int, str] = {0: "none", 1: "relu", 2: "relu_n1_to_1", 3: "relu6", 4: "tanh", 5: "sign_bit"}
"""The activation functions of an operator's options, by number."""

LIMITS: Mapping[str, tuple[float, float]] = {
    "none": (-np.inf, np.inf),
    "relu": (0, np.inf),
    "relu_n1_to_1": (-1, 1),
    "relu6": (0, 6),
    "relu_0_to_1": (0, 1),
}
"""Activation function → the range to which it limits numbers."""


def tflite_operator(*kinds: str) -> Callable[[Function], Function]:
    """Register the importer of builtin operators."""

    def register(importer: Function) -> Function:
        for kind in kinds:
            IMPORTERS.add(kind, importer)
        return importer

    return register


def tflite_custom_operator(*names: str) -> Callable[[Function], Function]:
    """Register the importer of custom operators, by the names that files give them."""
    return tflite_operator(*(f"{CUSTOM}{name}" for name in names))


@dataclass
class GraphValues:
    """
    The values of a graph under import: number of a tensor → its value, or the name of its variable.

    The `tensors` have the shapes of this import, also those with sizes that are known only at run time.
    """

    builder: ModuleBuilder
    file_tensors: Sequence[Tensor]
    """The tensors as they are in the file."""
    variables: Variables
    calls: tuple[int, ...]
    """The numbers of the graphs that are being emitted, the innermost one last."""
    values: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    handles: dict[int, str] = field(default_factory=dict[int, str])
    is_resized: bool = False
    """Whether an input has another shape than in the file."""
    tensors: list[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.tensors = [*self.file_tensors]

    def set(self, number: int, value: SSAValue) -> None:
        """Give a tensor its value, and the shape that it has."""
        self.values[number] = value
        self.tensors[number] = replace(self.tensors[number], shape=sizes_of(value))

    def is_known(self, number: int) -> bool:
        """Whether a tensor has a value."""
        item = self.tensors[number]
        return number in self.values or number in self.handles or item.values is not None or item.is_variable

    def value(self, number: int, node: NodeBuilder) -> SSAValue:
        """The value of a tensor, which may be a constant; raises `UnsupportedError` if it has none."""
        tensor = self.tensors[number]
        if number not in self.values:
            if tensor.values is None:
                raise node.unsupported(f"'{tensor.name}' has no value")
            self.values[number] = node.constant(tensor.values, tensor.name)
        return self.values[number]


class TfliteNode(NodeBuilder):
    """
    Build the operators for one operator of a file.

    Quantized tensors are values of the integers that are stored; `quantized` gives them their type.
    """

    def __init__(self, graph: GraphValues, operator: Operator) -> None:
        names = [graph.tensors[number].name for number in operator.outputs if number >= 0]
        super().__init__(graph.builder, operator.kind, operator.name, named_location(operator.name), names)
        self.graph, self.operator = graph, operator

    @property
    def options(self) -> Table:
        """The table of options; raises `UnsupportedError` if the operator has none."""
        if self.operator.options is None:
            raise self.unsupported("has no options")
        return self.operator.options

    @property
    def custom_options(self) -> bytes:
        """The options of a custom operator, in the form that it defines: mostly a flexbuffer. Empty without."""
        return self.operator.custom_options

    @property
    def custom_values(self) -> dict[str, Value]:
        """The options of a custom operator that are a flexbuffer of a map; none if there are no options."""
        found = read_flexbuffer(self.custom_options, self.name) if self.custom_options else {}
        if not isinstance(found, dict):
            raise self.unsupported(f"has options that are no map, but {found!r:.40}")
        return found

    def custom_real(self, key: str, default: float) -> float:
        """A number of the options of a custom operator."""
        found = self.custom_values.get(key, default)
        if not isinstance(found, int | float):
            raise self.unsupported(f"has the option '{key}' that is no number, but {found!r:.40}")
        return float(found)

    @property
    def activation(self) -> str:
        """The activation function behind the operator, which is field `ACTIVATION_FIELDS` of its options."""
        return self.activation_at(ACTIVATION_FIELDS[self.kind])

    def activation_at(self, field: int) -> str:
        """The activation function in a field of the options."""
        number = self.options.number(field, "b")
        if number not in ACTIVATIONS:
            raise self.unsupported(f"has the activation function {number}")
        return ACTIVATIONS[number]

    # Operands and results

    @property
    def operands(self) -> tuple[int, ...]:
        """The numbers of the operands, -1 where one is left out."""
        return self.operator.inputs

    def variable(self, position: int) -> str:
        """The name of the variable that an operand is."""
        number = self.operator.inputs[position] if self.has(position) else -1
        if number not in self.graph.handles:
            raise self.unsupported(f"operand {position} is no variable of the graph")
        return self.graph.handles[number]

    @property
    def count(self) -> int:
        """The number of operands."""
        return len(self.operator.inputs)

    def has(self, position: int) -> bool:
        """Whether there is an operand at a position."""
        return position < self.count and self.operator.inputs[position] >= 0

    def tensor(self, position: int) -> Tensor:
        """The tensor of an operand; raises `UnsupportedError` if it is left out."""
        if not self.has(position):
            raise self.unsupported(f"operand {position} is missing")
        return self.graph.tensors[self.operator.inputs[position]]

    def output(self, position: int = 0) -> Tensor:
        """The tensor of a result."""
        if position >= len(self.operator.outputs) or self.operator.outputs[position] < 0:
            raise self.unsupported(f"result {position} is missing")
        return self.graph.tensors[self.operator.outputs[position]]

    def shape(self, position: int) -> Shape:
        """The shape of an operand."""
        return self.tensor(position).shape

    def image(self, position: int) -> Shape:
        """The shape of an operand of four axes, [N, H, W, C] or filters of that form."""
        shape = self.shape(position)
        if len(shape) != 4:
            raise self.unsupported(f"operand {position} of the shape {list(shape)} has not four axes")
        return shape

    def step(self, field: int) -> int:
        """A number of the options that is at least 1, and by default 1."""
        found = self.options.number(field, "i", 1)
        if found < 1:
            raise self.unsupported(f"has the number {found} in its options, below 1")
        return found

    def input(self, position: int) -> SSAValue:
        """The value of an operand: for quantized tensors, the integers."""
        self.tensor(position)
        return self.graph.value(self.operator.inputs[position], self)

    def known(self, position: int, role: str) -> np.ndarray:
        """The values of a constant operand."""
        found = self.fold(self.input(position))
        if found is None:
            raise self.unsupported(f"{role} is not a constant")
        return found

    def integers(self, position: int, role: str) -> np.ndarray:
        """The integers that a constant operand has."""
        found = self.known(position, role)
        if found.dtype.kind not in "iu":
            raise self.unsupported(f"{role} is of {found.dtype.name}, no integers")
        return found

    def whole(self, position: int, role: str) -> int:
        """The integer that a constant operand of one element is."""
        found = self.integers(position, role)
        if found.size != 1:
            raise self.unsupported(f"{role} has the shape {list(found.shape)}, and is no integer")
        return int(found.item())

    def shape_by(self, position: int) -> Shape:
        """The shape of the result: that in the file, or what an operand says where inputs have other shapes."""
        known = self.fold(self.input(position)) if self.graph.is_resized and self.has(position) else None
        return self.output().shape if known is None else tuple(known.reshape(-1).tolist())

    def is_float(self, position: int = 0) -> bool:
        """Whether an operand is of f32."""
        return self.tensor(position).dtype == "float32"

    def state(self, position: int) -> SSAValue:
        """The value of an operand that is kept from call to call, which is 0 at first."""
        tensor = self.tensor(position)
        if not tensor.is_variable:
            raise self.unsupported(f"operand {position} is no state")
        variables, name = self.graph.variables, self._state_name(position)
        if name not in variables.initial:
            zero = 0 if tensor.quantization is None else int(tensor.quantization.zero_points[0])
            variables.initial[name] = np.full(tensor.shape, zero, tensor.dtype)
        return variables.read(name)

    def _state_name(self, position: int) -> str:
        """The name of the variable of an operand that is kept from call to call."""
        return self.graph.variables.states[self.graph.calls[-1], self.operator.inputs[position]]

    def keep(self, position: int, value: SSAValue) -> None:
        """Give an operand that is kept from call to call its value for the next call."""
        shaped = self.emit(ReshapeOp, value, shape=self.shape(position))
        self.graph.variables.assign(self._state_name(position), shaped)

    # Quantized values

    def is_quantized(self, position: int = 0) -> bool:
        """Whether an operand has integers that stand for numbers."""
        return self.tensor(position).quantization is not None and not self.is_float(position)

    def quantization(self, tensor: Tensor) -> Quantization:
        """The scales and zero points of a tensor; raises `UnsupportedError` if it has none."""
        if tensor.quantization is None:
            raise self.unsupported(f"tensor '{tensor.name}' of {tensor.dtype} has no scale")
        return tensor.quantization

    def scale(self, tensor: Tensor) -> float:
        """The only scale of a tensor; raises `UnsupportedError` if it has another number of them, or it is 0."""
        found = self.quantization(tensor).scales
        if len(found) != 1:
            raise self.unsupported(f"tensor '{tensor.name}' has {len(found)} scales")
        if not found[0]:
            raise self.unsupported(f"tensor '{tensor.name}' has the scale 0")
        return float(found[0])

    def limits(self, tensor: Tensor) -> tuple[int, int]:
        """The smallest and the largest integer of a tensor; raises `UnsupportedError` if it has no integers."""
        if tensor.dtype not in INTEGERS:
            raise self.unsupported(f"tensor '{tensor.name}' is of {tensor.dtype}")
        found = np.iinfo(tensor.dtype)
        return int(found.min), int(found.max)

    def type_of(self, tensor: Tensor, activation: str = "none") -> UniformQuantizedType:
        """The type of the elements of a tensor of one scale, limited as an activation function asks."""
        found, scale = self.quantization(tensor), self.scale(tensor)
        zero = int(found.zero_points[0])
        if activation not in LIMITS:
            raise self.unsupported(f"has the activation function {activation}")
        low, high = self.limits(tensor)
        storage = cast("IntegerType", ELEMENT_TYPES[tensor.dtype])
        bounds = [zero + quantized_limit(limit, found.scales[0]) for limit in LIMITS[activation]]
        limited = max(low, bounds[0]), min(high, bounds[1])
        return UniformQuantizedType.of(storage, f32, [(scale, zero)], bounds=limited)

    def quantized(self, position: int) -> SSAValue:
        """An operand as quantized values of its scale and zero point."""
        return self.emit(StorageCastOp, self.input(position), to=self.type_of(self.tensor(position)))

    def stored(self, value: SSAValue) -> SSAValue:
        """The integers of quantized values."""
        element = element_of(value)
        return value if is_integer(element) else self.emit(StorageCastOp, value, to=element.storage)  # pyright: ignore


UNLIMITED = 1 << 40
"""More than any zero point and limit."""


def quantized_limit(limit: float, scale: np.float32) -> int:
    """The quantized value of a limit, less the zero point: halves are rounded away from zero, as `TfLiteRound` does."""
    if not np.isfinite(limit):
        return UNLIMITED if limit > 0 else -UNLIMITED
    ratio = np.float32(limit) / scale
    if not abs(ratio) < UNLIMITED:
        return quantized_limit(math.copysign(math.inf, limit), scale)
    return int(np.copysign(np.floor(np.abs(ratio) + np.float32(0.5)), ratio))


ACTIVATION_FIELDS: Mapping[str, int] = {
    "ADD": 0,
    "SUB": 0,
    "MUL": 0,
    "DIV": 0,
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 4,
    "FULLY_CONNECTED": 0,
    "TRANSPOSE_CONV": 3,
    "CONCATENATION": 1,
    "AVERAGE_POOL_2D": 5,
    "MAX_POOL_2D": 5,
    "L2_POOL_2D": 5,
}
"""Operator → the field of its options that has the activation function."""
