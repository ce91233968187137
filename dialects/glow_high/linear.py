"""Matrix products and other operators on whole matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def
from xdsl.pattern_rewriter import RewritePattern

from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.indexing import OUT_OF_RANGE
from glow_mlir.dialects.glow_high.interfaces import Arithmetic, LinearForm, OnQuantized
from glow_mlir.dialects.operand_types import BOOLS, FACTORS, FLOATS, INDICES, NUMBERS, TENSOR
from glow_mlir.dialects.product_types import ProductSignature
from glow_mlir.dialects.properties import flag, flag_prop, optional_type_prop
from glow_mlir.dialects.shapes import (
    broadcast,
    element_of,
    has_static_shape,
    is_empty,
    rank_of,
    require,
    require_equal,
    shape_of,
    size_of,
    sizes_of,
    tensor,
)
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.definitions import op_definition


def require_bias(bias: SSAValue, columns: Size) -> None:
    """Raise unless a bias has an element for each column, and the number of columns is static."""
    require_equal(sizes_of(bias), (columns,), f"bias must have shape ({columns},), not {sizes_of(bias)}")
    shape_of(bias)


def _matrix(shape: Sizes, transposed: bool) -> tuple[Size, Size]:
    """Rows and columns of the matrices in a batch."""
    rows, columns = shape[len(shape) - 2], shape[len(shape) - 1]
    return (columns, rows) if transposed else (rows, columns)


class MatrixProduct(HighOp):
    """
    Matrix product over the last two axes; leading axes are batches and broadcast.

    `left` is [batch…, M, K] and `right` [batch…, K, N]; with `transpose_left` or `transpose_right` the last two axes
    of that operand are swapped; `bias`, if present, is [N]. Element types are those of a `ProductSignature`: with `to`,
    the result has the accumulator type.
    """

    left = operand_def(FACTORS.from_rank(2))
    right = operand_def(FACTORS.from_rank(2))
    bias = opt_operand_def(NUMBERS.of_rank(1))
    transpose_left = flag_prop()
    transpose_right = flag_prop()
    to = optional_type_prop()
    result = result_def(TENSOR)

    def extents(self) -> tuple[Sizes, Size, Size, Size]:
        """Batch shape, M, N and K."""
        left, right = sizes_of(self.left), sizes_of(self.right)
        rows, depth = _matrix(left, flag(self.transpose_left))
        inner, columns = _matrix(right, flag(self.transpose_right))
        require_equal(depth, inner, f"the operands' inner sizes differ: {depth} and {inner}")
        return broadcast(left[:-2], right[:-2], behind=2), rows, columns, depth

    def access_map(self) -> AccessMap:
        left = "*k, i" if flag(self.transpose_left) else "i, *k"
        right = "j, *k" if flag(self.transpose_right) else "*k, j"
        return self.accessed(f"left[..., {left}], right[..., {right}], predicate[..., i], bias[j] -> result[...; i, j]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        batch, rows, columns, _ = self.extents()
        signature = ProductSignature.of(self.left, self.right, self.bias, self.to)
        if self.bias is not None:
            require_equal(
                sizes_of(self.bias), (columns,), f"bias must have shape ({columns},), not {sizes_of(self.bias)}"
            )
            shape_of(self.bias)
        return (tensor((*batch, rows, columns), signature.output),)

    def arithmetic(self) -> Arithmetic:
        return Arithmetic(size_of(self.result) * shape_of(self.left)[-2 if flag(self.transpose_left) else -1])


@op_definition
class MatMulOp(MatrixProduct, HasCanonicalizationPatternsInterface):
    """
    Matrix product over the last two axes; leading axes are batches and broadcast (ONNX MatMul).

    `left` is [batch…, M, K] and `right` [batch…, K, N]; with `transpose_left` or `transpose_right` the last two axes
    of that operand are swapped; `bias`, if present, is [N]. Element types are those of a `ProductSignature`: with `to`,
    the result has the accumulator type.

    ```mlir
    %c = glow_high.matmul %a, %b {transpose_right = true} : tensor<8x128x128xf32>
    ```
    """

    name = "glow_high.matmul"
    COMBINES_ROWS: ClassVar[bool] = True
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.PRODUCT

    def over_rows(self, is_row: Sequence[bool], count: Size) -> Mapping[str, Attribute] | None:
        is_left_alone = is_row[0] and not any(is_row[1:])
        fits = is_left_alone and rank_of(self.right) == 2 and not flag(self.transpose_left)
        return dict(self.properties) if fits else None

    def linear_form(self) -> LinearForm | None:
        if self.to is not None or flag(self.transpose_left) or not has_static_shape(self.right):
            return None
        *batch, rows, columns = shape_of(self.right)
        ones = (1,) * len(batch)
        sides = [(*ones, 1, columns), (*ones, rows, 1)]
        if flag(self.transpose_right):
            sides.reverse()
        return LinearForm(self.left, self.right, self.bias, shape_of(self.right), *sides, keeps_addends=not batch)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from glow_mlir.dialects.glow_high.canonicalization.linear import PATTERNS

        return PATTERNS


@op_definition
class PredicatedMatMulOp(MatrixProduct):
    """
    A matrix product some of whose rows are never read and need not be computed (paper §3.3).

    `predicate` [batch…, M] marks the rows that are read; the other rows of the result are unspecified.

    ```mlir
    %c = glow_high.predicated_matmul %a, %b, %rows {transpose_right = true} : tensor<16x64x1024xf32>
    ```
    """

    name = "glow_high.predicated_matmul"

    left = operand_def(FACTORS.from_rank(2))
    right = operand_def(FACTORS.from_rank(2))
    predicate = operand_def(BOOLS)
    bias = opt_operand_def(NUMBERS.of_rank(1))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        (product,) = MatrixProduct.infer_types(self)
        rows = sizes_of(product)[:-1]
        message = f"predicate must have shape {rows}, not {sizes_of(self.predicate)}"
        require_equal(sizes_of(self.predicate), rows, message)
        return (product,)


@op_definition
class GroupedMatMulOp(HighOp):
    """
    The product of each row with one of several matrices, selected by an index: the experts of a mixture.

    `input` is [S, K], `weights` [E, K, N], or [E, N, K] with `transpose_weights`, `index` [S], and row s of the result
    [S, N] is row s of the input times matrix `index[s]`, plus row `index[s]` of `bias` [E, N] if present. As in
    `gather`, negative indices count from the back, and the operator fails for an index out of range. Element types are
    those of a `ProductSignature`: with `to`, the result has the accumulator type.

    ```mlir
    %y = glow_high.grouped_matmul %x, %experts, %chosen {transpose_weights = true} : tensor<128x1792xf32>
    ```
    """

    name = "glow_high.grouped_matmul"
    FAILURE: ClassVar[str] = OUT_OF_RANGE

    input = operand_def(NUMBERS.of_rank(2))
    weights = operand_def(NUMBERS.of_rank(3))
    index = operand_def(INDICES.of_rank(1))
    bias = opt_operand_def(NUMBERS.of_rank(2))
    transpose_weights = flag_prop()
    to = optional_type_prop()
    result = result_def(TENSOR)

    def access_map(self) -> AccessMap:
        matrix = "j, *k" if flag(self.transpose_weights) else "*k, j"
        return self.accessed(f"input[i, *k], weights[*e, {matrix}], index[i], bias[*e, j] -> result[; i, j]")

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        (rows, depth), (experts, *matrix), (count,) = map(sizes_of, (self.input, self.weights, self.index))
        inner, columns = _matrix(tuple(matrix), flag(self.transpose_weights))
        require_equal(depth, inner, f"the operands' inner sizes differ: {depth} and {inner}")
        require_equal(rows, count, f"there must be an index for each of {rows} rows, not {count}")
        require(experts != 0 or is_empty(self.index), "there are no matrices to choose from")
        signature = ProductSignature.of(self.input, self.weights, self.bias, self.to)
        if self.bias is not None:
            expected, found = (experts, columns), sizes_of(self.bias)
            require_equal(found, expected, f"bias must have shape {expected}, not {found}")
        return (tensor((rows, columns), signature.output),)

    def arithmetic(self) -> Arithmetic:
        return Arithmetic(size_of(self.result) * shape_of(self.input)[1])


@op_definition
class FullyConnectedOp(HighOp):
    """
    A fully connected layer (Glow's FullyConnected): `input` [M, K] times `weights` [K, N], plus `bias` [N].

    Element types are those of a `ProductSignature`: with `to`, the result has the accumulator type.

    ```mlir
    %y = glow_high.fully_connected %x, %weights, %bias : tensor<1x1000xf32>
    ```
    """

    name = "glow_high.fully_connected"
    NOTATION: ClassVar[str] = "input[i, *k], weights[*k, j], bias[j] -> result[i; j]"
    ON_QUANTIZED: ClassVar[OnQuantized | None] = OnQuantized.PRODUCT

    input = operand_def(FACTORS.of_rank(2))
    weights = operand_def(FACTORS.of_rank(2))
    bias = operand_def(NUMBERS.of_rank(1))
    to = optional_type_prop()
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        left, right = sizes_of(self.input), sizes_of(self.weights)
        require_equal(left[1], right[0], f"the input has {left[1]} columns, the weights {right[0]} rows")
        require_bias(self.bias, right[1])
        signature = ProductSignature.of(self.input, self.weights, self.bias, self.to)
        return (tensor((left[0], right[1]), signature.output),)

    def arithmetic(self) -> Arithmetic:
        return Arithmetic(size_of(self.result) * shape_of(self.input)[1])

    def linear_form(self) -> LinearForm | None:
        if self.to is not None:
            return None
        rows, columns = view = shape_of(self.weights)
        return LinearForm(self.input, self.weights, self.bias, view, (1, columns), (rows, 1), keeps_addends=True)


@op_definition
class DetOp(HighOp):
    """
    The determinant of each matrix: `input` is [batch…, M, M], the result [batch…] (ONNX Det).

    ```mlir
    %y = glow_high.det %x : tensor<8xf32>
    ```
    """

    name = "glow_high.det"
    NOTATION: ClassVar[str] = "input[..., *i, *j] -> result[...]"

    input = operand_def(FLOATS.from_rank(2))
    result = result_def(TENSOR)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, element = sizes_of(self.input), element_of(self.input)
        require(shape[-1] == shape[-2], f"det needs square matrices, got shape {shape}")
        return (tensor(shape[:-2], element),)
