"""Reading one lane of a vector, and reducing all lanes to a scalar."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import VectorType
from xdsl.dialects.llvm import FastMathAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from glow_mlir.dialects.llvm_ops.common import FLOAT, INTEGER, INTRINSIC_FORMAT, Value, fast_math
from glow_mlir.xdsl_patches.definitions import op_definition


def _element_type(vector: Value) -> Attribute:
    """Return the element type of a value that is known to be a vector."""
    return cast("VectorType[Attribute]", SSAValue.get(vector).type).element_type


@op_definition
class ExtractElementOp(IRDLOperation):
    """One lane of a vector: `llvm.extractelement %v[%i : i64] : vector<8xf32>`."""

    name = "llvm.extractelement"

    T: ClassVar = VarConstraint("T", AnyAttr())

    vector = operand_def(VectorType.constr(T))
    position = operand_def(INTEGER)
    res = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$vector `[` $position `:` type($position) `]` attr-dict `:` type($vector)"

    def __init__(self, vector: Value, position: Value):
        super().__init__(operands=[vector, position], result_types=[_element_type(vector)])


class IntegerReduction(IRDLOperation, ABC):
    """`"llvm.intr.vector.reduce.<name>"(%v) : (vector<8xi32>) -> i32`; upstream has no custom form."""

    T: ClassVar = VarConstraint("T", INTEGER)

    input = operand_def(VectorType.constr(T))
    res = result_def(T)

    traits = traits_def(Pure())

    def __init__(self, vector: Value):
        super().__init__(operands=[vector], result_types=[_element_type(vector)])


class FloatReduction(IRDLOperation, ABC):
    """`llvm.intr.vector.reduce.<name>(%v) : (vector<8xf32>) -> f32`."""

    T: ClassVar = VarConstraint("T", FLOAT)

    input = operand_def(VectorType.constr(T))
    res = result_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))

    traits = traits_def(Pure())
    assembly_format = INTRINSIC_FORMAT
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, vector: Value, flags: FastMathAttr | FastMathFlag | Sequence[FastMathFlag] | None = None):
        super().__init__(
            operands=[vector],
            result_types=[_element_type(vector)],
            properties={"fastmathFlags": fast_math(flags)},
        )


@op_definition
class VectorReduceAddOp(IntegerReduction):
    """The sum of all lanes, modulo the width."""

    name = "llvm.intr.vector.reduce.add"


@op_definition
class VectorReduceMulOp(IntegerReduction):
    """The product of all lanes, modulo the width."""

    name = "llvm.intr.vector.reduce.mul"


@op_definition
class VectorReduceAndOp(IntegerReduction):
    """The bitwise and of all lanes."""

    name = "llvm.intr.vector.reduce.and"


@op_definition
class VectorReduceOrOp(IntegerReduction):
    """The bitwise or of all lanes."""

    name = "llvm.intr.vector.reduce.or"


@op_definition
class VectorReduceXorOp(IntegerReduction):
    """The bitwise exclusive or of all lanes."""

    name = "llvm.intr.vector.reduce.xor"


@op_definition
class VectorReduceSMaxOp(IntegerReduction):
    """The largest lane, read as signed."""

    name = "llvm.intr.vector.reduce.smax"


@op_definition
class VectorReduceSMinOp(IntegerReduction):
    """The smallest lane, read as signed."""

    name = "llvm.intr.vector.reduce.smin"


@op_definition
class VectorReduceUMaxOp(IntegerReduction):
    """The largest lane, read as unsigned."""

    name = "llvm.intr.vector.reduce.umax"


@op_definition
class VectorReduceUMinOp(IntegerReduction):
    """The smallest lane, read as unsigned."""

    name = "llvm.intr.vector.reduce.umin"


@op_definition
class VectorReduceFMaxOp(FloatReduction):
    """The largest lane, in the sense of `maxnum`: NaN lanes are skipped."""

    name = "llvm.intr.vector.reduce.fmax"


@op_definition
class VectorReduceFMinOp(FloatReduction):
    """The smallest lane, in the sense of `minnum`: NaN lanes are skipped."""

    name = "llvm.intr.vector.reduce.fmin"


@op_definition
class VectorReduceFMaximumOp(FloatReduction):
    """The largest lane; one NaN lane gives NaN."""

    name = "llvm.intr.vector.reduce.fmaximum"


@op_definition
class VectorReduceFMinimumOp(FloatReduction):
    """The smallest lane; one NaN lane gives NaN."""

    name = "llvm.intr.vector.reduce.fminimum"


OPERATIONS = (
    ExtractElementOp,
    VectorReduceAddOp,
    VectorReduceMulOp,
    VectorReduceAndOp,
    VectorReduceOrOp,
    VectorReduceXorOp,
    VectorReduceSMaxOp,
    VectorReduceSMinOp,
    VectorReduceUMaxOp,
    VectorReduceUMinOp,
    VectorReduceFMaxOp,
    VectorReduceFMinOp,
    VectorReduceFMaximumOp,
    VectorReduceFMinimumOp,
)
