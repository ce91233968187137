"""Import of ONNX models: from a path, bytes or a ModelProto to a module of `glow_high`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import defs
from onnx.external_data_helper import uses_external_data
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.onnx.assumptions import assume
from glow_mlir.frontends.onnx.checking import check_graph, check_model, embed
from glow_mlir.frontends.onnx.domains import plain_domain
from glow_mlir.frontends.onnx.doubts import Doubt
from glow_mlir.frontends.onnx.graph import GraphImporter
from glow_mlir.frontends.onnx.host_operators.registry import check_host_operators
from glow_mlir.frontends.onnx.inconsistencies import Inconsistencies
from glow_mlir.frontends.onnx.inlining import inlined
from glow_mlir.frontends.onnx.order import node_name
from glow_mlir.frontends.onnx.tensors import Tensors, content_of
from glow_mlir.frontends.onnx.traversal import all_tensors, graphs_of
from glow_mlir.frontends.onnx.wire import without_tensors
from glow_mlir.support.collector import without_collector
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.file_kinds import NEAR, ONNX, TEXT, kind_of
from glow_mlir.support.symbols import Dimension

WITHOUT_OPSETS = (1, 2)
"""IR versions whose models say nothing of opsets: there was only the first."""

_DAMAGED = "the model is damaged, check that the download is complete"

ModelSource = str | Path | bytes | onnx.ModelProto


@dataclass(frozen=True)
class Model:
    """A model, with its large tensors left where they are; `path` is its file, if it has one."""

    proto: onnx.ModelProto
    path: Path | None
    tensors: Tensors
    doubts: tuple[Doubt, ...] = ()
    """Its faults as a whole: some are mended, see `assumptions`, and it is imported in spite of the others."""
    customs: tuple[tuple[str, Doubt], ...] = ()
    """Those that many files have, by kinds: only the strict are told of them."""

    @property
    def file(self) -> str:
        """Its file, as errors name it."""
        return "" if self.path is None else str(self.path)

    def inconsistencies(self) -> Inconsistencies:
        """Its faults as a whole, to which the import adds those of nodes and values."""
        return Inconsistencies(others=list(self.doubts), customs=list(self.customs))

    def settle(self, is_strict: bool) -> None:
        """Warn of its faults as a whole; raises `ModelError` where a user is strict."""
        self.inconsistencies().settle(self.file, is_strict)


def open_model(source: ModelSource | Model, in_memory: bool = False) -> Model:
    """
    The model without the content of its large tensors; raises `ModelError` for what is no ONNX model.

    That content stays in the files, which must not change as long as it is used, or else is read `in_memory`. What
    other engines forgive is mended, see `assumptions`.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, onnx.ModelProto):
        return _mended(source, None, Tensors(), is_own=False)
    content, path = _content(source, in_memory)
    tensors = Tensors(content, None if path is None else str(path.parent), in_memory)
    return _mended(_parsed(without_tensors, content, path), path, tensors, is_own=True)


def _mended(model: onnx.ModelProto, path: Path | None, tensors: Tensors, is_own: bool) -> Model:
    """A model without the mistakes that are forgiven, changed in place where it `is_own`."""
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
    """The whole model, with all that is in its file; raises `ModelError` for what is no ONNX model."""
    if isinstance(source, onnx.ModelProto):
        return _mended(source, None, Tensors(), is_own=False)
    content, path = _content(source)
    return _mended(_parsed(bytes, content, path), path, Tensors(), is_own=True)


def whole_model(source: ModelSource | Model, strict: bool = False) -> Model:
    """
    The model with all its tensors, those in other files among them; raises as `load_model`.

    A warning tells what is wrong with it as a whole, or a `ModelError` where the import is `strict`. Those who import
    parts of it are not told again.
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
    """The serialized model, mapped or `in_memory`, and its file, if it has one."""
    if isinstance(source, bytes):
        return memoryview(source), None
    try:
        return content_of(Path(source), in_memory), Path(source)
    except OSError as error:
        hint = "a model is given by the path of its file"
        raise ModelError(f"cannot be read: {error.strerror}", file=str(source), hint=hint) from error


def _parsed(read: Callable[[memoryview], bytes], content: memoryview, path: Path | None) -> onnx.ModelProto:
    """The message in a serialized model, of which `read` gives the bytes that are wanted."""
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
    dimensions: Mapping[str, Dimension] | None = None,
    name: str = "main",
    by_content: bool = True,
    in_memory: bool = False,
    values: Mapping[str, np.ndarray] | None = None,
    strict: bool = False,
    state: Mapping[str, bool] | None = None,
    module: ModuleOp | None = None,
    seed: int = 0,
) -> ModuleOp:
    """
    Import an ONNX model, of any opset, as function `name` of a new module of `glow_high`.

    `dimensions` gives the free dimensions of the inputs their sizes, see `input_types`; inputs with `values` are
    constants, and no inputs of the function. Weights go to the weight store; large ones stay in their files, which must
    not change as long as the module is used, unless they are to be `in_memory`. Unless `by_content`, their digests mean
    nothing outside this process, and are had without reading them. Of what a model says wrongly, and can be imported in
    spite of, such as outputs of other shapes than its nodes give, a warning tells, or a `ModelError` where the import
    is `strict`.
    Initializers that `state` names are state, trainable if it says so. The function is added to `module`, if there is
    one, with whose functions it shares storage. Random numbers of nodes without a seed of their own follow from `seed`.
    Raises `ModelError` for a damaged or contradictory model, and `UnsupportedError` that lists every unsupported node;
    an `InputValuesError` where nothing is missing but values of inputs that fix shapes.
    """
    operators()  # What is wrong with a package of operators is no matter of the model.
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
            plain.graph, opsets, sizes, model.tensors, pool, known, inconsistencies, kept, module, seed
        )
        try:
            made = importer.run(name)
        except GlowError:
            raise
        except Exception:
            check_model(model.proto, plain, model.tensors)
            raise
        # Afterwards, since what importers say of a model is more to the point.
        check_model(model.proto, plain, model.tensors)
        inconsistencies.settle(model.file, strict)
        return made
    except GlowError as error:
        error.file = error.file or model.file
        raise


def check_text(model: onnx.ModelProto) -> None:
    """Raise `ModelError` where a name is no text, as in a damaged file: protobuf gives it as bytes."""
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
    """The opset version of each domain; raises `UnsupportedError` for one of ONNX that is too new."""
    opsets = {plain_domain(opset.domain): opset.version for opset in model.opset_import}
    if not opsets and model.ir_version in WITHOUT_OPSETS:
        return {"": 1}
    newest = defs.onnx_opset_version()
    if (version := opsets.get("", newest)) > newest:
        reason = f"opset {version} is newer than {newest}, the latest of this onnx package"
        raise UnsupportedError(reason, hint="install a newer onnx package, or export the model for an older opset")
    return opsets
