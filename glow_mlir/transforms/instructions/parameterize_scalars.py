"""`parameterize-scalars`: numbers in which bodies differ become parameters, so that they share machine code."""

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
    Number the constants of bodies in which instructions of a function differ that are equal otherwise.

    Layers of a quantized network differ in scales and zero points alone: with these as parameters, code for one serves
    all. Constants that are the same in all of them stay constants, and so do bounds of clips, whose code depends on
    them. Bodies of stacks share code where sizes are equal too; those of other instructions share what kernels have in
    common for any sizes.
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
    """Number the constants in which instructions differ; each item has those of one, in the same order."""
    differing = [column for column in zip(*group, strict=True) if len({constant.value for constant in column}) > 1]
    for number, column in enumerate(differing):
        for constant in column:
            set_parameter(constant, number)


def _key(op: Instruction) -> Hashable:
    """What instructions have in common that may differ in numbers alone."""
    structure = structure_of(blocks_of(op.regions), _abstract)
    sizes = tuple(sizes_of(operand) for operand in op.operands) if isinstance(op, StackOp) else ()
    return op.name, op.properties.get("kernel"), structure, sizes


def _abstract(op: ConstantOp) -> Hashable:
    return kind_of(op.value) if may_be_parameter(op) else op.value
