"""Models that are compiled when they are called: for sizes of inputs, and for values of inputs that fix shapes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.api.onnxruntime.node_arg import NodeArg
from glow_mlir.errors import (
    InputError,
    InputValuesError,
    ModelError,
    OptionError,
    TimeLimitError,
    UnsupportedError,
)
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.executable import MAIN, Executable
from glow_mlir.runtime.signature import Argument, Signature
from glow_mlir.runtime.specialization import Compile, Loaded, Making
from glow_mlir.runtime.specializations import SpecializationLimits, Specializations
from glow_mlir.runtime.state import State
from glow_mlir.support.activity import warning_to
from glow_mlir.support.cancellation import Cancellation
from glow_mlir.support.watchdog import time_limited

BACKENDS = pytest.mark.parametrize("backend", ["cpu", "interpreter"])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[Any, ...]],
    constants: dict[str, Any] | None = None,
    shape: tuple[Any, ...] = ("rows", None),
) -> onnx.ModelProto:
    """A model with the output `y`; inputs of lower-case names are of floats, and others of 64-bit integers."""
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT if name.islower() else TensorProto.INT64, sizes)
        for name, sizes in inputs.items()
    ]
    weights = [numpy_helper.from_array(np.array(value), name) for name, value in (constants or {}).items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "graph", values, [output], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def reshaping() -> onnx.ModelProto:
    """y = reshape(x, S + [0, 1]), for any number of rows."""
    nodes = [helper.make_node("Add", ["S", "add"], ["to"]), helper.make_node("Reshape", ["x", "to"], ["y"], "reshape")]
    return model_of(nodes, {"x": ("N", 6), "S": (2,)}, {"add": [0, 1]})


def scaling(weights: int = 3) -> onnx.ModelProto:
    """y = a * b * weights, with one number of rows in both."""
    nodes = [helper.make_node("Mul", ["a", "b"], ["ab"]), helper.make_node("Mul", ["ab", "w"], ["y"])]
    w = np.arange(weights, dtype=np.float32)
    return model_of(nodes, {"a": ("N", weights), "b": ("N", weights)}, {"w": w})


def rows(count: int) -> np.ndarray:
    """So many rows of six numbers."""
    return np.arange(6 * count, dtype=np.float32).reshape(count, 6)


@BACKENDS
def test_sizes_and_values_of_calls_decide_what_runs(backend: str) -> None:
    session = InferenceSession(reshaping(), backend=backend)
    assert session.get_inputs() == [NodeArg("x", ["N", 6], "tensor(float)"), NodeArg("S", [2], "tensor(int64)")]
    assert session.get_outputs() == [NodeArg("y", ["rows", None], "tensor(float)")]
    for count, shape in ((2, [3, 3]), (2, [4, 2]), (4, [3, 7]), (2, [3, 3])):
        (y,) = session.run(None, {"x": rows(count), "S": np.array(shape)})
        np.testing.assert_array_equal(y, rows(count).reshape(shape[0], shape[1] + 1))
    found = [(item.sizes, item.values["S"].tolist(), item.calls) for item in session.specializations]
    assert found == [({"N": 2}, [4, 2], 1), ({"N": 4}, [3, 7], 1), ({"N": 2}, [3, 3], 2)]
    with pytest.raises(ModelError, match=r"node 'reshape': Reshape: shape \(5, 6\) has 30 elements, the input 12"):
        session.run(None, {"x": rows(2), "S": np.array([5, 5])})


def test_dimensions_fix_sizes() -> None:
    session = InferenceSession(scaling(), dimensions={"N": 2})
    assert [argument.shape for argument in session.get_inputs()] == [[2, 3], [2, 3]]
    assert session.specializations == []
    with pytest.raises(InputError, match="input 'a' must be float32"):
        session.run(None, {"a": np.zeros((3, 3), np.float32), "b": np.zeros((3, 3), np.float32)})


def test_bounds_grow_with_what_calls_bring() -> None:
    """The first call plans for a power of two, and a larger one for the next that holds it; the former is given up."""
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 2)})
    session = InferenceSession(model, dimensions={"N": (1, None)})
    for count in (3, 4, 1, 9, 2, 16):
        (found,) = session.run(None, {"x": np.full((count, 2), 2.0, np.float32)})
        np.testing.assert_array_equal(found, np.full((count, 2), 2.0))
    assert [item.sizes for item in session.specializations] == [{"N": (1, 16)}]
    with pytest.raises(InputError, match=r"^dimension 'N' is 0, which is less than 1 \(hint: .*other bounds"):
        session.run(None, {"x": np.ones((0, 2), np.float32)})
    with pytest.raises(OptionError, match=r"^dimension 'N' has no largest size \(hint: "):
        import_model(model, {"N": (1, None)})


def test_bounds_that_cannot_grow_stay_what_they_are() -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    session = InferenceSession(model_of(nodes, {"x": ("N", 1)}), dimensions={"N": (1, None)}, cache=False)
    for _ in range(2):
        (found,) = session.run(None, {"x": np.ones((3, 1), np.float32)})
        assert found.shape == (3, 3)
        with pytest.raises(UnsupportedError, match="too large"):
            session.run(None, {"x": np.ones((3_000_000, 1), np.float32)})


@pytest.mark.parametrize("most", [8, None])
def test_labels_say_sizes_of_others(most: int | None) -> None:
    """Names are shown as they are, and `past rows + rows` is no dimension of its own."""
    nodes = [helper.make_node("Concat", ["x", "z"], ["all"], axis=0), helper.make_node("Add", ["all", "mask"], ["y"])]
    shapes = {"x": ("past rows", 2), "z": ("rows", 2), "mask": ("past rows + rows", 1)}
    model = model_of(nodes, shapes, shape=("past rows + rows", 2))
    session = InferenceSession(model, dimensions={"past rows": (0, most), "rows": (1, most)})
    for past, rows in ((0, 3), (3, 1), (2, 2)):
        inputs = {name: np.ones((size, 2), np.float32) for name, size in (("x", past), ("z", rows))}
        (found,) = session.run(None, {**inputs, "mask": np.ones((past + rows, 1), np.float32)})
        np.testing.assert_array_equal(found, np.full((past + rows, 2), 2.0))
    assert [item.shape for item in session.get_inputs()] == list(map(list, shapes.values()))
    assert len(session.specializations) == (0 if most else 1)


def test_inputs_agree_on_a_dimension() -> None:
    session = InferenceSession(scaling())
    a, b = (np.zeros((count, 3), np.float32) for count in (2, 4))
    expected = r"dimension 'N' is 4 in input 'b', and 2 in input 'a' \(hint: "
    with pytest.raises(InputError, match=expected):
        session.run(None, {"a": a, "b": b})
    with pytest.raises(InputError, match=r"input 'a' must be float32\[N, 3\], not float32\[2, 4\]"):
        session.run(None, {"a": np.zeros((2, 4), np.float32), "b": b})
    assert session.specializations == []


@BACKENDS
@pytest.mark.parametrize("dimensions", [{}, {"N": (1, 9)}])
def test_inputs_may_have_any_layout(backend: str, dimensions: dict[str, Any]) -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("N", 6)})
    session = InferenceSession(model, dimensions=dimensions, backend=backend)
    x = rows(6).T
    (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, x)


def test_nothing_runs_before_the_first_call() -> None:
    session = InferenceSession(scaling())
    with pytest.raises(OptionError, match="compiled on its first call, for the sizes of its inputs"):
        _ = session.machine_code
    session.run(None, dict.fromkeys("ab", np.ones((1, 3), np.float32)))
    assert session.machine_code is session.specializations[0].executable
    assert session.machine_entry.bindings[0].shape == (1, 3)


def test_wrong_models_are_refused_before_they_are_called() -> None:
    rolling = helper.make_node("Dice", ["x"], ["y"], "dice", domain="com.example")
    unknown = model_of([rolling], {"x": ("N", 2)})
    with pytest.raises(UnsupportedError, match=r"com.example.Dice \('dice'\)"):
        InferenceSession(unknown)
    with pytest.raises(OptionError, match="the model has no free dimension 'M'"):
        InferenceSession(scaling(), dimensions={"M": 2})


def test_data_is_no_constant() -> None:
    """A value that fixes a shape and is computed of much data is refused; one of little is known at the call."""
    nodes = [
        helper.make_node("ReduceMax", ["X"], ["most"], keepdims=0),
        helper.make_node("Range", ["zero", "most", "one"], ["numbers"], "count"),
        helper.make_node("Cast", ["numbers"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = {"zero": 0, "one": 1}
    with pytest.raises(UnsupportedError, match="'X' has 300 elements, but only values of at most 256 elements"):
        InferenceSession(model_of(nodes, {"X": (300,)}, constants, (None,)))
    session = InferenceSession(model_of(nodes, {"X": (3,)}, constants, (None,)), cache=False)
    (y,) = session.run(None, {"X": np.array([1, 5, 2])})
    assert y.tolist() == [0, 1, 2, 3, 4]


def test_import_says_which_values_it_takes() -> None:
    with pytest.raises(
        InputValuesError, match=r"node 'reshape': the shape of Reshape depends .* give the value of 'S'"
    ):
        import_model(reshaping(), {"N": 2})
    module = import_model(reshaping(), {"N": 2}, values={"S": np.array([3.0, 3.0])})
    assert "tensor<3x4xf32>" in str(module)
    with pytest.raises(OptionError, match=r"the value of input 'S' must be int64\[2\], got float64\[1\]"):
        import_model(reshaping(), {"N": 2}, values={"S": np.array([0.5])})
    with pytest.raises(OptionError, match=r"the model has no input 'T' \(hint: inputs are x, S\)"):
        import_model(reshaping(), {"N": 2}, values={"T": np.array([1])})


def test_new_process_compiles_nothing_that_is_kept(tmp_path: Path) -> None:
    """Nor does it open the model, or import onnx or the compiler."""
    path = tmp_path / "m.onnx"
    onnx.save(reshaping(), path)
    feeds = {"x": rows(2), "S": np.array([3, 3])}
    InferenceSession(path).run(None, feeds)
    for name, array in feeds.items():
        np.save(tmp_path / f"{name}.npy", array)
    script = f"""
