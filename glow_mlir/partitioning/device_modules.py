"""Split a partitioned module into one module per device, compiled by its backend."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.call import CallOp, written_by
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.entries import entries_of
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import operations


def device_modules(module: ModuleOp) -> dict[str, ModuleOp]:
    """Device → a module with its functions; storage between functions becomes inputs and outputs."""
    found: dict[str, ModuleOp] = {}
    whole = Storage(module)
    for function in functions(module):
        if isinstance(function, FuncOp) and function.device is not None:
            own = found.setdefault(function.device.data, ModuleOp([]))
            _add_function(own, function, whole)
    return found


def stage_modules(module: ModuleOp) -> tuple[list[ModuleOp], dict[str, str]]:
    """
    A module per partition of a partitioned module, in the order in which its only entry calls them; and, for each
    output of that entry, the name of the partition's output or of the input that provides it.

    Storage between partitions keeps its name as an output of one module and an input of others; the compiler of a
    module chooses its machine. Raises `UnsupportedError` for several entries, and if storage between partitions has the
    name of an input or output.
    """
    entries = entries_of(module)
    if len(entries) != 1:
        listed = ", ".join(f"'{entry.sym_name.data}'" for entry in entries)
        raise UnsupportedError(f"a model of several entries has no stages: {listed}", hint="entry=…")
    whole = Storage(module)
    placeholders = [op for op in whole.by_name.values() if isinstance(op, PlaceholderOp)]
    between = {op.sym_name.data for op in placeholders if op.role == "between"}
    if taken := between.intersection(op.public_name for op in placeholders if op.role != "between"):
        raise UnsupportedError(f"the name '{min(taken)}' is that of a value between stages", hint="rename it")
    called = {function.sym_name.data: function for function in functions(module) if isinstance(function, FuncOp)}
    found: list[ModuleOp] = []
    outputs: dict[str, str] = {}
    for op in operations(entries[0]):
        if isinstance(op, SaveOp):
            outputs[_public(whole, op.storage_name)] = _public(whole, _given(op.input, called))
        if isinstance(op, CallOp):
            found.append(ModuleOp([]))
            _add_function(found[-1], called[op.callee_name], whole)
            for function in functions(found[-1]):
                function.properties.pop("target", None)
    order = [_public(whole, name) for name in entries[0].binding_names]
    return found, {name: outputs[name] for name in order if name in outputs}


def _given(value: SSAValue, called: Mapping[str, FuncOp]) -> str:
    """The storage of a value: a call's result or an input; raises `UnsupportedError` for a constant."""
    owner = value.owner
    if isinstance(owner, CallOp):
        return written_by(called[owner.callee_name])[owner.results.index(value)]
    if isinstance(owner, GetOp):
        return owner.storage_name
    raise UnsupportedError("an output is computed in no stage", hint="stages=1")


def _public(whole: Storage, name: str) -> str:
    """The public name of some storage between stages."""
    op = whole.by_name[name]
    return op.public_name if isinstance(op, PlaceholderOp) and op.role != "between" else name


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
    """The name of some storage of the whole module in another one, where it is added if missing."""
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
