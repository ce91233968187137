"""Emission of LLVM IR text."""

from __future__ import annotations

import difflib
import re
import subprocess
import time
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from mlir_tools import find_mlir_tool
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr
from xdsl.parser import Parser

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, i64, ptr, vector
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.text import EmissionError
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.dialects.llvm import LLVM


def parse(text: str) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(LLVM)
    return Parser(context, text).parse_module()


def through_llvm(text: str) -> list[str]:
    """Return the instructions LLVM prints for a module, values and metadata without their names."""
    module = llvm.parse_assembly(text)
    module.verify()
    lines = [line for line in str(module).splitlines() if line.startswith("  ")]
    return [re.sub(r"[%!]\d+|[%!]v\d+|![0-9]+", "x", line) for line in lines]


@pytest.mark.extra
@pytest.mark.parametrize("source", ["llvm_dialect.mlir"])
def test_same_as_mlir_translate(source: str):
    tool = find_mlir_tool("mlir-translate")
    if tool is None:
        pytest.skip("no mlir-translate: GLOW_MLIR_TRANSLATE names none, and `make mlir-tools` has not been run")
    path = Path(__file__).with_name(source)
    done = subprocess.run([tool, "--mlir-to-llvmir", path], capture_output=True, text=True, check=True)
    ours, theirs = through_llvm(emit_module(parse(path.read_text()))), through_llvm(done.stdout)
    assert ours == theirs, "\n".join(difflib.unified_diff(ours, theirs, lineterm=""))


def test_examples_are_valid_llvm_ir():
    path = Path(__file__).with_name("llvm_dialect.mlir")
    assert len(through_llvm(emit_module(parse(path.read_text())))) > 80


FUNCTION = """
builtin.module attributes {llvm.target_triple = "x86_64-unknown-linux-gnu"} {
  llvm.mlir.global private unnamed_addr constant @t(dense<[1.5, -0.0]> : tensor<2xf32>)
    {addr_space = 0 : i32, alignment = 64 : i64} : !llvm.array<2 x f32>
  llvm.func internal fastcc @f(%a: !llvm.ptr {llvm.noalias, llvm.align = 64 : i64}, %b: i1, %c: f32) -> f32
    attributes {no_unwind, target_cpu = "znver4", target_features = #llvm.target_features<["+avx2"]>,
                passthrough = ["mustprogress", ["some-key", "some value"]]} {
    %0 = llvm.mlir.constant(0.1 : f32) : f32
    llvm.cond_br %b, ^later(%0 : f32), ^later(%c : f32)
  ^last(%r: f32):
    llvm.return %r : f32
  ^later(%x: f32):
    %1 = llvm.fadd %x, %0 {fastmathFlags = #llvm.fastmath<contract, nnan>} : f32
    llvm.br ^last(%1 : f32)
  }
}
"""


def test_attributes_linkage_and_edges():
    text = emit_module(parse(FUNCTION))
    assert 'target triple = "x86_64-unknown-linux-gnu"' in text
    assert "@t = private unnamed_addr constant [2 x float] [float 0x3FF8000000000000, " in text
    assert "float 0x8000000000000000], align 64" in text
    assert "define internal fastcc float @f(ptr align 64 noalias %v0, i1 %v1, float %v2) #0 {" in text
    expected = 'mustprogress nounwind "some-key"="some value" "target-cpu"="znver4" "target-features"="+avx2"'
    assert f"attributes #0 = {{ {expected} }}" in text
    assert "fadd nnan contract float" in text
    assert "phi float [ 0x3FB99999A0000000, %b0 ], [ %v2, %b0.edge ]" in text
    module = llvm.parse_assembly(text)
    module.verify()


