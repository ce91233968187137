"""Inferences that fail on their data: one error that names the node, in both backends, and a session that goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.errors import ExecutionError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

BACKENDS = ["cpu", "interpreter"]

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))


def one_node(kind: str, indices: tuple[int, ...], result: tuple[int, ...], **attributes: Any) -> bytes:
    """A model that applies an operator to `x`, `indices`, and, for a scatter, `updates` of the shape of the indices."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape),
        helper.make_tensor_value_info("indices", TensorProto.INT64, indices),
    ]
    if kind.startswith("Scatter"):
        updates = (*indices[:-1], 4) if kind == "ScatterND" else indices
        inputs.append(helper.make_tensor_value_info("updates", TensorProto.FLOAT, updates))
    node = helper.make_node(kind, [item.name for item in inputs], ["y"], "the_node", **attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    graph = helper.make_graph([node], "graph", inputs, [output])
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


CASES = {
    "gather": one_node("Gather", (2,), (2, 4), axis=0),
    "gather-elements": one_node("GatherElements", (2, 4), (2, 4), axis=0),
    "gather-nd": one_node("GatherND", (2, 1), (2, 4)),
    "scatter-elements": one_node("ScatterElements", (2, 4), (3, 4), axis=0),
    "scatter-elements-add": one_node("ScatterElements", (2, 4), (3, 4), axis=0, reduction="add"),
    "scatter-nd": one_node("ScatterND", (2, 1), (3, 4)),
}
"""Each index is one into the first axis of `x`, which has three elements."""


def inputs_of(session: InferenceSession, index: int) -> dict[str, np.ndarray]:
    """Inputs whose last index is `index`, and the others 1."""
    arrays: dict[str, np.ndarray] = {"x": X}
    for argument in session.get_inputs()[1:]:
        arrays[argument.name] = np.ones(argument.shape, np.int64 if argument.name == "indices" else np.float32)
    arrays["indices"].reshape(-1)[-1] = index
    return arrays


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_index_out_of_range_is_an_error_that_names_the_node(name: str, backend: str) -> None:
    session = InferenceSession(CASES[name], backend=backend)
    for index in (3, -4, np.iinfo(np.int64).max, np.iinfo(np.int64).min):
        with pytest.raises(ExecutionError) as caught:
            session.run(None, inputs_of(session, index))
        assert str(caught.value) == "node 'the_node': an index is out of range"
    # The session goes on, and the ends of the range are in it.
    found = [session.run(None, inputs_of(session, index))[0] for index in (2, -1, 0, -3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[3])
    assert not np.array_equal(found[0], found[2])


def parsed(text: str) -> ModuleOp:
    return parse_module(text, new_context(), "text.mlir")


TWO = """
#first = loc("first")
#second = loc("second")
glow_high.func @main(%x: tensor<3x4xf32>, %i: tensor<2xi64>, %j: tensor<2xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = glow_high.gather %x, %i : tensor<2x4xf32> loc(#first)
  %1 = glow_high.gather %x, %j : tensor<2x4xf32> loc(#second)
  glow_high.return %0, %1
}
"""
"""Two instructions that are equal but for their buffers, and so share a function."""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_first_instruction_that_fails_is_named(backend: str, threads: int) -> None:
    session = InferenceSession(parsed(TWO), backend=backend, threads=threads if backend == "cpu" else None)
    good, bad = np.array([0, 2]), np.array([0, 9])
    for i, j, node in ((bad, good, "first"), (good, bad, "second"), (bad, bad, "first")):
        with pytest.raises(ExecutionError, match="an index is out of range") as caught:
            session.run(None, {"x": X, "i": i, "j": j})
        assert caught.value.node == node
    np.testing.assert_array_equal(session.run(None, {"x": X, "i": good, "j": good})[0], X[good])


def test_manifest_says_what_statuses_mean() -> None:
    session = InferenceSession(parsed(TWO))
    assert InferenceSession(parsed(TWO)).compile_seconds == {}
    for code in (session.machine_code, InferenceSession(parsed(TWO)).machine_code):
        (entry,) = code.manifest.entries
        assert [(item.reason, item.location) for item in entry.failures] == [
            ("an index is out of range", "first"),
            ("an index is out of range", "second"),
        ]


BRANCH = """
glow_high.func @main(%x: tensor<3x4xf32>, %i: tensor<2xi64>, %which: tensor<i1>, %n: tensor<i64>) -> tensor<2x4xf32> {
  %0 = glow_high.if %which {
    %1 = glow_high.loop %k = %n (%unused = %i) {
      %2 = glow_high.gather %x, %i : tensor<2x4xf32> loc("inner")
      %3 = glow_high.exp %2 : tensor<2x4xf32>
      %4 = glow_high.cast %3 {to = i64} : tensor<2x4xi64>
      %5 = glow_high.slice %4 {starts = [0, 0], ends = [2, 1]} : tensor<2x1xi64>
      %6 = glow_high.reshape %5 {shape = [2]} : tensor<2xi64>
      glow_high.yield %6
    } : tensor<2xi64>
    %7 = glow_high.cast %1 {to = f32} : tensor<2xf32>
    %8 = glow_high.reshape %7 {shape = [2, 1]} : tensor<2x1xf32>
    %9 = glow_high.expand %8 {shape = [2, 4]} : tensor<2x4xf32>
    glow_high.yield %9
  } else {
    %10 = glow_high.splat {value = 1.0} : tensor<2x4xf32>
    glow_high.yield %10
  } : tensor<2x4xf32>
  glow_high.return %0
}
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_not_executed_does_not_fail(backend: str) -> None:
    session = InferenceSession(parsed(BRANCH), backend=backend)

    def run(which: bool, trips: int) -> None:
        inputs = {"x": X, "i": np.array([0, 7]), "which": np.array(which), "n": np.array(trips)}
        session.run(None, inputs)

    run(False, 3)
    run(True, 0)
    with pytest.raises(ExecutionError) as caught:
        run(True, 3)
    assert caught.value.node == "inner"


@pytest.mark.parametrize("backend", BACKENDS)
def test_known_index_out_of_range_fails_when_it_is_executed(backend: str) -> None:
    """Constants are not folded to what there is not."""
    text = """
    glow_high.constant @table : tensor<3xf32> {value = dense<[1.0, 2.0, 4.0]> : tensor<3xf32>}
    glow_high.placeholder @x : tensor<3xf32> {input}
    glow_high.placeholder @y : tensor<2xf32> {output}
    glow_high.func @constants(@y) {
      %table = glow_high.get @table : tensor<3xf32>
      %i = glow_high.splat {value = 3} : tensor<2xi64>
      %0 = glow_high.gather %table, %i : tensor<2xf32> loc("constants")
      glow_high.save %0, @y
    }
    glow_high.func @indices(@x, @y) {
      %x = glow_high.get @x : tensor<3xf32>
      %i = glow_high.splat {value = -4} : tensor<2xi64>
      %0 = glow_high.gather %x, %i : tensor<2xf32> loc("indices")
      glow_high.save %0, @y
    }
    """
    for entry, inputs in (("constants", {}), ("indices", {"x": np.ones(3, np.float32)})):
        session = InferenceSession(parsed(text), backend=backend, entry=entry)
        with pytest.raises(ExecutionError) as caught:
            session.run(None, inputs)
        assert caught.value.node == entry


def test_state_that_a_failed_call_wrote_is_packed_again() -> None:
    """What a call that fails leaves in the state is unspecified, and the same for whoever reads it."""
    text = """
    glow_high.placeholder @x : tensor<2x8xf32> {input}
    glow_high.placeholder @i : tensor<8xi64> {input}
    glow_high.placeholder @w : tensor<8x8xf32> {state}
    glow_high.placeholder @y : tensor<2x8xf32> {output}
    glow_high.func @run(@x, @w, @y) {
      %x = glow_high.get @x : tensor<2x8xf32>
      %w = glow_high.get @w {mutable} : tensor<8x8xf32>
      %0 = glow_high.matmul %x, %w : tensor<2x8xf32>
      glow_high.save %0, @y
    }
    glow_high.func @rows(@i, @w) {
      %i = glow_high.get @i : tensor<8xi64>
      %w = glow_high.get @w {mutable} : tensor<8x8xf32>
      %0 = glow_high.gather %w, %i : tensor<8x8xf32>
      glow_high.save %0, @w
    }
    """
    session = InferenceSession(parsed(text), entry="run")
    x, w = np.ones((2, 8), np.float32), np.arange(64, dtype=np.float32).reshape(8, 8)
    session.set_state({"w": w})
    np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ w, rtol=1e-5)
    with pytest.raises(ExecutionError):
        session.run(None, {"i": np.array([1] * 7 + [8])}, entry="rows")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ session.get_state()["w"], rtol=1e-5)
    session.run(None, {"i": np.arange(8)}, entry="rows")


ENDLESS = """
glow_high.func @main(%x: tensor<3xi64>, %first: tensor<1xi64>, %goes_on: tensor<i1>) -> tensor<1xi64> {
  %0 = glow_high.loop %trip while %goes_on (%i = %first) {
    %v = glow_high.gather %x, %i {axis = 0} : tensor<1xi64>
    %zero = glow_high.splat {value = 0 : i64} : tensor<i64>
    %one = glow_high.splat {value = 1 : i64} : tensor<1xi64>
    %positive = glow_high.greater %v, %zero : tensor<1xi1>
    %again = glow_high.reshape %positive {shape = []} : tensor<i1>
    %next = glow_high.add %i, %one : tensor<1xi64>
    glow_high.yield %again, %next
  } : tensor<1xi64>
  glow_high.return %0
}
"""
"""A loop that ends where the table has no positive number."""


@pytest.mark.parametrize("backend", BACKENDS)
def test_loop_whose_condition_failed_ends(backend: str) -> None:
    session = InferenceSession(parse_module(ENDLESS, new_context()), backend=backend, cache=False)
    given = {"first": np.zeros(1, np.int64), "goes_on": np.array(True)}
    np.testing.assert_array_equal(session.run(None, {"x": np.array([5, 0, 5]), **given})[0], [2])
    with pytest.raises(ExecutionError, match="an index is out of range"):
        session.run(None, {"x": np.array([1, 2, 3]), **given})


@pytest.mark.parametrize("backend", BACKENDS)
def test_loop_whose_trip_count_failed_has_no_trips(backend: str) -> None:
    text = """
    glow_high.func @main(%counts: tensor<3xi64>, %at: tensor<1xi64>, %x: tensor<4xf32>) -> tensor<4xf32> {
      %list = glow_high.gather %counts, %at {axis = 0} : tensor<1xi64>
      %count = glow_high.reshape %list {shape = []} : tensor<i64>
      %0 = glow_high.loop %trip = %count (%a = %x) {
        %b = glow_high.add %a, %x : tensor<4xf32>
        glow_high.yield %b
      } : tensor<4xf32>
      glow_high.return %0
    }
    """
    session = InferenceSession(parse_module(text, new_context()), backend=backend, cache=False)
    counts, x = np.array([1 << 40, 2, 3]), np.ones(4, np.float32)
    np.testing.assert_array_equal(session.run(None, {"counts": counts, "at": np.array([2]), "x": x})[0], 4 * x)
    with pytest.raises(ExecutionError, match="an index is out of range"):
        session.run(None, {"counts": counts, "at": np.array([3]), "x": x})
