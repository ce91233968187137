"""Copies of modules that output the result of every operator, for comparison layer by layer."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import FuncOp, PlaceholderOp, SaveOp
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.entries import placeholders_of
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations, own_operations
from glow_mlir.support.activity import warn

Layers = dict[str, tuple[str, str]]
"""Name of an output → name and kind of the operator that computes it, in program order."""


def with_saved_results(module: ModuleOp) -> tuple[ModuleOp, dict[str, Layers]]:
    """
    Copy a module so that each function of `glow_high` saves the results of all its operators.

    Also returns the layers of each such function. An operator is named by its location, or else by the SSA name of its
    result. Operators inside branches and loops, which have no single result, are not saved; a warning counts them.
    Functions of `glow_low` stay as they are: their memory is reused.
    """
    copy = module.clone()
    storage = Storage(copy)
    functions: dict[str, Layers] = {}
    for function in high_functions(copy):
        layers: Layers = functions.setdefault(function.sym_name.data, {})
        names = {op.public_name for op in placeholders_of(function)}
        saves = [op for op in own_operations(function) if isinstance(op, SaveOp)]
        saved = {op.input: name for op in saves if (name := _output_name(storage, op.storage_name)) is not None}
        computing = [op for op in operations(function) if isinstance(op, HighOp | ControlFlowOp) and op.operands]
        own = [op for op in computing if op.parent is function.block]
        warn_of_hidden(len(computing) - len(own))
        for op in own:
            for result in op.results:
                layer = _label(op, result, len(layers))
                name = saved.get(result) or _save(function, storage, result, layer, names)
                layers[name] = (layer, op.name.split(".")[1])
    return copy, functions


def _output_name(storage: Storage, symbol: str) -> str | None:
    """The public name of the output with that symbol; `None` for state."""
    placeholder = storage.by_name[symbol]
    if not isinstance(placeholder, PlaceholderOp) or placeholder.role != "output":
        return None
    return placeholder.public_name


def _label(op: Operation, result: SSAValue, position: int) -> str:
    return location_name(op.location) or result.name_hint or f"{op.name.split('.')[1]}_{position}"


def _save(function: FuncOp, storage: Storage, value: SSAValue, wish: str, taken: Collection[str]) -> str:
    """Save `value` in a new output of the function under a new public name, and return the name."""
    while (name := storage.unique_name(wish)) in taken:
        wish += "_"
    save_as_output(function, storage, value, name)
    return name


def save_as_output(function: FuncOp, storage: Storage, value: SSAValue, name: str, label: str | None = None) -> None:
    """Save `value` in a new output of the function with a unique symbol; its public name is `label`, if given."""
    type_: Attribute = value.type
    assert isa(type_, TensorType)
    producer = value.owner
    assert isinstance(producer, Operation)
    output = PlaceholderOp.bound(name, type_, "output", producer.location)
    if label is not None:
        output.label = StringAttr(label)
    storage.add(output)
    function.block.insert_op_after(SaveOp.to(value, name, producer.location), producer)
    function.bindings = ArrayAttr([*function.bindings.data, SymbolRefAttr(name)])


def warn_of_hidden(number: int) -> None:
    """Warn that the results of so many operations are hidden inside branches and loops."""
    if number:
        plural = "operations inside branches and loops are" if number > 1 else "operation inside a branch or loop is"
        warn(UnsupportedError(f"{number} {plural} not shown"))
