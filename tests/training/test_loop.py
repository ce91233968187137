"""The loop of training in Python: it goes on from where a session is, and evaluation is that of all samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from training_models import perceptron

from glow_mlir.api.training_session import TrainingSession
from glow_mlir.errors import ExecutionError, InputError
from glow_mlir.training.batches import ArraySamples, Batches
from glow_mlir.training.loop import EpochDone, StepDone, check_targets, evaluated, fit
from glow_mlir.training.losses import (
    BinaryCrossEntropy,
    BinaryCrossEntropyWithLogits,
    CrossEntropy,
    Loss,
    MeanSquaredError,
)
from glow_mlir.training.optimizers import SGD

BATCH = 4


def session_of(loss: Loss | str, rate: float = 0.1) -> TrainingSession:
    return TrainingSession(perceptron([3, 5, 3], BATCH), loss=loss, optimizer=SGD(rate), cache=False)


def samples(count: int, seed: int = 0) -> ArraySamples:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 3)).astype(np.float32)
    return ArraySamples({"x": x, "targets": x.argmax(axis=1)})


def test_leaving_the_loop_and_entering_it_again_is_no_break(tmp_path: Path) -> None:
    batches = Batches(samples(11), BATCH, seed=3)
    whole, broken = session_of("cross_entropy"), session_of("cross_entropy")
    wanted = list(fit(whole, batches, 3, samples(6)))
    assert [type(event) for event in wanted] == [StepDone, StepDone, EpochDone] * 3
    assert [event.is_last for event in wanted if isinstance(event, StepDone)] == [False, True] * 3
    begun = fit(broken, batches, 3, samples(6))
    *_, third = (next(begun) for _ in range(4))
    broken.save(tmp_path / "c.safetensors", {"seed": "3"})
    again = session_of("cross_entropy")
    again.load(tmp_path / "c.safetensors")
    assert again.steps == 3
    found = list(fit(again, batches, 3, samples(6), [third.loss]))
    assert [(event.step, event.loss) for event in found] == [(event.step, event.loss) for event in wanted[4:]]
    state = whole.get_state()
    assert all(value.tobytes() == state[name].tobytes() for name, value in again.get_state().items())
    assert not list(fit(again, batches, 3))


def test_evaluation_is_that_of_each_sample_alone() -> None:
    """Some of the targets are ignored, and copies fill the last batch up."""
    session = session_of("cross_entropy")
    held_out = samples(10)
    held_out.arrays["targets"][[1, 5]] = -100
    found = evaluated(session, held_out, BATCH)
    scores = np.concatenate(
        [session.predict({"x": np.repeat(x[None], BATCH, axis=0)})["y"][:1] for x in held_out.arrays["x"]]
    ).astype(np.float64)
    valid = held_out.arrays["targets"] != -100
    scores, targets = scores[valid], held_out.arrays["targets"][valid]
    wanted = (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(8), targets]).mean()
    assert found.loss == pytest.approx(wanted, rel=1e-5)
    assert found.accuracy == (scores.argmax(axis=1) == targets).mean()


def test_a_sum_is_evaluated_for_as_many_samples_as_a_batch_has() -> None:
    rng = np.random.default_rng(4)
    held_out = ArraySamples({name: rng.standard_normal((9, 3)).astype(np.float32) for name in ("x", "targets")})
    mean = evaluated(session_of(MeanSquaredError()), held_out, BATCH)
    total = evaluated(session_of(MeanSquaredError("sum")), held_out, BATCH)
    assert total.loss == pytest.approx(mean.loss * 3 * BATCH, rel=1e-5)
    assert (mean.accuracy, total.accuracy) == (None, None)


def test_a_loss_that_is_no_number_ends_the_loop() -> None:
    with pytest.raises(ExecutionError, match=r"the loss of step \d+, in epoch \d+, is (nan|inf)"):
        list(fit(session_of("cross_entropy", rate=1e30), Batches(samples(11), BATCH), 20))


def test_targets_are_those_of_the_loss() -> None:
    session = session_of("cross_entropy")
    check_targets(session, np.array([0, 2, -100]))
    with pytest.raises(InputError, match="a target is no class from 0 to 2: 3"):
        check_targets(session, np.array([0, 3]))
    with pytest.raises(InputError, match="a target is no class from 0 to 2: -1"):
        check_targets(session, np.array([-1, 3]))
    for loss in (BinaryCrossEntropy(), BinaryCrossEntropyWithLogits(), CrossEntropy(probabilities=True)):
        assert not loss.wrong_target(np.array([0.0, 1.0]), [2])
        assert loss.wrong_target(np.array([0.0, np.nan]), [2]) == "is no probability: nan"


def test_what_is_told_rightly_is_counted() -> None:
    scores = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, -1.0]])
    assert CrossEntropy().right(scores, np.array([0, 0, -100])) == (1, 2)
    assert CrossEntropy(probabilities=True).right(scores, np.array([[0.9, 0.1], [0.2, 0.8], [0.0, 1.0]])) == (2, 3)
    assert BinaryCrossEntropyWithLogits().right(np.array([-1.0, 0.2]), np.array([0.0, 0.0])) == (1, 2)
    assert BinaryCrossEntropy().right(np.array([0.3, 0.7]), np.array([0.0, 1.0])) == (2, 2)
    assert MeanSquaredError().right(scores, scores) is None
