"""`InferenceSession`, with onnxruntime's interface."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.model_identity import is_opened
from glow_mlir.api.model_session import ModelSession
from glow_mlir.api.onnxruntime.allocators import check_global_threads
from glow_mlir.api.onnxruntime.messages import is_telling, telling
from glow_mlir.api.onnxruntime.model_configuration import add_carried_options, is_asked_for
from glow_mlir.api.onnxruntime.model_metadata import ModelMetadata, model_metadata
from glow_mlir.api.onnxruntime.node_arg import NodeArg
from glow_mlir.api.onnxruntime.node_assignments import ASSIGNMENT_KEY, OrtEpAssignedSubgraph, assigned_nodes
from glow_mlir.api.onnxruntime.providers import Providers, chosen_providers
from glow_mlir.api.onnxruntime.run_options import RunOptions
from glow_mlir.api.onnxruntime.session_arguments import (
    given_keywords,
    keyword_help,
    keywords_of,
    model_of,
    providers_of,
    settings_of,
    signature,
)
from glow_mlir.api.onnxruntime.session_facade import Result, SessionFacade
from glow_mlir.api.onnxruntime.session_options import SessionOptions
from glow_mlir.api.optimized_model import write_optimized
from glow_mlir.api.reopening import Recipe, kept_model
from glow_mlir.api.session_entry import SessionEntry
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.errors import OptionError
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.runtime.specialization import Specialization

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.api.importable_model import ImportableModel
    from glow_mlir.api.keyword_types import InferenceKeywords
    from glow_mlir.api.onnxruntime.call_profile import CallProfile
    from glow_mlir.frontends.onnx.importer import ModelSource


class InferenceSession(SessionFacade):
    """
    A model, compiled and ready to run.

    `path_or_bytes` is a path to an `.onnx` or `.mlir` file, the bytes of an ONNX model (`bytes`, `bytearray`,
    `memoryview`), a `ModelProto`, a model of another front end (`glow_mlir.jax.exported`), or a module of any stage
    down to `allocated`, which is left as it is. A model with free dimensions is compiled when it is called, for the
    sizes of the call and for a range of sizes (docs/sizes.md). Several `devices` share a model (docs/devices.md).
    Results do not depend on the number of `threads`.

    Raises `GlowError` for whatever is wrong with the model, and `OptionError` for a `target` whose code this machine
    cannot run, a number of threads that there cannot be, or a `keep_precision` that keeps nothing from being narrower.
    Where an ONNX model says something wrong that does not keep it from being run, a warning tells of it when it is
    compiled; `strict` refuses it.

    Several threads may call `run` at once. The workers of `threads` serve one call at a time; one that finds them busy
    computes alone. Where the model has state, calls follow one another, each on the state that the one before it left.
    A child of `os.fork` has the state of that moment, perhaps of half a call that another thread was in. A call that
    takes longer than `time_limit` seconds, for which `RunOptions.terminate` is set, or that Ctrl-C interrupts in the
    main thread, ends where a loop would begin its next trip, and raises `TimeLimitError`, `CancelledError` or
    `KeyboardInterrupt`; state then has what was written to it before that (docs/api.md). A compilation that takes
    longer than `compile_time_limit` seconds raises `TimeLimitError`.

    `sess_options`, `providers` and `provider_options` are those of onnxruntime (docs/api.md says what becomes of each);
    what they say and the keywords say, too, has to agree. With `read_config_from_model`, or with
    `ORT_LOAD_CONFIG_FROM_MODEL=1` in the environment, options that a model carries count where these say nothing.
    Copies and pickles are made of model, options and state: a path is read, and a model compiled or found in the cache,
    where the copy is made; a `ModelProto` that was changed in between gives another model.
    """

    _model_path: str | None
    """The path as given; programs look for it here, as in onnxruntime, and some overwrite it."""

    def __init__(
        self,
        path_or_bytes: ModelSource | bytearray | memoryview | os.PathLike[str] | ModuleOp | ImportableModel,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **keywords: Unpack[InferenceKeywords],
    ) -> None:
        start = time.monotonic_ns()
        # For copies of the session.
        self._given = given = given_keywords((sess_options, providers, provider_options), keywords)
        self._source = kept_model(path_or_bytes)
        self._model_path = os.fspath(path_or_bytes) if isinstance(path_or_bytes, str | os.PathLike) else None
        # A copy: the caller may change and reuse the object for other sessions.
        given["sess_options"] = settings = copy(settings_of(sess_options))
        if (configuration := given["configuration"]) is not None:
            given["configuration"] = Path(configuration).absolute()
        self._providers = providers_of(settings, providers, provider_options)
        with telling(settings):
            model = model_of(path_or_bytes, settings)
            if is_asked_for(given["read_config_from_model"]):
                add_carried_options(settings, model)
            self._compiled = ModelSession.from_keywords(model, keywords_of(model, settings, self._providers, given))
            super().__init__(self._compiled)
            self._finish(model, settings)
        self._settings = settings
        self._profile = _call_profile(settings, start)
        self._is_watched = self._profile is not None or is_telling(settings) or bool(self._compiled.time_limit)

    def _finish(self, model: Any, settings: SessionOptions) -> None:
        """Apply settings that concern the facade; raises `OptionError` for unsupported ones."""
        check_global_threads(settings.use_per_session_threads)
        if settings.enable_profiling:
            self._check_profile()
        if settings.optimized_model_filepath:
            write_optimized(model, self.options, settings.external_form, self._model_path)

    def _check_profile(self) -> None:
        """Raise `OptionError` if the backend cannot record times."""
        if self.is_deferred:
            from glow_mlir.backends.interface import get_backend

            has_times = get_backend(self.options.backend).MACHINE_CODE
        else:
            has_times = isinstance(self.executable, MachineCode)
        if not has_times:
            reason = f"the backend '{self.options.backend}' does not support profiling"
            raise OptionError(reason, hint=f"backend='{DEFAULT_BACKEND}'")

    def _recipe(self) -> Recipe[InferenceSession]:
        return Recipe(type(self), self._source, self._given)

    def _watched(self, run_options: RunOptions | None, call: Callable[[], Result], entry: SessionEntry) -> Result:
        if (profile := self._profile) is None:
            return super()._watched(run_options, call, entry)
        return super()._watched(
            run_options, lambda: profile.timed(call, lambda: self._compiled.machine_code_of(entry.name)), entry
        )

    def _repr_html_(self) -> str:
        """The representation in notebooks: inputs, outputs, target, memory, and the time of each stage."""
        from glow_mlir.api.onnxruntime.session_page import session_page

        return session_page(self)

    # ---- what its session says of itself ----

    @property
    def compiled(self) -> ModelSession:
        """The session that this one is a facade over."""
        return self._compiled

    def require_sizes(self) -> None:
        """
        Raise `UnsupportedError` if the model is compiled only when it is called, because sizes or values are missing.
        """
        self._compiled.require_sizes()

    @property
    def executable(self) -> Executable:
        """The executable; with several specializations, the last that ran. Raises `OptionError` before the first."""
        return self._compiled.executable

    @property
    def specializations(self) -> list[Specialization]:
        """
        The code compiled for sizes and values of calls; the last that ran comes last.

        Empty for a model without free dimensions or inputs that determine shapes.
        """
        return self._compiled.specializations

    @property
    def shape_inputs(self) -> tuple[str, ...]:
        """The inputs whose values determine shapes, as far as calls have shown."""
        return self._compiled.shape_inputs

    @property
    def is_deferred(self) -> bool:
        """Whether the model is compiled when it is called, for the sizes or values of its inputs."""
        return self._compiled.is_deferred

    @property
    def compile_seconds(self) -> Mapping[str, float]:
        """
        Seconds of each stage of the compilation; empty if the artifact came from the cache.

        With several specializations, those of the last that ran.
        """
        return self._compiled.compile_seconds

    @property
    def machine_code(self) -> MachineCode:
        """The loaded machine code; raises `OptionError` for a backend without."""
        return self._compiled.machine_code

    @property
    def machine_entry(self) -> MachineEntry:
        """The machine code of the entry of the session; raises `OptionError` for a backend without."""
        return self._compiled.machine_entry

    @property
    def options(self) -> CompileOptions:
        """The compile options."""
        return self._compiled.options

    @property
    def model(self) -> Any:
        """The model as given, or with the constants that options put into it."""
        model: Any = self._compiled.model
        return model.proto if is_opened(model) else model

    # ---- what onnxruntime's sessions say of themselves ----

    def get_modelmeta(self) -> ModelMetadata:
        """The metadata of the model; raises `ModelError` if its file can no longer be read."""
        return model_metadata(self.model)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The constants that a call may override: none, because constants are compiled in."""
        return []

    def get_session_options(self) -> SessionOptions:
        """The options that the session was created with."""
        return copy(settings_of(self._settings))

    def get_providers(self) -> list[str]:
        """The providers that the session was created with."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of its providers."""
        return {name: dict(options) for name, options in self._providers.items()}

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """
        The nodes of the model, each with the provider that runs it; an instruction may implement several nodes.

        Raises `OptionError` unless the options requested it.
        """
        if settings_of(self._settings).entries.get(ASSIGNMENT_KEY) != "1":
            reason = f"Session configuration entry '{ASSIGNMENT_KEY}' must be set to \"1\""
            raise OptionError(reason, hint=f"add_session_config_entry('{ASSIGNMENT_KEY}', '1')")
        return assigned_nodes(self.model, next(iter(self._providers)))

    def set_providers(
        self, providers: Providers | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """
        Change the providers, which are all the CPU; raises `OptionError` for options, which would need a compilation.
        """
        found = chosen_providers(providers, provider_options)
        if any(found.values()):
            raise OptionError(
                "options of providers cannot change after creation", hint="create another session with them"
            )
        self._providers = found

    def disable_fallback(self) -> None:
        """Do nothing: failures always raise errors, because there is no other provider."""

    def enable_fallback(self) -> None:
        """Raise `OptionError`, because there is no other provider."""
        raise OptionError("there is no fallback provider", hint="errors are raised")

    def end_profiling(self) -> str:
        """
        Write the times of all calls so far to a file, and return its name; empty if profiling is off, or already ended.

        The file is a list of events in Chrome's JSON format; events of the category `Node` are instructions. Raises
        `OptionError` if it cannot be written.
        """
        profile, self._profile = self._profile, None
        if profile is None:
            return ""
        try:
            return profile.write()
        except BaseException:
            self._profile = profile  # Keep the times for a second attempt.
            raise

    def get_profiling_start_time_ns(self) -> int:
        """The start of profiling on the clock of `time.monotonic_ns`; 0 without profiling."""
        return 0 if self._profile is None else self._profile.start

    @property
    def entry(self) -> str:
        """The name of the function that `run` calls by default."""
        return self._entry.name


InferenceSession.__doc__ = f"{InferenceSession.__doc__}\n    Keywords (docs/options.md):\n\n{keyword_help()}\n"
cast("Any", InferenceSession.__init__).__signature__ = signature()


def _call_profile(settings: SessionOptions, start: int) -> CallProfile | None:
    """The recorder of call times, if options enable it."""
    if not settings.enable_profiling:
        return None
    from glow_mlir.api.onnxruntime.call_profile import CallProfile

    return CallProfile(settings.profile_file_prefix, start)
