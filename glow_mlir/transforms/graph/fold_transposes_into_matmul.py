"""`fold-transposes-into-matmul`: let matrix products read transposed operands, or permute their constant weights."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.constants.deferred import Deferred
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp, TransposeOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.glow_high.transposition import inverse, ranking
from glow_mlir.dialects.properties import flag, ints
from glow_mlir.dialects.shapes import Shape, element_of, shape_of
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import fuse_locations
from glow_mlir.rewriting.exchanged_factors import exchanged_factors
from glow_mlir.support.dataclass import dataclass


class FoldFlattening(Pattern):
    """Permute constant weights instead of transposing in front of the reshape that flattens the left operand."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter, /) -> None:
        left, right, bias = operands_of(op)
        reshape = left.owner
        transpose = reshape.input.owner if isinstance(reshape, ReshapeOp) else None
        if not isinstance(reshape, ReshapeOp) or not isinstance(transpose, TransposeOp):
            return
        if (weights := rewriter.storage.deferred(right)) is None:
            return
        if isinstance(op, MatMulOp) and flag(op.transpose_left):
            return
        order = depth_order(transpose, shape_of(left)[-1])
        if order is None:
            return
        flattened = rewriter.emit.at(fuse_locations([transpose.location, reshape.location]))
        rows = flattened(ReshapeOp, transpose.input, shape=shape_of(left))
        depth = len(weights.shape) - (1 if isinstance(op, MatMulOp) and flag(op.transpose_right) else 2)
        constant = rewriter.emit.constant(permuted(weights, depth, *order), right.name_hint or "weights")
        operands = [rows, constant, *([] if bias is None else [bias])]
        location = fuse_locations([transpose.location, op.location])
        rewriter.replace(op, op.inferred(operands, op.properties, location))


class FoldTranspose(Pattern):
    """Replace a transpose of the right operand by the flag `transpose_right`, if that is cheaper."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter, /) -> None:
        left, right, bias = operands_of(op)
        transpose = right.owner
        if not isinstance(transpose, TransposeOp) or not is_float(element_of(right)):
            return
        source = transpose.input
        rest = remaining_permutation(ints(transpose.permutation))
        if rest is None or rewriter.storage.is_constant(source):
            return
        if rest != tuple(range(len(rest))):
            if not transpose.result.has_one_use():
                return  # The whole transpose is needed anyway.
            source = rewriter.emit.at(transpose.location)(TransposeOp, source, permutation=rest)
        flags = {"transpose_right": True}
        if isinstance(op, MatMulOp):
            flags = {"transpose_left": flag(op.transpose_left), "transpose_right": not flag(op.transpose_right)}
        location = fuse_locations([transpose.location, op.location])
        rewriter.replace(op, MatMulOp.make(left, source, bias, to=op.to, location=location, **flags))


class ExchangeFactors(Pattern):
    """
    Replace a transposed product by the product of the exchanged factors, if one of them is read transposed.

    A constant stays on the right, where it is packed ahead of time.
    """

    @rooted
    def match_and_rewrite(self, op: TransposeOp, rewriter: Rewriter, /) -> None:
        factors = exchanged_factors(op, op.input, rewriter.storage)
        if factors is None:
            return
        product = factors.product
        flags = {"transpose_left": factors.transpose_left, "transpose_right": factors.transpose_right}
        emit = rewriter.emit.at(fuse_locations([product.location, op.location]))
        found = emit(MatMulOp, factors.left, factors.right, to=product.to, **flags)
        found = found if op.input is product.result else emit(ReshapeOp, found, shape=shape_of(op.result))
        rewriter.replace(op, (), [found])


@dataclass(frozen=True)
class FoldTransposesIntoMatmulPass(PatternPass):
    """
    Turn a transpose of the right operand of a matrix product into its flag `transpose_right` (Glow's
    MergeTransposeIntoMatMulOrFC).

    The rest of the permutation stays a transpose: `[0, 2, 3, 1]` becomes `[0, 2, 1, 3]`, which moves whole rows, and
    the flag. Transposes of constants are left to `fold-constants`; integer products have no kernel for transposed
    operands.

    A transpose and a flattening in front of constant weights only reorder the terms of each sum: the weights are
    permuted instead. A transpose behind a product exchanges its factors, as in the gradient of transposed weights.
    """

    name = "fold-transposes-into-matmul"
    WALKS = (Walk((FoldFlattening(), FoldTranspose(), ExchangeFactors())),)


def operands_of(op: MatMulOp | FullyConnectedOp) -> tuple[SSAValue, SSAValue, SSAValue | None]:
    """Left and right operand, and bias."""
    return (op.left, op.right, op.bias) if isinstance(op, MatMulOp) else (op.input, op.weights, op.bias)


def depth_order(transpose: TransposeOp, depth: int) -> tuple[Shape, Shape] | None:
    """
    The sizes of the transposed axes that form the last axis of `depth` elements, and their order in the origin.

    Axes of size one are left out. `None` if the transpose reorders the row axes.
    """
    shape, permutation = shape_of(transpose.result), ints(transpose.permutation)
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    first, product = len(axes), 1
    while first > 0 and product < depth:
        first -= 1
        product *= shape[axes[first]]
    origins = [permutation[axis] for axis in axes]
    rows, columns = origins[:first], origins[first:]
    if product != depth or [*rows, *sorted(columns)] != sorted(origins):
        return None
    return tuple(shape[axis] for axis in axes[first:]), ranking(columns)


def permuted(weights: Deferred, axis: int, sizes: Shape, order: Shape) -> Deferred:
    """Permute the depth `axis` of the weights, split into axes of those sizes, to the order of the origin."""
    split = weights.reshaped((*weights.shape[:axis], *sizes, *weights.shape[axis + 1 :]))
    trailing = range(axis + len(sizes), len(split.shape))
    moved = split.transposed((*range(axis), *(axis + position for position in inverse(order)), *trailing))
    return moved.reshaped(weights.shape)


def remaining_permutation(permutation: Shape) -> Shape | None:
    """The permutation left in front of an exchange of the last two axes; `None` unless it moves whole rows."""
    *batch, rows, columns = permutation
    last = len(permutation) - 1
    return (*batch, columns, rows) if rows == last else None
