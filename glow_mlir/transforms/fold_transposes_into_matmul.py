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
from glow_mlir.pass_statistics import tally
from glow_mlir.storage import Storage
from glow_mlir.transforms.emitter import Emitter
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
    """Fold the transpose of the right operand, where there is one that the flag makes cheaper."""
    left, right, bias = (op.left, op.right, op.bias) if isinstance(op, MatMulOp) else (op.input, op.weights, op.bias)
    transpose = right.owner
    if not isinstance(transpose, TransposeOp) or not is_float(element_of(right)):
        return
    source = transpose.input
    rest = remaining_permutation(ints(transpose.permutation))
    if rest is None or storage.value_of(source) is not None:
        return
    emit = Emitter(op, storage)
    if rest != tuple(range(len(rest))):
        if not transpose.result.has_one_use():
            return  # The whole transpose is needed anyway.
        source = emit(TransposeOp, source, permutation=rest)
        emit.emitted[-1].location = transpose.location
    flags = {"transpose_right": True}
    if isinstance(op, MatMulOp):
        flags = {"transpose_left": flag(op.transpose_left), "transpose_right": not flag(op.transpose_right)}
    product = emit(MatMulOp, left, source, bias, **flags)
    emit.emitted[-1].location = fuse_locations([transpose.location, op.location])
    replace(op, [product])
    tally("transposes folded into products")


def remaining_permutation(permutation: Shape) -> Shape | None:
    """The permutation that, before an exchange of the last two axes, gives this one; `None` unless rows stay whole."""
    *batch, rows, columns = permutation
    last = len(permutation) - 1
    return (*batch, columns, rows) if rows == last else None
