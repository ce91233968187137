"""Sessions of models, compiled or loaded from the cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.host_values import with_host_values
from glow_mlir.api.model_compiler import ModelCompiler
from glow_mlir.api.model_identity import model_backend
from glow_mlir.api.models import accepted_model
from glow_mlir.api.session import Session
from glow_mlir.api.session_keywords import SPECIALISED, SessionRules, check_keywords, given_seconds
from glow_mlir.dialects.packages import DEFAULT_BACKEND
from glow_mlir.errors import OptionError, UnsupportedError
from glow_mlir.options.declaration import declared
from glow_mlir.runtime.executable import Executable
from glow_mlir.runtime.machine_code import MachineCode, MachineEntry
from glow_mlir.runtime.signature import missing_sizes
from glow_mlir.runtime.specialization import Specialization
from glow_mlir.runtime.specializations import SpecializationLimits, Specializations
from glow_mlir.support.activity import say


class ModelSession(Session):
    """
    A model, compiled and ready to run.

    `model` is a result of `accepted_model`. If dimensions have no sizes, or values of inputs determine shapes, the
    model is compiled when it is called. Raises `GlowError` for any error in the model or the options.
    """

    def __init__(self, model: Any, options: CompileOptions, rules: SessionRules | None = None) -> None:
        rules = rules or SessionRules()
        say(f"a session begins of {model if isinstance(model, Path) else 'a model in memory'}")
        self.model = model
        """The model as given."""
        self.options = options.configured(None if rules.configuration is None else Path(rules.configuration))
        """The compile options."""
        limit = given_seconds("compile_time_limit", rules.compile_time_limit)
        limits = rules.limits or SpecializationLimits()

        reported: set[str] = set()

        def compiled(model: Any) -> tuple[Executable, dict[str, float]]:
            compiler = ModelCompiler(
                model, self.options, rules.cache, limit, progress=rules.progress, reported=reported
            )
            return compiler.executable(compiler.open(), limits, rules.warm == SPECIALISED)

        executable, self._seconds = with_host_values(model, compiled, self.options.strict, reported)
        names = {name: name for name in executable.names}
        time_limit = given_seconds("time_limit", rules.time_limit)
        super().__init__(executable, names, executable.chosen(rules.entry), time_limit)

    @classmethod
    def of(cls, model: Any, **keywords: Any) -> Self:
        """The session of a model, which may be anything that `InferenceSession` accepts, with its keywords."""
        check_keywords(keywords)
        return cls.from_keywords(accepted_model(model), keywords)

    @classmethod
    def from_keywords(cls, model: Any, keywords: Mapping[str, Any]) -> Self:
        """The session of a model and keywords; checks both."""
        rule_values = {name: keywords.get(name) for name in declared(SessionRules)}
        rules = SessionRules(**{name: value for name, value in rule_values.items() if value is not None})
        backend = keywords.get("backend") or model_backend(model, keywords.get("devices") or "")
        return cls(model, CompileOptions.from_keywords({**keywords, "backend": backend}), rules)

    @property
    def executable(self) -> Executable:
        """The executable; with several specializations, the last that ran. Raises `OptionError` before the first."""
        return self.loaded.current

    @property
    def specializations(self) -> list[Specialization]:
        """
        The code compiled for sizes and values of calls; the last that ran comes last.

        Empty for a model without free dimensions or inputs that determine shapes.
        """
        return self.loaded.kept() if isinstance(self.loaded, Specializations) else []

    @property
    def shape_inputs(self) -> tuple[str, ...]:
        """The inputs whose values determine shapes, as far as calls have shown."""
        return self.loaded.value_names if isinstance(self.loaded, Specializations) else ()

    @property
    def is_deferred(self) -> bool:
        """Whether the model is compiled when it is called, for the sizes or values of its inputs."""
        return isinstance(self.loaded, Specializations)

    def require_sizes(self) -> None:
        """
        Raise `UnsupportedError` if the model is compiled only when it is called, because sizes or values are missing.
        """
        if not isinstance(self.loaded, Specializations):
            return
        if free := self.loaded.signature.free:
            raise missing_sizes(free)
        listed = ", ".join(f"'{name}'" for name in self.shape_inputs)
        hint = f"'glow-import --value {self.shape_inputs[0]}=NUMBERS' makes a module for one value"
        raise UnsupportedError(f"the model is compiled for the values of inputs that fix shapes: {listed}", hint=hint)

    @property
    def compile_seconds(self) -> Mapping[str, float]:
        """
        Seconds of each stage of the compilation; empty if the artifact came from the cache.

        With several specializations, those of the last that ran.
        """
        return self.specializations[-1].compile_seconds if self.specializations else self._seconds

    @property
    def machine_code(self) -> MachineCode:
        """The loaded machine code; raises `OptionError` for a backend without."""
        executable = self.executable
        if not isinstance(executable, MachineCode):
            reason = f"the backend '{self.options.backend}' has no machine code"
            raise OptionError(reason, hint=f"backend='{DEFAULT_BACKEND}'")
        return executable

    @property
    def machine_entry(self) -> MachineEntry:
        """The machine code of the entry of the session; raises `OptionError` for a backend without."""
        return self.machine_code_of(self.first.name)

    def machine_code_of(self, entry: str) -> MachineEntry:
        """The machine code of an entry; raises `OptionError` for a backend without."""
        return self.machine_code.load(entry)
