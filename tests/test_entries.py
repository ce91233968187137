"""A model with several functions: each is an entry, and all share constants and state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from glow_mlir import InferenceSession
from glow_mlir.backends.cpu.targets import PRESETS, lacks
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.target import TargetAttr
from glow_mlir.errors import InputError, ModelError, OptionError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

BACKENDS = ["cpu", "interpreter"]

COUNTER = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.placeholder @sum : tensor<4xf32> {state, value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}
glow_high.placeholder @calls : tensor<1xi64> {state}
glow_high.constant @scale : tensor<4xf32> {value = dense<[1.0, 10.0, 100.0, 1000.0]> : tensor<4xf32>}
glow_high.constant @one : tensor<1xi64> {value = dense<[1]> : tensor<1xi64>}
glow_high.func @accumulate(@x, @sum, @calls) {
  %x = glow_high.get @x : tensor<4xf32>
  %scale = glow_high.get @scale : tensor<4xf32>
  %sum = glow_high.get @sum {mutable} : tensor<4xf32>
  %calls = glow_high.get @calls {mutable} : tensor<1xi64>
  %one = glow_high.get @one : tensor<1xi64>
  %0 = glow_high.mul %x, %scale : tensor<4xf32>
  %1 = glow_high.add %sum, %0 : tensor<4xf32>
  %2 = glow_high.add %calls, %one : tensor<1xi64>
  glow_high.save %1, @sum
  glow_high.save %2, @calls
}
glow_high.func @main(@sum, @y) {
  %sum = glow_high.get @sum {mutable} : tensor<4xf32>
  %scale = glow_high.get @scale : tensor<4xf32>
  %0 = glow_high.div %sum, %scale : tensor<4xf32>
  glow_high.save %0, @y
}
"""
"""One function adds to state that the other reads; both read the same constant."""

ONES = np.ones(4, np.float32)
INITIAL = np.array([1, 2, 3, 4], np.float32)
SCALE = np.array([1, 10, 100, 1000], np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))


def parsed(text: str = COUNTER) -> ModuleOp:
    return parse_module(text, new_context(), "counter.mlir")


@pytest.fixture(params=BACKENDS)
def session(request: pytest.FixtureRequest) -> InferenceSession:
    return InferenceSession(parsed(), backend=request.param)


