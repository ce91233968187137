"""What programs for onnxruntime import and call besides sessions: errors, the backend, allocators, pools of threads."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import adding, two_inputs

import glow_mlir
from glow_mlir import InferenceSession, RunOptions
from glow_mlir.errors import GlowError, GlowWarning, OptionError, UnsupportedError
from glow_mlir.frontends.onnx.importer import import_model


def test_quantization_by_samples_has_a_hint() -> None:
    package: Any = import_module("glow_mlir.quantization")
    for name in ("quantize_static", "CalibrationDataReader"):
        with pytest.raises(GlowError, match=rf"glow_mlir\.quantization has no '{name}' \(hint: glow-profile model"):
            getattr(package, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


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


def test_the_backend_takes_what_is_prepared_and_options_of_sessions() -> None:
    backend: Any = import_module("glow_mlir.backend")
    x = np.ones((2, 3), np.float32)
    level = glow_mlir.GraphOptimizationLevel.ORT_DISABLE_ALL
    prepared = backend.prepare(adding(), None, graph_optimization_level=level, intra_op_num_threads=2, logid="t")
    options = prepared.session.get_session_options()
    assert (options.graph_optimization_level, options.logid, prepared.session.options.threads) == (level, "t", 2)
    assert backend.prepare(prepared) is prepared
    assert backend.prepare(prepared.session).session is prepared.session
    for model in (prepared, prepared.session):
        np.testing.assert_array_equal(backend.run_model(model, [x])[0], x + x)


def test_the_backend_tells_in_a_line_what_is_wrong() -> None:
    backend: Any = import_module("glow_mlir.backend")
    assert not any(map(backend.supports_device, ("CUDA", "GPU", "toaster", "")))
    x = np.ones((2, 3), np.float32)
    for call, reason in (
        (lambda: backend.prepare(adding(), "CUDA"), "there is no device 'CUDA' here"),
        (lambda: backend.run_model(adding(), [x], "toaster"), "there is no device 'toaster' here"),
        (lambda: backend.prepare(adding(), no_such_option=1), "there is no option 'no_such_option'"),
        (lambda: backend.run_model(adding(), [x, x]), "there are 2 arrays for 1 input"),
        (lambda: backend.run_model(two_inputs(), [x]), "there is 1 array for 2 inputs"),
    ):
        with pytest.raises(GlowError, match=reason):
            call()


def test_telemetry_allocators_and_pools_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glow_mlir.api.onnxruntime.allocators._GLOBAL_POOLS", [])
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


def test_memory_and_devices_are_the_cpu() -> None:
    kind, memory = glow_mlir.OrtAllocatorType.ORT_ARENA_ALLOCATOR, glow_mlir.OrtDeviceMemoryType.DEFAULT
    made = glow_mlir.OrtMemoryInfo.create_v2("Cpu", glow_mlir.OrtMemoryInfoDeviceType.CPU, 0, 0, memory, 128, kind)
    assert made == glow_mlir.OrtMemoryInfo("Cpu", kind, 0, glow_mlir.OrtMemType.DEFAULT)
    assert (made.device_mem_type, made.device_vendor_id) == (memory, glow_mlir.OrtDeviceVendorId.NONE)
    device = glow_mlir.OrtDevice.make("cpu")
    assert (device.device_mem_type(), device.device_vendor_id()) == (memory, glow_mlir.OrtDeviceVendorId.NONE)
    with pytest.raises(OptionError, match="there is no device of the type GPU here"):
        glow_mlir.OrtMemoryInfo.create_v2("Cuda", glow_mlir.OrtMemoryInfoDeviceType.GPU, 0x10DE, 0, memory, 0, kind)


@pytest.mark.parametrize(
    "name", ["OrtAllocatorType", "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtMemType", "OrtMemoryInfoDeviceType"]
)
def test_enumerations_have_the_numbers_of_onnxruntime(name: str) -> None:
    ours, theirs = (getattr(package, name) for package in (glow_mlir, import_module("onnxruntime")))
    assert {key: int(value) for key, value in ours.__members__.items()} == {
        key: int(value) for key, value in theirs.__members__.items()
    }


def test_a_session_says_where_its_arguments_are() -> None:
    session = InferenceSession(two_inputs())
    (first, second), outputs = session.get_input_memory_infos(), session.get_output_memory_infos()
    assert first == second == outputs[0] == outputs[1]
    assert (first.name, first.device_id) == ("Cpu", 0)
    assert session.get_input_epdevices() == [None, None]


def test_a_session_that_is_asked_to_says_what_runs_its_nodes() -> None:
    options = glow_mlir.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = InferenceSession(two_inputs(), options, providers=["CPUExecutionProvider"])
    parts = session.get_provider_graph_assignment_info()
    assert [part.ep_name for part in parts] == ["CPUExecutionProvider"] * 2
    assert [[node.op_type for node in part.get_nodes()] for part in parts] == [["Add"], ["Sub"]]
    (node,) = InferenceSession(adding(), options).get_provider_graph_assignment_info()[0].get_nodes()
    assert (node.domain, node.op_type, node.name) == ("", "Add", "double")
    with pytest.raises(glow_mlir.Fail, match=r"record_ep_graph_assignment_info' must be set to"):
        InferenceSession(adding()).get_provider_graph_assignment_info()
    with pytest.raises(UnsupportedError, match="a module has no nodes of ONNX"):
        InferenceSession(import_model(adding()), options).get_provider_graph_assignment_info()


def test_sessions_share_pools_that_somebody_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[tuple[int, int]] = []
    monkeypatch.setattr("glow_mlir.api.onnxruntime.allocators._GLOBAL_POOLS", pools)
    settings = glow_mlir.SessionOptions()
    settings.use_per_session_threads = False
    with pytest.raises(OptionError, match="needs global thread pools"):
        InferenceSession(adding(), settings, cache=False)
    with pytest.warns(GlowWarning):
        glow_mlir.set_global_thread_pool_sizes(2, 1)
    assert pools == [(2, 1)]
    InferenceSession(adding(), settings, cache=False)
    with pytest.raises(RuntimeError, match="use_per_session_threads=True conflicts with global thread pools"):
        InferenceSession(adding(), cache=False)


def test_missing_inputs_are_told_in_the_words_that_programs_look_for() -> None:
    session, x = InferenceSession(two_inputs(), cache=False), np.zeros(3, np.float32)
    first, second = (argument.name for argument in session.get_inputs())
    expected = rf"Required inputs \(\['{second}'\]\) are missing from input feed \(\['{first}'\]\)"
    with pytest.raises(ValueError, match=f"input '{second}' is missing: {expected}"):
        session.run([], {first: x})
    with pytest.raises(ValueError, match="there is no input 'z'"):
        session.run(None, {"z": x})


def test_a_dictionary_for_a_backend_is_the_map_that_a_model_takes() -> None:
    backend: Any = import_module("glow_mlir.backend")
    for key, given in ((TensorProto.INT64, {0: 25.0, 1: np.float64(5.13)}), (TensorProto.STRING, {"x": 25.0})):
        type_ = helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        words: dict[str, Any] = {"int64_vocabulary": [0, 1]} if 0 in given else {"string_vocabulary": ["x"]}
        node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", **words)
        graph = helper.make_graph([node], "g", [helper.make_value_info("x", type_)], [onnx.ValueInfoProto(name="y")])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
        prepared = backend.prepare(helper.make_model(graph, opset_imports=opsets))
        for feed in (given, [given], {"x": given}):
            np.testing.assert_array_equal(prepared.run(feed)[0], np.array([list(given.values())], np.float32))


def test_capsules_say_whether_they_hold_bytes() -> None:
    state: Any = import_module("glow_mlir.capi.onnxruntime_pybind11_state")
    for dtype, expected in ((np.uint8, True), (np.int8, False), (np.uint16, False), (np.float32, False)):
        value = glow_mlir.OrtValue.ortvalue_from_numpy(np.ones(2, dtype))
        assert state.is_dlpack_uint8_tensor(value.to_dlpack()) == expected
