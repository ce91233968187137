"""Import of ONNX models: from a path, bytes or a ModelProto to a module of `glow_high`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import checker, defs, inliner
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.collector import without_collector
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.graph import GraphImporter

OLDEST_OPSET = 7

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


@without_collector()
def import_model(source: ModelSource, dimensions: Mapping[str, int] | None = None, name: str = "main") -> ModuleOp:
    """
    Import an ONNX model (opset 7 and newer) as function `name` of a new module of `glow_high`.

    `dimensions` gives the free dimensions of the inputs their sizes, see `input_types`. Weights go to the weight store.
    Raises `ModelError` for a damaged or contradictory model, and `UnsupportedError` that lists every unsupported node.
    """
    model, path = load_model(source)
    try:
        check_names(model.graph)
        opsets = _opsets(model)
        directory = None if path is None else str(path.parent)
        return GraphImporter(_inlined(model).graph, opsets, dict(dimensions or {}), directory).run(name)
    except GlowError as error:
        error.file = error.file or ("" if path is None else str(path))
        raise


def check_names(graph: onnx.GraphProto) -> None:
    """Raise `ModelError` where a name is no text, as in a damaged file: protobuf gives it as bytes."""
    for node in graph.node:
        texts = (node.name, node.op_type, node.domain, *node.input, *node.output, *(a.name for a in node.attribute))
        if not all(map(_is_text, texts)):
            raise ModelError(f"a name of node {node.name!r} is not text")
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                check_names(inner)
    for value in (*graph.input, *graph.output, *graph.initializer):
        if not _is_text(value.name):
            raise ModelError(f"the name {value.name!r} is not text")


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _opsets(model: onnx.ModelProto) -> dict[str, int]:
    """The opset version of each domain; raises `UnsupportedError` for those of ONNX that are too old or too new."""
    opsets = {"" if opset.domain == "ai.onnx" else opset.domain: opset.version for opset in model.opset_import}
    version = opsets.get("", OLDEST_OPSET)
    older = [node.op_type for node in model.graph.node if version < OLDEST_OPSET and _changed(node, version)]
    if older:
        reason = f"opset {version} is older than {OLDEST_OPSET}, and {older[0]} has changed since"
        raise UnsupportedError(reason, hint="convert the model with onnx.version_converter")
    if version > defs.onnx_opset_version():
        newest = defs.onnx_opset_version()
        raise UnsupportedError(f"opset {version} is newer than {newest}, the newest that this onnx package knows")
    return opsets


def _changed(node: onnx.NodeProto, version: int) -> bool:
    """Whether an operator was another one in an opset older than `OLDEST_OPSET`, or did not exist."""
    try:
        return defs.get_schema(node.op_type, OLDEST_OPSET, node.domain).since_version > version
    except defs.SchemaError:
        return True


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without functions of its own."""
    if not model.functions:
        return model
    try:
        return inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, DecodeError, checker.ValidationError) as error:
        raise ModelError(f"the model's functions cannot be inlined: {' '.join(str(error).split())}") from error
