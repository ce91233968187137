"""
What a function takes and gives on a device of integers: the codes that the host makes of floats at its borders.

An input that elementwise operators and a quantization read comes as codes, and an output that a dequantization and
elementwise operators make of integers goes as these, as NPUs want it: the host computes what lies beyond, by the
semantics of the operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, PlaceholderOp, SaveOp, StorageOp
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.support.dataclass import dataclass
from tosa_backend.builder import known_in

Storage = Mapping[str, StorageOp]


@dataclass(frozen=True)
class Step:
    """One elementwise operator of the host: it reads what the one before gives, and constants."""

    op: Elementwise
    constants: tuple[np.ndarray | None, ...]
    """Its operands in order; `None` for what the step before gives."""

    @staticmethod
    def of(op: Elementwise, variable: SSAValue, storage: Storage) -> Step:
        """The step that an operator is, which may be gone when it is computed."""
        operands = Block(arg_types=[value.type for value in op.operands]).args
        alone = type(op).create(operands=operands, properties=op.properties, result_types=op.result_types)
        return Step(alone, tuple(None if value is variable else known_in(storage, value) for value in op.operands))

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """What the operator makes of an array."""
        return apply_semantics(self.op, [array if known is None else known for known in self.constants])[0]


@dataclass(frozen=True)
class Port:
    """One tensor that a function takes or gives: the storage that it is, its type there, and what the host computes."""

    symbol: str
    shape: Shape
    element: Attribute
    on_host: tuple[Step, ...] = ()

    def computed(self, array: np.ndarray) -> np.ndarray:
        """What the host makes of an array: codes for the device, or numbers for callers."""
        for step in self.on_host:
            array = step(array)
        return array


@dataclass(frozen=True)
class Border:
    """A port, the values of the function that are the tensor, and the operators beyond, which the host has."""

    port: Port
    values: tuple[SSAValue, ...]
    beyond: frozenset[Operation] = frozenset()


@dataclass(frozen=True)
class Borders:
    """What a function takes and gives, in order: inputs and state that it reads, outputs and state that it writes."""

    inputs: tuple[Border, ...]
    outputs: tuple[Border, ...]


def borders_of(function: FunctionOp) -> Borders:
    """The borders of a function of `glow_high`."""
    storage, (gets, saves) = function.storage(), _uses(function)
    named = [(op, op.sym_name.data) for op in placeholders_of(function)]
    inputs = [_input(op, gets[name], storage) for op, name in named if name in gets]
    outputs = [_output(op, saves[name], storage) for op, name in named if name in saves]
    return Borders(tuple(inputs), tuple(outputs))


def _uses(function: FunctionOp) -> tuple[dict[str, list[GetOp]], dict[str, SaveOp]]:
    """What reads each placeholder, and what writes it last."""
    gets: dict[str, list[GetOp]] = {}
    saves: dict[str, SaveOp] = {}
    bound = frozenset(function.binding_names)
    for op in function.block.ops:
        if isinstance(op, GetOp) and op.storage_name in bound:
            gets.setdefault(op.storage_name, []).append(op)
        elif isinstance(op, SaveOp):
            saves[op.storage_name] = op
    return gets, saves


def _input(placeholder: PlaceholderOp, gets: Sequence[GetOp], storage: Storage) -> Border:
    """A placeholder that is read; as codes where all that reads it leads to the same codes of it."""
    name, type_ = placeholder.sym_name.data, placeholder.tensor_type
    values = tuple(get.result for get in gets)
    if placeholder.role == "input" and (coded := _codes_of(values, storage)) is not None:
        steps, codes, beyond = coded
        first = codes[0]
        return Border(Port(name, shape_of(first), element_of(first), steps), codes, beyond)
    return Border(Port(name, shape_of(type_), type_.element_type), values)


Coded = tuple[tuple[Step, ...], tuple[SSAValue, ...], frozenset[Operation]]
"""The steps to codes, the codes, and the operators that are these steps."""


def _codes_of(values: tuple[SSAValue, ...], storage: Storage) -> Coded | None:
    """The codes that all that reads some equal values leads to; `None` where something else reads them."""
    steps: list[Step] = []
    beyond: set[Operation] = set()
    while True:
        readers = [use.operation for value in values for use in value.uses]
        coders = [reader for reader in readers if isinstance(reader, QuantizeOp) and reader.scale is None]
        if coders and len(coders) == len(readers) and len({coder.to for coder in coders}) == 1:
            steps.append(Step.of(coders[0], coders[0].input, storage))
            return tuple(steps), tuple(coder.result for coder in coders), frozenset((*beyond, *coders))
        reader = readers[0] if len(readers) == len(values) == 1 else None
        if not isinstance(reader, Elementwise) or _variable(reader, storage) is None:
            return None
        if not is_float(element_of(reader.result)) or shape_of(reader.result) != shape_of(values[0]):
            return None
        steps.append(Step.of(reader, values[0], storage))
        beyond.add(reader)
        values = (reader.result,)


def _output(placeholder: PlaceholderOp, save: SaveOp, storage: Storage) -> Border:
    """A placeholder that is written; as integers where numbers are made of these last."""
    name, value = placeholder.sym_name.data, save.input
    steps: list[Step] = []
    beyond: set[Operation] = set()
    while placeholder.role == "output" and isinstance(op := value.owner, Elementwise):
        variable = _variable(op, storage)
        if variable is None or not is_float(element_of(op.result)):
            break
        steps.insert(0, Step.of(op, variable, storage))
        beyond.add(op)
        value = variable
        if isinstance(op, DequantizeOp):
            return Border(Port(name, shape_of(value), element_of(value), tuple(steps)), (value,), frozenset(beyond))
    return Border(Port(name, shape_of(save.input), element_of(save.input)), (save.input,))


def _variable(op: Elementwise, storage: Storage) -> SSAValue | None:
    """The only operand that is no constant; `None` where there are several."""
    found = [value for value in op.operands if known_in(storage, value) is None]
    return found[0] if len(found) == 1 else None
