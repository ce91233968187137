"""Export a module of `glow_high` as an ONNX model."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

import numpy as np
import onnx
from onnx import helper
from onnx.external_data_helper import set_external_data
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.constants.storage import Storage, constant_array
from glow_mlir.dialects.element_types import is_narrow
from glow_mlir.dialects.glow_high.control_flow import YieldOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.errors import OptionError, UnsupportedError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.export.writer import OPSET, Writer, name_nodes, value_info
from glow_mlir.frontends.onnx.models.traversal import all_graphs
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.registry import EXPORTERS
from glow_mlir.ir.traversal import operations, own_operations
from glow_mlir.support.files import is_node, placed_files, replaced
from glow_mlir.support.symbols import SymbolicSize, symbols_of

IR_VERSION = 10

NARROW_OPSET = 25
"""
The first opset in which Reshape, Transpose, Pad, Cast, If and Loop support all element types of less than 16 bits. The
writer inserts casts around other operators that move such elements.
"""

LARGEST = 3 << 29
"""The maximum size in bytes of weights inside the model: protobuf messages are limited to 2 GB."""

PRODUCER = "glow-mlir"


def exported_model(module: ModuleOp, initializers: Mapping[str, np.ndarray] | None = None) -> onnx.ModelProto:
    """
    Export the only function of a module of `glow_high` as an ONNX model.

    Inputs and outputs keep their names and types; nodes have the names of the original nodes. Symbols in sizes become
    named dimensions, without their bounds. Inputs named in `initializers` become initializers with these arrays. Raises
    `UnsupportedError` for state, and one that lists all operators that ONNX cannot express.
    """
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    if len(functions) != 1:
        hint = "export one function at a time, of glow_high"
        raise UnsupportedError(f"the module has {len(functions)} functions, not 1", hint=hint)
    storage = Storage(module)
    bound = [storage.by_name[name] for name in functions[0].binding_names]
    placeholders = [op for op in bound if isinstance(op, PlaceholderOp)]
    _check(placeholders)
    outputs = [op for op in placeholders if op.role == "output"]
    inputs = [op for op in placeholders if op.role == "input"]
    names = [op.public_name for op in outputs]
    writer = Writer([op.public_name for op in placeholders])
    _find_symbols(inputs, writer)
    _write(functions[0], storage, writer)
    writer.weights.update(initializers or {})
    nodes = writer.live_nodes(names)
    graph = helper.make_graph(
        nodes,
        functions[0].sym_name.data,
        [value_info(op.public_name, op.tensor_type) for op in inputs if op.public_name not in writer.weights],
        [value_info(op.public_name, op.tensor_type) for op in outputs],
        writer.initializers(nodes),
    )
    name_nodes(graph)
    opsets = [helper.make_opsetid("", NARROW_OPSET if _has_narrow_elements(functions[0]) else OPSET)]
    version = max(IR_VERSION, helper.find_min_ir_version_for(opsets))
    return helper.make_model(graph, opset_imports=opsets, ir_version=version, producer_name=PRODUCER)


def _has_narrow_elements(function: FuncOp) -> bool:
    """Whether a function has values with elements of less than 16 bits, other than 8-bit integers."""
    return any(is_narrow(element_of(value)) for op in operations(function) for value in op.results)


def save_model(
    model: onnx.ModelProto, path: Path, constants: str = "", least_bytes: int = 1024, read: Iterable[Path] = ()
) -> None:
    """
    Write a model to a file, and constants of at least `least_bytes` bytes to the file `constants` in the same folder.

    Without `constants`, they are inside the model, unless their total exceeds `LARGEST` bytes. Raises `OptionError` if
    a file cannot be written, or was `read` for the model, or if `constants` is not a path below the model's folder,
    because ONNX's readers accept no other; existing files are then unchanged.
    """
    constants_path = PurePath(constants)
    if constants and (
        constants_path.is_absolute() or ".." in constants_path.parts or constants_path == PurePath(path.name)
    ):
        raise OptionError(f"'{constants}' is not a valid file for the model's constants", hint=f"{path.name}.data")
    if constants or sum(tensor.ByteSize() for tensor in model.graph.initializer) > LARGEST:
        _save_with(model, path, constants or f"{path.name}.data", least_bytes, read)
        return
    with replaced(path, read) as file:
        file.write(model.SerializeToString())


def _save_with(model: onnx.ModelProto, path: Path, location: str, least_bytes: int, read: Iterable[Path]) -> None:
    """Write a model and its file of constants, see `save_model`: both or none."""
    constants_path = PurePath(location)
    try:
        _check_constants_path(path, constants_path)
    except OSError as error:
        raise OptionError(f"cannot be written: {error.strerror}", file=str(path)) from error
    # If no constant is large enough, the file of an earlier model is removed.
    with placed_files(path.parent, read, {str(constants_path)}) as target_folder:
        (target_folder / constants_path.parent).mkdir(exist_ok=True, parents=True)
        # ONNX's own function would check for an existing file in the current directory of the process.
        for tensor in (tensor for graph in all_graphs(model.graph) for tensor in graph.initializer):
            if tensor.HasField("raw_data") and len(tensor.raw_data) >= least_bytes:
                set_external_data(tensor, location)
        onnx.save(model, target_folder / path.name)


def _check_constants_path(path: Path, constants_path: PurePath) -> None:
    """Raise `OptionError` or `OSError` if the model or its file of constants cannot be written at these paths."""
    folder = path.parent
    if not stat.S_ISDIR(folder.stat().st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    for file in (path, folder / constants_path):
        if is_node(file):  # Do not replace a device, a pipe or a folder.
            raise OptionError("cannot be written: it is not a regular file", file=str(file), hint="name another file")
    within = constants_path.parent
    if not (folder / within).is_dir() or (folder / within).resolve() != folder.resolve() / within:
        reason = f"'{constants_path}' has no folder beside the model"
        raise OptionError(reason, hint=f"make the folder '{within}', or name a file without one")


def _check(placeholders: list[PlaceholderOp]) -> None:
    """Raise `UnsupportedError` for placeholders that ONNX cannot express."""
    for op in placeholders:
        name = op.public_name
        if [other.public_name for other in placeholders].count(name) > 1:
            raise UnsupportedError(f"an input and an output are called '{name}'", hint="rename one")
        if op.role == "state":
            hint = "make it an input and an output"
            raise UnsupportedError(f"'{name}' is state, which ONNX cannot express", hint=hint)


def _write(function: FuncOp, storage: Storage, writer: Writer) -> None:
    """Write the operators of a function; raises `UnsupportedOperatorsError` for all that cannot be written."""
    saves = [op for op in own_operations(function) if isinstance(op, SaveOp)]
    outputs = {op.input: _public_name(storage, op.storage_name) for op in reversed(saves)}
    refused: list[tuple[str, str]] = []
    writer.write = lambda block: _write_block(block, storage, writer, outputs, refused)
    writer.write(function.block)
    if refused:
        raise UnsupportedOperatorsError(refused, by="the export to ONNX")


def _write_block(
    block: Block, storage: Storage, writer: Writer, outputs: Mapping[SSAValue, str], refused: list[tuple[str, str]]
) -> None:
    """Write the operators of a block; those that cannot be written are added to `refused`."""
    for op in own_operations(block):
        if isinstance(op, GetOp):
            _read(op, storage, writer)
        elif isinstance(op, SaveOp):
            wish = _public_name(storage, op.storage_name)
            if writer.name(op.input) != wish:
                writer.call(op.input, wish)
        elif (exporter := EXPORTERS.get(type(op))) is not None:
            writer.op = op
            try:
                found = exporter(writer, op)
            except (UnsupportedError, VerifyException) as error:
                reason = error.reason if isinstance(error, UnsupportedError) else str(error)
                refused.append((f"{op.name}: {reason}", location_name(op.location)))
                found = [""] * len(op.results)
            writer.names.update(zip(op.results, [found] if isinstance(found, str) else found, strict=True))
            for result in op.results:
                if result in outputs:
                    writer.call(result, outputs[result])
        elif not isinstance(op, YieldOp):
            refused.append((op.name, location_name(op.location)))
            writer.names.update(dict.fromkeys(op.results, ""))


def _public_name(storage: Storage, symbol: str) -> str:
    placeholder = storage.by_name[symbol]
    assert isinstance(placeholder, PlaceholderOp)
    return placeholder.public_name


def _read(op: GetOp, storage: Storage, writer: Writer) -> None:
    """Name a value from storage: an input, or a weight."""
    source = storage.by_name[op.storage_name]
    if isinstance(source, ConstantOp):
        known = writer.symbols.get(op.storage_name)
        writer.names[op.result] = known or writer.weight(constant_array(source), op.storage_name)
        writer.symbols[op.storage_name] = writer.names[op.result]
    else:
        writer.names[op.result] = _public_name(storage, op.storage_name)


def _find_symbols(inputs: Sequence[PlaceholderOp], writer: Writer) -> None:
    """Emit the values of symbols that are sizes of inputs."""
    for op in inputs:
        for axis, size in enumerate(sizes_of(op.tensor_type)):
            for symbol in symbols_of((size,)):
                if SymbolicSize.of(symbol) == size and symbol.name not in writer.counts:
                    writer.counts[symbol.name] = writer.emit("Shape", op.public_name, start=axis, end=axis + 1)
