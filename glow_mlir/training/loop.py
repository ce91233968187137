"""The loop of training: steps on batches, epoch after epoch, from where a session is, and evaluation behind each."""

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
    """What the loop needs of a `TrainingSession`."""

    losses: dict[str, Loss]

    @property
    def steps(self) -> int:
        """How many steps there were."""
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
        """Change the parameters by one step; gives the loss before it."""
        ...

    def evaluate(self, batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs of the model and its loss."""
        ...


@dataclass(frozen=True)
class Evaluation:
    """The loss of samples, and the share of the classes that the first output tells; `None` where it tells none."""

    loss: float
    accuracy: float | None


@dataclass(frozen=True)
class StepDone:
    """A step: its number and that of its epoch, both from 1 on, its loss, and how long it took with its batch."""

    step: int
    epoch: int
    loss: float
    seconds: float
    is_last: bool
    """Whether the epoch ends with it."""


@dataclass(frozen=True)
class EpochDone:
    """
    An epoch: its number from 1 on, the steps until then, the mean loss of its steps, and the seconds of those
    that were not before the loop.

    `evaluation` is that behind it, where there is something to evaluate on.
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
    Train up to so many epochs, and tell of each step and epoch behind it; who leaves the loop stops between two steps.

    It begins where the session is: behind `steps` steps, in the middle of an epoch if need be, and does to the bit
    what it would have done without the break. `losses` are those that the steps of that epoch had already, for its
    mean. Raises `ExecutionError` where a loss is no finite number, and what `step` raises.
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
    The loss and the accuracy of all samples, as the model infers, in batches of `size`.

    Copies fill a last batch up. Their part in its loss is what a batch of copies alone has, and is taken off: that is
    right for all losses of models whose samples do not depend on each other.
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
    """The loss of the samples of a batch times what it counts, and what it counts."""

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
    """How many classes an output tells rightly, and of how many; `None` where it tells none."""
    targets = batch.inputs.get(TARGETS)
    return None if targets is None else loss.right(outputs[name][: batch.own], targets[: batch.own])


def _judged(session: Trained) -> Argument:
    """The output that the only loss of a session is of."""
    (name,) = session.losses
    return next(output for output in session.outputs if name in ("", output.name))


def check_targets(session: Trained, targets: np.ndarray) -> None:
    """Raise `InputError` for targets that the only loss of a session is not of, as classes that there are not."""
    (loss,) = session.losses.values()
    if reason := loss.wrong_target(targets, _judged(session).numbers):
        raise InputError(f"a target {reason}", hint="compare the labels with what the model was made for")
