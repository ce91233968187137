"""The module of each device of a partitioned one, which its backend compiles alone, and the calls that remain."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Operation

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.call import CallOp, written_by
from glow_mlir.dialects.glow_high.storage import FuncOp, FunctionOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.ir.entries import bindings_of, entries_of, placeholders_of
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import operations, own_operations
from glow_mlir.runtime.partitions import PartitionCall, PartitionedFunction


def device_modules(module: ModuleOp) -> dict[str, ModuleOp]:
    """Device → a module with its functions, for which what is between functions is given and got by callers."""
    found: dict[str, ModuleOp] = {}
    whole = Storage(module)
    for function in functions(module):
        if isinstance(function, FuncOp) and function.device is not None:
            own = found.setdefault(function.device.data, ModuleOp([]))
            _add_function(own, function, whole)
    return found


def _add_function(module: ModuleOp, function: FuncOp, whole: Storage) -> None:
    """Add a copy of a function to a module, with the storage that it uses."""
    copy, storage = function.clone(), Storage(module)
    del copy.properties["device"]
    written = set(written_by(function))
    names: dict[str, str] = {}
    for name in (*function.binding_names, *_used(function)):
        if name not in names:
            names[name] = _storage_of(storage, whole, name, is_written=name in written)
    copy.bindings = ArrayAttr([SymbolRefAttr(names[name]) for name in function.binding_names])
    for op in operations(copy):
        if isinstance(op, GetOp | SaveOp):
            op.properties["symbol"] = SymbolRefAttr(names[op.storage_name])
    module.body.block.add_op(copy)


def _used(function: FuncOp) -> list[str]:
    return [op.storage_name for op in operations(function) if isinstance(op, GetOp | SaveOp)]


def _storage_of(storage: Storage, whole: Storage, name: str, is_written: bool) -> str:
    """The name that some storage of the whole module has in another one, where it is from now on."""
    op = whole.by_name[name]
    if not isinstance(op, PlaceholderOp) or op.role != "between":
        if name not in storage.by_name:
            storage.add(op.clone())
        return name
    role = "output" if is_written else "input"
    own = f"{name}.{role}"
    if own not in storage.by_name:
        copy = op.clone()
        copy.sym_name, copy.label = StringAttr(own), StringAttr(name)
        del copy.properties["between"]
        copy.properties[role] = UnitAttr()
        storage.add(copy)
    return own


def partitioned_functions(module: ModuleOp) -> tuple[PartitionedFunction, ...]:
    """The functions that call partitions, as what runs them knows them."""
    by_name = {function.sym_name.data: function for function in functions(module)}
    return tuple(
        PartitionedFunction(
            entry.sym_name.data,
            bindings_of(entry),
            tuple(_call_of(op, by_name[op.callee_name]) for op in own_operations(entry) if isinstance(op, CallOp)),
        )
        for entry in entries_of(module)
    )


def _call_of(op: Operation, callee: FunctionOp) -> PartitionCall:
    """A call of a partition: what it reads and writes, by names that are the same wherever the value is known."""
    written = set(written_by(callee))
    values: list[str] = []
    for placeholder in placeholders_of(callee):
        if placeholder.role != "state":
            values.append(f"{placeholder.role}:{placeholder.public_name}")
    writes = tuple(placeholder.sym_name.data in written for placeholder in _passed(callee))
    assert callee.device is not None
    return PartitionCall(callee.device.data, callee.sym_name.data, tuple(values), writes)


def _passed(function: FunctionOp) -> list[PlaceholderOp]:
    """The placeholders that a function is given and gives when it is called."""
    return [op for op in placeholders_of(function) if op.role != "state"]
