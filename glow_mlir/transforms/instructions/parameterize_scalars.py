"""`parameterize-scalars`: turn scalars that differ between bodies into parameters, so that instructions share code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.dialects.glow_low.base import Instruction
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.scalar_parameters import body_constants, kind_of, may_be_parameter, set_parameter
from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.dialects.structure import blocks_of, structure_of
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ParameterizeScalarsPass(ModulePass):
    """
    Turn constants of bodies into parameters where otherwise equal instructions of a function differ.

    Layers of a quantized network differ only in scales and zero points: with these as parameters, all share one kernel
    function. Constants that agree in all bodies stay constants, and so do bounds of clips, which determine code. Stacks
    share code only if their sizes are equal, too; other instructions share code as far as their kernels allow for any
    sizes.
    """

    name = "parameterize-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in low_functions(op):
            alike: defaultdict[Hashable, list[Sequence[ConstantOp]]] = defaultdict(list)
            for inner in operations(function):
                if isinstance(inner, Instruction) and inner.regions:
                    constants = [one for one in body_constants(inner) if may_be_parameter(one)]
                    alike[_key(inner)].append(constants)
            for group in alike.values():
                _number(group)


def _number(group: Sequence[Sequence[ConstantOp]]) -> None:
    """Number the constants in which instructions differ; each item of `group` has those of one, in the same order."""
    differing = [column for column in zip(*group, strict=True) if len({constant.value for constant in column}) > 1]
    for number, column in enumerate(differing):
        for constant in column:
            set_parameter(constant, number)


def _key(op: Instruction) -> Hashable:
    """The key on which instructions that may differ in scalars agree."""
    structure = structure_of(blocks_of(op.regions), _abstract)
    sizes = tuple(sizes_of(operand) for operand in op.operands) if isinstance(op, StackOp) else ()
    return op.name, op.properties.get("kernel"), structure, sizes


def _abstract(op: ConstantOp) -> Hashable:
    return kind_of(op.value) if may_be_parameter(op) else op.value
