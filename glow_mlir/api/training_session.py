"""Training sessions: a model whose parameters change from step to step, by compiled steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.profiling import seen_where_quantized
from glow_mlir.errors import InputError, OptionError
from glow_mlir.frontends.onnx.importer import ModelSource
from glow_mlir.frontends.onnx.replaced_initializers import with_constants
from glow_mlir.frontends.onnx.sparse import initializers_of
from glow_mlir.options.quantization import Quantization
from glow_mlir.quantization.observed import weights_digest
from glow_mlir.quantization.profile import read_profile
from glow_mlir.runtime.signature import Argument
from glow_mlir.support.files import replaced
from glow_mlir.support.symbols import Dimension
from glow_mlir.training.checkpoint import read_checkpoint, write_checkpoint
from glow_mlir.training.losses import LOSSES, Loss
from glow_mlir.training.optimizers import OPTIMIZERS, Optimizer
from glow_mlir.training.rounding import Rounding
from glow_mlir.training.step import LOSS, NUMBER, RATE
from glow_mlir.training.training_module import EVALUATE, PREDICT, TRAIN, trainable_model, training_module


class TrainingSession:
    """
    Trains an ONNX model that infers.

    ```python
    session = TrainingSession("model.onnx", loss="cross_entropy", optimizer=AdamW(learning_rate=3e-4))
    for images, labels in batches:
        loss = session.step({"image": images, "targets": labels})
    session.save("checkpoint.safetensors")
    session.export("trained.onnx")
    ```

    Forward, loss, gradients and optimizer are one compiled function; parameters, and what the optimizer keeps for them,
    are state that it changes in place. Normalizations of batches take the statistics of the batch in `step`, and the
    running ones in `evaluate` and `predict`; Dropout drops elements in `step` alone, others in each.
    """

    def __init__(
        self,
        model: ModelSource,
        *,
        loss: str | Loss | Mapping[str, str | Loss] = "cross_entropy",
        optimizer: str | Optimizer = "adamw",
        trainable: Collection[str] | None = None,
        dimensions: Mapping[str, Dimension] | None = None,
        seed: int = 0,
        quantization: Quantization | None = None,
        **options: Any,
    ) -> None:
        """
        `model` is a path, bytes or a `ModelProto`.

        `loss` is that of the first output, or has one for each of several outputs: a `Loss` or a name of `LOSSES`.
        `optimizer` is an `Optimizer` or a name of `OPTIMIZERS`. `trainable` names the initializers that are parameters,
        also by patterns such as `layer4.*`; by default they are all floats but scalars and running statistics. Inputs
        are those of the model, and `targets`, or `OUTPUT.targets` where several outputs have losses. `dimensions` gives
        free dimensions their sizes, such as that of the batch. `seed`, an integer of 64 bits, decides which elements
        Dropout drops in `step`. With `quantization`, weights and values are rounded as `InferenceSession(quantize=…)`
        rounds them by the same options, in all that the session computes. Further keywords are those of
        `InferenceSession`.
        Raises `OptionError` for unknown names, and `GlowError` for whatever is wrong with the model.
        """
        named = cast("Mapping[str, str | Loss]", loss if isinstance(loss, Mapping) else {"": loss})
        if isinstance(trainable, str):
            raise OptionError(f"trainable='{trainable}' is no list of names", hint=f"trainable=['{trainable}']")
        self._model = trainable_model(model)
        self.optimizer = _chosen("optimizer", optimizer, OPTIMIZERS, Optimizer)
        """The optimizer."""
        self.losses: dict[str, Loss] = {output: _chosen("loss", item, LOSSES, Loss) for output, item in named.items()}
        """The loss of each output that has one; of the first, where there is no name."""
        self._dimensions, self._quantization, rounding = dimensions, quantization, None
        if quantization is not None:
            plan = partial(Rounding.planned, options=quantization)
            rounding = seen_where_quantized(self._model, dimensions, plan)
        module = training_module(self._model, self.losses, self.optimizer, trainable, dimensions, seed, rounding)
        self._session = ModelSession.of(module, entry=PREDICT, **options)

    def __repr__(self) -> str:
        """The function that trains."""
        return f"<TrainingSession {self._session.entry(TRAIN)}>"

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs of a step, targets among them."""
        return self._session.entry(TRAIN).inputs

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs of the model."""
        return self._session.entry(PREDICT).outputs

    @property
    def activation_bytes(self) -> int:
        """What values take of memory in a call of the function that needs most, beside parameters and batches."""
        return self._session.executable.activation_bytes

    def step(self, batch: Mapping[str, Any]) -> float:
        """Change the parameters by one step; gives the loss before it. Raises what `InferenceSession.run` raises."""
        return float(self._session.run(batch, entry=TRAIN)[LOSS])

    def evaluate(self, batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """
        The outputs of the model and its loss, `loss`, as it infers.

        Nothing changes, but in a model that draws random numbers as it infers, which of them come next.
        """
        return self._session.run(batch, entry=EVALUATE)

    def predict(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs of the model as it infers, without targets."""
        return self._session.run(inputs, entry=PREDICT)

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return int(self._session.get_state([NUMBER])[NUMBER])

    @property
    def learning_rate(self) -> float:
        """The base learning rate, by which the factors of a schedule are multiplied; it may be set between steps."""
        return float(self._session.get_state([RATE])[RATE])

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._session.set_state({RATE: np.array(rate, np.float64)})

    def get_state(self) -> dict[str, np.ndarray]:
        """Parameters, running statistics, and what the optimizer keeps, by name; in new arrays."""
        return self._session.get_state()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite state by name; raises `InputError` for an unknown name or a misshapen array."""
        self._session.set_state(values)

    def save(self, path: str | Path, notes: Mapping[str, str] | None = None) -> None:
        """
        Write all state to a file of safetensors, whole or not at all, from which `load` goes on as if nothing had been.

        `notes` are its metadata. Raises `OptionError` where it cannot be written.
        """
        write_checkpoint(Path(path), self._session.get_state(), notes)

    def load(self, path: str | Path) -> None:
        """Read the state that `save` wrote; raises `InputError` for what does not fit this model and optimizer."""
        values = read_checkpoint(Path(path))
        known = self._session.get_state().keys()
        if missing := sorted(known - values.keys()):
            listed = ", ".join(f"'{name}'" for name in missing[:5])
            hint = "it was saved with another model or optimizer"
            raise InputError(f"there is no {listed}", file=str(path), hint=hint)
        self._session.set_state(values)

    def export(self, path: str | Path, profile: str | Path | None = None) -> None:
        """
        Write the model with the parameters and running statistics that it has now, as ONNX, whole or not at all.

        With `profile`, that of a session with `quantization` is written there as the one of this model: with it, the
        model is quantized to what the session computes. Raises `OptionError` for a session without, and for a path
        that cannot be written.
        """
        trained = with_constants(self._model, self.weights(), {})
        if profile is not None:
            if self._quantization is None:
                raise OptionError("the session has no profile to write", hint="TrainingSession(…, quantization=…)")
            found = read_profile(Path(self._quantization.profile))
            found.weights = seen_where_quantized(trained, self._dimensions, weights_digest)
            found.write(Path(profile))
        with replaced(Path(path)) as file:
            file.write(trained.SerializeToString())

    def is_finite(self) -> bool:
        """Whether all parameters and running statistics are numbers, which steps that are too long end."""
        return all(bool(np.isfinite(value).all()) for value in self.weights().values())

    def weights(self) -> dict[str, np.ndarray]:
        """The initializers of the model that are state: parameters and running statistics, as they are now."""
        state = self._session.get_state()
        return {name: state[name] for name in initializers_of(self._model.proto.graph) if name in state}


def _chosen(what: str, given: Any, known: Mapping[str, Any], kind: type) -> Any:
    """A loss or an optimizer, or that of a name; raises `OptionError` for an unknown name, and for what is neither."""
    if not isinstance(given, str):
        if not isinstance(given, kind):
            raise OptionError(f"{given!r} is no {what}", hint=f"such as '{next(iter(known))}', or {kind.__name__}(…)")
        return given
    if given not in known:
        raise OptionError(f"there is no {what} '{given}'", hint=f"there are {', '.join(known)}")
    return known[given]()
