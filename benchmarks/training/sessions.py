"""A module of PyTorch trained by PyTorch, and by us from the ONNX model that PyTorch exports, from the same weights."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from glow_mlir.api.training_session import TrainingSession
from glow_mlir.runtime.signature import Argument
from glow_mlir.training.batches import TARGETS, ArraySamples, Batches
from glow_mlir.training.losses import Loss
from glow_mlir.training.step import LOSS
from training.tasks import Task

torch: Any = import_module("torch")

Arrays = Mapping[str, np.ndarray]
OUTPUT = "scores"


def initial(task: Task, seed: int, dtype: Any) -> Any:
    """The module of a task as it is before training; the same weights in every type."""
    torch.manual_seed(seed)
    return task.module().to(dtype)


def converted(inputs: Arrays, dtype: type[np.floating]) -> dict[str, np.ndarray]:
    """Inputs with floats of another width."""
    return {name: array.astype(dtype) if array.dtype.kind == "f" else array for name, array in inputs.items()}


def in_type(samples: ArraySamples, dtype: type[np.floating]) -> ArraySamples:
    """Samples with floats of another width."""
    return ArraySamples(converted(samples.arrays, dtype))


class PyTorchSession:
    """PyTorch, with what the loop of training needs of a `TrainingSession`."""

    def __init__(self, task: Task, module: Any, channels_last: bool = False) -> None:
        """With `channels_last`, images and filters lie so in memory."""
        self.losses: dict[str, Loss] = {"": task.loss}
        self.steps = 0
        self.inputs: tuple[Argument, ...] = ()
        self.outputs = (Argument(OUTPUT, "float32", None),)
        self._task = task
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self.module = module.to(memory_format=self._format) if channels_last else module
        self._optimizer = task.pytorch_optimizer(self.module.parameters())
        self._schedule = torch.optim.lr_scheduler.LambdaLR(self._optimizer, task.factor)

    def step(self, batch: Arrays) -> float:
        """Change the parameters by one step; gives the loss before it."""
        self.module.train()
        loss = self._loss(*self._scores(batch))
        self._optimizer.zero_grad()
        loss.backward()
        if (limit := self._task.optimizer.clip_norm) is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), limit)
        self._optimizer.step()
        self._schedule.step()
        self.steps += 1
        return float(loss.detach())

    def evaluate(self, batch: Arrays) -> dict[str, np.ndarray]:
        """The outputs of the model and its loss, as it infers."""
        self.module.eval()
        with torch.no_grad():
            scores, targets = self._scores(batch)
            return {OUTPUT: scores.numpy(), LOSS: self._loss(scores, targets).numpy()}

    def _scores(self, batch: Arrays) -> tuple[Any, Any]:
        values = {name: torch.from_numpy(array) for name, array in batch.items()}
        if self._task.has_images:
            values["image"] = values["image"].contiguous(memory_format=self._format)
        targets = values.pop(TARGETS)
        return self.module(*values.values()), targets

    def _loss(self, scores: Any, targets: Any) -> Any:
        return self._task.pytorch_loss(scores, targets)


def exported(task: Task, module: Any, example: Arrays) -> bytes:
    """
    The ONNX model of a module, with the weights that it has, for batches like the example.

    The module infers in it: exporters run modules, and one that trains would change its running statistics by that.
    """
    names = [name for name in example if name != TARGETS]
    file = io.BytesIO()
    with warnings.catch_warnings():
        # Exporters of PyTorch warn of themselves, and of constants in traces.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            tuple(torch.from_numpy(example[name]) for name in names),
            file,
            input_names=names,
            output_names=[OUTPUT],
            training=torch.onnx.TrainingMode.PRESERVE,
            do_constant_folding=False,
            dynamo=False,
            opset_version=17,
        )
    return file.getvalue()


def our_session(task: Task, module: Any, batches: Batches, **options: Any) -> TrainingSession:
    """Ours, of the module as PyTorch exports it."""
    model = exported(task, module, next(batches.epoch(0)))
    return TrainingSession(model, loss=task.loss, optimizer=task.optimizer, **options)
