"""The public API: `InferenceSession`, in the shape that users of onnxruntime know."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from glow_mlir.api.model_identity import is_ir, model_backend, model_identity
from glow_mlir.api.session_entry import NodeArg, SessionEntry, as_array
from glow_mlir.dialects.packages import DEFAULT_BACKEND, installed_packages, loader_of
from glow_mlir.errors import InputError, ModelError, OptionError
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.cache import ArtifactCache, cache_key
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.identity import Snapshot
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.runtime.pool import usable_cores
from glow_mlir.runtime.pool_layout import MOST_THREADS
from glow_mlir.runtime.sources import source_stamp
from glow_mlir.support.arguments import whole_number

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.backends.interface import Room
    from glow_mlir.driver.compiler import Observer
    from glow_mlir.driver.pipelines import PassObserver, Pipeline
    from glow_mlir.frontends.onnx.importer import ModelSource
    from glow_mlir.quantization.options import Quantization

MOST_ATTEMPTS = 3
"""How many times to try to compile a model whose files change during compilation."""


def compiler_versions() -> str:
    """The versions of all that decides what a compilation gives, packages of operators among them."""
    names = ("glow-mlir", "xdsl", "llvmlite", "numpy", "onnx")
    found = installed_packages()
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} ?")
    return ", ".join(found)


FULL_PRECISION = "f32"
"""The precision in which models compute as they are."""


class InferenceSession:
    """
    A model, compiled and ready to run.

    `model` is a path to an `.onnx` or `.mlir` file, the bytes of an ONNX model (`bytes`, `bytearray`, `memoryview`), a
    `ModelProto`, or a module of any stage down to `allocated`, which is left as it is. `dimensions` gives free
    dimensions their sizes. `backend` names one (docs/add-a-backend.md), by default the one that the functions of a
    module say; one that interprets runs a `.mlir` file or module just as it stands. Compiled models are kept on disk
    (docs/cache.md) unless `cache` is false. `observers` are told of each stage of a compilation down to `llvm`, and
    `pass_observers` of each pass down to `allocated`; a model from the cache goes through none. `disable` names passes
    to leave out, and `pipeline` takes the place of the backend's own: it says `target` and `profile` itself, and has to
    lead to what the backend loads. With the `accuracy` "strict", instead of "default", no kernel is used whose rounding
    errors are larger than those of plain sums (docs/floating-point.md). An inference computes in as many `threads`, the
    caller's among them; 0 stands for the number of cores. Results do not depend on it. With `tune`, kernels are chosen
    by measuring them; last digits then depend on what was measured, though not on `threads` (docs/tuning.md). `entry`
    names the function that `run` calls where a module has several; by default that is the only one, or `main`. All
    share constants and state. `quantize` says by which profile, and how, numbers become codes (docs/quantization.md).
    With the `precision` "bf16" or "f16", instead of "f32", floats of f32 are computed and stored in that, but for those
    of the nodes, or kinds of operators, in `keep_precision`; inputs and outputs keep their types. With `weights` "int8"
    or "int4", constant right operands of matrix products, and tables of embeddings, become codes with a scale for each
    32, but for those that the nodes in `keep_precision` read. `configuration` is the path of a file that says all of
    that but `weights`, as `glow-tune` writes it (docs/tuning.md), and goes with none of it. Raises `GlowError` for
    whatever is wrong with the model, and `OptionError` for a `target` whose code this machine cannot run, a number of
    threads that there cannot be, or a `keep_precision` that keeps nothing from being narrower.

    Several threads may call `run` at once. The workers of `threads` serve one call at a time; one that finds them busy
    computes alone. Where the model has state, calls follow one another, each on the state that the one before it left.
    A child of `os.fork` has the state of that moment, perhaps of half a call that another thread was in.
    """

    def __init__(
        self,
        model: ModelSource | bytearray | memoryview | os.PathLike[str] | ModuleOp,
        *,
        backend: str | None = None,
        threads: int | None = None,
        dimensions: Mapping[str, int] | None = None,
        target: str | None = None,
        profile: bool = False,
        cache: bool = True,
        observers: Sequence[Observer] = (),
        pipeline: Pipeline | None = None,
        disable: Sequence[str] = (),
        pass_observers: Sequence[PassObserver] = (),
        accuracy: str | None = None,
        tune: bool = False,
        entry: str | None = None,
        quantize: Quantization | None = None,
        precision: str | None = None,
        keep_precision: Sequence[str] = (),
        weights: str | None = None,
        configuration: str | os.PathLike[str] | None = None,
    ) -> None:
        self._threads = _count_threads(threads)
        if pipeline is not None:
            _check_pipeline(pipeline, target, profile)
        source = accepted_model(model)
        self._dimensions = dict(dimensions or {})
        self._backend = model_backend(source) if backend is None else backend
        self._target, self._profile = target, profile
        self._pipeline, self._disable = pipeline, _names("disable", disable, "passes")
        self._accuracy, self._tune = accuracy, tune
        self._quantize, self._precision = quantize, precision or FULL_PRECISION
        self._keep_precision = _names("keep_precision", keep_precision, "nodes")
        self._weights = weights or FULL_PRECISION
        if configuration is not None:
            self._configure(Path(configuration))
        elif self._keep_precision and self._precision == self._weights == FULL_PRECISION:
            raise OptionError("keep_precision needs a precision or weights", hint="precision='bf16'")
        self._observers, self._pass_observers = tuple(observers), tuple(pass_observers)
        self.compile_seconds: dict[str, float] = {}
        """Seconds that each stage of the compilation took; empty where the artifact came from the cache."""
        self._executable = self._loaded(source, cache)
        self._entry = SessionEntry(self._executable.entry(entry))
        self._entries = {self._entry.name: self._entry}

    def _configure(self, path: Path) -> None:
        """Take the precisions from a file; raises `OptionError` where some are given beside it."""
        from glow_mlir.quantization.configuration import read_configuration

        is_full = self._precision == self._weights == FULL_PRECISION
        if self._quantize is not None or not is_full or self._keep_precision:
            hint = "leave out quantize, precision, keep_precision and weights"
            raise OptionError("a configuration says the precision of all nodes itself", hint=hint)
        found = read_configuration(path)
        self._quantize, self._precision = found.quantize, found.precision
        self._keep_precision = tuple(found.keep_precision)

    def _loaded(self, model: Any, use_cache: bool) -> Executable:
        """The model as its backend runs it; a stored artifact is loaded without the compiler."""
        threads = self._threads or MOST_THREADS
        loader = loader_of(self._backend) if use_cache else None
        if loader is not None:
            return loader.load(self._artifact(model), threads)
        from glow_mlir.backends.interface import get_backend

        return get_backend(self._backend).load(self._compiled(model), threads)

    @property
    def executable(self) -> Executable:
        """What the backend runs."""
        return self._executable

    @property
    def machine_code(self) -> MachineCode:
        """The loaded machine code; raises `OptionError` for a backend without."""
        if not isinstance(self._executable, MachineCode):
            raise OptionError(f"the backend '{self._backend}' has no machine code", hint=f"backend='{DEFAULT_BACKEND}'")
        return self._executable

    @property
    def machine_entry(self) -> MachineEntry:
        """The machine code of the entry of the session; raises `OptionError` for a backend without."""
        return self.machine_code.load(self._entry.name)

    @property
    def entry(self) -> str:
        """The name of the function that `run` calls by default."""
        return self._entry.name

    def get_entries(self) -> list[str]:
        """The names of the functions of the model."""
        return list(self._executable.names)

    def get_inputs(self, entry: str | None = None) -> list[NodeArg]:
        """The inputs of an entry, by default that of the session, in order."""
        return self._chosen(entry).arguments("input")

    def get_outputs(self, entry: str | None = None) -> list[NodeArg]:
        """The outputs of an entry, by default that of the session, in order."""
        return self._chosen(entry).arguments("output")

    def run(
        self, output_names: Sequence[str] | None, inputs: Mapping[str, Any], *, entry: str | None = None
    ) -> list[np.ndarray]:
        """
        Run an entry, by default that of the session: the outputs of those names, or all, in new arrays.

        C-contiguous, aligned inputs of the right type are used in place. Calls of entries with state wait for each
        other. Raises `InputError` for a missing, unknown or misshapen input, or an unknown output or entry, and
        `ExecutionError` where the model fails on these inputs.
        """
        return self._chosen(entry).run(output_names, inputs)

    def get_state(self) -> dict[str, np.ndarray]:
        """The state of the model by name, which all entries share, as it is between two calls; in new arrays."""
        return self._executable.state.get()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Overwrite the state of those names; raises `InputError` for an unknown name or a misshapen array."""
        self._executable.state.set({name: as_array(f"state '{name}'", value) for name, value in values.items()})

    def reset_state(self, names: Sequence[str] | None = None) -> None:
        """Give the state of those names, or all of it, the value it began with; raises `InputError` as `set_state`."""
        self._executable.state.reset(names)

    def _chosen(self, name: str | None) -> SessionEntry:
        """The entry of that name, or that of the session."""
        if name is None:
            return self._entry
        if name not in self._entries:
            self._entries[name] = SessionEntry(self._executable.entry(name))
        return self._entries[name]

    def _artifact(self, model: Any) -> Artifact:
        """The artifact of a model, from the cache or new; raises `ModelError` where its files do not keep still."""
        cache = ArtifactCache()
        for _ in range(MOST_ATTEMPTS):
            files = Snapshot(cache.contents)
            identity, source = model_identity(model, files)
            key = self._key(identity, self._profile_identity(files))
            found = cache.load(key) or self._stored(source, key, cache, files)
            if found is not None:
                return found
        hint = "wait until whoever writes it is done"
        raise ModelError("its files change while it is compiled", file=str(model), hint=hint)

    def _profile_identity(self, files: Snapshot) -> str:
        """The digest of the profile that numbers are quantized by; raises `InputError` where it cannot be read."""
        if self._quantize is None:
            return ""
        path = Path(self._quantize.profile)
        try:
            return files.digest(path)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from error

    def _key(self, identity: bytes | str, profile: str) -> str:
        """The key of the artifact that this session makes of a model, and a profile, of that identity."""
        from glow_mlir.runtime.host import host_name

        return cache_key(
            identity,
            repr(sorted(self._dimensions.items())),
            f"{self._backend} {self._target} {self._profile} {self._accuracy} {self._threads}",
            # How fast several threads are depends on the cores that they share.
            f"{self._tune} {usable_cores() if self._tune and self._threads != 1 else ''}",
            f"{self._pipeline or ''} {sorted(set(self._disable))}",
            f"{profile} {self._quantize and self._quantize.pass_options()} {self._precision} {self._keep_precision}",
            self._weights,
            host_name(),
            compiler_versions(),
            source_stamp(),
            f"{sys.byteorder}",
        )

    def _stored(self, model: Any, key: str, cache: ArtifactCache, files: Snapshot) -> Artifact | None:
        """A new artifact, which goes into the cache; `None` where a file changed since its identity was taken."""
        with cache.draft() as draft:
            artifact = self._compiled(model, draft.room)
            if files.changed():
                return None
            cache.store(key, artifact, draft)
        return artifact

    def _compiled(self, model: Any, room: Room | None = None) -> Any:
        """What the backend makes of a model, with constants in what `room` gives."""
        import time

        from glow_mlir.backends.interface import get_backend
        from glow_mlir.driver.compiler import Compilation
        from glow_mlir.driver.pass_runner import PassRunner

        start = time.perf_counter()
        # Who looks at modules finds the same digests each time.
        by_content = bool(self._observers or self._pass_observers)
        module = import_any(model, self._dimensions, by_content, get_backend(self._backend).KEEPS_MODULE)
        pipeline = self._rewriting(module)
        compilation = Compilation(
            module,
            self._backend,
            self._target,
            self._profile,
            pipeline=pipeline,
            disable=self._disable,
            observers=self._observers,
            runner=PassRunner(observers=self._pass_observers),
            accuracy=self._accuracy,
            threads=self._threads,
            tune=self._tune,
            as_given=pipeline is None and is_ir(model),
        )
        compilation.seconds["import"] = time.perf_counter() - start
        artifact = compilation.artifact(room)
        self.compile_seconds = compilation.seconds
        return artifact

    def _rewriting(self, module: ModuleOp) -> Pipeline | None:
        """
        The pipeline with quantization and conversion in it; `None` is the backend's.

        Raises `OptionError` for a module that is behind these, and for a precision that there is not.
        """
        from glow_mlir.backends.interface import get_backend
        from glow_mlir.driver.compiler import stage_of
        from glow_mlir.driver.pipelines import IMPORTED, converting, quantizing, quantizing_weights

        if self._quantize is None and self._precision == self._weights == FULL_PRECISION:
            return self._pipeline
        if (stage := stage_of(module)) not in ("", IMPORTED.name):
            what = "converted" if self._precision != FULL_PRECISION else "quantized"
            raise OptionError(f"a module at stage '{stage}' cannot be {what}", hint="give it as it was imported")
        whole = self._pipeline or get_backend(self._backend).pipeline(self._target, self._profile)
        if self._quantize is not None:
            whole = quantizing(whole, self._quantize.pass_options())
        if self._weights != FULL_PRECISION:
            whole = quantizing_weights(whole, self._weights, self._keep_precision)
        return whole if self._precision == FULL_PRECISION else converting(whole, self._precision, self._keep_precision)


