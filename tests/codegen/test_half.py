"""Conversions of 16-bit floats without an instruction for them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from machines import target_named
from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f16, f32, f64, i64, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.codegen.math.half import narrow, narrow_double, widen
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.runtime.loader import Library


def apply(function: Callable[[Builder, Value], Value], x: np.ndarray, source: Attribute, result: np.ndarray) -> None:
    """Apply `function` to each element of `x`, on a target without instructions for f16."""
    module = ModuleBuilder(target_named("scalar"))
    with define_function(module, "f", [ptr, ptr, i64]) as (b, (out, inp, n)), b.loop(0, n) as i:
        value = function(b, inp.at(i, source).load(source))
        out.at(i, value.type).store(value)
    data = compile_text(emit_module(flattened(module.module)), module.target)
    assert undefined_symbols(data) == ()
    call = Library(data).function("f", [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64])
    call(result.ctypes.data, x.ctypes.data, x.size)


def test_widen_all():
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    y = np.empty(x.shape, np.float32)
    apply(widen, x, f16, y)
    np.testing.assert_array_equal(y, x.astype(np.float32))
    assert (np.signbit(y) == np.signbit(x)).all()


def test_narrow_between_all_neighbours():
    finite = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate([finite, between, np.nextafter(between, 0), np.nextafter(between, np.float32(np.inf))])
    x = np.concatenate([x, -x, np.array([65519, 65520, 65536, 1e30, np.inf, -np.inf, np.nan, 1e-40], np.float32)])
    y = np.empty(x.shape, np.float16)
    apply(lambda b, v: narrow(b, v, f16), x, f32, y)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(y, expected)
    assert (np.signbit(y) == np.signbit(expected)).all()


def test_doubles_are_rounded_once():
    finite = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    between = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate([between, between * (1 + 1e-12), between * (1 - 1e-12), [1e300, -1e300, np.inf, np.nan, 1e-300]])
    y = np.empty(x.shape, np.float16)
    apply(lambda b, v: narrow(b, narrow_double(b, v), f16), x, f64, y)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, x.astype(np.float16))
