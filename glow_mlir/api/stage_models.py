"""Split a model into pipeline stages; each stage is a separate model that another process may run."""

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
    """The models of the stages, in order; tensors between stages are matched by name."""

    paths: tuple[Path, ...]
    """The `.mlir` file of each stage, next to its weight file."""
    outputs: Mapping[str, str]
    """Output of the whole model → its name as an output of a stage, or as an input."""
    keywords: Mapping[str, Any]
    """The session keywords of the stages."""


def split_model(model: Any, keywords: Mapping[str, Any], stages: int, folder: Path) -> StageModels:
    """
    Split a model into at most `stages` stages, so that the slowest is as fast as possible, and write them to a folder.

    `keywords` are those of a session of the model. There are fewer stages where running one stage takes less time than
    transferring its results. Raises `GlowError` for any error in the model, `UnsupportedError` if sizes are not
    numbers, and `OptionError` for a model with state, because stages cannot share state.
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
    """The files of a model as bytes, for a machine that lacks them."""

    name: str
    files: Mapping[str, bytes]

    @staticmethod
    def of(path: Path) -> PackedModel:
        """Pack a `.mlir` file and its weights."""
        from glow_mlir.ir.text import weights_path

        files = (item for item in (path, weights_path(path)) if item.is_file())
        return PackedModel(path.name, {item.name: item.read_bytes() for item in files})

    def unpacked(self, folder: TemporaryDirectory[str]) -> Path:
        """Write the files to a folder; return the path of the model."""
        for name, content in self.files.items():
            Path(folder.name, name).write_bytes(content)
        return Path(folder.name, self.name)
