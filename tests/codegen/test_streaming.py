"""Loops that store past the caches: any alignment, any length, every element once."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from execute import check, sample

from glow_mlir.backends.cpu.targets import PRESETS, host_target
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.streaming import is_streamed, streamed_loop
from glow_mlir.codegen.builder.types import f32, f64, i64, ptr, vector
from glow_mlir.codegen.builder.value import Index
from glow_mlir.codegen.kernels.elements import elementwise
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import assembly_text, compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.dialects.glow_high import activations
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.loader import Library

TYPES = {"f4": f32, "f8": f64}


def doubling(dtype: str, vectors: int) -> str:
    """A module with a function that stores twice each element from one place to another, from `begin` to `end`."""
    target, element = host_target(), TYPES[dtype]
    module = ModuleBuilder(target)
    with define_function(module, "f", [ptr, ptr, i64, i64]) as (b, (out, inp, begin, end)):

        def body(i: Index, lanes: int, alignment: int) -> None:
            value = inp.at(i, element).load(vector(element, lanes))
            b.store(value + value, out.at(i, element), alignment or None, nontemporal=alignment > 0)

        lanes = vectors * max(2, target.vector_width(element))
        streamed_loop(b, out, np.dtype(dtype).itemsize, (begin, end), lanes, body)
    return emit_module(flattened(module.module))


@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_element_once(dtype: str, vectors: int):
    library = Library(compile_text(doubling(dtype, vectors), host_target()))
    call = library.function("f", [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2)
    source = np.arange(1, 301).astype(dtype)
    result = np.zeros(300, dtype)
    for offset in range(17):
        for begin, end in ((0, 0), (0, 1), (3, 17), (0, 64), (5, 133), (1, 280)):
            result[:] = 0
            view = result[offset:]
            call(view.ctypes.data, source.ctypes.data, begin, end)
            expected = np.zeros_like(result)
            expected[offset + begin : offset + end] = 2 * source[begin:end]
            np.testing.assert_array_equal(result, expected)


@pytest.mark.skipif(not host_target().is_x86, reason="names of x86")
def test_stores_pass_the_caches_and_are_fenced():
    text = assembly_text(doubling("f4", 2), host_target())
    behind = text[text.rindex("movnt") :]
    # A locked instruction empties the buffers of such stores as well.
    assert "mfence" in behind or "lock" in behind


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_stacks_that_stream(monkeypatch: pytest.MonkeyPatch, dtype: str):
    def always(target: Target, result_bytes: int) -> bool:
        return True

    monkeypatch.setattr(elementwise, "is_streamed", always)
    for size in (1, 15, 1003):
        check(activations.SigmoidOp, sample((size,), dtype))
        check(activations.ReluOp, sample((size,), dtype))


def test_only_results_beyond_the_last_cache():
    assert is_streamed(PRESETS["avx512"], PRESETS["avx512"].l3_bytes)
    assert not is_streamed(PRESETS["avx512"], PRESETS["avx512"].l3_bytes - 1)
    assert not is_streamed(PRESETS["scalar"], 1 << 40)
    assert not is_streamed(PRESETS["neon"], 1 << 40)
