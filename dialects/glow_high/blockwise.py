"""
Weights quantized by blocks: narrow integers, the codes, of which each block shares a scale and a zero point.

Codes are unsigned, have `bits` bits (2, 4, 5, 6 or 8), and are packed into bytes, the first code in the lowest bits. Of
5 and 6 bits, the lowest four bits of all codes of a row come first, then the other ones, packed likewise; rows have a
multiple of 8 codes.

The last axis is split into blocks of `block` codes; the last block may have fewer. A code represents (code - zero
point) · scale in f32. By default the zero point is half of the range, 2^(bits - 1). With an `element`, a float type of
`bits` bits, 4, 8 or 16, a code is the bits of such a float and represents that float · scale. With a `table` of 16
signed bytes, a code of 4 bits represents its entry · scale (GGUF's IQ4_NL and MXFP4). With minima, one for each block,
a code represents code · scale + minimum, each step rounded to f32 (GGUF's Q4_1, Q5_1, Q4_K and Q5_K).

Scales and minima may have two levels (GGUF's K-quants): they are then bytes, and those of some neighbouring blocks
share a factor. Each byte times its factor, rounded to f32, is the scale or minimum of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import TensorType, bf16, f16, f32, i8
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.element_types import is_narrow_float, number_width, ui8
from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.glow_high.interfaces import Arithmetic
from glow_mlir.dialects.narrow_floats import is_power_of_two
from glow_mlir.dialects.operand_types import F32, I8, I32, NUMBERS, UI8
from glow_mlir.dialects.properties import int_prop, integer, ints, optional_ints_prop, optional_type_prop
from glow_mlir.dialects.shapes import (
    element_of,
    require,
    require_equal,
    shape_of,
    size_of,
    sizes_of,
    tensor,
)
from glow_mlir.dialects.sizes import static
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

WHOLE_WIDTHS = (2, 4, 8)
"""The numbers of bits of a code of which a byte has whole ones."""

WIDTHS = (2, 4, 5, 6, 8)
"""The possible numbers of bits of a code that is an integer."""

HALF_BITS = 16
"""The number of bits of a code that is an f16 or bf16: their first byte has the lowest bits."""

TABLE_BITS = 4
"""The number of bits of a code that stands for an entry of a table."""

FEWEST = 16
"""The minimum number of codes in a block, a power of two."""

LARGEST = {8: 127, 15: 127 * 128}
"""Bits that rows are rounded to → the largest magnitude of a rounded value. 15 bits are two signed bytes."""

QUANTIZED = ("codes", "scales", "zero_points", "minima")
"""The operands that represent quantized numbers: codes, and parameters of blocks."""

FACTORS = {"scales": "scale_factors", "minima": "minimum_factors"}
"""Parameters that may have two levels → the operand with their factors, which stands last."""

PARAMETERS = (*QUANTIZED[1:], *FACTORS.values())
"""The operands with numbers for blocks of codes."""

LOW_BITS = 7
"""The bits by which the high byte of a value of 15 bits is shifted: value = high · 2^7 + low."""


class Blockwise(HighOp):
    """An operator on codes in blocks; `weights` is the shape of the numbers that they represent."""

    bits = int_prop()
    block = int_prop()
    element = optional_type_prop()
    table = optional_ints_prop()
    result = result_def(F32)

    def weights(self) -> Sizes:
        """
        The sizes of the numbers; raises `VerifyException` where operands and properties do not fit.

        All but the last may be known at run time only.
        """
        bits, block = integer(self.bits), integer(self.block)
        if self.element is not None:
            self._check_element(self.element, bits)
        else:
            require(bits in WIDTHS, f"codes have {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]} bits, not {bits}")
        if self.table is not None:
            self._check_table(ints(self.table), bits)
        is_power = block >= FEWEST and block & (block - 1) == 0
        require(is_power, f"blocks have a power of two of codes, at least {FEWEST}, not {block}")
        *outer, in_bytes = sizes_of(self.quantized()[0])
        require(isinstance(in_bytes, int), "the number of codes in a row must be known")
        assert isinstance(in_bytes, int)
        if bits in WIDTHS and bits not in WHOLE_WIDTHS:
            require(not in_bytes % bits, f"rows of codes of {bits} bits have a multiple of {bits} bytes")
        depth = in_bytes * 8 // bits
        self._check_parameters((*outer, -(-depth // block)))
        return (*outer, depth)

    def product(self, left: SSAValue, bias: SSAValue | None) -> TensorType[Attribute]:
        """The type of the product of rows and weights [N, K]; raises `VerifyException` where they do not fit."""
        columns, depth = static(self.weights())
        *rows, inner = sizes_of(left)
        require_equal(inner, depth, f"the operands' inner sizes differ: {inner} and {depth}")
        if bias is not None:
            require(shape_of(bias) == (columns,), f"bias must have shape ({columns},), not {shape_of(bias)}")
        return tensor((*rows, columns), f32)

    def form(self) -> dict[str, Any]:
        """The properties that define the format of its codes, for another operator on them."""
        return {"bits": self.bits, "block": self.block, "element": self.element, "table": self.table}

    def quantized(self) -> tuple[SSAValue, SSAValue, SSAValue | None, SSAValue | None]:
        """The operands that represent the numbers, in order: codes, scales, zero points, minima."""
        return tuple(getattr(self, name) for name in QUANTIZED)

    def factors(self) -> tuple[SSAValue | None, SSAValue | None]:
        """The operands with the factors of scales and minima."""
        return getattr(self, "scale_factors"), getattr(self, "minimum_factors")

    def parameters(self) -> dict[str, SSAValue]:
        """The operands with numbers for blocks of codes, by name."""
        found = {name: getattr(self, name) for name in PARAMETERS}
        return {name: value for name, value in found.items() if value is not None}

    def _check_element(self, element: Attribute, bits: int) -> None:
        is_float = element in (f16, bf16) or (is_narrow_float(element) and not is_power_of_two(element))
        require(is_float and number_width(element) == bits, f"codes of {bits} bits are no numbers of {element}")
        for name in ("zero_points", "minima"):
            require(getattr(self, name) is None, f"codes of floats have no {name.replace('_', ' ')}")

    def _check_table(self, table: Sequence[int], bits: int) -> None:
        fits = len(table) == 1 << TABLE_BITS and all(-128 <= entry <= 127 for entry in table)
        require(fits, f"tables have {1 << TABLE_BITS} entries from -128 to 127")
        require(bits == TABLE_BITS and self.element is None, f"only integers of {TABLE_BITS} bits have tables")
        for name in ("zero_points", "minima"):
            require(getattr(self, name) is None, f"codes with a table have no {name.replace('_', ' ')}")

    def _check_parameters(self, shape: Sizes) -> None:
        parameters = self.parameters()
        require(not {"zero_points", "minima"} <= parameters.keys(), "blocks have zero points or minima, not both")
        for name, value in parameters.items():
            found, words, element = sizes_of(value), name.replace("_", " "), element_of(value)
            if name in FACTORS.values():
                (count,), (blocks,) = static(found[-1:]), static(shape[-1:])
                fits = len(found) == len(shape) and found[:-1] == shape[:-1] and count and not blocks % count
                require(bool(fits), f"{words} {found} do not divide the blocks {shape} evenly")
            else:
                require(found == shape, f"the {words} of blocks have the shape {shape}, not {found}")
            known: tuple[Attribute, ...] = (f32, f16, bf16)
            if FACTORS.get(name) in parameters:
                known = ui8, i8
            elif name == "zero_points":
                known = *known, ui8
            require(element in known, f"the {words} of blocks are {', '.join(map(str, known))}, not {element}")
        for name, factors in FACTORS.items():
            words = factors.replace("_", " ")
            require(factors not in parameters or name in parameters, f"there are {words}, but no {name}")


@op_definition
class BlockwiseDequantizeOp(Blockwise):
    """
    Dequantize codes in blocks to f32 (ONNX DequantizeLinear with `block_size`, Glow's fused rows).

    `codes` is [batch…, bytes] of ui8, `scales`, `zero_points` and `minima` are [batch…, blocks], the factors
    [batch…, n], for blocks / n neighbours each.

    ```mlir
    %w = glow_high.blockwise_dequantize %codes, %scales {bits = 4, block = 32} : tensor<768x256xf32>
    %v = glow_high.blockwise_dequantize %codes, %scales {bits = 4, block = 32, element = f4E2M1FN} : tensor<768x256xf32>
    ```
    """

    name = "glow_high.blockwise_dequantize"
    NOTATION: ClassVar[str] = (
        "codes[..., *b], scales[..., *s], zero_points[..., *s], minima[..., *s], "
        "scale_factors[..., *f], minimum_factors[..., *f] -> result[..., *k]"
    )

    codes = operand_def(UI8.from_rank(1))
    scales = operand_def(NUMBERS.from_rank(1))
    zero_points = opt_operand_def(NUMBERS.from_rank(1))
    minima = opt_operand_def(NUMBERS.from_rank(1))
    scale_factors = opt_operand_def(NUMBERS.from_rank(1))
    minimum_factors = opt_operand_def(NUMBERS.from_rank(1))

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return (tensor(self.weights(), f32),)


@op_definition
class BlockwiseMatMulOp(Blockwise):
    """
    The matrix product of rows and weights that are quantized by blocks (onnxruntime's MatMulNBits).

    `left` is [batch…, M, K] of f32, `codes` [N, bytes] of ui8 for weights [N, K], `scales`, `zero_points` and `minima`
    are [N, blocks], the factors [N, n], `bias` is [N], the result [batch…, M, N]. With `left_bits` = 8 or 15, rows of
    the left operand are rounded, block by block, to integers of at most 127 or 16256: round(x · (1 / scale)), ties to
    even, where scale is the largest magnitude of the block over that number (8 bits: ONNX Runtime's `accuracy_level`
    4).

    ```mlir
    %y = glow_high.blockwise_matmul %x, %codes, %scales {bits = 4, block = 32} : tensor<1x768xf32>
    ```
    """

    name = "glow_high.blockwise_matmul"
    NOTATION: ClassVar[str] = (
        "left[..., *k], codes[j, *b], scales[j, *s], zero_points[j, *s], minima[j, *s], bias[j], "
        "scale_factors[j, *f], minimum_factors[j, *f] -> result[...; j]"
    )

    left = operand_def(F32.from_rank(2))
    codes = operand_def(UI8.of_rank(2))
    scales = operand_def(NUMBERS.of_rank(2))
    zero_points = opt_operand_def(NUMBERS.of_rank(2))
    minima = opt_operand_def(NUMBERS.of_rank(2))
    bias = opt_operand_def(F32.of_rank(1))
    scale_factors = opt_operand_def(NUMBERS.of_rank(2))
    minimum_factors = opt_operand_def(NUMBERS.of_rank(2))
    left_bits = int_prop(0)

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        product = self.product(self.left, self.bias)
        left_bits = integer(self.left_bits)
        require(
            left_bits in (0, *LARGEST), f"rows are rounded to 8 or 15 bits or, with 0, not at all; not to {left_bits}"
        )
        return (product,)

    def arithmetic(self) -> Arithmetic:
        return Arithmetic(size_of(self.result) * shape_of(self.left)[-1])


@op_definition
class BlockwiseMatMulIntegerOp(Blockwise):
    """
    The matrix product of rows and weights that are both quantized by blocks.

    `left` is [batch…, M, K] of signed bytes, `left_scales` are [batch…, M, blocks] of f32, and `left_sums` the sums of
    the values of each block, of i32, by which zero points and minima are multiplied. With `left_low`, of the shape of
    `left`, a value is left · 2^7 + left_low. The other operands and the result are those of `blockwise_matmul`. The
    products of a block are summed as i32, which wraps; the sums, times both scales, are added in the order of the
    blocks. With a table, `left_sums` must be the sums of the values: some targets multiply entries less the smallest.

    ```mlir
    %y = glow_high.blockwise_matmul_integer %x, none, %d, %t, %codes, %scales {bits = 4, block = 32}
       : tensor<1x768xf32>
    ```
    """

    name = "glow_high.blockwise_matmul_integer"
    NOTATION: ClassVar[str] = (
        "left[..., *k], left_low[..., *k], left_scales[..., *s], left_sums[..., *s], "
        "codes[j, *b], scales[j, *s], zero_points[j, *s], minima[j, *s], bias[j], "
        "scale_factors[j, *f], minimum_factors[j, *f] -> result[...; j]"
    )

    left = operand_def(I8.from_rank(2))
    left_low = opt_operand_def(I8.from_rank(2))
    left_scales = operand_def(F32.from_rank(2))
    left_sums = operand_def(I32.from_rank(2))
    codes = operand_def(UI8.of_rank(2))
    scales = operand_def(NUMBERS.of_rank(2))
    zero_points = opt_operand_def(NUMBERS.of_rank(2))
    minima = opt_operand_def(NUMBERS.of_rank(2))
    bias = opt_operand_def(F32.of_rank(1))
    scale_factors = opt_operand_def(NUMBERS.of_rank(2))
    minimum_factors = opt_operand_def(NUMBERS.of_rank(2))

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        product = self.product(self.left, self.bias)
        require(self.element is None, "codes of floats are no factors of integers")
        *rows, depth = sizes_of(self.left)
        blocks = self.plain_shape("scales")[-1]
        shapes = {"left_low": (*rows, depth), "left_scales": (*rows, blocks), "left_sums": (*rows, blocks)}
        for name, shape in shapes.items():
            value: SSAValue | None = getattr(self, name)
            if value is not None:
                require(sizes_of(value) == shape, f"{name} must have shape {shape}, not {sizes_of(value)}")
        return (product,)

    def arithmetic(self) -> Arithmetic:
        return Arithmetic(size_of(self.result) * shape_of(self.left)[-1])
