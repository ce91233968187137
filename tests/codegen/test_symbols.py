"""Which symbols objects define and which they leave to a linker, in every format that LLVM writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbol import Symbol
from glow_mlir.codegen.llvm.symbols import is_arithmetic, symbols, undefined_symbols
from glow_mlir.errors import CompilerBugError

TEXT = """
@table = private constant [4 x i8] c"abc\\00"
@a_variable_that_is_elsewhere = external global i32
declare i32 @outside(i32)
define internal i32 @inside(i32 %x) noinline nounwind {
  %1 = add i32 %x, 1
  ret i32 %1
}
define i32 @a_function_with_a_long_name(i32 %x, ptr %callback) nounwind {
  %buffer = alloca i32, i64 16
  %at = getelementptr i32, ptr %buffer, i32 %x
  store i32 %x, ptr %at
  %1 = call i32 @inside(i32 %x)
  %2 = call i32 @outside(i32 %1)
  %3 = load i32, ptr @a_variable_that_is_elsewhere
  %4 = call i32 %callback(i32 %3)
  %5 = load volatile i32, ptr %at
  %6 = getelementptr i8, ptr @table, i32 %5
  %7 = load i8, ptr %6
  %8 = zext i8 %7 to i32
  %9 = add i32 %2, %4
  %10 = add i32 %8, %9
  ret i32 %10
}
define i32 @last() nounwind {
  ret i32 1
}
"""

TARGETS = {
    "ELF, 64 bits": PRESETS["neon"],
    "ELF, 32 bits": PRESETS["cortex-m4"],
    "COFF": replace(PRESETS["avx2"], triple="x86_64-pc-windows-msvc"),
    "Mach-O": replace(PRESETS["neon"], triple="arm64-apple-macosx14.0.0"),
    "WebAssembly": PRESETS["wasm32"],
}


@pytest.mark.parametrize("name", TARGETS)
def test_symbols_of_each_format_are_read(name: str) -> None:
    data = compile_text(TEXT, TARGETS[name])
    found = symbols(data)
    assert {symbol.name for symbol in found if symbol.exported and symbol.defined} == {
        "a_function_with_a_long_name",
        "last",
    }
    assert undefined_symbols(data) == ("a_variable_that_is_elsewhere", "outside")
    assert Symbol("inside", defined=True, exported=False) in found or not any(s.name == "inside" for s in found)


def test_other_files_are_refused() -> None:
    with pytest.raises(CompilerBugError, match="the object file has an unknown format"):
        symbols(b"#!/bin/sh")


def test_requirements_are_arithmetic_alone() -> None:
    arithmetic = (
        "__aeabi_fadd __aeabi_uldivmod __addsf3 __divdi3 __floatundisf __fixunsdfti __truncdfhf2 __popcountsi2 __eqdf2"
    )
    assert all(map(is_arithmetic, arithmetic.split()))
    others = "__aeabi_memcpy __stack_chk_fail __tls_get_addr __chkstk memcpy sinf __udivmod"
    assert not any(map(is_arithmetic, others.split()))