import sys
import numpy as np
from glow_mlir.api.onnxruntime.inference_session import InferenceSession

session = InferenceSession({str(path)!r})
(y,) = session.run(None, {{name: np.load({str(tmp_path)!r} + "/" + name + ".npy") for name in "xS"}})
assert y.shape == (3, 4)
(only,) = session.specializations
assert not only.compile_seconds
assert not {{"onnx", "xdsl"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)


@pytest.mark.parametrize("cached", [True, False])
def test_files_that_change_are_not_mixed(cached: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(scaling(), path)
    session = InferenceSession(path, cache=cached)
    feeds = dict.fromkeys("ab", np.ones((1, 3), np.float32))
    session.run(None, feeds)
    model = scaling()
    model.producer_name = "another"
    onnx.save(model, path)
    session.run(None, feeds)
    with pytest.raises(ModelError, match=r"m\.onnx: its files changed after the session started"):
        session.run(None, dict.fromkeys("ab", np.ones((2, 3), np.float32)))


def test_a_model_in_memory_is_what_it_was() -> None:
    model = scaling()
    session = InferenceSession(model)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.full(3, 9, np.float32), "w"))
    (y,) = session.run(None, dict.fromkeys("ab", np.ones((1, 3), np.float32)))
    assert y.tolist() == [[0, 1, 2]]


