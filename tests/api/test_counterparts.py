"""What programs for onnxruntime import and call besides sessions: errors, the backend, allocators, pools of threads."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import onnx
import pytest
from small_models import adding

import glow_mlir
from glow_mlir import InferenceSession, RunOptions
from glow_mlir.errors import GlowError, GlowWarning, OptionError


def test_errors_are_those_that_programs_catch() -> None:
    state: Any = import_module("glow_mlir.capi.onnxruntime_pybind11_state")
    theirs: Any = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    kinds = inspect.getmembers(theirs, inspect.isclass)
    errors = [name for name, kind in kinds if issubclass(kind, Exception)]
    assert len(errors) > 10
    assert all(issubclass(getattr(state, name), GlowError) for name in errors)
    assert state.RunOptions is RunOptions
    for caught in (state.InvalidArgument, state.Fail, ValueError):
        with pytest.raises(caught):
            InferenceSession(adding()).run(None, {"x": np.zeros(9, np.float32)})
    for caught in (ValueError, RuntimeError):
        with pytest.raises(caught):
            InferenceSession(adding(), target="no such machine")
    with pytest.raises(state.NoSuchFile):
        InferenceSession("no-such-file.onnx")


@pytest.mark.parametrize("name", ["glow_mlir.backend", "glow_mlir.onnx_backend"])
def test_the_backend_of_onnx_is_a_module(name: str) -> None:
    backend: Any = import_module(name)
    assert backend.supports_device("CPU")
    x = np.ones((2, 3), np.float32)
    (y,) = backend.prepare(onnx.load_model_from_string(adding())).run(x)
    assert y.shape == (2, 3)
    np.testing.assert_array_equal(backend.run_model(onnx.load_model_from_string(adding()), [x])[0], y)


def test_telemetry_allocators_and_pools_are_told_of() -> None:
    kind, memory = glow_mlir.OrtAllocatorType.ORT_ARENA_ALLOCATOR, glow_mlir.OrtMemType.DEFAULT
    info = glow_mlir.OrtMemoryInfo("Cpu", kind, 0, memory)
    arena = glow_mlir.OrtArenaCfg({"max_mem": 16, "initial_chunk_size_bytes": 8})
    assert (arena.max_mem, arena.arena_extend_strategy) == (16, -1)
    assert glow_mlir.OrtArenaCfg(1, 0, 2, 3).max_dead_bytes_per_chunk == 3
    for call in (
        glow_mlir.enable_telemetry_events,
        lambda: glow_mlir.create_and_register_allocator(info, arena),
        lambda: glow_mlir.create_and_register_allocator_v2("CPUExecutionProvider", info, {}, None),
        lambda: glow_mlir.set_global_thread_pool_sizes(2, 1),
    ):
        with pytest.warns(GlowWarning, match=r"^[^\n]+ \(hint: [^\n]+\)$"):
            call()
    wrong: Any = "much"
    for refused in (
        lambda: glow_mlir.create_and_register_allocator(wrong, arena),
        lambda: glow_mlir.create_and_register_allocator(info, wrong),
        lambda: glow_mlir.set_global_thread_pool_sizes(wrong),
        lambda: glow_mlir.OrtArenaCfg(1, 2),
        lambda: glow_mlir.OrtArenaCfg({wrong: 1}),
    ):
        with pytest.raises(OptionError):
            refused()


def test_build_info_begins_as_programs_expect_it() -> None:
    assert glow_mlir.get_build_info().startswith("Build Info: glow-mlir ")