def _check_pipeline(pipeline: Pipeline, target: str | None, profile: bool) -> None:
    """Raise `OptionError` for an invalid pipeline, or for options given beside it that it sets itself."""
    if not hasattr(pipeline, "stage_names"):
        reason = f"a pipeline cannot be of the type '{type(pipeline).__name__}'"
        raise OptionError(reason, hint="Backend.pipeline() gives one")
    if target is not None or profile:
        raise OptionError("a pipeline says target and profile itself", hint="give them to Backend.pipeline()")


def _count_threads(threads: int | None) -> int | None:
    """The number of threads that an option means, if it is given; raises `OptionError` for an invalid one."""
    if threads is None:
        return None
    count = whole_number(threads)
    if count is None or not 0 <= count <= MOST_THREADS:
        raise OptionError(f"threads={threads} is no number of threads", hint=f"0 for all cores, or 1 to {MOST_THREADS}")
    return count or min(usable_cores(), MOST_THREADS)


def _names(option: str, given: Sequence[str], what: str) -> tuple[str, ...]:
    """The names that an option lists; raises `OptionError` for a text, which is a sequence of letters."""
    if isinstance(given, str):
        raise OptionError(f"{option}='{given}' is no list of {what}", hint=f"{option}=['{given}']")
    return tuple(given)


