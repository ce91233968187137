"""A batch in parts, one after the other or in several processes, changes parameters as the whole one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from training_models import convolutional, model, perceptron

from glow_mlir import InferenceSession, TrainingSession
from glow_mlir.errors import ExecutionError, InputError, OptionError
from glow_mlir.training.losses import CrossEntropy, Loss, MeanSquaredError, OutputLoss
from glow_mlir.training.optimizers import SGD, AdamW, Optimizer

SIZES = [6, 5, 3]
RNG = np.random.default_rng(31)
BATCHES = [{"x": RNG.standard_normal((24, 6)).astype(np.float32), "targets": RNG.integers(0, 3, 24)} for _ in range(4)]


def session(batch: int, **keywords: Any) -> TrainingSession:
    """A session of a perceptron that takes so many samples at a time."""
    given: dict[str, Any] = {"optimizer": SGD(0.1, momentum=0.9), "cache": False, **keywords}
    return TrainingSession(perceptron(SIZES, batch), **given)


@pytest.fixture(scope="module")
def team() -> Generator[TrainingSession]:
    """Two processes, each of which computes 12 samples."""
    found = session(12, processes=2)
    yield found
    found.close()


def check_alike(parts: TrainingSession, whole: TrainingSession) -> None:
    """Some steps of both give the same losses and parameters."""
    parts.set_state(whole.get_state())
    for batch in BATCHES:
        assert parts.step(batch) == pytest.approx(whole.step(batch), abs=1e-6)
    left, right = parts.get_state(), whole.get_state()
    assert left.keys() == right.keys()
    for name, value in right.items():
        np.testing.assert_allclose(left[name], value, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("optimizer", [SGD(0.1, momentum=0.9), AdamW(0.01), SGD(0.1, clip_norm=0.1)], ids=str)
@pytest.mark.parametrize("count", [2, 3])
def test_gradients_add_up_to_those_of_the_whole_batch(count: int, optimizer: Optimizer) -> None:
    check_alike(session(24 // count, accumulate=count, optimizer=optimizer), session(24, optimizer=optimizer))


LOSSES = [
    CrossEntropy(ignore_index=1),
    CrossEntropy(reduction="sum"),
    CrossEntropy(label_smoothing=0.1),
    MeanSquaredError(),
    MeanSquaredError(reduction="sum"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_each_part_has_its_share_in_the_loss(loss: Loss) -> None:
    """Of classes that are ignored, parts have different numbers."""
    parts, whole = (session(size, accumulate=24 // size, loss=loss, optimizer=SGD(0.01)) for size in (8, 24))
    targets: np.ndarray = np.sort(BATCHES[0]["targets"])
    if isinstance(loss, MeanSquaredError):
        targets = RNG.standard_normal((24, 3)).astype(np.float32)
    batch = {**BATCHES[0], "targets": targets}
    assert parts.evaluate(batch)["loss"] == pytest.approx(whole.evaluate(batch)["loss"], rel=1e-6)
    for _ in range(3):
        assert parts.step(batch) == pytest.approx(whole.step(batch), rel=1e-6)
    for name, value in whole.weights().items():
        np.testing.assert_allclose(parts.weights()[name], value, atol=1e-6)


def test_ignored_classes_have_no_part_in_shares() -> None:
    loss = CrossEntropy(ignore_index=255)
    parts, whole = (session(size, accumulate=24 // size, loss=loss, optimizer=SGD(0.1)) for size in (8, 24))
    batch = {**BATCHES[0], "targets": np.where(np.arange(24) < 5, 255, BATCHES[0]["targets"])}
    assert parts.evaluate(batch)["loss"] == pytest.approx(whole.evaluate(batch)["loss"], rel=1e-6)
    assert parts.step(batch) == pytest.approx(whole.step(batch), rel=1e-6)
    for name, value in whole.weights().items():
        np.testing.assert_allclose(parts.weights()[name], value, atol=1e-6)


def two_outputs(batch: int) -> onnx.ModelProto:
    """A perceptron whose hidden layer is an output as well."""
    found = perceptron(SIZES, batch)
    found.graph.output.append(helper.make_tensor_value_info("r0", TensorProto.FLOAT, [batch, SIZES[1]]))
    return found


@pytest.mark.parametrize("loss", [CrossEntropy(reduction="sum"), CrossEntropy(ignore_index=1)], ids=str)
def test_each_of_several_losses_has_its_own_shares(loss: Loss) -> None:
    given: dict[str, Any] = {"loss": {"y": loss, "r0": MeanSquaredError()}, "optimizer": SGD(0.01), "cache": False}
    parts, whole = (TrainingSession(two_outputs(size), accumulate=24 // size, **given) for size in (8, 24))
    hidden = RNG.standard_normal((24, SIZES[1])).astype(np.float32)
    batch = {"x": BATCHES[0]["x"], "y.targets": np.sort(BATCHES[0]["targets"]), "r0.targets": hidden}
    assert parts.evaluate(batch)["loss"] == pytest.approx(whole.evaluate(batch)["loss"], rel=1e-6)
    for _ in range(2):
        assert parts.step(batch) == pytest.approx(whole.step(batch), rel=1e-6)


def test_loss_of_the_model_itself_is_that_of_the_batch() -> None:
    given: dict[str, Any] = {"loss": {"loss": OutputLoss()}, "optimizer": SGD(0.01), "cache": False}
    found: list[dict[str, np.ndarray]] = []
    for size in (8, 24):
        source = perceptron(SIZES, size)
        source.graph.node.append(helper.make_node("ReduceMean", ["y"], ["loss"], keepdims=0))
        source.graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, []))
        trained = TrainingSession(source, accumulate=24 // size, **given)
        x = {"x": BATCHES[0]["x"]}
        found.append({"evaluated": trained.evaluate(x)["loss"], "predicted": trained.predict(x)["loss"]})
    np.testing.assert_allclose([*found[0].values()], [*found[1].values()], rtol=1e-5)


def embedded(batch: int) -> onnx.ModelProto:
    """Classes of tokens, of which there are ten."""
    nodes = [helper.make_node("Gather", ["table", "x"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])]
    rng = np.random.default_rng(5)
    found = model(
        nodes,
        {name: rng.standard_normal(size).astype(np.float32) for name, size in (("table", (10, 4)), ("w", (4, 3)))},
        [batch],
        [batch, 3],
    )
    found.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return found


def test_part_that_fails_leaves_no_gradients_behind() -> None:
    """A step that raises changes nothing, and neither does it change the next one."""
    trained, undisturbed = (
        TrainingSession(embedded(12), accumulate=2, optimizer=SGD(0.1), cache=False) for _ in range(2)
    )
    batch = {"x": np.arange(24) % 10, "targets": BATCHES[0]["targets"]}
    with pytest.raises(ExecutionError, match="an index is out of range"):
        trained.step({**batch, "x": np.where(np.arange(24) < 23, batch["x"], 10)})
    assert trained.step(batch) == undisturbed.step(batch)
    for name, value in undisturbed.get_state().items():
        np.testing.assert_array_equal(trained.get_state()[name], value, err_msg=name)


def test_threads_take_turns(team: TrainingSession) -> None:
    """Steps of several threads come one after the other."""
    begin = team.steps
    with ThreadPoolExecutor(4) as pool:
        losses = list(pool.map(team.step, BATCHES * 4))
    assert np.isfinite(losses).all()
    assert team.steps == begin + len(losses)


def test_lists_are_batches() -> None:
    parts, whole = session(12, accumulate=2), session(24)
    batch = {name: value.tolist() for name, value in BATCHES[0].items()}
    assert parts.step(batch) == pytest.approx(whole.step(batch), abs=1e-6)
    with pytest.raises(InputError, match="input 'x' is not an array"):
        parts.step({**batch, "x": [[1.0], [1.0, 2.0]]})


def test_classes_of_a_script_are_told() -> None:
    """Another process does not have what is defined in the script that a user runs."""
    script = """
