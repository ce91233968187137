"""
Anonymous storage: placeholders that text omits, because it writes functions with arguments and results.

Reading converts arguments and results to placeholders (`bind_arguments`); printing converts such placeholders back
(`unbind_arguments`). A placeholder is anonymous if its symbol is the name of its function, a dot and its public name,
as in `@main.x`, and the function only reads it, or saves it at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.dialects.glow_high.returns import ReturnOp
from glow_mlir.dialects.glow_high.signature import ARGUMENT_ROLES, result_labels
from glow_mlir.dialects.glow_high.storage import FuncOp, FunctionOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.glow_low.memory import WeightOp, buffer_type
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import operations, own_operations


def bind_arguments(module: ModuleOp) -> None:
    """Bind functions with arguments or results to new placeholders instead."""
    for function in functions(module):
        last = function.block.last_op
        returned = last if isinstance(last, ReturnOp) else None
        roles = cast("ArrayAttr[StringAttr]", function.properties.pop(ARGUMENT_ROLES, ArrayAttr([])))
        # The verifier rejects arguments without a signature.
        if len(roles) == len(function.block.args) and (len(roles) or returned is not None):
            _bind(function, [role.data for role in roles], returned)


def _bind(function: FunctionOp, roles: Sequence[str], returned: ReturnOp | None) -> None:
    added = [
        _placeholder(function, argument.name_hint or f"argument{argument.index}", argument.type, role)
        for argument, role in zip(function.block.args, roles, strict=True)
    ]
    # Reads come first, in the order of the arguments.
    declare = GetOp.of if isinstance(function, FuncOp) else WeightOp.of
    reads: Sequence[Operation] = [declare(placeholder, function.location) for placeholder in added]
    for argument, read in zip(tuple(function.block.args), reads, strict=True):
        read.results[0].name_hint = argument.name_hint
        argument.replace_all_uses_with(read.results[0])
        function.block.erase_arg(argument)
    if function.block.first_op is None:
        function.block.add_ops(reads)
    else:
        function.block.insert_ops_before(reads, function.block.first_op)
    if returned is not None:
        for label, value in zip(result_labels(len(returned.values)), returned.values, strict=True):
            added.append(_placeholder(function, label, value.type, "output"))
            function.block.insert_op_before(SaveOp.to(value, added[-1].sym_name.data, returned.location), returned)
        function.block.erase_op(returned)
    function.properties["bindings"] = ArrayAttr([SymbolRefAttr(item.sym_name) for item in added])
    block = function.parent_block()
    assert block is not None
    block.insert_ops_before(added, function)


def _placeholder(function: FunctionOp, name: str, type_: Attribute, role: str) -> PlaceholderOp:
    """An anonymous placeholder; its type is the tensor type of a buffer of that type."""
    symbol = f"{function.sym_name.data}.{name}"
    held = (
        cast("TensorType[Attribute]", type_)
        if isinstance(type_, TensorType)
        else tensor(sizes_of(type_), element_of(type_))
    )
    placeholder = PlaceholderOp.bound(symbol, held, role, function.location)
    placeholder.properties["label"] = StringAttr(name)
    return placeholder


def unbind_arguments(module: ModuleOp) -> ModuleOp:
    """
    Convert anonymous placeholders to arguments and results, for printing; returns the module itself if it has none.
    """
    if not any(_is_anonymous(function) for function in functions(module)):
        return module
    module = module.clone()
    for function in functions(module):
        if _is_anonymous(function):
            unbind = _unbind_high if isinstance(function, FuncOp) else _unbind_low
            unbind(function, _bound(function))
    return module


def _bound(function: FunctionOp) -> list[PlaceholderOp]:
    """The placeholders bound to a function; fewer than it names if it is invalid."""
    storage = function.storage()
    found = [storage.get(name) for name in function.binding_names]
    return [op for op in found if isinstance(op, PlaceholderOp)]


def _is_anonymous(function: FunctionOp) -> bool:
    """Whether each placeholder bound to a function has the name that reading would give it."""
    bound = _bound(function) if function.binding_names else []
    prefix = f"{function.sym_name.data}."
    is_whole = len(bound) == len(function.binding_names)
    return bool(bound) and is_whole and all(_has_given_name(op, prefix) for op in bound)


def _has_given_name(op: PlaceholderOp, prefix: str) -> bool:
    """Whether a placeholder has the name that reading would give it, and no property that an argument lacks."""
    named = op.label is not None and op.sym_name.data == prefix + op.label.data
    return named and not op.attributes and not op.has_content and op.trainable is None


def _unbind_high(function: FunctionOp, bound: Sequence[PlaceholderOp]) -> None:
    inputs = [op for op in bound if op.role == "input"]
    outputs = [op.sym_name.data for op in bound if op.role == "output"]
    labels = result_labels(len(outputs))
    named = [op.public_name for op in bound] == [*(op.public_name for op in inputs), *labels]
    reads = _uses(function, lambda op: op.storage_name if isinstance(op, GetOp) else "")
    own = list(own_operations(function))
    saves = [op for op in own if isinstance(op, SaveOp)]
    if not named or own[len(own) - len(saves) :] != saves or [op.storage_name for op in saves] != outputs:
        return
    if not _replace_reads(function, inputs, reads):
        return
    function.block.add_op(ReturnOp.create(operands=[op.input for op in saves]))
    for op in saves:
        function.block.erase_op(op)
    _erase(function, bound)


def _unbind_low(function: FunctionOp, bound: Sequence[PlaceholderOp]) -> None:
    reads = _uses(function, lambda op: op.storage_name if isinstance(op, WeightOp) and op.region is None else "")
    if _replace_reads(function, bound, reads):
        _erase(function, bound)


def _uses(function: FunctionOp, name_of: Callable[[Operation], str]) -> dict[str, list[Operation]]:
    """Name of storage → the ops of the function that read or declare it."""
    found: dict[str, list[Operation]] = {}
    for op in operations(function):
        if name := name_of(op):
            found.setdefault(name, []).append(op)
    return found


def _replace_reads(function: FunctionOp, bound: Sequence[PlaceholderOp], reads: dict[str, list[Operation]]) -> bool:
    """Replace reads of placeholders by arguments; returns whether each is read once, under its name."""
    chosen = [reads.get(op.sym_name.data, []) for op in bound]
    hints = [(op.public_name, use.results[0].name_hint) for op, uses in zip(bound, chosen, strict=True) for use in uses]
    if any(len(uses) > 1 for uses in chosen) or any(label != hint for label, hint in hints):
        return False
    if not isinstance(function, FuncOp) and not all(chosen):
        return False
    for number, (placeholder, uses) in enumerate(zip(bound, chosen, strict=True)):
        type_: Attribute = placeholder.tensor_type
        if not isinstance(function, FuncOp):
            type_ = buffer_type(sizes_of(type_), element_of(type_))
        argument: SSAValue = function.block.insert_arg(type_, number)
        argument.name_hint = placeholder.public_name
        for use in uses:
            use.results[0].replace_all_uses_with(argument)
            use.detach()
            use.erase()
    roles = [StringAttr(op.role) for op in bound]
    function.properties[ARGUMENT_ROLES] = ArrayAttr(roles)
    return True


def _erase(function: FunctionOp, bound: Sequence[PlaceholderOp]) -> None:
    function.properties["bindings"] = ArrayAttr([])
    for op in bound:
        op.detach()
        op.erase()