def test_main_is_the_entry_where_none_is_named(session: InferenceSession) -> None:
    assert session.get_entries() == ["accumulate", "main"]
    assert session.get_inputs() == []
    assert [output.name for output in session.get_outputs()] == ["y"]
    np.testing.assert_allclose(session.run(None, {})[0], INITIAL / SCALE, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_session_may_name_its_entry(backend: str) -> None:
    session = InferenceSession(parsed(), backend=backend, entry="accumulate")
    assert [item.name for item in session.get_inputs()] == ["x"]
    assert session.run(None, {"x": ONES}) == []
    np.testing.assert_array_equal(session.get_state()["sum"], INITIAL + SCALE)


def test_functions_see_the_same_state(session: InferenceSession) -> None:
    for _ in range(2):
        session.run(None, {"x": ONES}, entry="accumulate")
    np.testing.assert_allclose(session.run(["y"], {})[0], (INITIAL + 2 * SCALE) / SCALE, rtol=1e-6)
    assert session.get_state()["calls"].tolist() == [2]


def test_state_begins_with_its_initial_value_or_zeros(session: InferenceSession) -> None:
    state = session.get_state()
    assert state["sum"].tolist() == INITIAL.tolist()
    assert state["calls"].tolist() == [0]
    assert state["calls"].dtype == np.int64


def test_state_is_set_and_reset(session: InferenceSession) -> None:
    session.set_state({"sum": 5 * SCALE})
    np.testing.assert_allclose(session.run(None, {})[0], 5 * ONES, rtol=1e-6)
    session.run(None, {"x": ONES}, entry="accumulate")
    session.reset_state(["sum"])
    assert session.get_state()["sum"].tolist() == INITIAL.tolist()
    assert session.get_state()["calls"].tolist() == [1]
    session.reset_state()
    assert session.get_state()["calls"].tolist() == [0]


def test_state_that_was_read_does_not_follow_calls(session: InferenceSession) -> None:
    before = session.get_state()["sum"]
    session.run(None, {"x": ONES}, entry="accumulate")
    before[...] = 0
    assert session.get_state()["sum"].tolist() == (INITIAL + SCALE).tolist()


def test_wrong_state_is_refused_and_nothing_set(session: InferenceSession) -> None:
    with pytest.raises(InputError, match=r"state 'calls' must be int64\[1\], not float32\[4\]"):
        session.set_state({"sum": ONES, "calls": ONES})
    assert session.get_state()["sum"].tolist() == INITIAL.tolist()
    with pytest.raises(InputError, match=r"there is no state 'x' \(hint: the model has sum, calls\)"):
        session.set_state({"x": ONES})
    with pytest.raises(InputError, match="there is no state 'x'"):
        session.reset_state(["x"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_several_entries_without_main_have_to_be_chosen(backend: str) -> None:
    text = COUNTER.replace("@main", "@ratio")
    with pytest.raises(InputError, match=r"there is no entry 'main' \(hint: the model has accumulate, ratio\)"):
        InferenceSession(parsed(text), backend=backend)
    assert InferenceSession(parsed(text), backend=backend, entry="ratio").run(None, {})


def test_unknown_entry_is_named(session: InferenceSession) -> None:
    with pytest.raises(InputError, match="there is no entry 'other'"):
        session.run(None, {}, entry="other")


def test_entries_share_constants() -> None:
    manifest = InferenceSession(parsed()).machine_code.manifest
    # The constant of both and one initial value, each once and aligned; the other constant has one element.
    assert manifest.constants == 2 * 64
    assert [entry.name for entry in manifest.entries] == ["accumulate", "main"]


def test_entries_and_initial_values_come_from_the_cache() -> None:
    first, second = InferenceSession(parsed()), InferenceSession(parsed())
    assert first.compile_seconds
    assert not second.compile_seconds
    second.run(None, {"x": ONES}, entry="accumulate")
    assert second.get_state()["sum"].tolist() == (INITIAL + SCALE).tolist()
    assert first.get_state()["sum"].tolist() == INITIAL.tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_module_without_a_function_is_told(backend: str) -> None:
    with pytest.raises(ModelError, match="the module has no function"):
        InferenceSession(ModuleOp([]), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_states_of_one_name_are_told(backend: str) -> None:
    text = """
    glow_high.placeholder @a : tensor<1xf32> {state, label = "s"}
    glow_high.placeholder @b : tensor<1xf32> {state, label = "s"}
    glow_high.func @first(@a) {
    }
    glow_high.func @second(@b) {
    }
    """
    with pytest.raises(ModelError, match="@a and @b have the same name for callers"):
        InferenceSession(parsed(text), backend=backend, entry="first")


STORAGE = """
glow_high.placeholder @x : tensor<64xf32> {input}
glow_high.placeholder @y : tensor<64xf32> {output}
glow_high.placeholder @calls : tensor<1xf32> {state}
glow_high.constant @one : tensor<1xf32> {value = dense<1.0> : tensor<1xf32>}
"""

FUNCTION = """
glow_high.func @{name}(@x, @y, @calls) attributes {{target = {target}}} {{
  %x = glow_high.get @x : tensor<64xf32>
  %0 = glow_high.exp %x : tensor<64xf32>
  %calls = glow_high.get @calls {{mutable}} : tensor<1xf32>
  %one = glow_high.get @one : tensor<1xf32>
  %1 = glow_high.add %calls, %one : tensor<1xf32>
  glow_high.save %0, @y
  glow_high.save %1, @calls
}}
"""
"""A function that computes, and counts its calls in the state."""


def for_targets(**targets: str) -> str:
    """A module with the function for several targets, each under a name of its own."""
    functions = (FUNCTION.format(name=name, target=target_text(target)) for name, target in targets.items())
    return STORAGE + "".join(functions)


def target_text(name: str) -> str:
    """The target of a name as text has it."""
    return str(TargetAttr(get_backend("cpu").target(name)))


def test_functions_for_two_targets_are_compiled_cached_and_run() -> None:
    text = for_targets(main="host", other="host,vector_bits=0")
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    for is_cached in (False, True):
        session = InferenceSession(parsed(text))
        assert bool(session.compile_seconds) is not is_cached
        for entry in ("main", "other"):
            np.testing.assert_allclose(session.run(None, {"x": x}, entry=entry)[0], np.exp(x), rtol=1e-6)
        assert session.get_state()["calls"].tolist() == [2]
    first, second = session.machine_code.manifest.entries
    assert first.target != second.target
    assert (first.code, second.code) == (0, 1)


@pytest.mark.parametrize("is_cached", [False, True])
def test_entry_for_another_machine_is_one_line_and_the_others_run(is_cached: bool) -> None:
    foreign = next(name for name, target in PRESETS.items() if lacks(target) and target.pointer_bits == 64)
    text = for_targets(main="host", other=foreign)
    if is_cached:
        InferenceSession(parsed(text))
    session = InferenceSession(parsed(text))
    assert session.run(None, {"x": np.zeros(64, np.float32)})[0].tolist() == [1.0] * 64
    with pytest.raises(OptionError, match="this machine cannot run code for the target of @other: it lacks"):
        session.run(None, {"x": np.zeros(64, np.float32)}, entry="other")
