"""Rules for operations that move lanes of vectors, or reinterpret bits as other types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType
from xdsl.dialects.llvm import ConstantOp
from xdsl.ir import Operation, SSAValue

from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.opencl_c.rules import Rule
from glow_mlir.codegen.opencl_c.scope import (
    LANES,
    Pieces,
    Scope,
    is_mask,
    lane,
    lanes_of,
    picked,
    resized_mask,
    same_bits,
)
from glow_mlir.codegen.opencl_c.types import element_name, info, of_lanes, piece_sizes, signed_name

_ANYTHING = ("llvm.mlir.poison", "llvm.mlir.undef")
"""Operations whose value is arbitrary."""


def _number(value: SSAValue) -> int:
    """The constant number of a lane; raises `EmissionError` if it is known only at run time."""
    if isinstance(value.owner, ConstantOp) and isinstance(value.owner.value, IntegerAttr):
        return value.owner.value.value.data
    raise EmissionError("a lane whose number is no constant is not translated")


def _of_mask(scope: Scope, value: SSAValue) -> tuple[str, str]:
    """The element type of a vector, and the text of a zero."""
    if is_mask(value):
        return signed_name(scope.mask_bits[value]), "0"
    return element_name(info(value.type).element), "0"


def _extract(scope: Scope, op: Operation) -> Pieces:
    vector, position = op.operands
    text = lane(scope.pieces(vector), lanes_of(vector), _number(position))
    return [f"{text} != 0" if is_mask(vector) else text]


def _insert(scope: Scope, op: Operation) -> Pieces:
    """A copy of a vector with one lane replaced."""
    vector, scalar, position = op.operands
    result, number = op.results[0], _number(position)
    (text,) = scope.pieces(scalar)
    if is_mask(result):
        scope.mask_bits[result] = scope.mask_bits.get(vector, 32)
        text = f"-(int){text}"
    name, zero = _of_mask(scope, result)
    if isinstance(vector.owner, Operation) and vector.owner.name in _ANYTHING:
        return picked([text if at == number else None for at in range(lanes_of(result))], name, zero)
    found: list[str] = []
    for piece, size in zip(scope.pieces(vector), piece_sizes(lanes_of(result)), strict=True):
        if 0 <= number < size:
            changed = scope.fresh()
            scope.line(f"{of_lanes(name, size)} {changed} = {piece};")
            scope.line(f"{changed}{f'.s{LANES[number]}' if size > 1 else ''} = {text};")
            piece = changed
        found.append(piece)
        number -= size
    return found


def splat_scalar(op: Operation) -> SSAValue | None:
    """The scalar in all lanes of a shuffled vector, if there is one."""
    first = op.operands[0].owner
    if set(shuffle_mask(op)) == {0} and isinstance(first, Operation) and first.name == "llvm.insertelement":
        position = first.operands[2].owner
        if isinstance(position, ConstantOp) and isinstance(position.value, IntegerAttr):
            return first.operands[1] if position.value.value.data == 0 else None
    return None


def shuffle_mask(op: Operation) -> list[int]:
    """The lanes that a shuffle picks, -1 for any."""
    mask = op.properties["mask"]
    assert isinstance(mask, DenseArrayBase)
    return list(cast("DenseArrayBase[IntegerType]", mask).get_values())


def _shuffle(scope: Scope, op: Operation) -> Pieces:
    a, b = op.operands
    result, count = op.results[0], lanes_of(op.operands[0])
    if (scalar := splat_scalar(op)) is not None:
        (text,) = scope.pieces(scalar)
        if is_mask(result):
            scope.mask_bits[result] = 32
            text = f"-(int){text}"
        return picked([text] * lanes_of(result), _of_mask(scope, result)[0], "0")
    if is_mask(a):
        bits = scope.mask_bits[result] = max(scope.mask_bits[value] for value in (a, b))
        first, second = (resized_mask(scope, value, bits) for value in (a, b))
    else:
        first, second = scope.pieces(a), scope.pieces(b)
    name, zero = _of_mask(scope, result)
    scalars = [
        None if at < 0 else lane(first, count, at) if at < count else lane(second, count, at - count)
        for at in shuffle_mask(op)
    ]
    return picked(scalars, name, zero)


def _bitcast(scope: Scope, op: Operation) -> Pieces:
    """The bits of a value as lanes of another size: split into units that both sides share, and put together."""
    value, result = op.operands[0], op.results[0]
    source, target = info(value.type), info(result.type)
    if 1 in (source.bits, target.bits):
        raise EmissionError("'llvm.bitcast' of truth values is not translated")
    from_name, to_name = element_name(source.element), element_name(target.element)
    if (source.bits, from_name) == (target.bits, to_name):
        return scope.pieces(value)
    from_sizes, to_sizes = piece_sizes(lanes_of(value)), piece_sizes(lanes_of(result))
    unit = min(source.bits * min(from_sizes), target.bits * min(to_sizes))
    unit = max(unit, source.bits, target.bits)
    units: list[str] = []
    for text, size in zip(scope.pieces(value), from_sizes, strict=True):
        units += _split(text, size, unit // source.bits)
    cells = [same_bits(text, of_lanes(to_name, unit // target.bits)) for text in units]
    found: list[str] = []
    for size in to_sizes:
        count = size * target.bits // unit
        own, cells = cells[:count], cells[count:]
        found.append(own[0] if count == 1 else f"({of_lanes(to_name, size)})({', '.join(own)})")
    return found


def _split(text: str, size: int, lanes: int) -> list[str]:
    """Split a piece of a vector into groups of `lanes` lanes."""
    if lanes == size:
        return [text]
    return [f"{text}.s{LANES[start : start + lanes]}" for start in range(0, size, lanes)]


LANE_RULES: Mapping[str, Rule] = {
    "llvm.extractelement": _extract,
    "llvm.insertelement": _insert,
    "llvm.shufflevector": _shuffle,
    "llvm.bitcast": _bitcast,
}
"""Operation → the rule that writes it."""
