"""Functions of the `llvm` dialect as OpenCL C: the text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.backends.opencl.targets import GENERIC, targets
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f16, f32, i1, i8, i32, i64, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.opencl_c.printer import print_program

Build = Callable[[Builder, Sequence[Value]], None]


def printed(build: Build, pointers: int = 2, module: ModuleBuilder | None = None) -> list[str]:
    """The statements of a kernel with some pointers, a number and the number of its part."""
    module = module or ModuleBuilder(PRESETS["avx2"])
    with define_function(module, "kernel", [*[ptr] * pointers, i64, i64]) as (b, arguments):
        build(b, arguments)
        b.give_back()
    module.module.verify()
    text = print_program(module.module, ["kernel"])
    return [line.strip() for line in text.splitlines()]


def test_kernels_take_buffers_and_offsets_and_are_a_group_for_each_part() -> None:
    lines = printed(lambda b, given: given[0].store(given[1].load(f32)), 2)
    head = next(line for line in lines if "__kernel" in line)
    assert "reqd_work_group_size(1, 1, 1)" in head
    assert "void glow_kernel(" in head
    assert head.count("__global uchar * ") == head.count("_offset") == 2
    assert any(line.endswith("= get_group_id(0);") for line in lines)


def begin_of_loop(lines: list[str]) -> int:
    """The number of the line with which the only loop begins."""
    (number,) = (number for number, line in enumerate(lines) if line.startswith("ROLLED for ("))
    return number


def test_loops_carry_values() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, count, _ = given
        with b.loop(0, count, carried=[b.constant(0.0, f32)]) as loop:
            loop.set(loop.values[0] + inp.at(loop.index, f32).load(f32))
        out.store(loop.results[0])

    lines = printed(build)
    begin = begin_of_loop(lines)
    declared, zero = lines[begin - 1].removesuffix(";").split(" = ")
    assert (declared.split()[0], zero) == ("float", "0.0f")
    assert lines[lines.index("}", begin) - 1].startswith(declared.split()[1])
    assert not any("goto" in line for line in lines)


def test_loops_with_a_condition_are_left_where_it_fails() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, _, count, _ = given

        def trip(number: Value, half: Value) -> Sequence[Value]:
            return [number - 1, half * 0.5]

        def goes_on(number: Value, _: Value) -> Value:
            return number > 0

        number, half = b.repeat([count, b.constant(1.0, f32)], trip, goes_on)
        out.store(half + b.cast(number, f32))

    lines = printed(build)
    begin = lines.index("ROLLED for (;;) {")
    assert any(line.startswith("if (!(") and line.endswith(")) break;") for line in lines[begin:])


def test_early_returns_leave_loops() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, count, _ = given
        with b.loop(0, count) as index:
            b.return_if(inp.at(index, i32).load(i32) > 0)
            out.at(index, i32).store(b.constant(0, i32))

    lines = printed(build)
    assert any(line.startswith("if (") and line.endswith(") return;") for line in lines[begin_of_loop(lines) :])


def test_values_that_change_places_around_a_loop_are_kept() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, count, _ = given
        first, second = inp.load(f32), inp.at(1, f32).load(f32)
        with b.loop(0, count, carried=[first, second]) as loop:
            loop.set(loop.values[1], loop.values[0])
        out.store(loop.results[0])

    lines = printed(build)
    begin = begin_of_loop(lines)
    moves = [line for line in lines[begin:] if line.startswith("float ") or line.count(" = v") == 1]
    kept = [line for line in moves if line.startswith("float ")]
    assert len(kept) >= 2, moves


def test_branches_are_branches() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, count, _ = given
        with b.when(count > 4):
            out.store(inp.load(f32))
        (chosen,) = b.either(count > 5, lambda: [b.constant(1, i32)], lambda: [b.constant(2, i32)])
        out.store(chosen)

    lines = printed(build)
    assert sum(line.startswith("if (") for line in lines) == 2
    assert lines.count("} else {") == 1


def test_wide_vectors_are_pieces() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, *_ = given
        codes = inp.load(vector(i8, 32))
        out.store(codes + codes)
        out.store(b.bitcast(codes, i32), align=32)
        out.store(inp.load(vector(f32, 6)))

    lines = printed(build)
    assert sum(line.startswith("uchar16 ") and " = v" in line and " + v" in line for line in lines) == 2
    assert any("as_uint4(" in line for line in lines)
    assert any(line.startswith("float4 ") for line in lines)
    assert any(line.startswith("float2 ") for line in lines)


def test_accesses_are_aligned_as_they_say() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        given[0].store(given[1].load(vector(f32, 8), 32))

    lines = printed(build)
    assert "typedef float8 float8_at_32 ACCESS(32);" in lines
    assert "typedef float8 float8_at_4 ACCESS(4);" in lines


def test_products_are_added_in_one_expression() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        a = given[1].load(vector(f32, 8))
        given[0].store(b.fma(a, a, 1.0))

    assert any(line.endswith(" + ((float8)(1.0f));") and " * " in line for line in printed(build))


def test_masks_are_as_wide_as_what_they_choose() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, *_ = given
        a = inp.load(vector(f32, 8))
        is_large = a > 1.0
        out.store(b.select(is_large, a, 0.0))
        out.store(b.select(is_large, inp.load(vector(i64, 8)), 0))
        out.store(b.cast(b.any(is_large), i32))

    lines = printed(build)
    assert any(line.startswith("int8 ") and " > " in line for line in lines)
    assert any("CONVERT(long8, " in line and " ? " in line for line in lines)
    assert any(".lo | " in line for line in lines)


def test_lanes_of_masks_are_bits_without_masks_in_memory() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        x = given[1].load(vector(f32, 8))
        bits = b.mask_bits(b.compare("ogt", x, b.constant(0.0, x.type)))
        given[0].store(b.lowest_bit(bits))

    lines = printed(build, module=ModuleBuilder(targets()[GENERIC]))
    assert any("(uint8)(1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u)" in line for line in lines)
    assert any(" = clz(" in line for line in lines)


def test_shared_functions_are_written_for_the_spaces_of_their_arguments() -> None:
    module = ModuleBuilder(PRESETS["avx2"])
    with define_function(module, "copied", [ptr, ptr], internal=True) as (_, (out, inp)):
        out.store(inp.load(f32))
    table = module.table(np.arange(4, dtype=np.float32))

    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, *_ = given
        own = b.stack(f32, 4)
        b.call("copied", [out, inp])
        b.call("copied", [out, b.symbol(table)])
        b.call("copied", [own, inp])
        b.call("copied", [out, own])

    lines = printed(build, module=module)
    heads = [line for line in lines if line.startswith("SHARED void")]
    assert len(heads) == 4
    spaces = [re.findall(r"__\w+", head.partition("(")[2]) for head in heads]
    assert sorted(spaces) == [
        ["__global", "__constant"],
        ["__global", "__global"],
        ["__global", "__private"],
        ["__private", "__global"],
    ]
    assert any(line.startswith(f"__constant float glow_{table.replace('.', '_')}[4]") for line in lines)


def test_rows_of_addresses_are_those_of_buffers() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, count, _ = given
        rows = b.stack(ptr, 2)
        rows.store(inp)
        rows.at(1, ptr).store(inp.at(count, f32))
        out.store(rows.at(1, ptr).load(ptr).load(f32))

    lines = printed(build)
    assert any("*(__private buffer_pointer *)" in line for line in lines)
    assert any(line.startswith("__global uchar * ") and "buffer_pointer" in line for line in lines)


def test_a_pointer_of_two_spaces_is_refused() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, inp, count, _ = given
        chosen = b.select(count > 1, inp, b.stack(f32, 4))
        out.store(chosen.load(f32))

    with pytest.raises(EmissionError, match=r"'@kernel': a pointer is in the address spaces __global and __private"):
        printed(build)


def test_what_is_not_translated_is_told() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        given[0].store(b.cast(given[1].load(f16), f32))

    with pytest.raises(EmissionError, match=r"'@kernel': 'llvm.fpext' of floats of 16 bits is not translated"):
        printed(build)


def test_halves_are_bits_that_nobody_adds() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        half = given[1].load(f16)
        given[0].store(half + half)

    with pytest.raises(EmissionError, match=r"'@kernel': 'llvm.fadd' of floats of 16 bits is not translated"):
        printed(build)


def test_a_negative_number_is_negated() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        given[0].store(-b.constant(-1.0, f32))

    assert any(line.endswith("= -(-1.0f);") for line in printed(build))


def test_numbers_are_exact() -> None:
    def build(b: Builder, given: Sequence[Value]) -> None:
        out, *_ = given
        for value in (0.1, float("inf"), float("nan"), -0.0, 1e30):
            out.store(b.constant(value, f32))
        out.store(b.constant(-1, i8))
        out.store(b.constant(-1, i64))
        out.store(b.cast(b.constant(True, i1), i32))

    text = "\n".join(printed(build))
    for literal in ("0.100000001f", "as_float(2139095040u)", "as_float(2143289344u)", "-0.0f", "1.00000002e+30f"):
        assert literal in text
    assert "(uchar)255" in text
    assert "18446744073709551615ul" in text
