"""Import of ONNX models: from a path, bytes or a ModelProto to a module of `glow_high`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import defs
from onnx.external_data_helper import uses_external_data
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.onnx.checking import check_graph, check_model, embed
from glow_mlir.frontends.onnx.graph import GraphImporter
from glow_mlir.frontends.onnx.host_operators.registry import check_host_operators
from glow_mlir.frontends.onnx.inconsistencies import Inconsistencies
from glow_mlir.frontends.onnx.models.assumptions import assume
from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.doubts import Doubt
from glow_mlir.frontends.onnx.models.inlining import inlined
from glow_mlir.frontends.onnx.models.order import node_name
from glow_mlir.frontends.onnx.models.tensors import Tensors, content_of
from glow_mlir.frontends.onnx.models.traversal import all_tensors, graphs_of
from glow_mlir.frontends.onnx.models.wire import without_tensors
from glow_mlir.support.collector import without_collector
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.file_kinds import NEAR, ONNX, TEXT, kind_of
from glow_mlir.support.symbols import GivenDimension

WITHOUT_OPSETS = (1, 2)
"""IR versions whose models import no opsets: there was only the first one."""

_DAMAGED = "the model is damaged, check that the download is complete"

ModelSource = str | Path | bytes | onnx.ModelProto


@dataclass(frozen=True)
class Model:
    """A model whose large tensors stay in its file or in external files; `path` is its file, if it has one."""

    proto: onnx.ModelProto
    path: Path | None
    tensors: Tensors
    doubts: tuple[Doubt, ...] = ()
    """Its faults, some repaired (see `assumptions`); the others do not prevent the import."""
    customs: tuple[tuple[str, Doubt], ...] = ()
    """Kinds and faults that are common in files: reported only if the import is strict."""

    @property
    def file(self) -> str:
        """The name of its file for errors, empty if it has none."""
        return "" if self.path is None else str(self.path)

    def inconsistencies(self) -> Inconsistencies:
        """A new collection of its faults, to which the import adds those of nodes and values."""
        return Inconsistencies(others=list(self.doubts), customs=list(self.customs))

    def settle(self, is_strict: bool) -> None:
        """Warn of its faults; raises `ModelError` if `is_strict`."""
        self.inconsistencies().settle(self.file, is_strict)


def open_model(source: ModelSource | Model, in_memory: bool = False) -> Model:
    """
    Open a model without reading the content of its large tensors; raises `ModelError` if it is not an ONNX model.

    The content stays in the files, which must not change while it is in use, unless it is read `in_memory`. Mistakes
    that other engines tolerate are repaired, see `assumptions`.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, onnx.ModelProto):
        return _mended(source, None, Tensors(), is_own=False)
    content, path = _content(source, in_memory)
    tensors = Tensors(content, None if path is None else str(path.parent), in_memory)
    return _mended(_parsed(without_tensors, content, path), path, tensors, is_own=True)


def _mended(model: onnx.ModelProto, path: Path | None, tensors: Tensors, is_own: bool) -> Model:
    """Repair a model, in place if it `is_own`; see `assumptions`."""
    try:
        check_text(model)
        mended, doubts = assume(model, is_own)
    except GlowError as error:
        error.file = error.file or ("" if path is None else str(path))
        raise
    found = Inconsistencies()
    found.check_graph(mended)
    return Model(mended, path, tensors, (*found.others, *doubts), tuple(found.customs))


def load_model(source: ModelSource) -> Model:
    """Load the whole content of a model's file; raises `ModelError` if it is not an ONNX model."""
    if isinstance(source, onnx.ModelProto):
        return _mended(source, None, Tensors(), is_own=False)
    content, path = _content(source)
    return _mended(_parsed(bytes, content, path), path, Tensors(), is_own=True)


def whole_model(source: ModelSource | Model, strict: bool = False) -> Model:
    """
    Load a model with all its tensors, including external ones; raises errors like `load_model`.

    Its faults become warnings, or a `ModelError` if the import is `strict`. They are not reported again when parts of
    it are imported.
    """
    loaded = source if isinstance(source, Model) else load_model(source)
    try:
        check_graph(loaded.proto)
        loaded.settle(strict)
        if loaded.path is not None:
            tensors = Tensors(None, str(loaded.path.parent), in_memory=True)
            for tensor in all_tensors(loaded.proto):
                if uses_external_data(tensor):
                    embed(tensor, tensors)
    except GlowError as error:
        error.file = error.file or loaded.file
        raise
    return replace(loaded, doubts=(), customs=())


def _content(source: str | Path | bytes, in_memory: bool = False) -> tuple[memoryview, Path | None]:
    """The serialized model, memory-mapped or `in_memory`, and its file, if it has one."""
    if isinstance(source, bytes):
        return memoryview(source), None
    try:
        return content_of(Path(source), in_memory), Path(source)
    except OSError as error:
        hint = "a model is given by the path of its file"
        raise ModelError(f"cannot be read: {error.strerror}", file=str(source), hint=hint) from error


