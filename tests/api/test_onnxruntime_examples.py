"""
The examples that onnxruntime publishes for its Python API, each as one sequence of calls that both packages run.

Those of its gallery (load and predict, common errors, metadata, backend, pipeline, profiling), and the scenarios of its
page on the API. Where a model of theirs has operators of classical machine learning, a classifier in plain ones takes
its place; "cuda" is "cpu".
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from iris_classifier import flowers, iris_classifier

import glow_mlir

onnxruntime, datasets, states = (
    cast("Any", import_module(name))
    for name in ("onnxruntime", "onnxruntime.datasets", "onnxruntime.capi.onnxruntime_pybind11_state")
)

Engine = Any
"""One of the two packages."""

ENGINES: Mapping[str, Engine] = {"onnxruntime": onnxruntime, "glow_mlir": glow_mlir}
INVALID: Mapping[str, type[Exception]] = {"onnxruntime": states.InvalidArgument, "glow_mlir": glow_mlir.InvalidArgument}

each_engine = pytest.mark.parametrize("name", ENGINES)


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache and a working folder of the test's own."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def classifier(tmp_path: Path) -> str:
    path = tmp_path / "logreg_iris.onnx"
    onnx.save(iris_classifier(), path)
    return str(path)


def sigmoid() -> str:
    """The model that the examples begin with."""
    return datasets.get_example("sigmoid.onnx")


def same(example: Callable[[Engine], list[np.ndarray]]) -> None:
    """Run an example with both packages, and compare."""
    found, expected = (example(ENGINES[name]) for name in ("glow_mlir", "onnxruntime"))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


# ---- the gallery -----------------------------------------------------------------------------------------------


def test_load_and_predict() -> None:
    x = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32)

    def example(engine: Engine) -> list[np.ndarray]:
        session = engine.InferenceSession(sigmoid(), providers=engine.get_available_providers())
        (given,), (made,) = session.get_inputs(), session.get_outputs()
        assert (given.name, given.shape, given.type) == ("x", [3, 4, 5], "tensor(float)")
        assert (made.name, made.shape, made.type) == ("y", [3, 4, 5], "tensor(float)")
        return session.run([made.name], {given.name: x})

    same(example)


@each_engine
def test_common_errors(name: str, classifier: str) -> None:
    engine = ENGINES[name]
    session = engine.InferenceSession(classifier, providers=engine.get_available_providers())
    (given,), (label, probabilities) = session.get_inputs(), session.get_outputs()
    x = flowers()
    with pytest.raises(INVALID[name]):
        session.run([label.name], {given.name: x.astype(np.float64)})
    with pytest.raises(INVALID[name]):
        session.run(["misspelled"], {given.name: x})
    with pytest.raises((ValueError, INVALID[name])):
        session.run([label.name], {"misspelled": x})
    assert [array.shape for array in session.run(None, {given.name: x})] == [(3,), (3, 3)]
    for wrong in (np.ones(4), np.ones((1, 4)), np.ones((2, 2)), np.ones(3), np.ones((1, 3)), np.ones((1, 2, 2))):
        for wanted in ([label.name], [probabilities.name], None):
            with pytest.raises((RuntimeError, INVALID[name])):
                session.run(wanted, {given.name: wrong.astype(np.float32)})


@each_engine
def test_metadata(name: str, classifier: str) -> None:
    engine = ENGINES[name]
    model = onnx.load(classifier)
    meta = engine.InferenceSession(classifier, providers=engine.get_available_providers()).get_modelmeta()
    assert meta.custom_metadata_map == {item.key: item.value for item in model.metadata_props}
    assert (meta.description, meta.graph_description) == (model.doc_string, model.graph.doc_string)
    assert (meta.domain, meta.graph_name) == (model.domain, model.graph.name)
    assert (meta.producer_name, meta.version) == (model.producer_name, model.model_version)


@each_engine
def test_backend(name: str, classifier: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # onnxruntime asks onnx for its version in an old way.
        backend: Any = import_module("onnxruntime.backend") if name == "onnxruntime" else glow_mlir.backend
    device = ENGINES[name].get_device()
    assert backend.supports_device(device)
    results = [backend.prepare(model, device).run(flowers()) for model in (onnx.load(classifier), classifier)]
    expected = onnxruntime.InferenceSession(classifier).run(None, {"float_input": flowers()})
    for label, probabilities in results:
        np.testing.assert_array_equal(label, expected[0])
        np.testing.assert_allclose(probabilities, expected[1], rtol=1e-6)


def test_train_convert_and_predict(classifier: str) -> None:
    def example(engine: Engine) -> list[np.ndarray]:
        session = engine.InferenceSession(classifier, providers=engine.get_available_providers())
        given, (label, probabilities) = session.get_inputs()[0].name, session.get_outputs()
        x = flowers().astype(np.float64)
        (labels,) = session.run([label.name], {given: x.astype(np.float32)})
        (chances,) = session.run([probabilities.name], {given: x.astype(np.float32)})
        assert (chances.argmax(1) == labels).all()
        return [labels, chances]

    same(example)


@each_engine
def test_profile_the_execution(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name]
    model = onnx.load(datasets.get_example("mul_1.onnx"))
    model.ir_version, model.opset_import[0].version = 6, 11
    options = engine.SessionOptions()
    options.enable_profiling = True
    session = engine.InferenceSession(model.SerializeToString(), options, providers=engine.get_available_providers())
    (result,) = session.run(None, {session.get_inputs()[0].name: flowers()})
    np.testing.assert_array_equal(result, [[1, 4], [9, 16], [25, 36]])
    file = session.end_profiling()
    assert (tmp_path / file).exists()
    assert file.startswith("onnxruntime_profile_")
    events = json.loads(Path(file).read_text())
    assert {"Session", "Node"} <= {event["cat"] for event in events}
    (node,) = (event for event in events if event["cat"] == "Node")
    assert node["name"].endswith("_kernel_time")
    assert node["args"]["op_name"]
    (run,) = (event for event in events if event["name"] == "model_run")
    assert run["ts"] <= node["ts"]
    assert node["ts"] + node["dur"] <= run["ts"] + run["dur"] + 1


# ---- the page on the API ---------------------------------------------------------------------------------------


def test_a_tensor_on_a_device_is_an_input() -> None:
    x = np.random.default_rng(1).random((3, 4, 5)).astype(np.float32)

    def example(engine: Engine) -> list[np.ndarray]:
        value = engine.OrtValue.ortvalue_from_numpy(x, "cpu", 0)
        assert (value.device_name(), value.shape(), value.data_type()) == ("cpu", [3, 4, 5], "tensor(float)")
        assert (value.is_tensor(), value.has_value(), value.element_type()) == (True, True, 1)
        assert (value.is_sparse_tensor(), value.is_tensor_sequence()) == (False, False)
        assert value.tensor_size_in_bytes() == x.nbytes
        assert np.array_equal(value.numpy(), x)
        session = engine.InferenceSession(sigmoid())
        return [*session.run(["y"], {"x": value}), session.run_with_ort_values(["y"], {"x": value})[0].numpy()]

    same(example)


def test_an_input_on_the_cpu_is_bound() -> None:
    x = np.random.default_rng(2).random((3, 4, 5)).astype(np.float32)

    def example(engine: Engine) -> list[np.ndarray]:
        session = engine.InferenceSession(sigmoid())
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        return [binding.copy_outputs_to_cpu()[0]]

    same(example)


@pytest.mark.parametrize("where", ["new", "cpu"])
def test_an_input_on_a_device_is_bound_by_its_address(where: str) -> None:
    x = np.random.default_rng(3).random((3, 4, 5)).astype(np.float32)

    def example(engine: Engine) -> list[np.ndarray]:
        value = engine.OrtValue.ortvalue_from_numpy(x, "cpu", 0)
        session = engine.InferenceSession(sigmoid())
        binding = session.io_binding()
        binding.bind_input(
            name="x",
            device_type=value.device_name(),
            device_id=0,
            element_type=np.float32,
            shape=value.shape(),
            buffer_ptr=value.data_ptr(),
        )
        binding.bind_output("y", *(["cpu"] if where == "cpu" else []))
        session.run_with_iobinding(binding)
        (output,) = binding.get_outputs()
        assert output.device_name() == "cpu"
        return [output.numpy(), binding.copy_outputs_to_cpu()[0]]

    same(example)


def test_both_sides_are_bound_by_their_addresses() -> None:
    x = np.random.default_rng(4).random((3, 4, 5)).astype(np.float32)

    def example(engine: Engine) -> list[np.ndarray]:
        given = engine.OrtValue.ortvalue_from_numpy(x, "cpu", 0)
        made = engine.OrtValue.ortvalue_from_shape_and_type([3, 4, 5], np.float32, "cpu", 0)
        session = engine.InferenceSession(sigmoid())
        binding = session.io_binding()
        kinds = {"device_type": "cpu", "device_id": 0, "element_type": np.float32}
        binding.bind_input(name="x", shape=given.shape(), buffer_ptr=given.data_ptr(), **kinds)
        binding.bind_output(name="y", shape=made.shape(), buffer_ptr=made.data_ptr(), **kinds)
        session.run_with_iobinding(binding)
        assert binding.get_outputs()[0].data_ptr() == made.data_ptr()
        return [made.numpy()]

    same(example)


def test_both_sides_are_bound_as_tensors() -> None:
    x = np.random.default_rng(5).random((3, 4, 5)).astype(np.float32)

    def example(engine: Engine) -> list[np.ndarray]:
        given = engine.OrtValue.ortvalue_from_numpy(x.copy(), "cpu", 0)
        made = engine.OrtValue.ortvalue_from_shape_and_type([3, 4, 5], np.float32, "cpu", 0)
        session = engine.InferenceSession(sigmoid())
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", given)
        binding.bind_ortvalue_output("y", made)
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        given.update_inplace(np.zeros_like(x))
        first = made.numpy().copy()
        session.run_with_iobinding(binding)
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        return [first, made.numpy()]

    same(example)


def test_memory_of_another_library_is_bound() -> None:
    """What has an address and a type is bound as tensors of PyTorch are."""
    x = np.random.default_rng(6).random((3, 4, 5)).astype(np.float32)

    def example(engine: Engine) -> list[np.ndarray]:
        session = engine.InferenceSession(sigmoid())
        binding, made = session.io_binding(), dict[str, np.ndarray]()
        for item in session.get_inputs():
            binding.bind_input(item.name, "cpu", 0, x.dtype.type, tuple(x.shape), x.ctypes.data)
        for item in session.get_outputs():
            made[item.name] = np.empty(item.shape, np.float32)
            binding.bind_output(item.name, "cpu", 0, np.float32, item.shape, made[item.name].ctypes.data)
        session.run_with_iobinding(binding)
        return list(made.values())

    same(example)


def test_run_async() -> None:
    x = np.random.default_rng(7).random((3, 4, 5)).astype(np.float32)

    class Waiting:
        def __init__(self) -> None:
            self.event = threading.Event()
            self.results: list[np.ndarray] = []

    def example(engine: Engine) -> list[np.ndarray]:
        session, data = engine.InferenceSession(sigmoid()), Waiting()

        def callback(results: list[np.ndarray], user_data: Waiting, error: str) -> None:
            assert not error
            user_data.results = results
            user_data.event.set()

        session.run_async(["y"], {"x": x}, callback, data)
        assert data.event.wait(30)
        return data.results

    same(example)


@each_engine
def test_options_as_the_pages_on_performance_set_them(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name]
    options = engine.SessionOptions()
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.execution_mode = engine.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = engine.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.load_model_format", "ONNX")
    assert options.get_session_config_entry("session.load_model_format") == "ONNX"
    session = engine.InferenceSession(sigmoid(), sess_options=options, providers=["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_session_options().intra_op_num_threads == 2
    run_options = engine.RunOptions()
    run_options.log_severity_level = 3
    x = np.zeros((3, 4, 5), np.float32)
    (y,) = session.run(None, {"x": x}, run_options)
    (again,) = engine.InferenceSession(str(tmp_path / "optimized.onnx")).run(None, {"x": x})
    assert (y == 0.5).all()
    np.testing.assert_array_equal(again, y)


@each_engine
def test_free_dimensions_have_sizes(name: str) -> None:
    engine = ENGINES[name]
    model = iris_classifier()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    for output in model.graph.output:
        output.type.tensor_type.shape.dim[0].dim_param = "rows"
    options = engine.SessionOptions()
    options.add_free_dimension_override_by_name("rows", 2)
    session = engine.InferenceSession(model.SerializeToString(), options)
    assert session.get_inputs()[0].shape == [2, 2]
    assert session.run(["label"], {"float_input": flowers()[:2]})[0].shape == (2,)


@each_engine
def test_constants_are_given(name: str) -> None:
    engine = ENGINES[name]
    value = engine.OrtValue.ortvalue_from_numpy(np.eye(2, 3, dtype=np.float32))
    options = engine.SessionOptions()
    options.add_initializer("weights", value)
    session = engine.InferenceSession(iris_classifier().SerializeToString(), options)
    (labels,) = session.run(["label"], {"float_input": flowers()})
    assert labels.tolist() == [1, 1, 1]


@each_engine
def test_constants_in_other_files_are_given(name: str, tmp_path: Path) -> None:
    engine, path = ENGINES[name], tmp_path / "m.onnx"
    onnx.save(iris_classifier(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    expected = onnxruntime.InferenceSession(str(path)).run(None, {"float_input": flowers()})
    content = (tmp_path / "w.bin").read_bytes()
    (tmp_path / "w.bin").unlink()
    options = engine.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["w.bin"], [content], [len(content)])
    session = engine.InferenceSession(path.read_bytes(), options)
    found = session.run(None, {"float_input": flowers()})
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


def test_a_call_that_is_terminated_does_not_begin() -> None:
    for engine, kind in ((onnxruntime, Exception), (glow_mlir, glow_mlir.RuntimeException)):
        options = engine.RunOptions()
        options.terminate = True
        with pytest.raises(kind, match="terminate"):
            engine.InferenceSession(sigmoid()).run(None, {"x": np.zeros((3, 4, 5), np.float32)}, options)
