"""A model as several: the stages of a pipeline, each of which is a model of its own that another process may run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from glow_mlir.api.compile_options import CompileOptions
from glow_mlir.api.models import accepted_model, import_any
from glow_mlir.api.session_keywords import SessionRules
from glow_mlir.dialects.packages import DEFAULT_BACKEND, SEVERAL_BACKENDS
from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import declared
from glow_mlir.options.policy import Policy
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class StageModels:
    """The models of stages, in order; names tell what one gives and another takes."""

    paths: tuple[Path, ...]
    """A `.mlir` file of each, with its weights beside it."""
    outputs: Mapping[str, str]
    """Output of the whole → what it is called that a stage gives, or that is an input."""
    keywords: Mapping[str, Any]
    """What sessions of stages are told."""


def split_model(model: Any, keywords: Mapping[str, Any], stages: int, folder: Path) -> StageModels:
    """
    Cut a model into so many stages at most, of which the slowest is as fast as it can be, and write them to a folder.

    `keywords` are those of a session of it. Where one stage is faster by itself than what it gives to another, there
    are fewer. Raises `GlowError` for whatever is wrong with the model, `UnsupportedError` where sizes are no numbers,
    and `OptionError` for a model with state, which is in no stage alone.
    """
    from glow_mlir.driver.pipelines import PARTITIONED
    from glow_mlir.ir.text import write_module
    from glow_mlir.partitioning.device_modules import stage_modules

    backend = keywords.get("backend") or DEFAULT_BACKEND
    rules = {name: keywords[name] for name in (*declared(SessionRules), *declared(Policy)) if name in keywords}
    rules.pop("entry", None)
    rest = {name: value for name, value in keywords.items() if name not in declared(SessionRules)}
    all_keywords = {
        "partition": "pipeline",
        **rest,
        "backend": SEVERAL_BACKENDS,
        "devices": ",".join([backend] * stages),
    }
    options = CompileOptions.from_keywords(all_keywords)
    given = accepted_model(model)

    def imported() -> Any:
        return import_any(given, options.dimensions, strict=options.strict)

    module = options.compilation(imported(), again=imported).run(PARTITIONED.name)
    _check_stateless(module)
    parts, outputs = stage_modules(module)
    paths: list[Path] = []
    for number, part in enumerate(parts):
        paths.append(folder / f"stage{number}.mlir")
        write_module(part, paths[-1])
    return StageModels(tuple(paths), outputs, {**rules, "backend": backend})


def _check_stateless(module: Any) -> None:
    """Raise `OptionError` for a module with state."""
    from glow_mlir.constants.storage import Storage
    from glow_mlir.dialects.glow_high.storage import PlaceholderOp

    if any(isinstance(op, PlaceholderOp) and op.role == "state" for op in Storage(module).by_name.values()):
        raise OptionError("a model with state cannot be split into stages", hint="stages=1")


@dataclass(frozen=True)
class PackedModel:
    """The files of a model as bytes, for a machine that has not got them."""

    name: str
    files: Mapping[str, bytes]

    @staticmethod
    def of(path: Path) -> PackedModel:
        """Those of a `.mlir` file."""
        from glow_mlir.ir.text import weights_path

        files = (item for item in (path, weights_path(path)) if item.is_file())
        return PackedModel(path.name, {item.name: item.read_bytes() for item in files})

    def unpacked(self, folder: TemporaryDirectory[str]) -> Path:
        """Where the model lies in a folder."""
        for name, content in self.files.items():
            Path(folder.name, name).write_bytes(content)
        return Path(folder.name, self.name)
