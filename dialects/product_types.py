"""
The signature of products — matrix products and convolutions —: left, right, accumulator and output element types.

This module defines, for all operators, which element types may be multiplied, the type in which products are
accumulated, and the output type.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.element_types import byte_width, is_float, is_integer, storage_of
from glow_mlir.dialects.quant import is_per_axis
from glow_mlir.dialects.shapes import element_of, require
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ProductSignature:
    """
    The element types of a product.

    | left and right | accumulator | output |
    |---|---|---|
    | f32, f64, integers of 32 and 64 bits: two alike | the same | the same |
    | f16, bf16: two alike | f32 | the same as left, or f32 where the product says `to` |
    | integers of 8 and 16 bits of one width, signs may differ | i32 | i32 |
    | codes of 8 and 16 bits, that is integers less a zero point, as such integers | i32 | i32 |

    Sums of integers wrap in the accumulator, as those of ONNX MatMulInteger and ConvInteger do. A bias has the type of
    the output.
    """

    left: Attribute
    right: Attribute
    accumulator: Attribute
    output: Attribute

    @staticmethod
    def of(
        left: SSAValue, right: SSAValue, bias: SSAValue | None = None, to: Attribute | None = None
    ) -> ProductSignature:
        """
        The signature of a product of these operands, whose result type is `to`, by default the output.

        Raises `VerifyException` where element types differ, and for a `to` that is not the accumulator.
        """
        first, second = element_of(left), element_of(right)
        signature = ProductSignature.of_elements(first, second)
        if to is not None:
            require(
                to == signature.accumulator, "a product of {} is one of {}, not of {}", first, signature.accumulator, to
            )
            signature = replace(signature, output=to)
        if bias is not None:
            added = element_of(bias)
            require(added == signature.output, "the bias of a product of {} cannot be {}", signature.output, added)
        return signature

    @staticmethod
    @cache
    def of_elements(left: Attribute, right: Attribute) -> ProductSignature:
        """The signature of a product of such elements; raises `VerifyException` where they differ."""
        return _signature(left, right)


def _signature(left: Attribute, right: Attribute) -> ProductSignature:
    narrow = is_integer(storage_of(left)) and byte_width(left) < 4
    if narrow and is_integer(storage_of(right)) and byte_width(right) == byte_width(left):
        for element in (left, right):
            require(not is_per_axis(element), f"a product of {element} has no scale")
        return ProductSignature(left, right, i32, i32)
    require(left == right, f"operands have different element types: {left} and {right}")
    wide = f32 if is_float(left) and byte_width(left) < 4 else left
    return ProductSignature(left, right, wide, left)