def test_several_threads_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, made = ModelCompiler._compiled, list[Assumptions]()  # pyright: ignore[reportPrivateUsage]

    def counted(self: ModelCompiler, model: Any, assumptions: Assumptions, *rest: Any) -> Any:
        made.append(assumptions)
        return compiled(self, model, assumptions, *rest)

    monkeypatch.setattr(ModelCompiler, "_compiled", counted)
    session = InferenceSession(scaling(), warm="specialised")

    def run(count: int) -> np.ndarray:
        (y,) = session.run(None, dict.fromkeys("ab", np.full((count, 3), count, np.float32)))
        return y

    counts = [1, 2, 3] * 6
    with ThreadPoolExecutor(6) as pool:
        for count, y in zip(counts, pool.map(run, counts), strict=True):
            assert y.tolist() == [[0, count * count, 2 * count * count]] * count
    assert sorted(str(item) for item in made) == ["N=1", "N=2", "N=3"]
    assert sorted(item.calls for item in session.specializations) == [6, 6, 6]


class Counting(Executable):
    """Takes so many bytes, and has an entry that cannot be called."""

    def __init__(self, nbytes: int) -> None:
        super().__init__([MAIN], State([]))
        self._nbytes = nbytes

    @property
    def memory(self) -> dict[object, int]:
        return {self: self._nbytes}

    def load(self, name: str) -> Any:
        return name


def specializations(limits: SpecializationLimits, nbytes: int = 10, compile_: Compile | None = None) -> Specializations:
    """Of a model with one free dimension, with executables that compute nothing."""
    argument = Argument("x", "float32", ("N",))
    signature = Signature((argument,), (argument,))
    return Specializations(signature, (), Making(compile_ or (lambda _: Loaded(Counting(nbytes)))), limits)


