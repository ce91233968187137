"""Entries of the table of mathematical functions as functions of arrays, and their errors."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from machines import AS_SMALL, target_named

from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, f64, i64, ptr, vector
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.codegen.math.scalar_math import MATH
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.runtime.loader import Library

Array = np.ndarray[Any, Any]
FLOATS: dict[int, Any] = {32: np.float32, 64: np.float64}
TYPES = {32: f32, 64: f64}
RUNNABLE = ["host", "scalar"] if host_target().is_x86 else ["host"]
"""The targets that this machine runs: `scalar` is the plainest x86-64."""
SMALL = [f"{name}{AS_SMALL}" for name in RUNNABLE]
"""The same, as machines without floats of 64 bits and without arithmetic on integers of as many."""


@functools.cache
def compiled(name: str, bits: int, operands: int, target_name: str, lanes: int = 0) -> Callable[..., Array]:
    """
    Return a function of arrays, whose length is a multiple of 16, for one entry of the table.

    It computes in vectors of `lanes`, at most 16; those of the target where that is 0.
    """
    target = target_named(target_name)
    element = TYPES[bits]
    lanes = lanes or target.vector_width(element)
    module = ModuleBuilder(target)
    with define_function(module, "f", [*[ptr] * (operands + 1), i64]) as (b, (out, *inputs, n)):
        with b.loop(0, n, lanes) as i:
            values = [pointer.at(i, element).load(vector(element, lanes)) for pointer in inputs]
            out.at(i, element).store(MATH[name](b, *values))
    module.module.verify()
    data = compile_text(emit_module(flattened(module.module)), target)
    assert undefined_symbols(data) == ()
    call = Library(data).function("f", [*[ctypes.c_void_p] * (operands + 1), ctypes.c_int64])

    def run(*arrays: Array) -> Array:
        arrays = tuple(np.ascontiguousarray(np.resize(array, -(-array.size // 16) * 16)) for array in arrays)
        result = np.empty_like(arrays[0])
        call(result.ctypes.data, *(array.ctypes.data for array in arrays), result.size)
        return result

    return run


def ulps(result: Array, exact: Array) -> float:
    """Return the largest error, in units in the last place of the type of `result` at the exact value."""
    kind = result.dtype.type
    rounded = exact.astype(kind)
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    finite = np.isfinite(result) & np.isfinite(rounded)
    assert (same | finite).all(), (result[~(same | finite)][:5], rounded[~(same | finite)][:5])
    unit = np.spacing(np.abs(rounded[finite])).astype(exact.dtype)
    return float(np.max(np.abs(result[finite].astype(exact.dtype) - exact[finite]) / unit, initial=0))
