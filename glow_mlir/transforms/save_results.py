"""Copies of modules in which the result of every operator is an output, for comparing one layer after the other."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.control_flow import ControlFlowOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import FuncOp, PlaceholderOp, SaveOp
from glow_mlir.ir.locations import location_name
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import own_operations


def with_saved_results(module: ModuleOp) -> tuple[ModuleOp, dict[str, tuple[str, str]]]:
    """
    A copy of a module in which each function of `glow_high` saves the results of all its operators.

    Also returned is the name of each output that has such a result → name and kind of the operator, in the order of the
    program. An operator goes by its location, or else by what the text calls its result. Functions of `glow_low` stay
    as they are: their memory is used again.
    """
    copy = module.clone()
    storage = Storage(copy)
    layers: dict[str, tuple[str, str]] = {}
    for function in high_functions(copy):
        saves = [op for op in own_operations(function) if isinstance(op, SaveOp)]
        saved = {op.input: op.storage_name for op in saves if _is_output(storage, op.storage_name)}
        for op in list(own_operations(function)):
            if not isinstance(op, HighOp | ControlFlowOp) or not op.operands:
                continue
            for result in op.results:
                layer = _label(op, result, len(layers))
                name = saved.get(result) or _save(function, storage, result, layer)
                layers[name] = (layer, op.name.split(".")[1])
    return copy, layers


def _is_output(storage: Storage, name: str) -> bool:
    placeholder = storage.by_name[name]
    return isinstance(placeholder, PlaceholderOp) and placeholder.role == "output"


def _label(op: Operation, result: SSAValue, position: int) -> str:
    return location_name(op.location) or result.name_hint or f"{op.name.split('.')[1]}_{position}"


def _save(function: FuncOp, storage: Storage, value: SSAValue, wish: str) -> str:
    """Save `value` in a new output of the function; returns its name."""
    type_: Attribute = value.type
    assert isa(type_, TensorType)
    producer = value.owner
    assert isinstance(producer, Operation)
    name = storage.unique_name(wish)
    storage.add(PlaceholderOp.bound(name, type_, "output", producer.location))
    function.block.insert_op_after(SaveOp.to(value, name, producer.location), producer)
    function.bindings = ArrayAttr([*function.bindings.data, SymbolRefAttr(name)])
    return name
