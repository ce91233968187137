"""Lookups of 8-bit values in 256-entry tables: in registers if an instruction permutes bytes of two, else in memory."""

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
"""The bytes of a register; a table takes four."""

AT_ONCE = 8
"""The number of lookups in memory that are emitted one after another, so that none waits for the one before."""


def lookup_steps(source: SSAValue, result: SSAValue) -> int:
    """Return into about how many tasks the lookups can be divided."""
    extents, _ = collapse(shape_of(result), [strides_of(result), strides_of(source)])
    return nest_steps(extents, LANES)


def look_up(call: KernelCall, source: Operand, table: Operand, result: Operand) -> None:
    """Look up the table entry of each value of a share."""
    b = call.b
    sizes, (into, out_of) = collapse(result.sizes, [result.strides, source.strides])
    is_dense = into[-1] == out_of[-1] == 1
    parts = _in_registers(table) if is_dense and _permutes_bytes(call.target) else []

    def entries(outer: list[Index], i: Index, lanes: int) -> None:
        offset, result_offset = linear([*outer, i], out_of), linear([*outer, i], into)
        if not parts or lanes < LANES:
            _one_by_one(b, source, offset, table, result, result_offset, lanes)
            return
        values = load_raw(b, source, offset, 1, lanes)
        first, second, third, fourth = parts
        low = permute_bytes_of_two(b, first, second, values)
        high = permute_bytes_of_two(b, third, fourth, values)
        result.pointer.at(result_offset, i8).store(b.select(values < 0, high, low))

    width = (LANES if parts else AT_ONCE) if is_dense else 1
    vector_nest(b, call.extents(sizes), width, entries, call.share("lines"), rest=AT_ONCE)


def _permutes_bytes(target: Target) -> bool:
    return target.is_x86 and target.vector_bits == 8 * LANES and "avx512vbmi" in target.enabled


def _in_registers(table: Operand) -> list[Value]:
    """Load the four parts of a table, in the order of unsigned values; none if the table is not contiguous."""
    if table.strides[0] != 1:
        return []
    return [table.pointer.at(LANES * part, i8).load(vector(i8, LANES)) for part in range(4)]


def _one_by_one(
    b: Builder, source: Operand, offset: Index, table: Operand, result: Operand, result_offset: Index, lanes: int
) -> None:
    """Look up neighbouring values in memory."""
    for lane in range(lanes):
        value = load_raw(b, source, offset + lane, 1, 1)
        entry = load_raw(b, table, b.cast(value, b.index_type, signed=False) * table.strides[0], 1, 1)
        result.pointer.at(result_offset + lane, i8).store(entry)