from training_models import perceptron
from glow_mlir import TrainingSession
from glow_mlir.training import MeanSquaredError

class Mine(MeanSquaredError):
    pass

TrainingSession(perceptron([6, 5, 3], 12), loss=Mine(), processes=2, cache=False)
"""
    path = os.pathsep.join([str(Path(__file__).parents[1] / "support"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    last = done.stderr.strip().splitlines()[-1]
    assert "OptionError: the training cannot be sent to another process: " in last, done.stderr
    assert "define losses and optimizers at module level" in last


def test_whole_batches_go_in_and_come_out() -> None:
    parts, whole = session(8, accumulate=3), session(24)
    assert (parts.inputs, parts.outputs) == (whole.inputs, whole.outputs)
    assert repr(parts).startswith("<TrainingSession gradients(x: float32[8, 6], ")
    x = {"x": BATCHES[0]["x"]}
    np.testing.assert_allclose(parts.predict(x)["y"], whole.predict(x)["y"], atol=1e-6)
    with pytest.raises(InputError, match=r"input 'x' must be float32\[24, 6\], not float32\[8, 6\]"):
        parts.step({"x": x["x"][:8], "targets": BATCHES[0]["targets"]})
    with pytest.raises(InputError, match="input 'targets' is missing"):
        parts.step(x)
    with pytest.raises(InputError, match="there is no input 'z'"):
        parts.step({**BATCHES[0], "z": 1})
    assert parts.steps == 0
    check_alike(parts, whole)


def test_a_batch_of_one_part_is_a_step() -> None:
    assert set(session(24, accumulate=1).get_state()) == set(session(12, accumulate=2).get_state())


def test_statistics_are_those_of_parts(tmp_path: Path) -> None:
    """Each part updates the running statistics, as in PyTorch."""
    images = {"x": RNG.standard_normal((8, 1, 8, 8)).astype(np.float32), "targets": RNG.integers(0, 3, 8)}
    given: dict[str, Any] = {"optimizer": SGD(0.0), "cache": False}
    parts, single = (TrainingSession(convolutional(4), accumulate=count, **given) for count in (2, 1))
    parts.step(images)
    for begin in (0, 4):
        single.step({name: value[begin : begin + 4] for name, value in images.items()})
    for name, value in single.weights().items():
        np.testing.assert_allclose(parts.weights()[name], value, atol=1e-6)
    parts.export(tmp_path / "m.onnx")
    found = InferenceSession(tmp_path / "m.onnx", cache=False).run(None, {"x": images["x"][:4]})[0]
    np.testing.assert_allclose(found, parts.predict({"x": images["x"]})["y"][:4], rtol=1e-4, atol=1e-5)


def test_processes_compute_what_one_computes(team: TrainingSession) -> None:
    check_alike(team, session(24))


def test_processes_take_parts_one_after_the_other() -> None:
    both = session(4, processes=2, accumulate=3)
    try:
        check_alike(both, session(24))
    finally:
        both.close()


def test_processes_go_on_from_a_checkpoint_to_the_same_bits(team: TrainingSession, tmp_path: Path) -> None:
    team.step(BATCHES[0])
    team.save(tmp_path / "run.safetensors")
    expected = [team.step(batch) for batch in BATCHES]
    after = team.get_state()
    team.load(tmp_path / "run.safetensors")
    assert [team.step(batch) for batch in BATCHES] == expected
    assert all((value == after[name]).all() for name, value in team.get_state().items())


def test_learning_rate_is_that_of_all_processes(team: TrainingSession) -> None:
    whole = session(24)
    team.learning_rate = whole.learning_rate = 0.01
    check_alike(team, whole)


def test_wrong_inputs_end_no_process(team: TrainingSession) -> None:
    with pytest.raises(InputError, match="input 'x' must be"):
        team.step({**BATCHES[0], "x": BATCHES[0]["x"].astype(np.float64)})
    assert np.isfinite(team.step(BATCHES[0]))


def test_process_that_ends_is_one_error() -> None:
    broken = session(8, processes=3)
    broken.step(BATCHES[0])
    os.kill(broken.process_ids[1], signal.SIGKILL)
    with pytest.raises(ExecutionError, match="process 3 of 3 of the training exited with signal 9"):
        broken.step(BATCHES[0])
    with pytest.raises(ExecutionError, match="the training processes have ended"):
        broken.step(BATCHES[0])
    assert not broken.process_ids


def ended(pid: int) -> bool:
    """Whether a process has ended, also one that nobody has waited for."""
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux says which processes there are")
def test_processes_end_with_the_first_one() -> None:
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from training_models import perceptron
from glow_mlir import TrainingSession
session = TrainingSession(perceptron([6, 5, 3], 8), processes=3, cache=False)
print(*session.process_ids, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    others = [int(number) for number in killed.stdout.split()]
    assert len(others) == 2
    end = time.monotonic() + 60
    while not all(map(ended, others)) and time.monotonic() < end:
        time.sleep(0.05)
    assert all(map(ended, others))


def test_what_cannot_be_is_told() -> None:
    for name in ("accumulate", "processes"):
        with pytest.raises(OptionError, match=f"{name} must be a positive integer, got 0"):
            session(24, **{name: 0})

    class Inner(MeanSquaredError):
        """A loss that no other process can know."""

    with pytest.raises(OptionError, match="the training cannot be sent to another process"):
        session(12, processes=2, loss=Inner())
