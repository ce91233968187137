"""
What a function takes and gives on a device of integers: the codes that the host makes of floats at its borders.

An input that is quantized at once comes as codes, and an output that is dequantized last goes as codes, as NPUs want
it: the host computes both, by the semantics of the operators.
"""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Attribute, Block, SSAValue

from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.support.dataclass import dataclass

Coder = TypeVar("Coder", QuantizeOp, DequantizeOp)


@dataclass(frozen=True)
class Port:
    """One tensor that a function takes or gives: the storage that it is, its type there, and what the host computes."""

    symbol: str
    shape: Shape
    element: Attribute
    on_host: QuantizeOp | DequantizeOp | None = None


@dataclass(frozen=True)
class Signature:
    """What a function takes and gives, in order: inputs and state that it reads, outputs and state that it writes."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def signature_of(function: FunctionOp) -> Signature:
    """The ports of a function of `glow_high`."""
    gets, saves = _uses(function)
    inputs = [_input(op, gets[name]) for op in placeholders_of(function) if (name := op.sym_name.data) in gets]
    outputs = [_output(op, saves[name]) for op in placeholders_of(function) if (name := op.sym_name.data) in saves]
    return Signature(tuple(inputs), tuple(outputs))


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


def _input(placeholder: PlaceholderOp, gets: list[GetOp]) -> Port:
    """A placeholder that is read; as codes where all that reads it makes the same codes of it."""
    name, type_ = placeholder.sym_name.data, placeholder.tensor_type
    readers = [use.operation for get in gets for use in get.result.uses]
    coders = [reader for reader in readers if isinstance(reader, QuantizeOp) and reader.scale is None]
    targets = {coder.to for coder in coders}
    if placeholder.role == "input" and len(coders) == len(readers) and len(targets) == 1:
        return Port(name, shape_of(type_), coders[0].to, _alone(coders[0]))
    return Port(name, shape_of(type_), type_.element_type)


def _output(placeholder: PlaceholderOp, save: SaveOp) -> Port:
    """A placeholder that is written; as codes where these become numbers last."""
    name, last = placeholder.sym_name.data, dequantized_last(save.input)
    if placeholder.role == "output" and last is not None:
        return Port(name, shape_of(last.input), element_of(last.input), _alone(last))
    return Port(name, shape_of(save.input), element_of(save.input))


def _alone(op: Coder) -> Coder:
    """The operator in no function, which may be gone when it is computed."""
    argument = Block(arg_types=[op.input.type]).args[0]
    return type(op).create(operands=[argument], properties=op.properties, result_types=op.result_types)


def dequantized_last(value: SSAValue) -> DequantizeOp | None:
    """The operator that makes numbers of codes for an output; `None` where the value is something else."""
    owner = value.owner
    return owner if isinstance(owner, DequantizeOp) and owner.scale is None else None
