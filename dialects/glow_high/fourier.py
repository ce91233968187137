"""Fourier transforms. Complex numbers are an axis of two at the end: the real part, then the imaginary one."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, result_def

from glow_mlir.dialects.glow_high.access import AccessMap, free_axes, starred
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import FLOATS, TENSOR
from glow_mlir.dialects.properties import flag, flag_prop, int_prop, integer
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, require, sizes_of, tensor
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class DftOp(HighOp):
    """
    The discrete Fourier transform along `axis` (ONNX DFT): of real numbers [..., 1], or of complex ones [..., 2].

    The signal is truncated, or padded with zeros, to `length` elements. `inverse` divides by the length. With
    `onesided`, the result has only the first `length / 2 + 1` frequencies; the inverse takes these and gives real
    numbers.

    ```mlir
    %y = glow_high.dft %x {axis = 1, length = 400, onesided = true} : tensor<8x201x2xf32>
    ```
    """

    name = "glow_high.dft"
    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ("axis",)

    input = operand_def(FLOATS.from_rank(2))
    axis = int_prop()
    length = int_prop()
    inverse = flag_prop()
    onesided = flag_prop()
    result = result_def(TENSOR)

    def along(self) -> int:
        """The axis, counted from the front."""
        return normalize_axis(integer(self.axis), rank_of(self.input))

    def gives_real(self) -> bool:
        """Whether the result is real: the inverse of one half of the frequencies."""
        return flag(self.inverse) and flag(self.onesided)

    def taken(self) -> int:
        """The maximum number of elements that it reads along the axis."""
        length = integer(self.length)
        return length // 2 + 1 if self.gives_real() else length

    def given(self) -> int:
        """The number of elements of the result along the axis."""
        length = integer(self.length)
        return length // 2 + 1 if flag(self.onesided) and not flag(self.inverse) else length

    def access_map(self) -> AccessMap:
        axes = (*starred(free_axes(rank_of(self.input) - 1), (self.along(),)), "*p")
        return AccessMap((axes,), (axes,))

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        shape, axis = sizes_of(self.input), self.along()
        require(shape[-1] in (1, 2), f"numbers are real, [..., 1], or complex, [..., 2], not of shape {shape}")
        require(axis != len(shape) - 1, "the last axis has the parts of complex numbers, and is not transformed")
        require(integer(self.length) > 0, f"a transform has one element or more, not {integer(self.length)}")
        one_half = flag(self.onesided) and not flag(self.inverse)
        require(shape[-1] == 1 or not one_half, "only frequencies of real numbers are told by one half of them")
        parts = 1 if self.gives_real() else 2
        return (tensor((*shape[:axis], self.given(), *shape[axis + 1 : -1], parts), element_of(self.input)),)
