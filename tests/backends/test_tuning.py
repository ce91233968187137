"""Selection by measurement, with races whose outcome is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from candidates import candidates_of, instructions_of, stacked
from execute import Case, module_of, runnable_targets, sample
from machines import target_named
from models import random_inputs
from onnx import TensorProto, helper, numpy_helper

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.backends.cpu import tuning
from glow_mlir.backends.cpu.targets import PRESETS, lacks
from glow_mlir.backends.cpu.tuning import Tuner
from glow_mlir.codegen.selection.candidate import Candidate
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.target import Target, with_fields
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import OptionError
from glow_mlir.runtime.json_cache import JsonCache
from glow_mlir.support.activity import watching

Runs = Sequence[Callable[[], object]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def conv() -> Case:
    """A convolution with several candidates."""
    return Case(ConvOp, sample((1, 12, 12, 64)), sample((64, 3, 3, 64)), constants=(1,))


class Choice:
    """One instruction, and tuners that choose for it."""

    def __init__(self) -> None:
        self.module = stacked(conv())
        (self.op,) = (op for op in instructions_of(self.module) if op.name == "glow_low.conv")
        self.candidates = candidates_of(self.op, self.module)

    def made(self, race: Callable[[Runs], list[float]]) -> Candidate | None:
        """What a new tuner chooses after such a race."""
        tuner = Tuner(Storage(self.module), race=race)
        return tuner.fastest(self.op, target_named("host"), self.candidates)


def won_by(winner: int, gain: float = 0.5) -> Callable[[Runs], list[float]]:
    """A race in which one takes less time than all others by that part."""

    def race(runs: Runs) -> list[float]:
        for run in runs:
            run()
        return [1.0 - gain if number == winner % len(runs) else 1.0 for number in range(len(runs))]

    return race


def no_race(runs: Runs) -> list[float]:
    raise AssertionError("nothing was to be measured")


def test_fastest_candidate_is_taken() -> None:
    choice = Choice()
    last = len(choice.candidates) - 1
    assert last > 0
    assert choice.made(won_by(last)) is choice.candidates[last]


def test_guess_stays_where_the_gain_may_be_chance() -> None:
    choice = Choice()
    assert choice.made(won_by(1, gain=0.015)) is choice.candidates[0]


def test_nothing_is_measured_where_there_is_no_choice() -> None:
    choice = Choice()
    tuner = Tuner(Storage(choice.module), race=no_race)
    only = choice.candidates[:1]
    assert tuner.fastest(choice.op, target_named("host"), only) is only[0]
    assert tuner.fastest(choice.op, target_named("host"), []) is None


def test_answers_are_remembered() -> None:
    choice = Choice()
    assert choice.made(won_by(2)) is choice.candidates[2]
    assert choice.made(no_race) is choice.candidates[2]
    assert Choice().made(no_race) is not None, "another model with the same layer does not measure again"


@pytest.mark.parametrize("damage", ["", "{", '{"chosen": "no-such-kernel{}"}', '{"chosen": 7}', "[]"])
def test_damaged_answers_are_replaced(damage: str) -> None:
    choice = Choice()
    choice.made(won_by(1))
    (file,) = JsonCache("tuning").directory.glob("*.json")
    file.write_text(damage)
    assert choice.made(won_by(2)) is choice.candidates[2]
    assert choice.made(no_race) is choice.candidates[2]


def test_another_machine_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Choice()
    choice.made(won_by(1))
    monkeypatch.setattr(tuning, "host_name", lambda: "another")
    assert choice.made(won_by(2)) is choice.candidates[2]


def test_cores_matter_to_several_threads_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Choice()
    two = with_fields(target_named("host"), {"threads": 2})

    def made(race: Callable[[Runs], list[float]], machine: Target) -> Candidate | None:
        return Tuner(Storage(choice.module), race=race).fastest(choice.op, machine, choice.candidates)

    for number, machine in ((1, target_named("host")), (2, two)):
        assert made(won_by(number), machine) is choice.candidates[number]
    monkeypatch.setattr(tuning, "usable_cores", lambda: 99)
    assert made(no_race, target_named("host")) is choice.candidates[1]
    assert made(won_by(0), two) is choice.candidates[0]


@pytest.mark.long
@pytest.mark.parametrize("winner", [0, 1, 3, -1])
def test_tuned_results_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch, winner: int) -> None:
    """Whatever wins with several threads: it sums in the order that won with one."""
    model = convolutions()
    inputs = random_inputs(model, np.random.default_rng(1))
    monkeypatch.setattr(tuning, "race", won_by(winner))
    expected = InferenceSession(model, tune=True).run(None, inputs)
    for other in (0, 2, -2):
        monkeypatch.setattr(tuning, "race", won_by(other))
        for threads in (2, 5):
            found = InferenceSession(model, tune=True, threads=threads, cache=False).run(None, inputs)
            assert [array.tobytes() for array in found] == [array.tobytes() for array in expected]


FOREIGN = [name for name, target in PRESETS.items() if lacks(target)]


@pytest.mark.parametrize("target", FOREIGN)
def test_foreign_targets_are_refused(target: str) -> None:
    module, _ = module_of(conv())
    with pytest.raises(OptionError, match="such a target cannot be measured here: this machine lacks"):
        Compilation(module, target=target, tune=True).run(until="selected")


def test_interpreter_is_refused() -> None:
    with pytest.raises(OptionError, match="makes no machine code to tune"):
        InferenceSession(convolutions(), backend="interpreter", tune=True)


def convolutions() -> onnx.ModelProto:
    """Two equal convolutions and another one, each with an activation."""
    shapes = [(64, 64, 3, 3), (64, 64, 3, 3), (128, 64, 1, 1)]
    random = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    last = "x"
    for number, shape in enumerate(shapes):
        array = (random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        weights.append(numpy_helper.from_array(array, f"w{number}"))
        pads = [shape[-1] // 2] * 4
        nodes.append(helper.make_node("Conv", [last, f"w{number}"], [f"c{number}"], pads=pads))
        last = f"y{number}"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [last]))
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 64, 14, 14))],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, (1, 128, 14, 14))],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("winner", [1, 4, -1])
@pytest.mark.parametrize("target", [name for name in runnable_targets() if name != "scalar"])
def test_tuned_session_computes_the_model(monkeypatch: pytest.MonkeyPatch, winner: int, target: str) -> None:
    """Whatever wins: results are within the bounds of docs/floating-point.md."""
    monkeypatch.setattr(tuning, "race", won_by(winner))
    model = convolutions()
    inputs = random_inputs(model, np.random.default_rng(1))
    (expected,) = InferenceSession(model, backend="interpreter").run(None, inputs)
    (found,) = InferenceSession(model, target=target, tune=True).run(None, inputs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * float(np.abs(expected).max()))


def test_tuned_artifacts_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    model = convolutions()
    monkeypatch.setattr(tuning, "race", won_by(1))
    assert InferenceSession(model).compile_seconds
    assert InferenceSession(model, tune=True).compile_seconds
    monkeypatch.setattr(tuning, "race", no_race)
    assert not InferenceSession(model, tune=True).compile_seconds
    assert InferenceSession(model, tune=True, cache=False).compile_seconds, "answers are kept for all"


def test_what_is_tuned_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "race", won_by(0))
    said: list[str] = []
    with watching(said.append):
        InferenceSession(convolutions(), cache=False)
        assert not any(text.startswith("tuning") for text in said)
        said.clear()
        InferenceSession(convolutions(), cache=False, tune=True)
    tuned = [text for text in said if text.startswith("tuning")]
    assert tuned[0].startswith("tuning instruction 1 of ")
