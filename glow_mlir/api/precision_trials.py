"""Trials of precisions: accuracy and speed of a model with some nodes in narrower precisions."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from glow_mlir.api.model_compiler import compiler_versions
from glow_mlir.api.model_identity import model_backend, model_identity
from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.models import accepted_model, import_any
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import OPTIMIZED, PassObserver, quantizing
from glow_mlir.errors import InputError
from glow_mlir.ir.locations import location_name, location_names
from glow_mlir.ir.traversal import own_operations
from glow_mlir.options.declaration import key_of, parameters
from glow_mlir.options.quantization import Quantization
from glow_mlir.quantization.configuration import Configuration
from glow_mlir.quantization.noise import Noise
from glow_mlir.quantization.observed import observed_values
from glow_mlir.quantization.search import FULL, QUANTIZED, Choice, Loss, Speed, Unit
from glow_mlir.rewriting.quantization_plan import Plan, data_operands
from glow_mlir.runtime.cache import ArtifactCache, cache_key
from glow_mlir.runtime.host import host_name
from glow_mlir.runtime.identity import Snapshot
from glow_mlir.runtime.json_cache import JsonCache
from glow_mlir.runtime.race import race
from glow_mlir.runtime.signature import Argument
from glow_mlir.runtime.sources import source_stamp
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.transforms.quantization.fold_quantization import Product
from glow_mlir.transforms.quantization.quantize import QuantizePass

Arrays = Mapping[str, np.ndarray]

Answer = TypeVar("Answer", Loss, Speed)

SECONDS = 0.3
"""Seconds of alternating runs of a choice and f32; measured twice."""


@dataclass
class Trials:
    """
    The trials of a model on a data set. `runs` returns an iterator over the inputs of each run, given a session's
    inputs.

    The loss of a choice is, if there are `labels`, the loss of accuracy against f32 (the largest element in each row of
    the first output is the predicted class); otherwise the distance of outputs from those in f32, see `Distance`.
    Results are cached, so that an interrupted search can continue. `quantize` holds the profile and settings shared by
    all trials, and `options` are the session options.
    """

    model: Any
    runs: Callable[[Sequence[Argument]], Iterable[Arrays]]
    quantize: Quantization
    labels: np.ndarray | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answers: JsonCache = field(default_factory=lambda: JsonCache("precision"))

    def evaluate(self, choice: Choice) -> Loss:
        """The loss of a choice, cached; raises `GlowError` as a session does."""
        return self._remembered(Loss, repr(choice), lambda: self._compared(choice))

    def measure(self, precisions: tuple[str, ...]) -> Speed:
        """The speed of precisions, alternating with f32, cached; raises `GlowError` as a session does."""
        return self._remembered(Speed, repr(precisions), lambda: self._measured(Choice(precisions)))

    @cached_property
    def measure_name(self) -> str:
        """The unit of the loss: `accuracy`, `amplitude`, or `elements` if all outputs are integers."""
        if self.labels is not None:
            return "accuracy"
        has_floats = any(is_float_dtype(output.numpy_dtype) for output in self._full.first.outputs)
        return "amplitude" if has_floats else "elements"

    @cached_property
    def units(self) -> list[Unit]:
        """The units of the model that have a precision of their own, in program order."""
        observer, model = _Units(), accepted_model(self.model)
        backend = self.options.get("backend") or model_backend(model)
        pipeline = quantizing(get_backend(backend).pipeline(), parameters(self.quantize))
        module = import_any(model, self.options.get("dimensions") or {})
        Compilation(module, backend, pipeline=pipeline, runner=PassRunner(observers=[observer])).run(OPTIMIZED.name)
        return observer.found

    def configuration(self, choice: Choice) -> Configuration:
        """The session keywords of a choice."""
        pairs = list(zip(self.units, choice.precisions, strict=True))
        kept = [unit.pattern for unit, precision in pairs if precision != QUANTIZED]
        floats = next((word for word in choice.precisions if word not in (QUANTIZED, FULL)), FULL)
        wide = [unit.pattern for unit, precision in pairs if precision == FULL]
        quantize = None
        if QUANTIZED in choice.precisions:
            calibrations = {escape(value): calibration for value, calibration in choice.calibrations}
            keep = [*self.quantize.keep, *kept]
            quantize = replace(self.quantize, calibration=choice.calibration, keep=keep, calibrations=calibrations)
        return Configuration(quantize, floats, wide if floats != FULL else ())

    def _remembered(self, kind: type[Answer], what: str, find: Callable[[], Answer]) -> Answer:
        """The cached answer to a question, or a new one."""
        key = cache_key(self._identity, f"{kind.__name__} {what}")
        try:
            return kind(**{name: float(value) for name, value in (self.answers.load(key) or {}).items()})
        except (TypeError, ValueError):  # Missing or damaged.
            found = find()
            self.answers.store(key, vars(found))
            return found

    def _session(self, choice: Choice) -> ModelSession:
        """The session of a choice."""
        options = self.configuration(choice).session_options()
        return ModelSession.of(self.model, cache=False, **options, **self.options)

    @cached_property
    def _full(self) -> ModelSession:
        """The model in f32."""
        session = ModelSession.of(self.model, cache=False, **self.options)
        session.require_sizes()
        return session

    def _inputs(self) -> Iterable[Arrays]:
        """The inputs of each run."""
        return self.runs(self._full.first.inputs)

    @cached_property
    def _reference(self) -> list[list[np.ndarray]]:
        """The outputs in f32, for each run."""
        found = [list(self._full.run(inputs).values()) for inputs in self._inputs()]
        if self.labels is not None:
            self._check_labels(self.labels, [outputs[0] for outputs in found])
        return found

    def _check_labels(self, labels: np.ndarray, outputs: Sequence[np.ndarray]) -> None:
        """Raise `InputError` unless there is one label for each sample of the first output."""
        if any(output.ndim == 0 for output in outputs):
            raise InputError("the first output is a single number, not class scores", hint="leave the labels out")
        samples = sum(len(output) for output in outputs)
        if len(labels) != samples:
            hint = "one for each sample of complete batches"
            raise InputError(f"there are {len(labels)} labels for {samples} samples", hint=hint)

    @cached_property
    def _identity(self) -> str:
        """The cache key of the trials, without the choice."""
        files = Snapshot(ArtifactCache().contents)
        identity, _ = model_identity(accepted_model(self.model), files)
        state = hashlib.sha256()
        for inputs in self._inputs():
            for name, array in sorted(inputs.items()):
                state.update(f"{name} {array.dtype} {array.shape} ".encode())
                state.update(array.tobytes())
        return cache_key(
            identity,
            files.digest(Path(self.quantize.profile)),
            key_of(self.quantize),
            state.hexdigest(),
            "" if self.labels is None else self.labels.astype(np.int64).tobytes(),
            repr(sorted(self.options.items())),
            host_name(),
            compiler_versions(),
            source_stamp(),
        )

    def _measured(self, choice: Choice) -> Speed:
        """The speed of a choice."""
        first, session = next(iter(self._inputs())), self._session(choice)
        seconds, reference = race([lambda: session.run(first), lambda: self._full.run(first)], SECONDS)
        is_full = set(choice.precisions) <= {FULL}
        return Speed(1.0 if is_full else reference / seconds, seconds)

    def _compared(self, choice: Choice) -> Loss:
        """The loss of a choice."""
        distance, session = Distance(), self._session(choice)
        reference, classes = self._reference, list[np.ndarray]()
        for inputs, expected in zip(self._inputs(), reference, strict=True):
            found = list(session.run(inputs).values())
            for signal, output in zip(expected, found, strict=True):
                distance.add(signal, output)
            if self.labels is not None:
                classes.append(_classes(found[0]))
        if self.labels is None:
            return Loss(distance.share, distance.share)
        expected_classes = [_classes(outputs[0]) for outputs in reference]
        right_in_full, right = (int((np.concatenate(c) == self.labels).sum()) for c in (expected_classes, classes))
        return Loss((right_in_full - right) / max(len(self.labels), 1), distance.share)


@dataclass
class Distance:
    """The distance of outputs from those in f32, summed over arrays: noise for floats, inequality for others."""

    noise: Noise = field(default_factory=Noise)
    elements: int = 0
    differing: int = 0

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        """Compare an output with that of f32."""
        if is_float_dtype(expected.dtype):
            self.noise.add(expected, found)
        else:
            self.elements += expected.size
            self.differing += int((expected != found).sum())

    @property
    def share(self) -> float:
        """The relative amplitude of the noise, or the share of differing elements, whichever is larger."""
        return max(self.noise.share, self.differing / max(self.elements, 1))


def _classes(output: np.ndarray) -> np.ndarray:
    """The class of each sample: the largest element of its row."""
    return output.reshape(len(output), -1).argmax(1)


@dataclass
class _Units(PassObserver):
    """Records the units of the graph that is quantized."""

    found: list[Unit] = field(default_factory=list[Unit])

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        if isinstance(item, QuantizePass):
            names = {value: name for name, value in observed_values(module).items()}
            for plan in item.plans(module):
                self.found += _units_of(plan, names)


def _units_of(plan: Plan, names: Mapping[SSAValue, str]) -> list[Unit]:
    """The products of a function, by node."""
    values: dict[str, dict[str, None]] = {}
    patterns: dict[str, str] = {}
    spread = Counter(name for op in own_operations(plan.function) for name in location_names(op.location))
    for op in plan.operators:
        if isinstance(op, Product):
            name = location_name(op.location) or _kind(op)
            # The node that the fewest other operators belong to.
            patterns[name] = escape(min(location_names(op.location), key=spread.__getitem__, default=_kind(op)))
            read = (value for value in data_operands(op) if not plan.storage.is_constant(value))
            values.setdefault(name, {}).update({names[plan.group(value)[0]]: None for value in read})
    return [Unit(name, pattern, tuple(values[name])) for name, pattern in patterns.items()]


def _kind(op: Operation) -> str:
    return op.name.partition(".")[2]
