"""The identity of a model: its content, and that of its external weight files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from glow_mlir.dialects.packages import DEFAULT_BACKEND, SEVERAL_BACKENDS
from glow_mlir.errors import ModelError
from glow_mlir.runtime.cache import cache_key
from glow_mlir.runtime.identity import Snapshot
from glow_mlir.runtime.json_cache import JsonCache
from glow_mlir.runtime.sources import source_stamp
from glow_mlir.support.file_kinds import TFLITE

if TYPE_CHECKING:
    from glow_mlir.frontends.onnx.importer import Model


def is_ir(model: Any) -> bool:
    """Whether a model is our IR (a `.mlir` file or a module), not an ONNX model."""
    if isinstance(model, str | Path):
        return Path(model).suffix == ".mlir"
    # Neither xdsl nor onnx is imported for this, because cached models need neither.
    return hasattr(model, "walk")


def name_of(model: Any) -> str:
    """The name of a model for reports: that of its file, if it has one."""
    if isinstance(model, Path):
        return model.name
    return str(model) if is_importable(model) else "a model"


def is_importable(model: Any) -> bool:
    """Whether a model has an import method of its own, such as a `TracedModel`."""
    return hasattr(model, "free_dimensions") and hasattr(model, "identity")


def is_opened(model: Any) -> bool:
    """Whether a model is an ONNX `Model`, which knows its file and its faults."""
    return hasattr(model, "proto") and hasattr(model, "doubts")


_NAMED = re.compile(r"backend\s*=\s*([^,>]*)")
"""The syntax of a backend in the target of a function."""


def model_backend(model: Any, devices: str = "") -> str:
    """
    The backend of a model's functions; the backend for several devices if `devices` are given; or the default backend.

    Raises `OptionError` if the functions disagree, and `GlowError` for a file that is not a module.
    """
    if devices:
        return SEVERAL_BACKENDS
    if not is_ir(model):
        return DEFAULT_BACKEND
    if isinstance(model, Path):
        try:
            named = set(_NAMED.findall(model.read_text(errors="replace")))
        except OSError:
            return DEFAULT_BACKEND  # The compilation will report the error.
        # Most files name only the default backend, and may be cached: that can be seen without a parser.
        if named <= {f'"{DEFAULT_BACKEND}"'}:
            return DEFAULT_BACKEND
    from glow_mlir.backends.interface import module_backend
    from glow_mlir.ir.context import new_context
    from glow_mlir.ir.text import read_module

    return module_backend(read_module(model, new_context()) if isinstance(model, Path) else model)


class UnopenedError(Exception):
    """The model must be opened to know which files hold its weights."""


def model_identity(
    model: Any, files: Snapshot, external: Sequence[str] | None = None, opens: bool = True
) -> tuple[bytes | str, Any]:
    """
    The identity of a model (its bytes, or the digests of its files), and the model, opened if the identity needs it.

    The text of a module in memory contains the digests of its weights and so identifies them; a module in a file does
    not, because its weight file may change. `external` are the external files, if known. Raises `ModelError` if a file
    cannot be read, and without `opens` `UnopenedError`.
    """
    if isinstance(model, bytes):
        return model, model
    if isinstance(model, Path):
        try:
            return (_of_module(model, files), model) if is_ir(model) else _of_onnx(model, files, external, opens)
        except OSError as error:
            hint = "a model is given by the path of an .onnx or .mlir file, and its weights lie beside it"
            if model.is_dir():
                hint = "name the .onnx or .mlir file in it; run the output of glow-compile with glow_mlir.load_bundle"
            file = str(error.filename or model)
            raise ModelError(f"cannot be read: {error.strerror}", file=file, hint=hint) from error
    if is_importable(model):
        return model.identity, model
    if is_ir(model):
        from glow_mlir.ir.text import module_text

        return module_text(model, locations=True), model
    proto = model.proto if is_opened(model) else model
    return proto.SerializeToString(deterministic=True), model


def files_of(path: Path) -> tuple[Path, ...]:
    """The file of a model and its external weight files; raises `ModelError` for other files."""
    if is_ir(path):
        from glow_mlir.ir.text import weights_path

        return path, weights_path(path)
    if path.suffix == TFLITE:
        return (path,)
    from glow_mlir.frontends.onnx.external import external_files
    from glow_mlir.frontends.onnx.importer import open_model

    return path, *(path.parent / name for name in external_files(open_model(path)))


def stored_bytes(model: Any) -> int:
    """
    The stored size of a model in bytes, which is mostly weights; it is known before compilation.

    0 for models that each session imports again, and for missing files.
    """
    if isinstance(model, bytes):
        return len(model)
    if isinstance(model, Path):
        try:
            return sum(path.stat().st_size for path in files_of(model) if path.is_file())
        except (OSError, ModelError):
            return 0
    if is_importable(model):
        return 0
    if not is_ir(model):
        return (model.proto if is_opened(model) else model).ByteSize()
    from glow_mlir.dialects.glow_high.storage import ConstantOp
    from glow_mlir.dialects.shapes import bytes_of

    return sum(bytes_of(op.type) for op in model.walk() if isinstance(op, ConstantOp))


def _of_module(path: Path, files: Snapshot) -> str:
    """The digests of a `.mlir` file and of its weight file; raises `OSError` if they cannot be read."""
    from glow_mlir.ir.text import weights_path

    weights = weights_path(path)
    # The weight file is found by convention, not by a name in the model, so it may be a symbolic link.
    return f"{files.digest(path)} {files.digest(weights) if weights.exists() else ''}"


def _of_onnx(path: Path, files: Snapshot, external: Sequence[str] | None, opens: bool) -> tuple[str, Path | Model]:
    """The digests of an `.onnx` file and its external files, and the model, opened if necessary."""
    digest = files.digest(path)
    # The external files are known by the content of the model file: a known model need not be opened for them.
    answers, key = JsonCache("external"), cache_key(digest, source_stamp())
    names, model = external if external is not None else _names_in(answers.load(key)), path
    if names is None:
        if not opens:
            raise UnopenedError
        from glow_mlir.frontends.onnx.external import external_files
        from glow_mlir.frontends.onnx.importer import open_model

        model = open_model(path)
        names = external_files(model)
        if not files.changed():
            answers.store(key, {"files": names})
    found = [(name, files.digest_in_folder(path.parent, name)) for name in names]
    return f"{digest} {found}", model


def _names_in(answer: dict[str, Any] | None) -> list[str] | None:
    """The file names in a cached answer; `None` if it has none."""
    names: object = (answer or {}).get("files")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[object]", names)):
        return None
    return cast("list[str]", names)