def accepted_model(model: Any) -> Any:
    """A model as the rest expects it, paths as `Path` and bytes as `bytes`; raises `OptionError` for anything else."""
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(cast("bytes | bytearray | memoryview", model))
    if isinstance(model, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", model))
        if "\0" in str(path):
            raise OptionError(f"{str(path)!r} is no path", hint="the bytes of a model are given as bytes")
        return path
    # Told by what they have, as in `is_ir`: a `ModuleOp`, or a `ModelProto` and no other message.
    is_module = hasattr(model, "walk") and getattr(model, "name", "") == "builtin.module"
    if is_module or (hasattr(model, "SerializeToString") and hasattr(model, "ir_version")):
        return model
    raise OptionError(
        f"a model cannot be of the type '{type(model).__name__}'",
        hint="give a path, the bytes of an ONNX model, a ModelProto or a ModuleOp",
    )


def import_any(model: Any, dimensions: Mapping[str, int], by_content: bool = True, in_memory: bool = False) -> ModuleOp:
    """
    The module of an ONNX model, of a `.mlir` file, or a copy of a module; of any stage down to `allocated`.

    `by_content` says whether digests of an ONNX model's weights are those of their content, see `import_model`; weights
    are mapped, and their files must not change as long as the module is used, unless they are `in_memory`.
    """
    if not is_ir(model):
        from glow_mlir.frontends.onnx.importer import import_model

        return import_model(model, dimensions, by_content=by_content, in_memory=in_memory)
    if dimensions:
        raise OptionError(
            "a module of ours has no free dimensions", hint="sizes are given when the ONNX model is imported"
        )
    from glow_mlir.ir.context import new_context
    from glow_mlir.ir.rewriting import functions
    from glow_mlir.ir.text import read_module, verify_module

    is_file = isinstance(model, str | Path)
    if not is_file:
        verify_module(model)
    module: ModuleOp = read_module(Path(model), new_context(), in_memory) if is_file else model.clone()
    if not functions(module):
        file = str(model) if is_file else ""
        raise ModelError("the module has no function of glow_high or glow_low", file=file)
    return module