@pytest.mark.parametrize("limits", [SpecializationLimits(number=2), SpecializationLimits(memory=29)])
def test_what_was_used_longest_ago_is_given_up(limits: SpecializationLimits) -> None:
    found = specializations(limits)
    for size in (1, 2, 1, 3):
        found.entry_point({"x": np.zeros(size)})
    assert [item.sizes for item in found.kept()] == [{"N": 1}, {"N": 3}]
    assert sum(found.memory.values()) == 20


def test_the_last_one_stays_whatever_it_takes() -> None:
    found = specializations(SpecializationLimits(memory=1))
    found.entry_point({"x": np.zeros(1)})
    found.entry_point({"x": np.zeros(2)})
    assert [item.sizes for item in found.kept()] == [{"N": 2}]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_what_is_no_limit_is_refused(limit: Any) -> None:
    with pytest.raises(OptionError, match=f"number={limit} is not a limit"):
        SpecializationLimits(number=limit)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_does_not_wait_for_threads_that_it_has_not() -> None:
    """A thread of the parent is in a compilation at the fork."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: Assumptions) -> Loaded:
        begun.set()
        go_on.wait(20)
        return Loaded(Counting(1))

    found = specializations(SpecializationLimits(), compile_=slow)
    thread = threading.Thread(target=lambda: found.entry_point({"x": np.zeros(1)}))
    thread.start()
    assert begun.wait(20)
    child = os.fork()
    if not child:
        try:
            go_on = threading.Event()  # That of the parent may have a lock that nobody gives back.
            go_on.set()
            found.entry_point({"x": np.zeros(1)})
            os._exit(0)
        finally:
            os._exit(1)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_call_that_waits_for_the_compilation_of_another_ends() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: Assumptions) -> Loaded:
        begun.set()
        go_on.wait(5)
        return Loaded(Counting(1))

    found = specializations(SpecializationLimits(), compile_=slow)
    thread = threading.Thread(target=lambda: found.entry_point({"x": np.zeros(1)}))
    thread.start()
    assert begun.wait(20)
    with pytest.raises(TimeLimitError), time_limited(Cancellation(), 0.05, "call", "time_limit"):
        found.entry_point({"x": np.zeros(1)})
    assert thread.is_alive()
    go_on.set()
    thread.join()
    with time_limited(Cancellation(), 20, "call", "time_limit"):
        found.entry_point({"x": np.zeros(1)})


@pytest.mark.parametrize(
    ("declared", "dimensions", "expected"),
    [
        ((5, 2), {}, ["N", 2]),
        ((5, 7), {}, ["N", None]),
        ((5,), {}, ["N", 2]),
        (("rows", 2), {}, ["rows", 2]),
        ((5, 2), {"M": 3}, ["N", 2]),
        ((5, 2), {"N": 5}, [5, 2]),
        ((5, 2), {"N": (1, 8)}, ["N", 2]),
    ],
)
def test_outputs_leave_open_what_their_nodes_do_not_give(
    declared: tuple[Any, ...], dimensions: dict[str, Any], expected: list[Any]
) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["z"], ["unused"])]
    model = model_of(nodes, {"x": ("N", 2), "z": ("M",)}, shape=declared)
    with warning_to(lambda _: None):
        session = InferenceSession(model, dimensions=dimensions, cache=False)
        assert session.get_outputs()[0].shape == expected
        rows = 5 if dimensions.get("N") == 5 else 3
        inputs = {"x": np.ones((rows, 2), np.float32), "z": np.ones(3, np.float32)}
        assert session.run(None, inputs)[0].shape == (rows, 2)


def test_labels_say_sizes_of_others_of_which_some_have_bounds() -> None:
    nodes = [helper.make_node("Concat", ["x", "z"], ["all"], axis=0), helper.make_node("Add", ["all", "mask"], ["y"])]
    shapes = {"x": ("past", 2), "z": ("rows", 2), "mask": ("past + rows", 1)}
    session = InferenceSession(
        model_of(nodes, shapes, shape=("past + rows", 2)), dimensions={"past": (0, 9)}, cache=False
    )
    for past, rows in ((0, 3), (3, 1)):
        inputs = {name: np.ones((size, 2), np.float32) for name, size in (("x", past), ("z", rows))}
        (found,) = session.run(None, {**inputs, "mask": np.ones((past + rows, 1), np.float32)})
        np.testing.assert_array_equal(found, np.full((past + rows, 2), 2.0))
