"""Extraction of operators into functions: partitions, and single operators to query a backend about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Operation, SSAValue

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.device import DEVICE
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.target import Target, TargetAttr
from glow_mlir.ir.traversal import operations, subtree

ORDER = {"input": 0, "between": 1, "state": 2, "output": 3}
"""Role → position of placeholders of that role among the bindings of a function."""


def is_free(op: Operation) -> bool:
    """Whether an operation is copied into each function that uses it: constants, inputs, and splats."""
    return (isinstance(op, GetOp) and op.mutable is None) or (isinstance(op, HighOp) and not op.operands)


def values_read(op: Operation) -> list[SSAValue]:
    """The values that an operation reads, captures of its regions included, each once."""
    read = (value for item in subtree(op) for value in item.operands)
    return list(dict.fromkeys(value for value in read if not _is_inside(value, op)))


def _is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in the regions of an operation."""
    outer = value.owner.parent_op()
    while outer is not None and outer is not op:
        outer = outer.parent_op()
    return outer is op


def extracted(
    name: str,
    ops: Sequence[Operation],
    storage: Storage,
    given: Mapping[SSAValue, str],
    saved: Mapping[SSAValue, Sequence[str]],
    target: Target,
) -> FuncOp:
    """
    Build a function from copies of some operations, in order, not yet in a module.

    Values that they do not compute are read from the storage in `given`; `saved` says where to save values. The
    function reads constants and inputs itself.
    """
    function = FuncOp.named(name, (), ops[0].location if ops else None, TargetAttr(target))
    known: dict[SSAValue, SSAValue] = {}
    for op in ops:
        for value in values_read(op):
            if value not in known:
                _add_source(function, value, known, storage, given)
        _add_copy(function, op, known)
        for result in op.results:
            _save(function, result, known, saved)
    for value in saved:
        if value not in known:
            _add_source(function, value, known, storage, given)
            _save(function, value, known, saved)
    used = dict.fromkeys(_placeholders(function, storage))
    names = sorted(used, key=lambda op: (ORDER[op.role], op.role == "between" and _is_saved(op, saved)))
    function.bindings = ArrayAttr([SymbolRefAttr(op.sym_name.data) for op in names])
    return function


def _add_source(
    function: FuncOp,
    value: SSAValue,
    known: dict[SSAValue, SSAValue],
    storage: Storage,
    given: Mapping[SSAValue, str],
) -> None:
    """Let a function read a value that it does not compute."""
    owner = value.owner
    if value in given:
        read = GetOp.of(storage.by_name[given[value]], owner.location if isinstance(owner, Operation) else None)
        read.result.name_hint = value.name_hint
        known[value] = read.result
        function.block.add_op(read)
        return
    assert isinstance(owner, Operation)
    _add_copy(function, owner, known)


def _add_copy(function: FuncOp, op: Operation, known: dict[SSAValue, SSAValue]) -> None:
    """Add a copy of an operation, without its device assignment."""
    copy = op.clone(known)
    copy.attributes.pop(DEVICE, None)
    for result, new in zip(op.results, copy.results, strict=True):
        new.name_hint = result.name_hint
        known[result] = new
    function.block.add_op(copy)


def _save(
    function: FuncOp, value: SSAValue, known: Mapping[SSAValue, SSAValue], saved: Mapping[SSAValue, Sequence[str]]
) -> None:
    owner = value.owner
    location = owner.location if isinstance(owner, Operation) else None
    for name in saved.get(value, ()):
        function.block.add_op(SaveOp.to(known[value], name, location))


def _placeholders(function: FuncOp, storage: Storage) -> Iterator[PlaceholderOp]:
    """The placeholders that a function reads and writes."""
    for op in operations(function):
        if isinstance(op, GetOp | SaveOp):
            used = storage.by_name[op.storage_name]
            if isinstance(used, PlaceholderOp):
                yield used


def _is_saved(op: PlaceholderOp, saved: Mapping[SSAValue, Iterable[str]]) -> bool:
    return any(op.sym_name.data in names for names in saved.values())
