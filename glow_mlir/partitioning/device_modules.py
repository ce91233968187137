"""The module of each device of a partitioned one, which its backend compiles alone."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.call import written_by
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import operations


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
