"""`instrument-debug`: copy the results of instructions to extra outputs, so that every backend shows intermediates."""

from __future__ import annotations

from fnmatch import fnmatchcase

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.storage import PlaceholderOp
from glow_mlir.dialects.glow_low.base import Instruction, Qualifier
from glow_mlir.dialects.glow_low.memory import CopyOp, DeallocOp, FuncOp, WeightOp, root_of
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.ir import statistics
from glow_mlir.ir.locations import location_name, location_names
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.ir.value_names import value_name
from glow_mlir.rewriting.saved_results import warn_of_hidden
from glow_mlir.support.dataclass import dataclass

PREFIX = "debug."
"""Prefix of the names of the extra outputs."""


@dataclass(frozen=True)
class InstrumentDebugPass(ModulePass):
    """
    Copy the result of each instruction to an output of its own, `debug.<number>.<kind>.<nodes>` (Glow's
    DebugInstrument).

    The number counts the copied values. `only` is a pattern with `*` and `?` for nodes or kinds (`conv`); other
    instructions are left alone. So are copies to inputs, outputs and state, which are visible anyway, and instructions
    inside branches and loops, which have no single value: a warning counts them. Run this pass before `select`, which
    gives the copies their kernels.
    """

    name = "instrument-debug"

    only: str = "*"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in low_functions(op):
            instructions = (op for op in operations(function) if isinstance(op, Instruction))
            chosen = [op for op in instructions if self._is_chosen(op)]
            own = [op for op in chosen if op.parent is function.block]
            for number, (instruction, value) in enumerate([(op, value) for op in own for value in written(op)]):
                keep(function, storage, instruction, value, number)
                statistics.count("values kept")
            warn_of_hidden(len(chosen) - len(own))

    def _is_chosen(self, op: Instruction) -> bool:
        """Whether the pattern selects an instruction."""
        if isinstance(op, DeallocOp) or is_save(op):
            return False
        return any(fnmatchcase(name, self.only) for name in (kind_of(op), *location_names(op.location)))


def written(op: Instruction) -> list[SSAValue]:
    """The buffers that an instruction writes."""
    return [value for qualifier, value in op.uses() if qualifier in (Qualifier.OUT, Qualifier.INOUT)]


def is_save(op: Instruction) -> bool:
    """Whether an instruction is a copy to storage."""
    return isinstance(op, CopyOp) and isinstance(root_of(op.target).owner, WeightOp)


def kind_of(op: Instruction) -> str:
    """The name of an instruction without its dialect."""
    return op.name.partition(".")[2]


def keep(function: FuncOp, storage: Storage, op: Instruction, value: SSAValue, number: int) -> None:
    """Copy a buffer, behind the instruction that writes it, to a new output of the function."""
    nodes = location_name(op.location) or value.name_hint or ""
    label = f"{PREFIX}{number}.{kind_of(op)}.{nodes}"
    symbol = storage.unique_name(f"debug_{number}_{value_name(nodes) or kind_of(op)}")
    output = PlaceholderOp.bound(symbol, tensor(sizes_of(value), element_of(value)), "output", op.location)
    output.label = StringAttr(label)
    storage.add(output)
    declaration = WeightOp.of(output, op.location)
    declaration.result.name_hint = value_name(symbol)
    block = function.block
    first = block.first_op
    assert first is not None
    block.insert_op_before(declaration, first)
    block.insert_op_after(CopyOp.of(declaration.result, value, location=op.location), op)
    function.bindings = ArrayAttr([*function.bindings.data, SymbolRefAttr(symbol)])
