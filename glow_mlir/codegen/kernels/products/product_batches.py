"""The batches and rows of matrix products: how they are spaced, and which are one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.ir import SSAValue

from glow_mlir.codegen.builder.nests import Extents
from glow_mlir.codegen.kernels.products.dot_products import multiplies
from glow_mlir.codegen.selection.kernel import Operand
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.linear import MatrixProduct
from glow_mlir.dialects.glow_low.memory import has_unit_stride, is_dense
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import Shape, element_of, has_static_shape, is_empty
from glow_mlir.support.symbols import Size, Sizes

Item = TypeVar("Item")


def has_rows(op: MatrixProduct) -> bool:
    """Whether the rows of all operands are dense; views may space rows, but not the elements of a row."""
    matrices = (op.left, op.right, op.result)
    return all(has_unit_stride(matrix) for matrix in matrices) and (op.bias is None or is_dense(op.bias))


def multiplies_rows(op: MatrixProduct) -> bool:
    """Whether kernels compute a product with a right operand that is packed, maybe in each call, or read in place."""
    if flag(op.transpose_left):
        return False
    able = multiplies(op, op.left, op.right) and not is_empty(op.right) and has_rows(op)
    return able and (has_static_shape(op.right) or _takes_any_size(op.left, op.right))


def _takes_any_size(left: SSAValue, right: SSAValue) -> bool:
    """
    Whether a right operand of a size that is only known at run time can be packed in each call.

    Panels of narrow elements consist of dot groups, whose number has to be known; a lowering widens such operands.
    """
    return element_of(left) == element_of(right) and byte_width(element_of(left)) >= 4


def batch_strides(operand: Operand, batch: Extents) -> Shape:
    """Return the stride of each batch axis of an operand: 0 where it is broadcast."""
    leading = operand.sizes[:-2]
    missing = len(batch) - len(leading)
    steps = [0] * missing
    for size, stride in zip(leading, operand.strides, strict=False):
        steps.append(0 if size == 1 else stride)
    return tuple(steps)


def row_axis(sizes: Shape) -> int:
    """
    Return the axis of batches and rows, whose sizes are given, along which one matrix is multiplied at a time.

    A batch that is larger than its matrices have rows is taken for the rows: rows are read in place, however far apart,
    and each pass over the packed matrix serves more of them.
    """
    last = len(sizes) - 1
    return max(range(last + 1), key=lambda axis: (sizes[axis], axis == last))


def exchanged(items: Sequence[Item], axis: int) -> tuple[Item, ...]:
    """Return the items with that of an axis and the last one exchanged."""
    found = [*items]
    found[axis], found[-1] = found[-1], found[axis]
    return tuple(found)


def merged_rows(shapes: Sequence[Sizes], strides: Sequence[Shape]) -> Size | None:
    """Return the rows of all batches as one matrix, if rows are evenly spaced across batches; else `None`."""
    counts: set[Size] = set()
    for shape, steps in zip(shapes, strides, strict=True):
        total: Size = 1
        for size, stride in zip(reversed(shape[:-1]), reversed(steps[:-1]), strict=True):
            if size == 1:
                continue
            if not isinstance(total, int) or stride != steps[-2] * total:
                return None
            total = size * total
        counts.add(total)
    return counts.pop() if len(counts) == 1 else None
