"""
What a function takes and gives on a device of integers: the codes that the host makes of floats at its borders.

An input that is quantized at once comes as codes, and an output that is dequantized last goes as codes, as NPUs want
it: the host computes both, by the semantics of the operators.
"""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.quantization import DequantizeOp, QuantizeOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Port:
    """One tensor that a function takes or gives: the storage that it is, its type there, and what the host computes."""

    symbol: str
    shape: Shape
    element: Attribute
    on_host: QuantizeOp | DequantizeOp | None = None

    @property
    def name(self) -> str:
        """What people call it: that of the storage."""
        return self.symbol


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
    first = readers[0] if readers else None
    is_coded = placeholder.role == "input" and isinstance(first, QuantizeOp) and first.scale is None
    if is_coded and all(isinstance(reader, QuantizeOp) and reader.to == first.to for reader in readers):
        return Port(name, shape_of(type_), first.to, first)
    return Port(name, shape_of(type_), type_.element_type)


def _output(placeholder: PlaceholderOp, save: SaveOp) -> Port:
    """A placeholder that is written; as codes where these become numbers last."""
    name, last = placeholder.sym_name.data, dequantized_last(save.input)
    if placeholder.role == "output" and last is not None:
        return Port(name, shape_of(last.input), element_of(last.input), last)
    return Port(name, shape_of(save.input), element_of(save.input))


def dequantized_last(value: SSAValue) -> DequantizeOp | None:
    """The operator that makes numbers of codes for an output; `None` where the value is something else."""
    owner = value.owner
    return owner if isinstance(owner, DequantizeOp) and owner.scale is None else None
