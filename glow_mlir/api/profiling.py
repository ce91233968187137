"""Profiling of models: run on a data set, and count the numbers in each value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.model_identity import model_backend
from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.models import accepted_model, import_any
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.packages import REFERENCE_BACKEND
from glow_mlir.driver.pipelines import OPTIMIZED, PassObserver, profiling
from glow_mlir.errors import OptionError
from glow_mlir.quantization.histogram import BINS, MIN_BINS
from glow_mlir.quantization.observed import graph_digest, observed_values, weights_digest
from glow_mlir.quantization.profile import Profile
from glow_mlir.transforms.instructions.instrument_profile import PREFIX, InstrumentProfilePass

if TYPE_CHECKING:
    from glow_mlir.runtime.signature import Argument
    from glow_mlir.support.symbols import GivenDimension


Found = TypeVar("Found")


class _Graph(PassObserver, Generic[Found]):
    """Observes the graph to profile, which is the graph that gets quantized."""

    def __init__(self, look: Callable[[ModuleOp], Found]) -> None:
        self._look = look
        self.found: Found | None = None

    def before(self, item: ModulePass, module: ModuleOp) -> None:
        if isinstance(item, InstrumentProfilePass):
            self.found = self._look(module)


def seen_where_quantized(
    model: Any, dimensions: Mapping[str, GivenDimension] | None, look: Callable[[ModuleOp], Found]
) -> Found:
    """
    The result of `look` on the graph of a model that would be quantized; raises `GlowError` as the compilation does.
    """
    graph = _Graph(look)
    pipeline = profiling(get_backend(REFERENCE_BACKEND).pipeline())
    given = {"backend": REFERENCE_BACKEND, "pipeline": pipeline, "pass_observers": [graph]}
    CompileOptions.from_keywords(given).compilation(import_any(model, dimensions or {})).run(OPTIMIZED.name)
    assert graph.found is not None
    return graph.found


def retold(profile: Profile, model: Any, dimensions: Mapping[str, GivenDimension] | None) -> None:
    """
    Adapt a profile to a model with other weights: where some were 0 or 1, operators may differ.

    Raises `OptionError` if a value of the model is not in the profile.
    """

    def look(module: ModuleOp) -> tuple[str, str, list[str]]:
        return *_digests(module), list(observed_values(module))

    graph, profile.weights, values = seen_where_quantized(model, dimensions, look)
    unknown = [value for value in values if value not in profile.histograms]
    if graph != profile.graph and unknown:
        raise OptionError(
            f"'{unknown[0]}' of the model is not in the profile", hint="profile the model that is exported"
        )
    profile.graph = graph


def _digests(module: ModuleOp) -> tuple[str, str]:
    """The digests of a graph, and of its weights."""
    return graph_digest(module), weights_digest(module)


class Profiler:
    """
    A model whose runs are recorded in a profile.

    `model` and options are those of `InferenceSession`, for any backend; `bins` is the number of bins of each
    histogram. With `equalize`, the channels between products are equalized before profiling, and wherever the profile
    is used. Memory grows with one run and the number of values, not with the number of runs. Raises `GlowError` as the
    session does.
    """

    def __init__(
        self, model: Any, *, bins: int = BINS, equalize: bool = False, backend: str | None = None, **options: Any
    ) -> None:
        if bins < MIN_BINS:
            raise OptionError(f"a histogram cannot have {bins} bins", hint=f"at least {MIN_BINS}")
        chosen = model_backend(accepted_model(model)) if backend is None else backend
        pipeline = profiling(get_backend(chosen).pipeline(options.pop("target", None)), equalize)
        graph = _Graph(_digests)
        self.session = ModelSession.of(
            model, backend=chosen, pipeline=pipeline, cache=False, pass_observers=[graph], **options
        )
        self.session.require_sizes()
        if graph.found is None:
            reason = "the module was lowered beyond the stage for profiling"
            raise OptionError(reason, hint="profile it as it was imported")
        digest, weights = graph.found
        self.profile = Profile(digest, bins, is_equalized=equalize, weights=weights)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs of the model, in order."""
        return self.session.first.inputs

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """
        Run the model and record its values; return its own outputs by name. Raises `GlowError` as the session does.
        """
        found = self.session.run(inputs)
        values = {name.removeprefix(PREFIX): array for name, array in found.items() if name.startswith(PREFIX)}
        self.profile.add(values)
        return {name: array for name, array in found.items() if not name.startswith(PREFIX)}


def profiled(
    model: Any, samples: Iterable[Mapping[str, np.ndarray]], tell: Callable[[int], None] | None = None, **options: Any
) -> Profile:
    """The profile of a model on the inputs of some runs; `tell` is called after each with the number of runs so far."""
    profiler = Profiler(model, **options)
    for number, inputs in enumerate(samples, 1):
        profiler.run(inputs)
        if tell is not None:
            tell(number)
    return profiler.profile
