"""`recognize-grouped-products`: recognize products of rows with gathered matrices."""

from __future__ import annotations

from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import is_float, is_integer
from glow_mlir.dialects.glow_high.data_movement import ExpandOp, ReshapeOp
from glow_mlir.dialects.glow_high.indexing import GatherNDOp, GatherOp
from glow_mlir.dialects.glow_high.linear import GroupedMatMulOp, MatMulOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of, sizes_of
from glow_mlir.ir.patterns import Pattern, PatternPass, Walk, rooted
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes, product_of


@dataclass(frozen=True)
class _Chosen:
    """Matrices [E, …, …] and the index of the matrix of each product in a batch."""

    matrices: SSAValue
    index: SSAValue
    batch: Sizes


@dataclass(frozen=True)
class GroupProducts(Pattern):
    """Let products of single rows, or columns, with gathered matrices read the matrices in place."""

    columns: int
    """Minimum number of columns of the matrices."""

    @rooted
    def match_and_rewrite(self, op: MatMulOp, rewriter: Rewriter, /) -> None:
        element = element_of(op.right)
        if op.bias is not None or not (is_float(element) or is_integer(element)):
            return
        *_, rows, columns = sizes_of(op.result)
        # The product of a matrix with a column is the product of a row with the transposed matrix.
        for copies, others, turned, is_single in (
            (op.right, op.left, flag(op.transpose_right), rows == 1),
            (op.left, op.right, not flag(op.transpose_left), columns == 1),
        ):
            chosen = _chosen(copies) if is_single else None
            if chosen is None or chosen.batch != sizes_of(op.result)[:-2]:
                continue
            if _columns(chosen, turned) >= self.columns:
                _group(op, chosen, others, turned, rewriter)
                return


def _columns(chosen: _Chosen, turned: bool) -> int:
    """The number of columns of one of the matrices."""
    return shape_of(chosen.matrices)[1 if turned else 2]


def _chosen(copies: SSAValue) -> _Chosen | None:
    """The matrices and indices of a gathered batch without other readers; `None` if it is not gathered."""
    source = copies
    while isinstance(source.owner, ReshapeOp) and sizes_of(source)[-2:] == sizes_of(source.owner.input)[-2:]:
        if not source.has_one_use():
            return None
        source = source.owner.input
    gather = source.owner
    if not isinstance(gather, GatherOp | GatherNDOp) or rank_of(gather.input) != 3 or not source.has_one_use():
        return None
    if isinstance(gather, GatherOp):
        fits = normalize_axis(integer(gather.axis), 3) == 0
    else:
        fits = integer(gather.batch_dims) == 0 and sizes_of(gather.indices)[-1] == 1
    return _Chosen(gather.input, gather.indices, sizes_of(copies)[:-2]) if fits else None


def _group(op: MatMulOp, chosen: _Chosen, others: SSAValue, turned: bool, rewriter: Rewriter) -> None:
    """Replace a batch of products by a grouped product of rows."""
    emit, matrices = rewriter.emit, chosen.matrices
    count: Size = product_of(chosen.batch)
    result = sizes_of(op.result)
    if sizes_of(others)[:-2] != result[:-2]:
        others = emit(ExpandOp, others, shape=(*result[:-2], *sizes_of(others)[-2:]))
    depth = shape_of(matrices)[2 if turned else 1]
    rows = emit(ReshapeOp, others, shape=(count, depth))
    index = emit(ReshapeOp, chosen.index, shape=(count,))
    product = emit(GroupedMatMulOp, rows, matrices, index, transpose_weights=turned, to=op.to)
    rewriter.replace(op, (), [emit(ReshapeOp, product, shape=result)])


@dataclass(frozen=True)
class RecognizeGroupedProductsPass(PatternPass):
    """
    Replace a batch of products of one row each with gathered matrices by a grouped product, which reads each matrix
    once for all of its rows.

    PyTorch's exporter writes mixtures of experts this way. The matrices come first or last, as rows or as columns.
    Matrices of fewer than `columns` columns are still copied: most of the panels that kernels read would be empty.
    """

    name = "recognize-grouped-products"

    columns: int = 32

    def walks(self) -> tuple[Walk, ...]:
        return (Walk((GroupProducts(self.columns),)),)
