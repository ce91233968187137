"""The settings that determine what a training session computes, and the session of its compiled functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.profiling import seen_where_quantized
from glow_mlir.frontends.onnx.importer import Model, ModelSource
from glow_mlir.options.quantization import Quantization
from glow_mlir.support.activity import warning_to
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import GivenDimension
from glow_mlir.training.losses import Loss
from glow_mlir.training.optimizers import Optimizer
from glow_mlir.training.rounding import Rounding
from glow_mlir.training.training_module import PREDICT, training_module


@dataclass(frozen=True)
class Recipe:
    """The arguments of `TrainingSession`, from which another process can make the same session."""

    source: ModelSource
    losses: Mapping[str, Loss]
    optimizer: Optimizer
    trainable: Collection[str] | None
    dimensions: Mapping[str, GivenDimension] | None
    seed: int
    quantization: Quantization | None
    options: Mapping[str, Any]
    is_split: bool
    """Whether gradients and update are separate functions instead of one step."""

    def session(self, model: Model) -> ModelSession:
        """
        The session of the compiled functions of `trainable_model`.

        Raises `GlowError` for any error in the model or the options.
        """
        rounding = None
        if self.quantization is not None:
            plan = partial(Rounding.planned, options=self.quantization)
            with warning_to(lambda _: None):  # The import below reports them.
                rounding = seen_where_quantized(model, self.dimensions, plan)
        module = training_module(
            model,
            self.losses,
            self.optimizer,
            self.trainable,
            self.dimensions,
            self.seed,
            rounding,
            self.is_split,
            strict=self.options.get("strict", False),
        )
        return ModelSession.of(module, entry=PREDICT, **self.options)
