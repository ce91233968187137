"""The compile options of a session, and the pipeline built from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glow_mlir.dialects.packages import DEFAULT_BACKEND, SEVERAL_BACKENDS
from glow_mlir.errors import OptionError
from glow_mlir.options.compilation import FULL_PRECISION, CompilationOptions, ModelOptions
from glow_mlir.options.declaration import Declared, declared, key_of, option, parameters
from glow_mlir.options.placement import HOST, SHARED, PlacementOptions, backends_named
from glow_mlir.options.policy import Limits, Policy
from glow_mlir.runtime.cores import usable_cores
from glow_mlir.runtime.pool_layout import MAX_THREADS
from glow_mlir.support.arguments import plain_numbers, whole_number
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import Kind, has, lists, made_by
from glow_mlir.support.symbols import GivenDimension

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.driver.compiler import Compilation, Observer
    from glow_mlir.driver.pipelines import PassObserver, Pipeline

TARGET_KEYWORDS: Mapping[str, Declared] = {
    name: item for group in (Policy, Limits) for name, item in declared(group).items() if item.option.flag is not None
}
"""Keyword of sessions for a field of targets → its declaration."""

ALL = 100
"""The percentage that stands for all activations."""

_LISTS: Mapping[str, str] = {"disable": "passes", "keep_precision": "nodes"}
"""Option → the kind of names that it lists."""


def given_dimensions(given: Mapping[str, GivenDimension] | None) -> dict[str, GivenDimension]:
    """
    The user's sizes of free dimensions as Python numbers; numpy numbers are accepted, too.

    Sizes are validated once the model is known.
    """
    return {label: plain_numbers(size) for label, size in (given or {}).items()}


@dataclass(frozen=True)
class CompileOptions(PlacementOptions, ModelOptions, CompilationOptions):
    """The options that determine the compiled artifact, and the observers of its compilation."""

    GROUP = "compilation"

    pipeline: Pipeline | None = option(
        None,
        "passes that replace those of the backend and set `target` and `profile` themselves",
        kind=Kind("a pipeline", made_by("glow_mlir.driver.pipelines", "Pipeline"), "Backend.pipeline() gives one"),
    )
    observers: Sequence[Observer] = option(
        (),
        "called with each stage of a compilation down to `llvm`",
        kind=Kind("a list of functions", lists(callable), "[print]", False),
        is_key=False,
    )
    pass_observers: Sequence[PassObserver] = option(
        (),
        "called with each pass down to `allocated`",
        kind=Kind("a list of observers", lists(has("before", "after", "failed")), "[CompilationLog()]", False),
        is_key=False,
    )

    @classmethod
    def from_keywords(cls, given: Mapping[str, Any]) -> CompileOptions:
        """
        The compile options among the keywords of a session; `None` means not given.

        Raises `OptionError` for an invalid value, and for options that contradict each other.
        """
        chosen = {name: value for name, value in given.items() if value is not None}
        own = {name: value for name, value in chosen.items() if name in declared(cls)}
        fields = {name: plain_numbers(value) for name, value in chosen.items() if name in TARGET_KEYWORDS}
        if "threads" in fields:
            fields["threads"] = count_threads(fields["threads"])
        for name, value in fields.items():
            if (domain := TARGET_KEYWORDS[name].option.domain) is not None:
                domain.check(name, value)
        _check_devices(own)
        check_pipeline(own.get("pipeline"), own.get("target"), own.get("profile", False))
        for name, what in _LISTS.items():
            # Their order is irrelevant.
            own[name] = tuple(sorted(set(names_of(name, own.get(name, ()), what))))
        return cls(**own, fields=fields)

    def __getattr__(self, name: str) -> Any:
        """The value of a field of the target, by its name; `None` if it is not set."""
        if name in TARGET_KEYWORDS:
            return self.fields.get(name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def with_field(self, name: str, value: str | int) -> CompileOptions:
        """The same options with another value for a field of the target."""
        return replace(self, fields={**self.fields, name: value})

    def configured(self, path: Path | None) -> CompileOptions:
        """
        The options with the precisions in a file, if one is given.

        Raises `OptionError` for precisions given in addition to the file, and without a file for a `keep_precision`
        without effect.
        """
        is_full = self.precision == self.weights == FULL_PRECISION
        if path is None:
            if self.keep_precision and is_full:
                raise OptionError("keep_precision needs precision or weights", hint="precision='bf16'")
            return self
        if self.quantize is not None or not is_full or self.keep_precision:
            hint = "leave out quantize, precision, keep_precision and weights"
            raise OptionError("a configuration already sets the precision of all nodes", hint=hint)
        from glow_mlir.quantization.configuration import read_configuration

        found = read_configuration(path)
        return replace(
            self, quantize=found.quantize, precision=found.precision, keep_precision=tuple(found.keep_precision)
        )

    def key_parts(self) -> tuple[str, ...]:
        """The options that affect an artifact, except the content of the profile."""
        # Thread speed depends on the cores that threads share.
        cores = usable_cores() if self.tune and self.fields.get("threads") != 1 else ""
        files = (path for path in (self.placement, self.placement_profile) if path)
        return (key_of(self), f"{cores}", sys.byteorder, *map(_content_of, files))

    def rewriting(self, module: ModuleOp) -> Pipeline | None:
        """
        The pipeline with rematerialization, quantization and conversion inserted; `None` stands for the backend's
        pipeline.

        Raises `OptionError` for a module that is beyond these passes, and for an unknown precision.
        """
        from glow_mlir.driver.compiler import stage_of
        from glow_mlir.driver.pipelines import IMPORTED, converting, quantizing, quantizing_weights, rematerializing

        given = self._whole(None) if self._says_placement and self.pipeline is None else self.pipeline
        if self.activation_percent < ALL:
            given = rematerializing(self._whole(given), self.activation_percent)
        if self.quantize is None and self.precision == self.weights == FULL_PRECISION:
            return given
        if (stage := stage_of(module)) not in ("", IMPORTED.name):
            what = "converted" if self.precision != FULL_PRECISION else "quantized"
            raise OptionError(f"a module at stage '{stage}' cannot be {what}", hint="pass the module as imported")
        whole = self._whole(given)
        if self.quantize is not None:
            whole = quantizing(whole, parameters(self.quantize))
        if self.weights != FULL_PRECISION:
            whole = quantizing_weights(whole, self.weights, self.keep_precision)
        return whole if self.precision == FULL_PRECISION else converting(whole, self.precision, self.keep_precision)

    @property
    def _says_placement(self) -> bool:
        """Whether the options configure devices, including fields of their targets."""
        chosen = any(getattr(self, name) for name in declared(PlacementOptions))
        return chosen or (self.backend == SEVERAL_BACKENDS and bool(self.fields))

    def _whole(self, pipeline: Pipeline | None) -> Pipeline:
        """The pipeline, by default the backend's, with the options for devices."""
        from glow_mlir.backends.interface import get_backend
        from glow_mlir.driver.pipelines import sharing

        if pipeline is not None:
            return pipeline
        whole = get_backend(self.backend).pipeline(self.target, self.profile)
        strategy = self.partition
        if strategy in SHARED:
            strategy, whole = "latency", sharing(whole, SHARED[strategy], self.placement)
        placing = {
            "strategy": strategy,
            "assignments": self.placement,
            "profile": self.placement_profile,
        }
        fields = ",".join(f"{name}={value}" for name, value in self.fields.items())
        for name, options in (
            ("assign-target", {"requantization": _requantization(self.devices) if self.devices else ""}),
            ("assign-devices", {"devices": self.devices, "fields": fields}),
            ("place-operators", placing),
        ):
            whole = whole.with_options(name, **{key: value for key, value in options.items() if value})
        return whole

    def compilation(
        self, module: ModuleOp, as_given: bool = False, again: Callable[[], ModuleOp] | None = None
    ) -> Compilation:
        """
        The compilation of a module with these options. `as_given` means that no pass of ours produced the module.
        `again` creates the module a second time.

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
            fields=self.fields,
            tune=self.tune,
            again=again,
            as_given=pipeline is None and as_given,
        )


def _requantization(devices: str) -> str:
    """The requantization method for all devices: the restricted method if any of the devices supports only one."""
    from glow_mlir.partitioning.device_names import named_devices

    usual = Policy().requantization
    ways = (device.target.policy.requantization for device in named_devices(devices))
    return next((way for way in ways if way != usual), usual)


def _content_of(path: str) -> str:
    """The content of a file that affects artifacts; empty if it cannot be read, which its reader reports."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _check_devices(own: Mapping[str, Any]) -> None:
    """
    Raise `OptionError` for devices without a backend for several, or together with a pipeline, and for options of
    devices without any.
    """
    chosen = [name for name in declared(PlacementOptions) if own.get(name)]
    if not chosen:
        return
    if own.get("pipeline") is not None:
        raise OptionError(f"{chosen[0]} configures the passes of a backend, which the pipeline replaces")
    if own.get("backend") != SEVERAL_BACKENDS:
        hint = "omit the backend" if own.get("devices") else "devices='cpu,opencl:0'"
        raise OptionError(f"{chosen[0]} is for several devices, and the backend is '{own.get('backend')}'", hint=hint)
    if own.get("devices") and (target := own.get("target")) not in (None, HOST):
        first = next(iter(backends_named(str(own["devices"]))), DEFAULT_BACKEND)
        reason = f"'{target}' is one target, but each device has its own"
        raise OptionError(reason, hint=f"devices='{first},target={target}'")


def check_pipeline(pipeline: Pipeline | None, target: str | None, profile: bool) -> None:
    """Raise `OptionError` for an invalid pipeline, or for options given beside it that it sets itself."""
    if pipeline is None:
        return
    if target is not None or profile:
        raise OptionError("a pipeline sets target and profile itself", hint="give them to Backend.pipeline()")


def count_threads(threads: object) -> int:
    """The number of threads of an option; raises `OptionError` for an invalid one."""
    count = whole_number(threads)
    if count is None or not 0 <= count <= MAX_THREADS:
        raise OptionError(
            f"threads={threads!r} is no number of threads", hint=f"0 for all cores, or 1 to {MAX_THREADS}"
        )
    return count or min(usable_cores(), MAX_THREADS)


def names_of(option: str, given: Sequence[str], what: str) -> tuple[str, ...]:
    """The names in a list option; raises `OptionError` for a string, which is a sequence of characters."""
    if isinstance(given, str):
        raise OptionError(f"{option}='{given}' is no list of {what}", hint=f"{option}=['{given}']")
    return tuple(given)