def test_parameters_in_memory_say_the_types_there():
    text = emit_module(
        parse("""
        llvm.func @f(%a: !llvm.ptr {llvm.sret = !llvm.struct<(i32, f64)>}, %b: !llvm.ptr {llvm.byval = i32},
                     %c: !llvm.ptr {llvm.align = 8 : i64, llvm.byref = !llvm.array<2 x f32>}, %d: !llvm.ptr {llvm.nest})
        llvm.func @g(%a: !llvm.ptr {llvm.inalloca = i64})
        llvm.func @h(%a: !llvm.ptr {llvm.preallocated = i16})
        """)
    )
    assert "@f(ptr sret({i32, double}), ptr byval(i32), ptr align 8 byref([2 x float]), ptr nest)" in text
    assert "@g(ptr inalloca(i64))" in text
    assert "@h(ptr preallocated(i16))" in text
    llvm.parse_assembly(text).verify()


def test_globals_that_are_no_declarations_have_some_value():
    text = emit_module(
        parse("""
        llvm.mlir.global internal constant @mine() {addr_space = 0 : i32, alignment = 8 : i64} : i64
        llvm.mlir.global external @theirs() {addr_space = 0 : i32} : i32
        """)
    )
    assert "@mine = internal constant i64 undef, align 8\n" in text
    assert "@theirs = external global i32\n" in text
    llvm.parse_assembly(text).verify()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llvm.func @f() attributes {memory_effects = 1 : i32}", "'@f': the attribute 'memory_effects"),
        ("llvm.func @f(%a: !llvm.ptr {llvm.byval})", "'llvm.byval = unit' is not translated"),
        ("llvm.func @f(%a: !llvm.ptr {llvm.noalias = i32})", "'llvm.noalias = i32' is not translated"),
        ("llvm.func @f(%a: !llvm.ptr {llvm.unknown})", "'llvm.unknown = unit' is not translated"),
        ("llvm.mlir.global common @g() {addr_space = 0 : i32} : i32", "'@g': linkage 'common' needs a value"),
        (
            "llvm.func @f() { %0 = llvm.mlir.zero {x = 1 : i32} : !llvm.ptr\n llvm.return {y} }",
            "llvm.return.*y",
        ),
        ("llvm.func @f(%0: f32) { %1 = llvm.fneg %0 {unknown} : f32\n llvm.return }", "'llvm.fneg'.*unknown"),
        ('llvm.func @f() attributes {passthrough = ["dereferenceable"]}', "passthrough"),
        (
            'llvm.func @f() { "llvm.func"() <{sym_name = "g", function_type = !llvm.func<void ()>}> ({}) : () -> ()\n'
            " llvm.return }",
            "'llvm.func' is not",
        ),
    ],
)
def test_nothing_is_dropped_silently(text: str, message: str):
    with pytest.raises(EmissionError, match=message):
        emit_module(parse(text))


def test_module_attributes_are_translated_or_refused():
    module = ModuleOp([])
    module.attributes["glow.name"] = StringAttr("x")
    with pytest.raises(EmissionError, match=r"glow\.name"):
        emit_module(module)


def build_long_function(count: int) -> ModuleOp:
    module = ModuleBuilder(PRESETS["avx2"])
    with define_function(module, "f", [ptr, i64]) as (b, (p, n)):
        value = p.load(vector(f32, 8))
        for _ in range(count // 4):
            value = b.fma(value, value, value) * 2.0 + p.at(n, f32).load(vector(f32, 8))
        p.store(value)
    return module.module


def test_emission_is_deterministic_and_fast():
    module = build_long_function(4000)
    first = emit_module(module)
    start = time.process_time()
    assert emit_module(module) == first
    rate = 5000 / (time.process_time() - start)
    assert rate > 20_000, f"{rate:.0f} operations per second"


def test_constants_are_exact():
    values = np.array([0.1, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4028235e38], dtype=np.float32)
    module = ModuleBuilder(PRESETS["avx2"])
    name = module.table(values)
    assert module.table(values.copy()) == name
    parsed = llvm.parse_assembly(emit_module(flattened(module.module)))
    parsed.verify()
    (table,) = parsed.global_variables
    assert "0x7FF8000000000000" in str(table)
    assert "0x36A0000000000000" in str(table)
