"""
The structured builder, the objects it becomes, and their loading: functions are built, compiled and run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from machines import target_named

from glow_mlir.backends.cpu.targets import PRESETS, host_target
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import Param, define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, f64, i1, i8, i32, i64, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import assembly_text, compile_text
from glow_mlir.codegen.llvm.symbols import symbols, undefined_symbols
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.dialects.target import Target
from glow_mlir.errors import OptionError
from glow_mlir.runtime.loader import Library

HOST = host_target()
RUNNABLE = ["host", "scalar"] if host_target().is_x86 else ["host"]
"""The targets that this machine runs: `scalar` is the plainest x86-64."""


def build(module: ModuleBuilder) -> Library:
    module.module.verify()
    data = compile_text(emit_module(flattened(module.module)), module.target)
    assert undefined_symbols(data) == ()
    return Library(data)


def compile_body(
    body: Callable[[Builder, list[Value]], None], pointers: int, target: Target = HOST
) -> Callable[..., None]:
    """Return `body` as a function of that many pointers and one i64, taking arrays and an int."""
    module = ModuleBuilder(target)
    with define_function(module, "f", [*[ptr] * pointers, i64]) as (b, arguments):
        body(b, arguments)
    call = build(module).function("f", [*[ctypes.c_void_p] * pointers, ctypes.c_int64])

    def run(*arguments: Any) -> None:
        *arrays, n = arguments
        call(*(array.ctypes.data for array in arrays), n)

    return run


@pytest.mark.parametrize("n", [0, 1, 5, 16, 33])
@pytest.mark.parametrize("name", RUNNABLE)
def test_loop_and_masked_tail(n: int, name: str):
    target = target_named(name)
    lanes = target.vector_width(f32)

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, count = arguments
        whole = count // lanes * lanes
        with b.loop(0, whole, lanes) as i:
            out.at(i, f32).store(inp.at(i, f32).load(vector(f32, lanes)) * 2.0 + 1.0)
        if lanes > 1:
            with b.when(whole < count):
                mask = b.mask(count - whole, lanes)
                value = b.load_masked(inp.at(whole, f32), vector(f32, lanes), mask)
                b.store_masked(value * 2.0 + 1.0, out.at(whole, f32), mask)

    x = np.arange(40, dtype=np.float32)
    y = np.full(40, -1, dtype=np.float32)
    compile_body(body, 2, target)(y, x, n)
    np.testing.assert_array_equal(y[:n], x[:n] * 2 + 1)
    assert (y[n:] == -1).all()


def test_carried_values_nested_loops_and_reduction():
    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, n = arguments
        with b.loop(0, n, 1, carried=[b.constant(0.0, f32)]) as outer:
            with b.loop(0, 8, 4, carried=[b.constant(0.0, vector(f32, 4))]) as inner:
                address = inp.at(outer.index * 8 + inner.index, f32)
                inner.set(inner.values[0] + address.load(vector(f32, 4)))
            total = b.reduce(inner.results[0], b.add)
            outer.set(b.max(outer.values[0], total))
        out.store(outer.results[0])

    x = np.arange(24, dtype=np.float32)
    y = np.zeros(1, dtype=np.float32)
    compile_body(body, 2)(y, x, 3)
    assert y[0] == x[16:].sum()


def test_a_loop_must_pass_on_what_it_carries():
    module = ModuleBuilder(HOST)
    with pytest.raises(ValueError, match="must pass them on"), define_function(module, "f", [i64]) as (b, (n,)):
        with b.loop(0, n, carried=[n]):
            pass


def test_branches_and_repetition():
    def body(b: Builder, arguments: list[Value]) -> None:
        out, n = arguments
        small = b.either(n < 10, lambda: [n * 2], lambda: [n - 10])
        out.store(small[0])

        def step(x: Value, steps: Value) -> list[Value]:
            return [b.select((x % 2).eq(0), x // 2, x * 3 + 1), steps + 1]

        def going(x: Value, _: Value) -> Value:
            return x > 1

        collatz = b.repeat([n, b.constant(0, i64)], step, going)
        out.at(1, i64).store(collatz[1])

    run = compile_body(body, 1)
    y = np.zeros(2, dtype=np.int64)
    run(y, 7)
    assert y.tolist() == [14, 16]
    run(y, 27)
    assert y.tolist() == [17, 111]


NUMPY = {f32: np.float32, f64: np.float64, i8: np.int8, i32: np.int32, i64: np.int64, i1: np.bool_}


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("source", [f32, f64, i8, i32, i64, i1], ids=str)
@pytest.mark.parametrize("target", [f32, f64, i8, i32, i64, i1], ids=str)
def test_casts_and_bools_in_memory(source: Any, target: Any, lanes: int):
    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, _ = arguments
        out.store(b.cast(inp.load(vector(source, lanes)), target))

    values = np.array([0, 1, -3, 100])[:lanes] if source != i1 else np.array([0, 1, 1, 0])[:lanes]
    x = values.astype(NUMPY[source])
    y = np.zeros(lanes, dtype=NUMPY[target])
    compile_body(body, 2)(y, x, 0)
    np.testing.assert_array_equal(y, x.astype(NUMPY[target]))


def test_unsigned_and_saturating_conversion():
    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, _ = arguments
        out.store(b.cast(inp.load(i8), f32, signed=False))
        value = out.at(1, f32).load(f32)
        out.at(1, f32).store(b.cast(b.to_int_saturating(value, i8), f32))

    y = np.array([0, 1000], dtype=np.float32)
    compile_body(body, 2)(y, np.array([200], dtype=np.uint8), 0)
    assert y.tolist() == [200, 127]


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize("element", [f32, f64], ids=str)
def test_rounding(name: str, element: Any):
    x = np.array(
        [
            0.5,
            1.5,
            -0.5,
            -1.5,
            2.5,
            -0.0,
            0.3,
            -7.7,
            1e30,
            np.inf,
            -np.inf,
            np.nan,
            8388607.5,
            -0.2,
            4.0,
            1e-30,
        ]
    )
    x = x.astype(NUMPY[element])
    methods = [("round_even", np.rint), ("floor", np.floor), ("ceil", np.ceil), ("truncate", np.trunc)]
    lanes = target_named(name).vector_width(element)
    lanes = min(lanes, 4)

    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, n = arguments
        for row, (method, _) in enumerate(methods):
            with b.loop(0, n, lanes) as i:
                value = getattr(b, method)(inp.at(i, element).load(vector(element, lanes)))
                out.at(i + row * 16, element).store(value)

    y = np.zeros((4, 16), dtype=x.dtype)
    compile_body(body, 2, target_named(name))(y, x, 16)
    for row, (_, reference) in enumerate(methods):
        np.testing.assert_array_equal(y[row], reference(x))
        np.testing.assert_array_equal(np.signbit(y[row][:-3]), np.signbit(reference(x)[:-3]))


def test_minimum_propagates_nan_and_min_does_not():
    def body(b: Builder, arguments: list[Value]) -> None:
        out, inp, _ = arguments
        x, y = inp.load(f32), inp.at(1, f32).load(f32)
        for place, value in enumerate([b.min(x, y), b.max(x, y), b.minimum(x, y), b.maximum(x, y)]):
            out.at(place, f32).store(value)

    y = np.zeros(4, dtype=np.float32)
    run = compile_body(body, 2)
    run(y, np.array([np.nan, 2], dtype=np.float32), 0)
    np.testing.assert_array_equal(y, [2, 2, np.nan, np.nan])
    run(y, np.array([1, np.nan], dtype=np.float32), 0)
    np.testing.assert_array_equal(y, [np.nan] * 4)


def test_shared_functions_tables_and_calls():
    module = ModuleBuilder(HOST)

    def square(name: str) -> None:
        with define_function(module, name, [f32], f32, internal=True) as (b, (x,)):
            b.give_back(x * x)

    table = module.table(np.array([1.5, 2.5], dtype=np.float32))
    with define_function(module, "f", [Param(ptr, noalias=True, align=4), i64], passes="tidy") as (b, (out, n)):
        for place in range(2):
            name = module.shared(("square", "f32"), square)
            result = b.call(name, [b.symbol(table).at(n + place, f32).load(f32)])
            assert result is not None
            out.at(place, f32).store(result)
    assert list(module.signatures) == ["f", "square.f32"]
    y = np.zeros(2, dtype=np.float32)
    build(module).function("f", [ctypes.c_void_p, ctypes.c_int64])(y.ctypes.data, 0)
    assert y.tolist() == [2.25, 6.25]


def test_constants_exist_once():
    module = ModuleBuilder(HOST)
    with define_function(module, "f", [i64], i64) as (b, (n,)):
        b.give_back((n + 3) * 1 + 3 + 0)
    text = str(module.module)
    assert text.count("llvm.mlir.constant") == 1
    assert text.count("llvm.add") == 2
    assert "llvm.mul" not in text


def test_loops_and_branches_are_regions() -> None:
    module = ModuleBuilder(HOST)
    with define_function(module, "f", [ptr, i64], i64) as (b, (p, n)):
        with b.loop(0, n) as i, b.when(i > 4):
            b.return_if(p.at(i, i64).load(i64).eq(0), n)
    text = str(module.module)
    assert [text.count(name) for name in ("scf.for", "scf.if", "glow.return_if", "llvm.br", "llvm.cond_br")] == [
        1
    ] * 3 + [0] * 2
    flat = str(flattened(module.module))
    assert "scf." not in flat
    assert "glow." not in flat


def test_loops_that_run_once_or_never_are_none() -> None:
    module = ModuleBuilder(HOST)
    with define_function(module, "f", [ptr], i64) as (b, (p,)):
        with b.loop(4, 4) as i:
            p.at(i, i64).store(i)
        one = b.constant(1, i64)
        with b.loop(0, 0, carried=[one]) as loop:
            loop.set(loop.values[0] + 1)
        with b.loop(0, 5, 8, carried=loop.results) as once:
            once.set(once.values[0] + 2)
        b.give_back(once.results[0])
    text = str(module.module)
    assert "scf.for" not in text
    assert text.count("llvm.add") == 1
    assert "llvm.store" not in text


def test_returns_inside_of_loops_say_so() -> None:
    module = ModuleBuilder(HOST)
    with (
        pytest.raises(ValueError, match="'return_if' returns from a loop or branch"),
        define_function(module, "f", [i64]) as (b, (n,)),
        b.loop(0, n),
    ):
        b.give_back()


def test_objects_for_other_machines():
    for name, marks in {"avx512": "zmm", "avx2": "ymm", "neon": "fadd\tv", "scalar": "addss"}.items():
        target = PRESETS[name]
        module = ModuleBuilder(target)
        with define_function(module, "f", [ptr]) as (b, (p,)):
            value = p.load(vector(f32, target.vector_width(f32)))
            p.store(b.floor(b.fma(value, value, 1.5)) + value)
        text = emit_module(flattened(module.module))
        assert marks in assembly_text(text, target)
        data = compile_text(text, target)
        assert undefined_symbols(data) == ()
        assert [symbol.name for symbol in symbols(data) if symbol.exported] == ["f"]


@pytest.mark.parametrize("name", ["avx2", "avx512", "neon", "scalar", "sse2"])
def test_functions_say_what_processor_they_are_for(name: str) -> None:
    """The text is compiled alike where nothing else names cpu and features; objects of 32 bits note these apart."""
    target = PRESETS[name]
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr]) as (b, (p,)):
        value = p.load(vector(f32, target.vector_width(f32)))
        p.store(b.fma(value, value, 1.5))
    text = emit_module(flattened(module.module))
    assert compile_text(text, replace(target, cpu="", features="")) == compile_text(text, target)
    assert f'"target-cpu"="{target.cpu}"' in text


OUTSIDE = """
declare float @outside(float)
define float @f(float %x) {
  %1 = call float @outside(float %x)
  ret float %1
}
"""


def test_undefined_symbols_are_seen():
    assert undefined_symbols(compile_text(OUTSIDE, HOST)) == ("outside",)


def test_unknown_target_and_function():
    with pytest.raises(OptionError, match="there are host, amx, avx2, avx512, "):
        target_named("pdp11")
    module = ModuleBuilder(HOST)
    with define_function(module, "f", [i64]):
        pass
    with pytest.raises(KeyError):
        build(module).address("g")
