"""From a model to its executable, for given sizes and values, using the cache on disk where enabled."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.compiler_process import Made, Request, is_elsewhere, made
from glow_mlir.api.device_tensors import check_present
from glow_mlir.api.fast_imports import import_fast
from glow_mlir.api.model_identity import UnopenedError, is_importable, is_ir, is_opened, model_identity, name_of
from glow_mlir.api.models import import_any
from glow_mlir.dialects.packages import SEVERAL_BACKENDS, installed_packages, loader_of
from glow_mlir.errors import InputError, InputValuesError, ModelError, UnsupportedError, printable
from glow_mlir.options.placement import backends_named
from glow_mlir.runtime.artifact import Artifact
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.cache import ArtifactCache, Draft, cache_key, shared_memory
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.identity import Snapshot
from glow_mlir.runtime.json_cache import JsonCache
from glow_mlir.runtime.memory_file import MemoryFile
from glow_mlir.runtime.pool_layout import MAX_THREADS
from glow_mlir.runtime.python_values import with_python_values
from glow_mlir.runtime.signature import Signature
from glow_mlir.runtime.sources import source_stamp
from glow_mlir.runtime.specialization import Loaded, Making
from glow_mlir.runtime.specializations import SpecializationLimits, Specializations
from glow_mlir.support.activity import telling_once, warning_to, watching
from glow_mlir.support.cancellation import Cancellation, current_cancellation
from glow_mlir.support.collector import collected_soon, without_collector
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.distributions import versions
from glow_mlir.support.slow_work import report_when_slow
from glow_mlir.support.symbols import Dimension, GivenDimension, size_from_label
from glow_mlir.support.watchdog import time_limited

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from glow_mlir.backends.interface import AllocateConstants

Found = TypeVar("Found")

Compiled = tuple[Any, "dict[str, Any] | None", dict[str, float]]
"""The artifact of a backend, its inputs and outputs that are not tensors of numbers, and the seconds of each stage."""

MAX_ATTEMPTS = 3
"""The number of attempts to compile a model whose files change during compilation."""

NOTHING = Assumptions()


def compiler_versions() -> str:
    """The versions that affect artifacts, including those of operator packages."""
    names = ("glow-mlir", "xdsl", "llvmlite", "numpy", "onnx")
    known = versions(names)
    return ", ".join([*installed_packages(), *(f"{name} {known.get(name, '?')}" for name in names)])


@dataclass(frozen=True)
class Template:
    """A model that is compiled when it is called: for the sizes of free dimensions, and for the `values` of inputs."""

    signature: Signature
    values: tuple[str, ...]
    """The inputs whose values determine shapes, as far as known."""
    range: tuple[tuple[str, Dimension], ...] = ()
    """The size range that code exists for, in addition to code for exact sizes."""

    def data(self) -> dict[str, Any]:
        """The template as JSON data."""
        return {"signature": self.signature.data(), "values": self.values, "range": self.range}

    @staticmethod
    def from_data(data: dict[str, Any] | None) -> Template | None:
        """The template from `data`; `None` for invalid data."""
        try:
            known = data or {}
            range_ = cast("list[tuple[str, int | list[int]]]", known["range"])
            sizes = ((label, size if isinstance(size, int) else (size[0], size[1])) for label, size in range_)
            return Template(Signature.from_data(known["signature"]), tuple(known["values"]), tuple(sizes))
        except (LookupError, TypeError, ValueError):  # Missing or damaged.
            return None


@dataclass(frozen=True)
class _Source:
    """A snapshot of a model: its identity, the model (opened if the identity needs it), and its files."""

    identity: bytes | str
    model: Any
    files: Snapshot
    profile: str
    """The digest of the profile for quantization."""


def keeping(options: CompileOptions) -> ModuleType | None:
    """The loader of cached artifacts; `None` if the backend, or one of several backends, does not cache."""
    loader = loader_of(options.backend)
    if options.backend != SEVERAL_BACKENDS:
        return loader
    named = backends_named(options.devices)
    return loader if named and all(loader_of(name) is not None for name in named) else None


def grows(size: GivenDimension) -> bool:
    """Whether a dimension has no upper bound."""
    return isinstance(size, tuple) and len(size) == 2 and size[1] is None


class ModelCompiler:
    """
    Compile one model for each combination of sizes and values that it is called with.

    A stored artifact is loaded without the compiler, and a stored template is used without opening the model.
    """

    def __init__(
        self,
        model: Any,
        options: CompileOptions,
        use_cache: bool,
        time_limit: float = 0.0,
        asks: bool = True,
        progress: Callable[[str], None] | None = None,
        reported: set[str] | None = None,
    ) -> None:
        """
        `time_limit` is the time limit of one compilation in seconds; 0 for none. With `asks`, another process may
        compile. `progress` receives the progress of compilations that a caller waits for; `reported` holds the warnings
        that are not repeated.
        """
        self._warnings: set[str] = set() if reported is None else reported
        self._progress = progress
        self._is_reported = asks
        """Whether to show progress on a terminal; a compiler process leaves that to the requester."""
        self._model = model
        self._options = options
        self._time_limit = time_limit
        self._keeping = keeping(options)
        """The loader of cached artifacts; `None` for a backend that does not cache."""
        self._loader = self._keeping if use_cache else None
        self._cache = ArtifactCache()
        self._templates = JsonCache("templates")
        self._source: _Source | None = None
        """The snapshot of the model when it was opened; set for a template."""
        self._template: Template | None = None
        """The template of a model that is compiled when it is called."""
        self._asks = asks
        self._external: tuple[str, ...] | None = None
        """The external weight files of an ONNX model, if known."""

    def open(self) -> Loaded | Template:
        """The compiled model, or its template if it is compiled when it is called."""
        with self._reported():
            return self._open()

    @contextmanager
    def _reported(self) -> Generator[None]:
        """A context that reports the work inside the `with` statement to the caller, and repeats no warning."""
        quiet = report_when_slow(f"compiling {printable(name_of(self._model))}") if self._is_reported else nullcontext()
        with telling_once(self._warnings), quiet if self._progress is None else watching(self._progress):
            yield

    def _open(self) -> Loaded | Template:
        if self._loader is None and not self._is_elsewhere(self._model):
            return self._opened_here()
        return self._steadily(self._found_or_made)

    @without_collector()  # Importing the compiler creates only long-lived objects.
    def _opened_here(self) -> Loaded | Template:
        """The model compiled in this process, or its template; does not use the cache."""
        model, names = self._opened(self._model), ()
        if not self._has_free_dimensions(model):
            try:
                return self._loaded(model, NOTHING)
            except InputValuesError as error:
                names = error.inputs
        return self._steadily(lambda: self._new_template(self._look(), model, names))

    def _found_or_made(self) -> Loaded | Template | None:
        """The cached or new artifact; `None` if files changed meanwhile."""
        source = self._look_unopened()
        if source is not None and self._loader is not None and (found := self._stored_or_known(source)) is not None:
            return found
        answer = self._asked(source, None)
        if answer is None:
            return self._opened_here() if self._loader is None else self._new(source or self._look())
        self._external = answer.external
        now = self._look_unopened()
        if answer.key and now is not None and answer.key == self._key(now, NOTHING):
            return self._accepted(answer, now, NOTHING)
        self._asks = False  # In any case, the next attempt runs in this process.
        return None

    def executable(
        self, found: Loaded | Template, limits: SpecializationLimits, only_special: bool = False
    ) -> tuple[Executable, dict[str, float]]:
        """
        The executable of the opened model, and the seconds of its compilation.

        With `only_special`, calls wait for code for their exact sizes, and no code is generated for ranges of sizes.
        """
        if isinstance(found, Loaded):
            return found.executable, found.seconds
        # Even if there is nothing to load yet, report this at once.
        check_present(self._options.backend, self._options.devices, self._options.target or "")
        background = None if only_special or not self._opens_sizes else self.specialized_in_background
        making = Making(self.specialized, background, self.stored, self._learned, self._opened_range)
        bounds = {label: size for label, size in self._options.dimensions.items() if isinstance(size, tuple)}
        known = Assumptions(found.range) if found.range else None
        self._template = found
        return Specializations(found.signature, found.values, making, limits, bounds, known), {}

    def _learned(self, names: Sequence[str]) -> None:
        """Store for later sessions the inputs whose values determine shapes."""
        assert self._template is not None
        self._keep_template(replace(self._template, values=tuple(names)))

    def _opened_range(self, assumptions: Assumptions) -> None:
        """Store for later sessions the size range that code exists for."""
        assert self._template is not None
        self._keep_template(replace(self._template, range=assumptions.sizes))

    @property
    def _opens_sizes(self) -> bool:
        """Whether the background may compile for size ranges: machine code without observers or profiling."""
        options = self._options
        is_watched = options.observers or options.pass_observers or options.profile or options.tune
        return not is_watched and options.backend != SEVERAL_BACKENDS and loader_of(options.backend) is not None

    def stored(self, assumptions: Assumptions) -> Loaded | None:
        """The stored executable for some sizes, for the model as it was when opened."""
        if self._loader is None or self._source is None:
            return None
        return self._known(self._source, assumptions)

    def specialized_in_background(self, assumptions: Assumptions) -> Loaded:
        """
        `specialized` in the background: in another process, and without warnings, which were already given.

        Raises `UnsupportedError` if there can be no other process.
        """
        now = self._unchanged()
        found = None if self._loader is None else self._known(now, assumptions)
        with warning_to(lambda _: None):
            found = found or self._made_elsewhere(now, assumptions, is_background=True)
        if found is None:
            raise UnsupportedError("no background process compiles")
        if now.files.changed():
            raise self._restless()
        return found

    def specialized(self, assumptions: Assumptions) -> Loaded:
        """
        The executable of a template for some sizes and values.

        Raises `InputValuesError` if further values are needed, and `ModelError` if files of the model changed.
        """
        now = self._unchanged()
        found = None if self._loader is None else self._known(now, assumptions)
        if found is None:
            with self._reported():
                found = self._made_elsewhere(now, assumptions) or self._specialized_here(now, assumptions)
        if found is None or now.files.changed():
            raise self._restless()
        return found

    @without_collector()  # Importing the compiler creates only long-lived objects.
    def _specialized_here(self, now: _Source, assumptions: Assumptions) -> Loaded | None:
        if self._loader is None:
            return self._loaded(self._model, assumptions, shared_memory)
        return self._kept(now, now.model, assumptions)

    def _unchanged(self) -> _Source:
        """The snapshot that the session began with; raises `ModelError` if the model has changed since."""
        assert self._source is not None
        now = self._look()
        if (now.identity, now.profile) != (self._source.identity, self._source.profile):
            hint = "sessions read the model's files again for new sizes: start a new session"
            raise ModelError("its files changed after the session started", file=str(self._model), hint=hint)
        return now

    def _is_elsewhere(self, model: object, is_background: bool = False) -> bool:
        """Whether another process may be asked to compile."""
        return self._asks and self._keeping is not None and is_elsewhere(model, self._options, is_background)

    def _asked(
        self, source: _Source | None, assumptions: Assumptions | None, is_background: bool = False
    ) -> Made | None:
        """
        The result of another process, for the sizes of a call or as far as options determine it; raises its errors.

        `None` if another process is not allowed, or cannot compile. `source` is the present snapshot, if known.
        """
        model: Any = self._model
        # A `Model` may hold reported faults, which processes in the background do not repeat.
        if source is not None and isinstance(source.identity, bytes) and (is_background or not is_opened(model)):
            model = source.identity
        if not self._is_elsewhere(model, is_background):
            return None
        request = Request(model, self._options, assumptions, self._time_limit, is_kept=self._loader is not None)
        return made(request, is_background)

    def _made_elsewhere(self, now: _Source, assumptions: Assumptions, is_background: bool = False) -> Loaded | None:
        """The artifact that another process compiles from a template for a call; `None` as in `_asked`."""
        answer = self._asked(now, assumptions, is_background)
        if answer is None or answer.key != self._key(now, assumptions):
            return None
        found = self._accepted(answer, now, assumptions)
        return found if isinstance(found, Loaded) else None

    def _accepted(self, answer: Made, source: _Source, assumptions: Assumptions) -> Loaded | Template | None:
        """The result of another process for the model; `None` if the artifact is gone, or files changed meanwhile."""
        if answer.template is not None:
            template = Template.from_data(answer.template)
            return None if template is None else self._begun(source, template)
        is_stored = answer.artifact is None
        artifact = self._cache.load(answer.key, answer.digests) if is_stored else answer.artifact
        if artifact is None:
            self._asks = False
            return None
        return self._stored(artifact, assumptions, dict(answer.seconds), in_file=is_stored)

    def make(self, assumptions: Assumptions | None, constants: MemoryFile) -> tuple[Made, Artifact | None]:
        """
        Compile for another process: return the result stored in the cache, or the artifact that is not stored, with its
        constants in an in-memory file if it was created for them. Raises the errors of the compilation.
        """
        source, wanted = self._look(), assumptions or NOTHING
        model, names = self._opened(source.model), ()
        answer = Made(self._key(source, wanted), external=self._external_files(model))
        if assumptions is not None or not self._has_free_dimensions(model):
            try:
                return self._made(answer, source, model, wanted, constants)
            except InputValuesError as error:
                if assumptions is not None:
                    raise
                names = error.inputs
        return replace(answer, template=self._template_of(model, names).data()), None

    def _external_files(self, model: Any) -> tuple[str, ...] | None:
        """The external weight files of an opened ONNX file."""
        if not isinstance(self._model, Path) or is_ir(self._model):
            return None
        from glow_mlir.frontends.onnx.external import external_files

        return tuple(external_files(model))

    def _made(
        self, answer: Made, source: _Source, model: Any, assumptions: Assumptions, constants: MemoryFile
    ) -> tuple[Made, Artifact | None]:
        """The result of `make` if there is an artifact."""
        with self._cache.draft() if self._loader is not None else nullcontext(Draft()) as draft:
            reserve = partial(draft.reserve, otherwise=constants.reserve)
            artifact, _, seconds = self._compiled(model, assumptions, reserve)
            assert isinstance(artifact, Artifact)
            if source.files.changed():
                return Made(), None
            digests = None if self._loader is None else self._cache.store(answer.key, artifact, draft)
        return replace(answer, seconds=seconds, digests=digests), artifact if digests is None else None

    def _keep_template(self, template: Template) -> None:
        """Store a template."""
        self._template = template
        if self._loader is not None and self._source is not None:
            self._templates.store(self._key(self._source, NOTHING), template.data())

    def _steadily(self, work: Callable[[], Found | None]) -> Found:
        """The result of `work` on stable files of the model; raises `ModelError` if they keep changing."""
        for _ in range(MAX_ATTEMPTS):
            if (found := work()) is not None:
                return found
        raise self._restless()

    def _restless(self) -> ModelError:
        hint = "wait until the writer is done"
        return ModelError("its files changed during compilation", file=str(self._model), hint=hint)

    def _look(self, opens: bool = True) -> _Source:
        """
        The present snapshot of the model; without `opens`, raises `UnopenedError` if the model must be opened for it.
        """
        files = Snapshot(self._cache.contents)
        identity, model = model_identity(self._model, files, self._external, opens)
        return _Source(identity, model, files, self._profile_identity(files))

    def _look_unopened(self) -> _Source | None:
        """The present snapshot of the model; `None` if this process would have to open the model for it."""
        try:
            return self._look(opens=False)
        except UnopenedError:
            return None

    def _profile_identity(self, files: Snapshot) -> str:
        """The digest of the profile; raises `InputError` where it cannot be read."""
        if self._options.quantize is None:
            return ""
        path = Path(self._options.quantize.profile)
        try:
            return files.digest(path)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=str(path)) from error

    def _stored_or_known(self, source: _Source) -> Loaded | Template | None:
        """The stored artifact or template."""
        if (found := self._known(source, NOTHING)) is not None:
            return found
        template = Template.from_data(self._templates.load(self._key(source, NOTHING)))
        if template is not None:
            self._remember(source)
        return template

    @without_collector()  # Importing the compiler creates only long-lived objects.
    def _new(self, source: _Source) -> Loaded | Template | None:
        """A new artifact or template made in this process; `None` if files changed meanwhile."""
        model, names = self._opened(source.model), ()
        if not self._has_free_dimensions(model):
            try:
                return self._kept(source, model, NOTHING)
            except InputValuesError as error:
                names = error.inputs
        return self._new_template(source, model, names)

    def _new_template(self, source: _Source, model: Any, names: tuple[str, ...]) -> Template | None:
        """A new template, stored in the cache; `None` if a file changed since the snapshot."""
        return self._begun(source, self._template_of(self._opened(model), names))

    def _template_of(self, model: Any, names: tuple[str, ...]) -> Template:
        """
        The template of an opened model; the values of the inputs `names` determine shapes.

        Raises `OptionError` for unknown machines, because nothing is compiled yet that would report them.
        """
        self._check_machines()
        if is_importable(model):
            return Template(model.signature(self._options.dimensions), names)
        from glow_mlir.frontends.onnx.signature import signature_of

        # Report faults of the whole model once, for all sizes; later imports do not repeat them.
        model.settle(self._options.strict)
        return Template(signature_of(model, self._options.dimensions), names)

    def _check_machines(self) -> None:
        options = self._options
        if options.devices:
            from glow_mlir.partitioning.device_names import named_devices

            named_devices(options.devices)
        elif options.target is not None:
            from glow_mlir.backends.interface import get_backend

            backend = get_backend(options.backend)
            backend.check_target(backend.target(options.target))

    def _begun(self, source: _Source, template: Template) -> Template | None:
        """A template for a session, stored in the cache; `None` if a file changed meanwhile."""
        if source.files.changed():
            return None
        self._remember(source)
        self._keep_template(template)
        return template

    def _remember(self, source: _Source) -> None:
        """Keep the snapshot for a template; a model in memory is copied."""
        self._source = source
        if not isinstance(self._model, Path) and not is_importable(self._model) and not is_opened(self._model):
            self._model = source.identity

    def _opened(self, model: Any) -> Any:
        """An ONNX model without the contents of its large tensors; IR stays as it is."""
        if is_ir(model) or is_importable(model):
            return model
        from glow_mlir.backends.interface import get_backend
        from glow_mlir.frontends.onnx.host_program import check_host_values
        from glow_mlir.frontends.onnx.importer import open_model

        opened = open_model(model, get_backend(self._options.backend).KEEPS_MODULE)
        check_host_values(opened.proto)
        return opened

    def _has_free_dimensions(self, model: Any) -> bool:
        """Whether inputs of an opened model have dimensions without a size in the options."""
        if is_ir(model):
            return False
        given = self._options.dimensions
        labels = [label for label in self._free_dimensions(model) if label not in given]
        ones = dict.fromkeys(given, 1)
        return any(map(grows, given.values())) or any(size_from_label(label, ones) is None for label in labels)

    def _free_dimensions(self, model: Any) -> list[str]:
        """The labels of free dimensions of inputs of an opened model."""
        if is_importable(model):
            return model.free_dimensions()
        from glow_mlir.frontends.onnx.signature import free_dimensions

        return free_dimensions(model.proto.graph, self._options.dimensions)

    def _key(self, source: _Source, assumptions: Assumptions) -> str:
        """The key of an artifact."""
        from glow_mlir.runtime.host import host_name

        return cache_key(
            source.identity,
            source.profile,
            *self._options.key_parts(),
            "" if assumptions == NOTHING else repr(assumptions),
            host_name(),
            self._versions,
            source_stamp(),
        )

    @cached_property
    def _versions(self) -> str:
        return compiler_versions()

    def _known(self, source: _Source, assumptions: Assumptions) -> Loaded | None:
        """The cached artifact, loaded without the compiler."""
        artifact = self._cache.load(self._key(source, assumptions))
        return None if artifact is None else self._stored(artifact, assumptions, {})

    def _stored(
        self, artifact: Artifact, assumptions: Assumptions, seconds: dict[str, float], in_file: bool = True
    ) -> Loaded:
        """
        Load an artifact; specializations share equal constants in memory. `in_file` tells whether its constants are in
        a file of the cache.
        """
        assert self._keeping is not None
        if assumptions != NOTHING:
            artifact = artifact.with_shared_constants(in_file=in_file)
        executable = self._keeping.load(artifact, self._most_threads)
        return Loaded(with_python_values(executable, artifact.manifest.values), seconds)

    def _kept(self, source: _Source, model: Any, assumptions: Assumptions) -> Loaded | None:
        """A new artifact, stored in the cache; `None` if a file changed since the snapshot."""
        with self._cache.draft() as draft:
            artifact, _, seconds = self._compiled(model, assumptions, draft.reserve)
            if source.files.changed():
                return None
            assert isinstance(artifact, Artifact)
            self._cache.store(self._key(source, assumptions), artifact, draft)
        return self._stored(artifact, assumptions, seconds)

    def _loaded(self, model: Any, assumptions: Assumptions, reserve: AllocateConstants | None = None) -> Loaded:
        """A new artifact of a backend that does not cache, or without the cache."""
        from glow_mlir.backends.interface import get_backend

        artifact, values, seconds = self._compiled(model, assumptions, reserve)
        if reserve is not None and isinstance(artifact, Artifact):
            artifact = artifact.with_shared_constants(in_file=False)
        executable: Executable = get_backend(self._options.backend).load(artifact, self._most_threads)
        return Loaded(with_python_values(executable, values), seconds)

    @property
    def _most_threads(self) -> int:
        return int(self._options.fields.get("threads", MAX_THREADS))

    def _compiled(self, model: Any, assumptions: Assumptions, reserve: AllocateConstants | None = None) -> Compiled:
        """
        The backend's result for a model, with constants in memory from `reserve`.

        Raises `TimeLimitError` if compilation takes too long.
        """
        own = Cancellation(current_cancellation())
        with collected_soon(), time_limited(own, self._time_limit, "compilation", "compile_time_limit"):
            return self._compiled_in_time(model, assumptions, reserve)

    def _compiled_in_time(self, model: Any, assumptions: Assumptions, reserve: AllocateConstants | None) -> Compiled:
        """`_compiled`, stopped by the current cancellation."""
        import_fast()
        from glow_mlir.backends.interface import get_backend
        from glow_mlir.ir.python_values import python_values_of

        start, options = time.perf_counter(), self._options
        # Observers of modules always see the same digests.
        by_content = bool(options.observers or options.pass_observers)
        in_memory = get_backend(options.backend).KEEPS_MODULE
        dimensions = {**options.dimensions, **dict(assumptions.sizes)}
        values = assumptions.arrays()

        def imported() -> ModuleOp:
            return import_any(model, dimensions, by_content, in_memory, values, options.strict)

        compilation = options.compilation(imported(), as_given=is_ir(model), again=imported)
        compilation.check_runnable()
        compilation.seconds["import"] = time.perf_counter() - start
        values = python_values_of(compilation.module)
        artifact = compilation.artifact(reserve)
        if isinstance(artifact, Artifact):
            artifact = replace(artifact, manifest=replace(artifact.manifest, values=values))
        return artifact, values, compilation.seconds
