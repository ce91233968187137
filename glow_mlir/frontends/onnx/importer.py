"""Import of ONNX models: from a path, bytes or a ModelProto to a module of `glow_high`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import inliner
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.graph import OLDEST_OPSET, GraphImporter

ModelSource = str | Path | bytes | onnx.ModelProto


def load_model(source: ModelSource) -> tuple[onnx.ModelProto, Path | None]:
    """The model and its file, if it has one; raises `ModelError` for what is no ONNX model."""
    if isinstance(source, onnx.ModelProto):
        return source, None
    path = None if isinstance(source, bytes) else Path(source)
    file = "" if path is None else str(path)
    try:
        data = source if isinstance(source, bytes) else Path(source).read_bytes()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", file=file) from error
    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ModelError(
            "is not an ONNX model, or is cut off", file=file, hint="check that the download is complete"
        ) from error
    if not model.HasField("graph") or not model.opset_import:
        raise ModelError("is not an ONNX model: it has no graph or no opset", file=file)
    return model, path


def import_model(
    source: ModelSource, dimensions: Mapping[str, int] | None = None, name: str = "main"
) -> ModuleOp:
    """
    Import an ONNX model (opset 7 and newer) as function `name` of a new module of `glow_high`.

    `dimensions` gives the free dimensions of the inputs their sizes. Weights go to the weight store. Raises `ModelError`
    for a damaged or contradictory model, and `UnsupportedError`, which lists every unsupported node.
    """
    model, path = load_model(source)
    file = "" if path is None else str(path)
    if model.functions:
        model = inliner.inline_local_functions(model)
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    if opsets.get("", OLDEST_OPSET) < OLDEST_OPSET:
        raise UnsupportedError(
            f"opset {opsets['']} is older than {OLDEST_OPSET}",
            file=file,
            hint="convert the model with onnx.version_converter",
        )
    directory = "" if path is None else str(path.parent)
    try:
        return GraphImporter(model.graph, opsets, dict(dimensions or {}), directory).run(name)
    except GlowError as error:
        error.file = error.file or file
        raise
