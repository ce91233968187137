"""
The training loop: steps on batches, epoch after epoch, continuing from a session's state, with evaluation after each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from glow_mlir.errors import ExecutionError, InputError
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.dataclass import dataclass
from glow_mlir.training.batches import TARGETS, Batches, Padded, Samples, padded
from glow_mlir.training.losses import Loss
from glow_mlir.training.step import LOSS


class Trained(Protocol):
    """The part of `TrainingSession` that the loop needs."""

    losses: dict[str, Loss]

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        ...

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs of a step."""
        ...

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs of the model."""
        ...

    def step(self, batch: Mapping[str, Any]) -> float:
        """Perform one training step; return the loss before it."""
        ...

    def evaluate(self, batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs of the model and its loss."""
        ...


@dataclass(frozen=True)
class Evaluation:
    """The loss of samples, and the accuracy of the first output; `None` if it has no classes."""

    loss: float
    accuracy: float | None


@dataclass(frozen=True)
class StepDone:
    """A step: its number and its epoch's, both from 1, its loss, and its duration including its batch."""

    step: int
    epoch: int
    loss: float
    seconds: float
    is_last: bool
    """Whether it is the last step of the epoch."""


@dataclass(frozen=True)
class EpochDone:
    """
    An epoch: its number from 1, the number of steps so far, the mean loss of its steps, and the seconds of the steps in
    this loop.

    `evaluation` follows the epoch, if there are samples for it.
    """

    epoch: int
    step: int
    loss: float
    seconds: float
    evaluation: Evaluation | None


def fit(
    session: Trained,
    batches: Batches,
    epochs: int,
    held_out: Samples | None = None,
    losses: Sequence[float] = (),
) -> Iterator[StepDone | EpochDone]:
    """
    Train up to `epochs` epochs, and yield an event after each step and epoch; leaving the loop stops between two steps.

    It continues from the session's number of steps, in the middle of an epoch if necessary, with bitwise the same
    results as without interruption. `losses` are those of the steps of that epoch already done, for its mean. Raises
    `ExecutionError` if a loss is not finite, and the errors of `step`.
    """
    step = session.steps
    epoch, begin = divmod(step, batches.per_epoch)
    found = list(losses)
    for number in range(epoch, epochs):
        clock, seconds = perf_counter(), 0.0
        for batch in batches.epoch(number, begin):
            loss = session.step(batch)
            step += 1
            if not math.isfinite(loss):
                hint = "a smaller learning rate, warm-up, or gradients that are clipped may help"
                raise ExecutionError(f"the loss of step {step}, in epoch {number + 1}, is {loss}", hint=hint)
            found.append(loss)
            taken = perf_counter() - clock
            seconds += taken
            yield StepDone(step, number + 1, loss, taken, step % batches.per_epoch == 0)
            clock = perf_counter()
        mean = math.fsum(found) / len(found)
        evaluation = None if held_out is None else evaluated(session, held_out, batches.size)
        yield EpochDone(number + 1, step, mean, seconds, evaluation)
        begin, found = 0, []


def evaluated(session: Trained, samples: Samples, size: int) -> Evaluation:
    """
    The loss and the accuracy of all samples in inference mode, in batches of `size`.

    Copies fill the last batch. Their loss, which is that of a batch of only copies, is subtracted; this is correct for
    models whose samples are independent.
    """
    loss = next(iter(session.losses.values())) if len(session.losses) == 1 else None
    total, weights, right, counted = 0.0, 0.0, 0, 0
    for batch in padded(samples, size):
        outputs = session.evaluate(batch.inputs)
        lost, weight = _lost(session, loss, batch, outputs, size)
        total, weights = total + lost, weights + weight
        counts = None if loss is None else _right(loss, _judged(session).name, batch, outputs)
        if counts is not None:
            right, counted = right + counts[0], counted + counts[1]
    return Evaluation(total / weights if weights else math.nan, right / counted if counted else None)


def _lost(
    session: Trained, loss: Loss | None, batch: Padded, outputs: Mapping[str, np.ndarray], size: int
) -> tuple[float, float]:
    """The loss of a batch's samples times its weight, and the weight."""

    def weighed(inputs: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]) -> tuple[float, float]:
        weight = size if loss is None else loss.weight(inputs.get(TARGETS), size, _judged(session).numbers)
        return float(found[LOSS]) * weight if weight else 0.0, weight

    lost, weight = weighed(batch.inputs, outputs)
    if (copies := size - batch.own) == 0:
        return lost, weight
    alone = {name: np.repeat(array[-1:], size, axis=0) for name, array in batch.inputs.items()}
    lost_alone, weight_alone = weighed(alone, session.evaluate(alone))
    return lost - lost_alone * copies / size, weight - weight_alone * copies / size


def _right(loss: Loss, name: str, batch: Padded, outputs: Mapping[str, np.ndarray]) -> tuple[int, int] | None:
    """The number of correct classes of an output, and the total; `None` if it has no classes."""
    targets = batch.inputs.get(TARGETS)
    return None if targets is None else loss.right(outputs[name][: batch.own], targets[: batch.own])


def _judged(session: Trained) -> Argument:
    """The output with the only loss of a session."""
    (name,) = session.losses
    return next(output for output in session.outputs if name in ("", output.name))


def check_targets(session: Trained, targets: np.ndarray) -> None:
    """Raise `InputError` for targets that do not fit the only loss of a session, such as unknown classes."""
    (loss,) = session.losses.values()
    if reason := loss.wrong_target(targets, _judged(session).numbers):
        raise InputError(f"a target {reason}", hint="compare the labels with what the model was made for")
