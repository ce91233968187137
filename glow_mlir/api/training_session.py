"""Training sessions: a model whose parameters change from step to step, by compiled steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Unpack, cast
from zlib import crc32

import numpy as np

from glow_mlir.api.model_identity import is_importable
from glow_mlir.api.models import accepted_model
from glow_mlir.api.optimized_model import onnx_form
from glow_mlir.api.profiling import retold
from glow_mlir.api.session_entry import check_named
from glow_mlir.api.session_keywords import check_keywords
from glow_mlir.api.training_arguments import check_options, checked_targets
from glow_mlir.api.training_recipe import Recipe
from glow_mlir.api.training_team import Team, update
from glow_mlir.api.training_team import accumulate as accumulate_parts
from glow_mlir.errors import InputError, OptionError
from glow_mlir.frontends.onnx.importer import ModelSource
from glow_mlir.frontends.onnx.models.fans import fans_of
from glow_mlir.frontends.onnx.models.sparse import initializers_of
from glow_mlir.frontends.onnx.replaced_initializers import with_constants
from glow_mlir.frontends.onnx.training_form import statistics_of
from glow_mlir.options.quantization import Quantization
from glow_mlir.quantization.profile import read_profile
from glow_mlir.runtime.signature import Argument
from glow_mlir.runtime.typed_arrays import as_typed
from glow_mlir.support.activity import warning_to
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.files import replaced
from glow_mlir.support.symbols import GivenDimension
from glow_mlir.training.batches import targets_name
from glow_mlir.training.checkpoint import read_checkpoint, write_checkpoint
from glow_mlir.training.initializers import INITIALIZERS, Initializer
from glow_mlir.training.losses import LOSSES, Loss
from glow_mlir.training.microbatches import Parts
from glow_mlir.training.optimizers import OPTIMIZERS, Optimizer
from glow_mlir.training.step import LOSS, NUMBER, RATE, gradient_states, share_name
from glow_mlir.training.training_module import EVALUATE, GRADIENTS, PREDICT, TRAIN, trainable_model

if TYPE_CHECKING:
    from glow_mlir.api.keyword_types import SessionKeywords
    from glow_mlir.frontends.torch.model import TracedModel


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
        model: ModelSource | TracedModel,
        *,
        loss: str | Loss | Mapping[str, str | Loss] = "cross_entropy",
        optimizer: str | Optimizer = "adamw",
        trainable: Collection[str] | None = None,
        seed: int = 0,
        quantization: Quantization | None = None,
        accumulate: int = 1,
        processes: int = 1,
        **options: Unpack[SessionKeywords],
    ) -> None:
        """
        `model` is a path, bytes or a `ModelProto`, or a module of PyTorch as `glow_mlir.torch.exported` gives it.

        `loss` is that of the first output, or has one for each of several outputs: a `Loss` or a name of `LOSSES`.
        `optimizer` is an `Optimizer` or a name of `OPTIMIZERS`. `trainable` names the initializers that are parameters,
        also by patterns such as `layer4.*`; by default they are all floats but scalars and running statistics, or the
        parameters of a module of PyTorch. Inputs are those of the model, and `targets`, or `OUTPUT.targets` where
        several outputs have losses. Targets are of the type that the loss wants, or integers that fit it; classes that
        there are not are refused, but for the `ignore_index`. `seed`, an integer of 64 bits, decides which elements
        Dropout drops in `step`. With `quantization`, weights and values are rounded as `InferenceSession(quantize=…)`
        rounds them.
        A step takes a batch of `accumulate` times `processes` parts of the size that the model has, along the first
        axis of each input: so many one after the other, in so many processes at once, and their gradients add up.
        Further keywords are those of `InferenceSession`, such as `dimensions`, which gives free dimensions their sizes.
        Raises `OptionError` for unknown names, and `GlowError` for whatever is wrong with the model.
        """
        check_options(options)
        check_keywords(options, "TrainingSession", TrainingSession.__init__.__kwdefaults__ or ())
        named = cast("Mapping[str, str | Loss]", loss if isinstance(loss, Mapping) else {"": loss})
        if isinstance(trainable, str):
            raise OptionError(f"trainable='{trainable}' is no list of names", hint=f"trainable=['{trainable}']")
        self.optimizer = _chosen("optimizer", optimizer, OPTIMIZERS, Optimizer)
        """The optimizer."""
        self.losses: dict[str, Loss] = {output: _chosen("loss", item, LOSSES, Loss) for output, item in named.items()}
        """The loss of each output that has one; of the first, where there is no name."""
        for name, count in (("accumulate", accumulate), ("processes", processes)):
            if whole_number(count) is None or count < 1:
                raise OptionError(f"{name} must be a positive integer, got {count!r}", hint="1 or more")
        if not isinstance(cast("object", quantization), Quantization | None):
            raise OptionError(f"quantization={quantization!r} is not a Quantization", hint="Quantization(profile=…)")
        source, dimensions, trainable = _opened(model, options.pop("dimensions", None), trainable)
        self._parts = Parts(accumulate * processes, self.losses)
        self._model = trainable_model(source)
        recipe_arguments = trainable, dimensions, seed, quantization, options
        self._recipe = Recipe(source, self.losses, self.optimizer, *recipe_arguments, self._parts.count > 1)
        self._session = self._recipe.session(self._model)
        self._turn = Lock()  # Several calls are a step of parts, and no other thread's come between.
        self._team = Team(self._recipe, self._session, processes, accumulate) if processes > 1 else None

    def __repr__(self) -> str:
        """The function that trains."""
        return f"<TrainingSession {self._session.entry(self._step)}>"

    @property
    def _step(self) -> str:
        """The function that has the inputs of a step."""
        return TRAIN if self._parts.count == 1 else GRADIENTS

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs of a step, targets among them."""
        shares = {share_name(output, self.losses) for output in self.losses}
        inputs = self._session.entry(self._step).inputs
        return tuple(self._parts.whole(argument) for argument in inputs if argument.name not in shares)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs of the model."""
        return tuple(map(self._parts.whole, self._session.entry(PREDICT).outputs))

    @property
    def activation_bytes(self) -> int:
        """What values take of memory in a call of the function that needs most, beside parameters and batches."""
        return self._session.executable.activation_bytes

    def step(self, batch: Mapping[str, Any]) -> float:
        """
        Change the parameters by one step; gives the loss before it.

        Raises what `InferenceSession.run` raises, and `InputError` for a class that there is not.
        """
        batch = self._with_targets(batch)
        if self._parts.count == 1:
            return float(self._session.run(batch, entry=TRAIN)[LOSS])
        parts = self._cut(batch, GRADIENTS)
        with self._turn:
            if self._team is not None:
                return self._team.step(parts)
            loss = accumulate_parts(self._session, parts)
            update(self._session)
            return loss

    def _with_targets(self, batch: Mapping[str, Any]) -> Mapping[str, Any]:
        """A batch whose targets are checked, and of the types that losses want."""
        check_named(batch, "inputs")
        known = {argument.name: argument for argument in self._session.entry(self._step).inputs}
        found = {**batch}
        for output, loss in self.losses.items():
            name = targets_name(output, self.losses)
            if name in found and name in known:
                outputs = self._session.entry(PREDICT).outputs
                shape = next(argument.shape for argument in outputs if output in ("", argument.name))
                found[name] = checked_targets(name, found[name], known[name].numpy_dtype, loss, shape or ())
        return found

    def _cut(self, batch: Mapping[str, Any], entry: str) -> list[dict[str, Any]]:
        """The parts of a batch for an entry, with their shares where it takes them; raises `InputError`."""
        check_named(batch, "inputs")
        known = self._session.entry(entry)
        taken = {argument.name for argument in known.inputs}
        types = {argument.name: argument.numpy_dtype for argument in known.inputs}
        arrays = {name: as_typed(f"input '{name}'", batch[name], types[name]) for name in batch if name in types}
        parts = self._parts.cut(known.inputs, {**batch, **arrays})
        shares_of = self._parts.shares(parts, self._session.entry(PREDICT).outputs)
        for part, shares in zip(parts, shares_of, strict=True):
            part |= {name: known.check_input(name, value) for name, value in part.items()}
            part |= {name: known.check_input(name, share) for name, share in shares.items() if name in taken}
            known.check_names(part)
        return parts

    def _inferred(self, batch: Mapping[str, Any], entry: str) -> dict[str, np.ndarray]:
        """The outputs of an entry for a whole batch."""
        if self._parts.count == 1:
            return self._session.run(batch, entry=entry)
        outputs = [self._session.run(part, entry=entry) for part in self._cut(batch, entry)]
        return self._parts.joined(outputs, (LOSS,) if entry == EVALUATE else ())

    def evaluate(self, batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """
        The outputs of the model and its loss, `loss`, as it infers.

        Nothing changes, but in a model that draws random numbers as it infers, which of them come next. Raises as
        `step`.
        """
        return self._inferred(self._with_targets(batch), EVALUATE)

    def predict(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The outputs of the model as it infers, without targets."""
        return self._inferred(inputs, PREDICT)

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
        self.set_state({RATE: np.array(rate, np.float64)})

    def get_state(self) -> dict[str, np.ndarray]:
        """Parameters, running statistics, and what the optimizer keeps, by name; in new arrays."""
        known = self._session.loaded.state.arrays
        hidden = gradient_states(known.keys()) if self._parts.count > 1 else []  # Between steps they are 0.
        return self._session.get_state([name for name in known if name not in hidden])

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite state by name; raises `InputError` for an unknown name or a misshapen array."""
        with self._turn:
            self._session.set_state(values)
            if self._team is not None:
                self._team.set_state(self._session.get_state(list(values)))

    @property
    def process_ids(self) -> tuple[int, ...]:
        """What the system calls the other processes that train, as long as they do."""
        return () if self._team is None else self._team.process_ids

    def close(self) -> None:
        """End the other processes, if there are any; those of a session that nobody has any more end by themselves."""
        if self._team is not None:
            self._team.close()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The initializers of the model that steps change along gradients."""
        return tuple(self._trained())

    def _trained(self) -> dict[str, np.ndarray]:
        """The parameters as they are now."""
        statistics = statistics_of(self._model.proto.graph)
        return {name: value for name, value in self.weights().items() if name not in statistics}

    def initialize(self, patterns: Mapping[str, str | Initializer], seed: int = 0) -> None:
        """
        Let parameters begin anew: by patterns of names such as `*.bias`, of which the last one that fits counts.

        Values are initializers or names of `INITIALIZERS`, drawn from a generator with that seed, which the name of
        the parameter enters besides. What optimizers keep stays as it is. Raises `OptionError` for a pattern that no
        parameter fits, an unknown name, and an initializer that a parameter's shape does not suit.
        """
        chosen: dict[str, Initializer] = {}
        weights, graph = self._trained(), self._model.proto.graph
        for pattern, given in patterns.items():
            fitting = [name for name in weights if fnmatchcase(name, pattern)]
            if not fitting:
                raise OptionError(f"no parameter is called '{pattern}'", hint=f"there are {', '.join(weights)}")
            initializer: Initializer = _chosen("initializer", given, INITIALIZERS, Initializer)
            chosen |= dict.fromkeys(fitting, initializer)
        values: dict[str, np.ndarray] = {}
        for name, initializer in chosen.items():
            shape = weights[name].shape
            generator = np.random.Generator(np.random.Philox([seed, crc32(name.encode())]))
            drawn = initializer.values(shape, fans_of(graph, name, shape), generator)
            values[name] = drawn.astype(weights[name].dtype)
        self.set_state(values)

    def save(self, path: str | Path, notes: Mapping[str, str] | None = None) -> None:
        """
        Write all state to a file of safetensors, whole or not at all, from which `load` goes on as if nothing had been.

        `notes` are its metadata. Raises `OptionError` where it cannot be written.
        """
        write_checkpoint(Path(path), self.get_state(), notes)

    def load(self, path: str | Path) -> None:
        """Read the state that `save` wrote; raises `InputError` for what does not fit this model and optimizer."""
        values = read_checkpoint(Path(path))
        known = self.get_state().keys()
        if missing := sorted(known - values.keys()):
            listed = ", ".join(f"'{name}'" for name in missing[:5])
            hint = "it was saved with another model or optimizer"
            raise InputError(f"there is no {listed}", file=str(path), hint=hint)
        self.set_state(values)

    def export(self, path: str | Path, profile: str | Path | None = None) -> None:
        """
        Write the model with the parameters and running statistics that it has now, as ONNX, whole or not at all.

        With `profile`, that of a session with `quantization` is written there as the one of this model: with it, the
        model is quantized to what the session computes. Raises `OptionError` for a session without, and for a path
        that cannot be written.
        """
        trained = with_constants(self._model, self.weights(), {})
        if profile is not None:
            if self._recipe.quantization is None:
                raise OptionError("the session did not record a profile", hint="TrainingSession(…, quantization=…)")
            found = read_profile(Path(self._recipe.quantization.profile))
            with warning_to(lambda _: None):  # The session was told.
                retold(found, trained, self._recipe.dimensions)
            found.write(Path(profile))
        with replaced(Path(path)) as file:
            file.write(trained.proto.SerializeToString())

    def is_finite(self) -> bool:
        """Whether all parameters and running statistics are numbers, which steps that are too long end."""
        return all(bool(np.isfinite(value).all()) for value in self.weights().values())

    def weights(self) -> dict[str, np.ndarray]:
        """The initializers of the model that are state: parameters and running statistics, as they are now."""
        state = self._session.get_state()
        return {name: state[name] for name in initializers_of(self._model.proto.graph) if name in state}


def _opened(
    model: Any, dimensions: Mapping[str, GivenDimension] | None, trainable: Collection[str] | None
) -> tuple[ModelSource, Mapping[str, GivenDimension] | None, Collection[str] | None]:
    """A model as one of ONNX, the dimensions that it still has, and what is trained of it."""
    given = accepted_model(model)
    if not is_importable(given):
        return given, dimensions, trainable
    return onnx_form(given, dimensions), None, given.parameters if trainable is None else trainable


def _chosen(what: str, given: Any, known: Mapping[str, Any], kind: type) -> Any:
    """A loss or an optimizer, or that of a name; raises `OptionError` for an unknown name, and for what is neither."""
    if not isinstance(given, str):
        if not isinstance(given, kind):
            raise OptionError(f"{given!r} is no {what}", hint=f"such as '{next(iter(known))}', or {kind.__name__}(…)")
        return given
    if given not in known:
        raise OptionError(f"there is no {what} '{given}'", hint=f"there are {', '.join(known)}")
    return known[given]()
