"""`fold-transposes-into-matmul`: let a matrix product read its right operand transposed, instead of transposing it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.data_movement import TransposeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.properties import flag, ints
from glow_mlir.dialects.shapes import Shape, element_of
from glow_mlir.storage import Storage
from glow_mlir.transforms.rewriting import erase_dead, fuse_locations, high_functions, replace


@dataclass(frozen=True)
class FoldTransposesIntoMatmulPass(ModulePass):
    """
    Turn a transpose of the right operand of a matrix product into its flag `transpose_right` (Glow's
    MergeTransposeIntoMatMulOrFC).

    What the transpose does besides stays: `[0, 2, 3, 1]` is `[0, 2, 1, 3]`, which moves whole rows, and the flag.
    Transposes of constants are for `fold-constants`, and products of integers have no kernel that reads transposed.
    """

    name = "fold-transposes-into-matmul"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, MatMulOp | FullyConnectedOp):
                    fold_transpose(candidate, storage)
            erase_dead(function.block)


def fold_transpose(op: MatMulOp | FullyConnectedOp, storage: Storage) -> None:
    """Fold the transpose of the right operand, where there is one that loses its last exchange by it."""
    left, right, bias = op.operand_groups()
    transpose = op.operands[1].owner
    if not isinstance(transpose, TransposeOp) or not is_float(element_of(op.operands[1])):
        return
    rest = remaining_permutation(ints(transpose.permutation))
    vanishes = rest == tuple(range(len(rest or ())))
    if rest is None or not (vanishes or transpose.result.has_one_use()) or storage.value_of(transpose.input) is not None:
        return
