"""Scale and zero point of integer inputs and outputs, if the graph itself determines them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.quantization import StorageCastOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.quant import parameters_of
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.ir.traversal import own_operations

_MOVES = ReshapeOp | TransposeOp
"""Operators whose result has the elements and the type of their operand."""


class QuantizationParameters(NamedTuple):
    """A quantized value q represents (q - `zero_point`) times `scale`."""

    scale: float
    zero_point: int


def exchanged_quantization(function: FuncOp) -> dict[tuple[str, str], QuantizationParameters]:
    """
    Role and name of each input and output that is quantized with a single scale → its quantization parameters.

    The parameters follow from the uses of an input, or the definition of an output, through operators that only move
    elements. An input dequantized with different scales has none.
    """
    placeholders = {op.sym_name.data: op for op in placeholders_of(function)}
    found: dict[tuple[str, str], set[QuantizationParameters]] = {}
    for op in own_operations(function):
        if isinstance(op, GetOp):
            _note(found, placeholders, op, "input", _read_as(op.results[0]))
        elif isinstance(op, SaveOp):
            _note(found, placeholders, op, "output", _made_of(op.input))
    return {key: min(parameters) for key, parameters in found.items() if len(parameters) == 1}


def _note(
    found: dict[tuple[str, str], set[QuantizationParameters]],
    placeholders: Mapping[str, PlaceholderOp],
    op: GetOp | SaveOp,
    role: str,
    parameters: Iterable[QuantizationParameters],
) -> None:
    """Record the parameters from an access to storage, if it has the role."""
    placeholder = placeholders.get(op.storage_name)
    if placeholder is not None and placeholder.role == role:
        found.setdefault((role, placeholder.public_name), set()).update(parameters)


def _read_as(value: SSAValue) -> Iterator[QuantizationParameters]:
    """The parameters of the quantized values that integers are converted to."""
    pending = [value]
    while pending:
        for user in (use.operation for use in pending.pop().uses):
            if isinstance(user, StorageCastOp):
                yield from _parameters(user.result)
            elif isinstance(user, _MOVES):
                pending.append(user.result)


def _made_of(value: SSAValue) -> Iterator[QuantizationParameters]:
    """The parameters of the quantized values that integers are converted from."""
    while isinstance(owner := value.owner, _MOVES):
        value = owner.input
    if isinstance(owner, StorageCastOp):
        yield from _parameters(owner.input)


def _parameters(value: SSAValue) -> Iterator[QuantizationParameters]:
    known = parameters_of(element_of(value))
    if known is not None:
        yield QuantizationParameters(*known)
