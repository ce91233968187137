"""Reads of tables at codes: a table is in registers where an instruction permutes bytes of two, else in memory."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.codegen.access import load_raw
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, collapse, linear, nest_steps, vector_nest
from glow_mlir.codegen.builder.types import i8, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.builder.x86 import permute_bytes_of_two
from glow_mlir.codegen.selection.kernel import KernelCall, Operand
from glow_mlir.dialects.glow_low.memory import strides_of
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.dialects.target import Target

LANES = 64
"""Bytes of a register with a part of the table, of which it takes four."""

AT_ONCE = 8
"""How many codes are looked up in memory one behind the other, so that none waits for the one before."""


def lookup_steps(source: SSAValue, result: SSAValue) -> int:
    """Into how many parts the lookups may be cut, about."""
    extents, _ = collapse(shape_of(result), [strides_of(result), strides_of(source)])
    return nest_steps(extents, LANES)


def look_up(call: KernelCall, source: Operand, table: Operand, result: Operand) -> None:
    """The entry of a table for each code, a share of them."""
    b = call.b
    sizes, (into, out_of) = collapse(result.sizes, [result.strides, source.strides])
    is_dense = into[-1] == out_of[-1] == 1
    parts = _in_registers(table) if is_dense and _permutes_bytes(call.target) else []

    def entries(outer: list[Index], i: Index, lanes: int) -> None:
        offset, place = linear([*outer, i], out_of), linear([*outer, i], into)
        if not parts or lanes < LANES:
            _one_by_one(b, source, offset, table, result, place, lanes)
            return
        codes = load_raw(b, source, offset, 1, lanes)
        first, second, third, fourth = parts
        low = permute_bytes_of_two(b, first, second, codes)
        high = permute_bytes_of_two(b, third, fourth, codes)
        result.pointer.at(place, i8).store(b.select(codes < 0, high, low))

    width = (LANES if parts else AT_ONCE) if is_dense else 1
    vector_nest(b, call.extents(sizes), width, entries, call.share("lines"), rest=AT_ONCE)


def _permutes_bytes(target: Target) -> bool:
    return target.is_x86 and target.vector_bits == 8 * LANES and "avx512vbmi" in target.enabled


def _in_registers(table: Operand) -> list[Value]:
    """The parts of the table, in the order of their codes without a sign; none where it is no run of bytes."""
    if table.strides[0] != 1:
        return []
    return [table.pointer.at(LANES * part, i8).load(vector(i8, LANES)) for part in range(4)]


def _one_by_one(
    b: Builder, source: Operand, offset: Index, table: Operand, result: Operand, place: Index, lanes: int
) -> None:
    """Look up neighbouring codes in memory."""
    for lane in range(lanes):
        code = load_raw(b, source, offset + lane, 1, 1)
        entry = load_raw(b, table, b.cast(code, b.index_type, signed=False) * table.strides[0], 1, 1)
        result.pointer.at(place + lane, i8).store(entry)