def _parsed(read: Callable[[memoryview], bytes], content: memoryview, path: Path | None) -> onnx.ModelProto:
    """Parse a serialized model; `read` returns the bytes to parse."""
    file, subject = ("", "the model ") if path is None else (str(path), "")
    try:
        model = onnx.load_model_from_string(read(content))
    except (DecodeError, ValueError) as error:
        if (kind := kind_of(bytes(content[:NEAR]), file)) is None or kind is ONNX:
            reason, hint = "is not an ONNX model, or is cut off", "check that the download is complete"
        else:
            reason, hint = f"is not an ONNX model, but {kind.name}", kind.hint
            if path is None and kind is TEXT:
                hint = "bytes are the content of a model; the path of a file is a str or a Path"
        raise ModelError(f"{subject}{reason}", file=file, hint=hint) from error
    if not content:
        raise ModelError(f"{subject}is empty", file=file, hint="check that the download is complete")
    if not model.HasField("graph") or not (model.opset_import or model.ir_version in WITHOUT_OPSETS):
        hint = "export it again, or check that the download is complete"
        raise ModelError(f"{subject}is not an ONNX model: it has no graph or no opset", file=file, hint=hint)
    return model


@without_collector()
def import_model(
    source: ModelSource | Model,
    dimensions: Mapping[str, GivenDimension] | None = None,
    name: str = "main",
    by_content: bool = True,
    in_memory: bool = False,
    values: Mapping[str, np.ndarray] | None = None,
    strict: bool = False,
    state: Mapping[str, bool] | None = None,
    module: ModuleOp | None = None,
    seed: int = 0,
    importers: Mapping[tuple[str, str], Callable[..., Any]] | None = None,
) -> ModuleOp:
    """
    Import an ONNX model, of any opset, as function `name` of a new module of `glow_high`.

    - `dimensions`: the sizes of free dimensions of inputs, see `input_types`.
    - `values`: inputs that become constants instead of inputs of the function.
    - `in_memory`: read large weights into memory. Otherwise they stay in their files, which must not change while the
      module is in use. All weights go to the weight store.
    - `by_content`: identify weights by digests of their content. Otherwise they are not read for their digests, which
      are valid in this process only.
    - `strict`: raise a `ModelError` for faults that do not prevent the import, such as a declared shape that differs
      from the result of its node. Otherwise they become warnings.
    - `state`: names of initializers that become state; trainable if the value is true.
    - `module`: the module that the function is added to, and with whose functions it shares storage.
    - `seed`: the seed of random numbers for nodes without a seed of their own.
    - `importers`: importers of operators, by domain and kind, in place of the usual ones.

    Raises `ModelError` for a damaged or contradictory model, and an `UnsupportedError` that lists every unsupported
    node; an `InputValuesError` if only the values of inputs that determine shapes are missing.
    """
    operators()  # Load the operators first: an error in a package of operators is not the model's.
    model = open_model(source, in_memory)
    try:
        check_graph(model.proto)
        inconsistencies = model.inconsistencies()
        check_host_operators(model.proto)
        plain = inlined(model.proto)
        opsets = opsets_of(plain)
        pool = None if by_content else ConstantPool()
        known = {input_: np.asarray(value) for input_, value in (values or {}).items()}
        sizes, kept = dict(dimensions or {}), dict(state or {})
        importer = GraphImporter(
            plain.graph, opsets, sizes, model.tensors, pool, known, inconsistencies, kept, module, seed, importers or {}
        )
        try:
            made = importer.run(name)
        except GlowError:
            raise
        except Exception:
            check_model(model.proto, plain, model.tensors)
            raise
        # Afterwards, because the errors of importers are more specific.
        check_model(model.proto, plain, model.tensors)
        inconsistencies.settle(model.file, strict)
        return made
    except GlowError as error:
        error.file = error.file or model.file
        raise


def check_text(model: onnx.ModelProto) -> None:
    """Raise `ModelError` if a name is not text, as in a damaged file: protobuf returns it as bytes."""
    _check_names(model.graph)
    for function in model.functions:
        _check_node_names(function.node)


def _check_names(graph: onnx.GraphProto) -> None:
    _check_node_names(graph.node)
    sparse = (tensor.values for tensor in graph.sparse_initializer)
    for value in (*graph.input, *graph.output, *graph.initializer, *sparse):
        if not _is_text(value.name):
            raise ModelError(f"the name {value.name!r} is not text", hint=_DAMAGED)


def _check_node_names(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        texts = (node.name, node.op_type, node.domain, *node.input, *node.output, *(a.name for a in node.attribute))
        if not all(map(_is_text, texts)):
            raise ModelError(f"a name of node {node.name!r} is not text", hint=_DAMAGED)
        if not node.op_type:
            raise ModelError("the node has no operator type", node=node_name(node), hint=_DAMAGED)
        for inner in graphs_of(node):
            _check_names(inner)


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """The opset version of each domain; raises `UnsupportedError` if ONNX's own opset is too new."""
    opsets = {plain_domain(opset.domain): opset.version for opset in model.opset_import}
    if not opsets and model.ir_version in WITHOUT_OPSETS:
        return {"": 1}
    newest = defs.onnx_opset_version()
    if (version := opsets.get("", newest)) > newest:
        reason = f"opset {version} is newer than {newest}, the latest of this onnx package"
        raise UnsupportedError(reason, hint="install a newer onnx package, or export the model for an older opset")
    return opsets
