"""
Weights quantized by blocks: narrow integers, the codes, of which each block shares a scale and a zero point.

Codes are unsigned, have `bits` bits (2, 4 or 8), and are packed into bytes, the first code in the lowest bits. The last
axis is split into blocks of `block` codes; the last block may have fewer. A code represents (code - zero point) · scale
in f32. By default the zero point is half of the range, 2^(bits - 1). With an `element`, a float type of `bits` bits,
a code is the bits of such a float and represents that float · scale.
"""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects.builtin import TensorType, bf16, f16, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, result_def

from glow_mlir.dialects.element_types import is_narrow_float, number_width, ui8
from glow_mlir.dialects.glow_high.base import SEGMENTS, HighOp
from glow_mlir.dialects.glow_high.interfaces import Arithmetic
from glow_mlir.dialects.narrow_floats import is_power_of_two
from glow_mlir.dialects.operand_types import F32, NUMBERS, UI8
from glow_mlir.dialects.properties import int_prop, integer, optional_type_prop
from glow_mlir.dialects.shapes import (
    Shape,
    element_of,
    require,
    require_equal,
    shape_of,
    size_of,
    sizes_of,
    tensor,
)
from glow_mlir.xdsl_patches.definitions import op_definition

WIDTHS = (2, 4, 8)
"""The possible numbers of bits of a code."""

FEWEST = 16
"""The minimum number of codes in a block, a power of two."""


class Blockwise(HighOp):
    """An operator on codes in blocks; `weights` is the shape of the numbers that they represent."""

    bits = int_prop()
    block = int_prop()
    element = optional_type_prop()
    result = result_def(F32)

    def weights(self) -> Shape:
        """The shape of the numbers; raises `VerifyException` where operands and properties do not fit."""
        bits, block = integer(self.bits), integer(self.block)
        require(bits in WIDTHS, f"codes have {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]} bits, not {bits}")
        if self.element is not None:
            self._check_element(self.element, bits)
        is_power = block >= FEWEST and block & (block - 1) == 0
        require(is_power, f"blocks have a power of two of codes, at least {FEWEST}, not {block}")
        *outer, in_bytes = self.plain_shape("codes")
        depth = in_bytes * 8 // bits
        self._check_parameters((*outer, -(-depth // block)))
        return (*outer, depth)

    def form(self) -> dict[str, Any]:
        """The properties that define the format of its codes, for another operator on them."""
        return {"bits": self.bits, "block": self.block, "element": self.element}

    def _check_element(self, element: Attribute, bits: int) -> None:
        fits = is_narrow_float(element) and not is_power_of_two(element) and number_width(element) == bits
        require(fits, f"codes of {bits} bits are no numbers of {element}")
        require(getattr(self, "zero_points") is None, "codes of floats have no zero points")

    def _check_parameters(self, shape: Shape) -> None:
        for name, further in (("scales", ()), ("zero_points", (ui8,))):
            value: SSAValue | None = getattr(self, name)
            if value is None:
                continue
            found, words = self.plain_shape(name), name.replace("_", " ")
            require(found == shape, f"the {words} of blocks have the shape {shape}, not {found}")
            known, element = (f32, f16, bf16, *further), element_of(value)
            require(element in known, f"the {words} of blocks are {', '.join(map(str, known))}, not {element}")


@op_definition
class BlockwiseDequantizeOp(Blockwise):
    """
    Dequantize codes in blocks to f32 (ONNX DequantizeLinear with `block_size`, Glow's fused rows).

    `codes` is [batch…, bytes] of ui8, `scales` and `zero_points` are [batch…, blocks].

    ```mlir
    %w = glow_high.blockwise_dequantize %codes, %scales {bits = 4, block = 32} : tensor<768x256xf32>
    %v = glow_high.blockwise_dequantize %codes, %scales {bits = 4, block = 32, element = f4E2M1FN} : tensor<768x256xf32>
    ```
    """

    name = "glow_high.blockwise_dequantize"
    NOTATION: ClassVar[str] = "codes[..., *b], scales[..., *s], zero_points[..., *s] -> result[..., *k]"

    codes = operand_def(UI8.from_rank(1))
    scales = operand_def(NUMBERS.from_rank(1))
    zero_points = opt_operand_def(NUMBERS.from_rank(1))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return (tensor(self.weights(), f32),)


@op_definition
class BlockwiseMatMulOp(Blockwise):
    """
    The matrix product of rows and weights that are quantized by blocks (onnxruntime's MatMulNBits).

    `left` is [batch…, M, K] of f32, `codes` [N, bytes] of ui8 for weights [N, K], `scales` and `zero_points` are [N,
    blocks], `bias` is [N], the result [batch…, M, N]. With `left_bits` = 8, rows of the left operand are rounded, block
    by block, to codes from -127 to 127: round(x · (1 / scale)), ties to even, where scale is the largest magnitude of
    the block over 127 (ONNX Runtime's `accuracy_level` 4).

    ```mlir
    %y = glow_high.blockwise_matmul %x, %codes, %scales {bits = 4, block = 32} : tensor<1x768xf32>
    ```
    """

    name = "glow_high.blockwise_matmul"
    NOTATION: ClassVar[str] = (
        "left[..., *k], codes[j, *b], scales[j, *s], zero_points[j, *s], bias[j] -> result[...; j]"
    )

    left = operand_def(F32.from_rank(2))
    codes = operand_def(UI8.of_rank(2))
    scales = operand_def(NUMBERS.of_rank(2))
    zero_points = opt_operand_def(NUMBERS.of_rank(2))
    bias = opt_operand_def(F32.of_rank(1))
    left_bits = int_prop(0)

    irdl_options = SEGMENTS

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        columns, depth = self.weights()
        *rows, inner = sizes_of(self.left)
        require_equal(inner, depth, f"the operands' inner sizes differ: {inner} and {depth}")
        if self.bias is not None:
            require(shape_of(self.bias) == (columns,), f"bias must have shape ({columns},), not {shape_of(self.bias)}")
        left_bits = integer(self.left_bits)
        require(left_bits in (0, 8), f"rows are rounded to 8 bits or, with 0, not at all; not to {left_bits}")
        return (tensor((*rows, columns), f32),)

    def arithmetic(self) -> Arithmetic:
        return Arithmetic(size_of(self.result) * shape_of(self.left)[-1])
