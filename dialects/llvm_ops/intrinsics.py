"""Elementwise intrinsics that xDSL lacks: rounding, minima and maxima, bit counting, saturation."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import I1, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from glow_mlir.dialects.llvm_ops.common import (
    BinaryFloatIntrinsic,
    BinaryIntegerIntrinsic,
    IntegerIntrinsic,
    TernaryFloatIntrinsic,
    TernaryIntegerIntrinsic,
    UnaryFloatIntrinsic,
    UnaryIntegerIntrinsic,
    Value,
)
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class RoundEvenOp(UnaryFloatIntrinsic):
    """Round to the nearest integral value, ties to even: `llvm.intr.roundeven(%x) : (f32) -> f32`."""

    name = "llvm.intr.roundeven"


@op_definition
class RoundOp(UnaryFloatIntrinsic):
    """Round to the nearest integral value, ties away from zero."""

    name = "llvm.intr.round"


@op_definition
class RintOp(UnaryFloatIntrinsic):
    """Round to an integral value in the current rounding mode."""

    name = "llvm.intr.rint"


@op_definition
class NearbyintOp(UnaryFloatIntrinsic):
    """Round as `rint` does, without raising the inexact flag."""

    name = "llvm.intr.nearbyint"


@op_definition
class FTruncOp(UnaryFloatIntrinsic):
    """Round towards zero."""

    name = "llvm.intr.trunc"


@op_definition
class MaximumOp(BinaryFloatIntrinsic):
    """IEEE 754-2019 maximum: a NaN operand gives NaN, and -0 < +0."""

    name = "llvm.intr.maximum"


@op_definition
class MinimumOp(BinaryFloatIntrinsic):
    """IEEE 754-2019 minimum: a NaN operand gives NaN, and -0 < +0."""

    name = "llvm.intr.minimum"


@op_definition
class FMulAddOp(TernaryFloatIntrinsic):
    """`a * b + c`, fused only where the target has a fast fused instruction."""

    name = "llvm.intr.fmuladd"


@op_definition
class SMaxOp(BinaryIntegerIntrinsic):
    """The larger of two signed integers."""

    name = "llvm.intr.smax"


@op_definition
class SMinOp(BinaryIntegerIntrinsic):
    """The smaller of two signed integers."""

    name = "llvm.intr.smin"


@op_definition
class UMaxOp(BinaryIntegerIntrinsic):
    """The larger of two unsigned integers."""

    name = "llvm.intr.umax"


@op_definition
class UMinOp(BinaryIntegerIntrinsic):
    """The smaller of two unsigned integers."""

    name = "llvm.intr.umin"


@op_definition
class SAddSatOp(BinaryIntegerIntrinsic):
    """Signed addition that clamps at the ends of the range."""

    name = "llvm.intr.sadd.sat"


@op_definition
class UAddSatOp(BinaryIntegerIntrinsic):
    """Unsigned addition that clamps at the top of the range."""

    name = "llvm.intr.uadd.sat"


@op_definition
class SSubSatOp(BinaryIntegerIntrinsic):
    """Signed subtraction that clamps at the ends of the range."""

    name = "llvm.intr.ssub.sat"


@op_definition
class USubSatOp(BinaryIntegerIntrinsic):
    """Unsigned subtraction that clamps at zero."""

    name = "llvm.intr.usub.sat"


@op_definition
class CtPopOp(UnaryIntegerIntrinsic):
    """How many bits are set."""

    name = "llvm.intr.ctpop"


@op_definition
class BitReverseOp(UnaryIntegerIntrinsic):
    """The bits in reverse order."""

    name = "llvm.intr.bitreverse"


@op_definition
class ByteSwapOp(UnaryIntegerIntrinsic):
    """The bytes in reverse order."""

    name = "llvm.intr.bswap"


@op_definition
class FshlOp(TernaryIntegerIntrinsic):
    """Funnel shift left of the pair `a:b` by `c` bits; a rotation when `a` is `b`."""

    name = "llvm.intr.fshl"


@op_definition
class FshrOp(TernaryIntegerIntrinsic):
    """Funnel shift right of the pair `a:b` by `c` bits; a rotation when `a` is `b`."""

    name = "llvm.intr.fshr"


class _FlaggedIntegerIntrinsic(IRDLOperation, ABC):
    """
    An integer intrinsic whose second operand is an immediate i1, kept as a property (generic form only).
    """

    arg = operand_def(IntegerIntrinsic.T)
    res = result_def(IntegerIntrinsic.T)
    traits = traits_def(Pure())

    def __init__(self, arg: Value, flag: str, value: bool):
        super().__init__(
            operands=[arg],
            result_types=[SSAValue.get(arg).type],
            properties={flag: IntegerAttr.from_bool(value)},
        )


@op_definition
class AbsOp(_FlaggedIntegerIntrinsic):
    """
    Absolute value of a signed integer: `"llvm.intr.abs"(%x) <{is_int_min_poison = false}> : (i32) -> i32`.
    """

    name = "llvm.intr.abs"
    is_int_min_poison = prop_def(IntegerAttr[I1])

    def __init__(self, arg: Value, is_int_min_poison: bool = False):
        super().__init__(arg, "is_int_min_poison", is_int_min_poison)


@op_definition
class CountLeadingZerosOp(_FlaggedIntegerIntrinsic):
    """How many leading bits are zero; of zero itself the width, or poison if so flagged."""

    name = "llvm.intr.ctlz"
    is_zero_poison = prop_def(IntegerAttr[I1])

    def __init__(self, arg: Value, is_zero_poison: bool = False):
        super().__init__(arg, "is_zero_poison", is_zero_poison)


@op_definition
class CountTrailingZerosOp(_FlaggedIntegerIntrinsic):
    """How many trailing bits are zero; of zero itself the width, or poison if so flagged."""

    name = "llvm.intr.cttz"
    is_zero_poison = prop_def(IntegerAttr[I1])

    def __init__(self, arg: Value, is_zero_poison: bool = False):
        super().__init__(arg, "is_zero_poison", is_zero_poison)


OPERATIONS = (
    RoundEvenOp,
    RoundOp,
    RintOp,
    NearbyintOp,
    FTruncOp,
    MaximumOp,
    MinimumOp,
    FMulAddOp,
    SMaxOp,
    SMinOp,
    UMaxOp,
    UMinOp,
    SAddSatOp,
    UAddSatOp,
    SSubSatOp,
    USubSatOp,
    CtPopOp,
    BitReverseOp,
    ByteSwapOp,
    FshlOp,
    FshrOp,
    AbsOp,
    CountLeadingZerosOp,
    CountTrailingZerosOp,
)
