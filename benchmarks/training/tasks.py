"""What is trained: modules with their samples, losses and optimizers, in the words of both sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from glow_mlir.training.losses import BinaryCrossEntropyWithLogits, CrossEntropy, Loss
from glow_mlir.training.optimizers import SGD, Adagrad, Adam, AdamW, Optimizer
from glow_mlir.training.schedules import Cosine, WarmUp
from training import modules, samples
from training.samples import Split

functional: Any = import_module("torch.nn.functional")
optimizers: Any = import_module("torch.optim")

WARM_UP, DECAY = 20, 600
"""Steps of the decoder's schedule."""

RESIDUAL_DECAY = 250
"""Steps of the schedule of ResNet-20: those of its epoch."""


@dataclass(frozen=True)
class Task:
    """A module to train; `pytorch_loss` and `pytorch_optimizer` are what `loss` and `optimizer` are there."""

    module: Callable[[], Any]
    """Draws its initial weights from PyTorch's generator."""
    samples: Callable[[], Split]
    batch: int
    epochs: int
    """How many the accuracy is told behind."""
    loss: Loss
    pytorch_loss: Callable[[Any, Any], Any]
    """Of the output and targets."""
    optimizer: Optimizer
    pytorch_optimizer: Callable[[Any], Any]
    """Of the parameters."""
    factor: Callable[[int], float] = lambda step: 1.0
    """What the learning rate of a step, from 0, is multiplied by there."""
    has_images: bool = False


def _of_characters(scores: Any, targets: Any) -> Any:
    """Cross-entropy of classes along the last axis."""
    return functional.cross_entropy(scores.transpose(1, 2), targets)


def _cosine(step: int, steps: int) -> float:
    """Half a wave from 1 to 0."""
    return (math.cos(math.pi * min(step / steps, 1.0)) + 1) / 2


TASKS: Mapping[str, Task] = {
    "digits": Task(
        *(modules.digits_network, samples.digits, 64, 8),
        *(CrossEntropy(), functional.cross_entropy),
        Adam(learning_rate=2e-3),
        lambda parameters: optimizers.Adam(parameters, 2e-3),
        has_images=True,
    ),
    "resnet-20": Task(
        *(modules.residual_network, samples.pictures, 16, 1),
        *(CrossEntropy(), functional.cross_entropy),
        SGD(learning_rate=0.02, momentum=0.9, weight_decay=1e-4, schedule=Cosine(RESIDUAL_DECAY)),
        lambda parameters: optimizers.SGD(parameters, 0.02, 0.9, weight_decay=1e-4),
        factor=lambda step: _cosine(step, RESIDUAL_DECAY),
        has_images=True,
    ),
    "lstm": Task(
        *(lambda: modules.CharacterLSTM(samples.vocabulary()), samples.characters, 16, 12),
        *(CrossEntropy(axis=2), _of_characters),
        Adam(learning_rate=4e-3),
        lambda parameters: optimizers.Adam(parameters, 4e-3),
    ),
    "decoder": Task(
        *(lambda: modules.Decoder(samples.vocabulary(), samples.TIME), samples.characters, 16, 8),
        *(CrossEntropy(axis=2), _of_characters),
        AdamW(learning_rate=2e-3, weight_decay=0.01, schedule=WarmUp(WARM_UP) * Cosine(DECAY), clip_norm=1.0),
        lambda parameters: optimizers.AdamW(parameters, 2e-3, weight_decay=0.01),
        factor=lambda step: min((step + 1) / WARM_UP, 1.0) * _cosine(step, DECAY),
    ),
    "recommender": Task(
        *(lambda: modules.Recommender(samples.USERS, samples.ITEMS), samples.likings, 64, 12),
        *(BinaryCrossEntropyWithLogits(), functional.binary_cross_entropy_with_logits),
        Adagrad(learning_rate=0.1),
        lambda parameters: optimizers.Adagrad(parameters, 0.1),
    ),
}
"""Name → what is trained."""
