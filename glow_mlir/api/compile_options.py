"""What a session is told of how to compile, and the pipeline that follows from it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from glow_mlir.errors import OptionError
from glow_mlir.runtime.pool import usable_cores
from glow_mlir.runtime.pool_layout import MOST_THREADS
from glow_mlir.support.arguments import plain_numbers, whole_number
from glow_mlir.support.symbols import Dimension

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.driver.compiler import Compilation, Observer
    from glow_mlir.driver.pipelines import PassObserver, Pipeline
    from glow_mlir.quantization.options import Quantization

FULL_PRECISION = "f32"
"""The precision in which models compute as they are."""


def given_dimensions(given: Mapping[str, Dimension] | None) -> dict[str, Dimension]:
    """
    What a user says of free dimensions, in numbers of Python; numbers of numpy are taken, too.

    Whether sizes are sizes is told where the model is known.
    """
    return {label: plain_numbers(size) for label, size in (given or {}).items()}


@dataclass(frozen=True)
class CompileOptions:
    """The options of a session that decide what is compiled, as `InferenceSession` describes them."""

    backend: str
    threads: int | None = None
    dimensions: Mapping[str, Dimension] = field(default_factory=dict[str, Dimension])
    target: str | None = None
    profile: bool = False
    observers: Sequence[Observer] = ()
    pipeline: Pipeline | None = None
    disable: Sequence[str] = ()
    pass_observers: Sequence[PassObserver] = ()
    accuracy: str | None = None
    optimize: str | None = None
    ram_bytes: int | None = None
    flash_bytes: int | None = None
    tune: bool = False
    quantize: Quantization | None = None
    precision: str = FULL_PRECISION
    keep_precision: tuple[str, ...] = ()
    weights: str = FULL_PRECISION
    strict: bool = False
    reuse_inputs: bool = False
    """Whether inputs and outputs of a bundle have places among its activations."""

    def configured(self, path: Path | None) -> CompileOptions:
        """
        The options with the precisions that a file says, if there is one.

        Raises `OptionError` where some are given beside it, and without a file for a `keep_precision` that keeps
        nothing.
        """
        is_full = self.precision == self.weights == FULL_PRECISION
        if path is None:
            if self.keep_precision and is_full:
                raise OptionError("keep_precision needs a precision or weights", hint="precision='bf16'")
            return self
        if self.quantize is not None or not is_full or self.keep_precision:
            hint = "leave out quantize, precision, keep_precision and weights"
            raise OptionError("a configuration says the precision of all nodes itself", hint=hint)
        from glow_mlir.quantization.configuration import read_configuration

        found = read_configuration(path)
        return replace(
            self, quantize=found.quantize, precision=found.precision, keep_precision=tuple(found.keep_precision)
        )

    def key_parts(self) -> tuple[str, ...]:
        """What the options say of an artifact, but for the content of the profile."""
        return (
            repr(sorted(self.dimensions.items())),
            f"{self.backend} {self.target} {self.profile} {self.accuracy} {self.threads}",
            f"{self.optimize} {self.ram_bytes} {self.flash_bytes}",
            # How fast several threads are depends on the cores that they share.
            f"{self.tune} {usable_cores() if self.tune and self.threads != 1 else ''}",
            f"{self.pipeline or ''} {sorted(set(self.disable))}",
            f"{self.quantize and self.quantize.pass_options()} {self.precision} {self.keep_precision}",
            f"{self.weights} {self.strict} {self.reuse_inputs}",
            f"{sys.byteorder}",
        )

    def rewriting(self, module: ModuleOp) -> Pipeline | None:
        """
        The pipeline with quantization and conversion in it; `None` is the backend's.

        Raises `OptionError` for a module that is behind these, and for a precision that there is not.
        """
        from glow_mlir.driver.compiler import stage_of
        from glow_mlir.driver.pipelines import IMPORTED, converting, quantizing, quantizing_weights

        if self.quantize is None and self.precision == self.weights == FULL_PRECISION:
            return self.pipeline
        if (stage := stage_of(module)) not in ("", IMPORTED.name):
            what = "converted" if self.precision != FULL_PRECISION else "quantized"
            raise OptionError(f"a module at stage '{stage}' cannot be {what}", hint="give it as it was imported")
        whole = self._whole(self.pipeline)
        if self.quantize is not None:
            whole = quantizing(whole, self.quantize.pass_options())
        if self.weights != FULL_PRECISION:
            whole = quantizing_weights(whole, self.weights, self.keep_precision)
        return whole if self.precision == FULL_PRECISION else converting(whole, self.precision, self.keep_precision)

    def _whole(self, pipeline: Pipeline | None) -> Pipeline:
        """A pipeline, or in the place of none that of the backend."""
        from glow_mlir.backends.interface import get_backend

        return pipeline or get_backend(self.backend).pipeline(self.target, self.profile)

    def compilation(self, module: ModuleOp, as_given: bool = False) -> Compilation:
        """
        The compilation of a module as the options say; `as_given` where no pass of ours has made what it is.

        Raises `OptionError` as `rewriting` does, and for options that contradict each other.
        """
        from glow_mlir.driver.compiler import Compilation, stage_of
        from glow_mlir.driver.pass_runner import PassRunner
        from glow_mlir.driver.pipelines import exchanging

        pipeline = self.rewriting(module)
        if self.reuse_inputs:
            pipeline = exchanging(self._whole(pipeline), stage_of(module))
        return Compilation(
            module,
            self.backend,
            self.target,
            self.profile,
            pipeline=pipeline,
            disable=self.disable,
            observers=self.observers,
            runner=PassRunner(observers=self.pass_observers),
            accuracy=self.accuracy,
            optimize=self.optimize,
            ram_bytes=self.ram_bytes,
            flash_bytes=self.flash_bytes,
            threads=self.threads,
            tune=self.tune,
            as_given=pipeline is None and as_given,
        )


def check_pipeline(pipeline: Pipeline | None, target: str | None, profile: bool) -> None:
    """Raise `OptionError` for an invalid pipeline, or for options given beside it that it sets itself."""
    if pipeline is None:
        return
    if target is not None or profile:
        raise OptionError("a pipeline says target and profile itself", hint="give them to Backend.pipeline()")


def count_threads(threads: int | None) -> int | None:
    """The number of threads that an option means, if it is given; raises `OptionError` for an invalid one."""
    if threads is None:
        return None
    count = whole_number(threads)
    if count is None or not 0 <= count <= MOST_THREADS:
        raise OptionError(
            f"threads={threads!r} is no number of threads", hint=f"0 for all cores, or 1 to {MOST_THREADS}"
        )
    return count or min(usable_cores(), MOST_THREADS)


def names_of(option: str, given: Sequence[str], what: str) -> tuple[str, ...]:
    """The names that an option lists; raises `OptionError` for a text, which is a sequence of letters."""
    if isinstance(given, str):
        raise OptionError(f"{option}='{given}' is no list of {what}", hint=f"{option}=['{given}']")
    return tuple(given)
