"""Matrix products and convolutions in one form: rows, columns, and a depth that consists of taps and runs."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from glow_mlir.codegen.kernels.products.convolution_form import ConvolutionForm
from glow_mlir.codegen.kernels.products.dot_products import multiplies
from glow_mlir.codegen.selection.kernel import kind_of
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import WindowOp
from glow_mlir.dialects.glow_low.memory import contiguous_strides, has_unit_stride, is_dense, offset_of, strides_of
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.shapes import Shape, element_of, has_static_shape, is_empty, shape_of
from glow_mlir.support.dataclass import dataclass

ACCESS = 16
"""Bytes of the largest access."""

MAX_BYTES = 1 << 31
"""The upper bound of an operand's size, because offsets are computed in 32 bits."""


@dataclass(frozen=True)
class ProductView:
    """
    A product `result[batch, row, column] = sum over taps and run of left x right`, with strides in elements.

    The depth of the right operand is a single axis, over the taps and, innermost, over the run.
    """

    left: SSAValue
    right: SSAValue
    signature: ProductSignature
    batch: Shape
    batch_left: Shape
    batch_right: Shape
    rows: Shape
    row_left: Shape
    columns: int
    taps: Shape
    tap_left: Shape
    run: int
    run_left: int
    right_column: int
    right_depth: int
    is_convolution: bool = field(default=False)

    @property
    def depth(self) -> int:
        """The number of products in one sum."""
        return math.prod(self.taps) * self.run

    @property
    def row_count(self) -> int:
        """Rows of a batch."""
        return math.prod(self.rows)

    @property
    def element(self) -> Attribute:
        """The element type of the left operand, with its sign."""
        return self.signature.left

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of either operand."""
        return byte_width(self.element)

    @property
    def left_access(self) -> int:
        """Bytes of the left operand that are read at once."""
        if self.run_left != 1:
            return self.element_bytes
        return self._access(self.left, self.run, *self.batch_left, *self.row_left, *self.tap_left)

    @property
    def right_access(self) -> int:
        """Bytes of the right operand that are read at once, along its axis of stride 1: the depth or the columns."""
        along, other = (self.depth, self.right_column) if self.right_depth == 1 else (self.columns, self.right_depth)
        if 1 not in (self.right_depth, self.right_column):
            return self.element_bytes
        return self._access(self.right, along, other, *self.batch_right)

    def _access(self, operand: SSAValue, *counts: int) -> int:
        """The largest access that divides the offset of an operand and all counts."""
        found = ACCESS
        if isinstance(operand.owner, WindowOp):
            found = self.element_bytes
        for count in (offset_of_buffer(operand), *counts):
            found = math.gcd(found, count * self.element_bytes)
        return found


def offset_of_buffer(value: SSAValue) -> int:
    """The offset of a buffer in its allocation, in elements; 0 for a tensor."""
    return offset_of(value) if isinstance(value.type, MemRefType) else 0


def steps_of(value: SSAValue) -> Shape:
    """The strides of a buffer, in elements; for a tensor, those of a contiguous buffer."""
    return strides_of(value) if isinstance(value.type, MemRefType) else contiguous_strides(shape_of(value))


def view_of(op: ConvOp | MatMulOp) -> ProductView | None:
    """The view of an operator or instruction; `None` if it is no such product or has symbolic sizes."""
    if not all(map(has_static_shape, op.operands)) or any(is_empty(value) for value in op.operands):
        return None
    if isinstance(op, DerivedInstruction) and op.prologue is not None:
        return None
    large = (math.prod(shape_of(value)) * byte_width(element_of(value)) for value in op.operands)
    if max(large) >= MAX_BYTES:
        return None
    asked: Any = op  # Or the instruction that computes it.
    return _convolution(asked) if issubclass(kind_of(asked), ConvOp) else _matrix_product(asked)


def _convolution(op: ConvOp) -> ProductView | None:
    form = ConvolutionForm.read_by_kernels(op)
    if form is None or form.group != 1 or form.image_lines is not None or op.properties.get("packing") is not None:
        return None
    steps = steps_of(form.input)
    window = form.window
    run, depth = form.plain[-1], math.prod(form.plain[1:])
    return ProductView(
        form.input,
        form.filter,
        ProductSignature.of(form.input, form.filter),
        (),
        (),
        (),
        (shape_of(form.result)[0], *form.outputs),
        (steps[0], *(stride * pitch for stride, pitch in zip(window.strides, steps[1:-1], strict=True))),
        form.filters,
        tuple(window.kernel),
        tuple(dilation * pitch for dilation, pitch in zip(window.dilations, steps[1:-1], strict=True)),
        run,
        steps[-1],
        depth,
        1,
        True,
    )


def _matrix_product(op: MatMulOp) -> ProductView | None:
    able = multiplies(op, op.left, op.right) and has_unit_stride(op.result)
    if not able or op.properties.get("packing") is not None or not (op.bias is None or is_dense(op.bias)):
        return None
    shape, left, right = shape_of(op.result), steps_of(op.left), steps_of(op.right)
    leading = shape[:-2]
    is_batched = any(size != 1 for size in shape_of(op.right)[:-2])
    row, inner = (left[-1], left[-2]) if flag(op.transpose_left) else (left[-2], left[-1])
    depth, column = (right[-1], right[-2]) if flag(op.transpose_right) else (right[-2], right[-1])
    outer = _broadcast(shape_of(op.left)[:-2], left[:-2], len(leading))
    run = shape_of(op.left)[-2 if flag(op.transpose_left) else -1]
    return ProductView(
        op.left,
        op.right,
        ProductSignature.of(op.left, op.right),
        leading if is_batched else (),
        outer if is_batched else (),
        _broadcast(shape_of(op.right)[:-2], right[:-2], len(leading)) if is_batched else (),
        shape[-2:-1] if is_batched else shape[:-1],
        (row,) if is_batched else (*outer, row),
        shape[-1],
        (),
        (),
        run,
        inner,
        column,
        depth,
    )


def _broadcast(sizes: Shape, strides: Shape, rank: int) -> Shape:
    """The strides of `rank` leading axes in an operand; 0 where it broadcasts."""
    moved = tuple(0 if size == 1 else stride for size, stride in zip(sizes, strides, strict=True))
    return (0,) * (rank - len(moved)) + moved
