"""
The operations of TOSA 1.0 that the conversion writes: those that xDSL has, and the others, declared here by a table.

What each computes is in Arm's specification. All are printed in the generic form, which `tosa-opt` reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import tosa as upstream
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntAttr,
    IntegerAttr,
    TensorType,
    i32,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AttrConstraint,
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


@irdl_attr_definition
class ShapeType(ParametrizedAttribute, TypeAttribute):
    """The type of a list of so many sizes, which is known when a model is compiled: `!tosa.shape<4>`."""

    name = "tosa.shape"

    rank: IntAttr

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.rank.data}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [IntAttr(parser.parse_integer())]


class ResizeMode(StrEnum):
    """What stands between elements."""

    NEAREST_NEIGHBOR = "NEAREST_NEIGHBOR"
    BILINEAR = "BILINEAR"


@irdl_attr_definition
class ResizeModeAttr(EnumAttribute[ResizeMode]):
    """What `resize` takes between elements."""

    name = "tosa.resize_mode"

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ResizeMode:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(ResizeMode)


TENSOR, SHAPE = base(TensorType), base(ShapeType)
INTS, TYPE, BOOL, AXIS = base(DenseArrayBase), base(TypeAttribute), base(BoolAttr), IntegerAttr.constr(type=i32)

WINDOW: Mapping[str, AttrConstraint] = {"pad": INTS, "stride": INTS, "dilation": INTS, "acc_type": TYPE}
PRODUCT: Mapping[str, AttrConstraint] = dict.fromkeys(("input", "weight", "bias", "input_zp", "weight_zp"), TENSOR)
ONE: Mapping[str, AttrConstraint] = {"input1": TENSOR}
TWO: Mapping[str, AttrConstraint] = {**ONE, "input2": TENSOR}
NAN: Mapping[str, AttrConstraint] = {"nan_mode": base(upstream.NanModeAttr)}
ALONG: Mapping[str, AttrConstraint] = {"axis": AXIS}

Fields = Mapping[str, AttrConstraint]

DECLARED: Mapping[str, tuple[Fields, Fields]] = {
    "const": ({}, {"values": base(DenseIntOrFPElementsAttr) | base(DenseResourceAttr)}),
    # Products. xDSL's `matmul` takes one matrix, and no integers whose sums are wider.
    "conv2d": (PRODUCT, WINDOW),
    "conv3d": (PRODUCT, WINDOW),
    "depthwise_conv2d": (PRODUCT, WINDOW),
    "transpose_conv2d": (PRODUCT, {"out_pad": INTS, "stride": INTS, "acc_type": TYPE}),
    "matmul": ({"a": TENSOR, "b": TENSOR, "a_zp": TENSOR, "b_zp": TENSOR}, {}),
    # Elementwise functions of one operand.
    **{name: (ONE, {}) for name in ("abs", "bitwise_not", "cast", "ceil", "erf", "exp", "floor", "log")},
    **{name: (ONE, {}) for name in ("identity", "logical_not", "rsqrt", "sigmoid", "tanh")},
    "negate": ({**ONE, "input1_zp": TENSOR, "output_zp": TENSOR}, {}),
    "table": ({**ONE, "table": TENSOR}, {}),
    # Of two and three.
    **{name: (TWO, {}) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "equal", "greater", "greater_equal")},
    **{
        name: (TWO, {}) for name in ("intdiv", "logical_and", "logical_left_shift", "logical_or", "logical_right_shift")
    },
    **{name: (TWO, {}) for name in ("logical_xor", "pow")},
    **{name: (TWO, NAN) for name in ("maximum", "minimum")},
    "arithmetic_right_shift": (TWO, {"round": BOOL}),
    "select": ({**TWO, "input3": TENSOR}, {}),
    # What moves elements.
    "argmax": ({"input": TENSOR}, {**ALONG, **NAN}),
    "gather": ({"values": TENSOR, "indices": TENSOR}, {}),
    "pad": ({**ONE, "padding": SHAPE, "pad_const": TENSOR}, {}),
    "reshape": ({**ONE, "shape": SHAPE}, {}),
    "resize": (
        {"input": TENSOR, "scale": SHAPE, "offset": SHAPE, "border": SHAPE},
        {"mode": base(ResizeModeAttr)},
    ),
    "reverse": (ONE, ALONG),
    "slice": ({**ONE, "start": SHAPE, "size": SHAPE}, {}),
    "tile": ({**ONE, "multiples": SHAPE}, {}),
    "transpose": (ONE, {"perms": INTS}),
}
"""Name → operands and properties; each gives one tensor."""


def _declare(name: str, operands: Fields, properties: Fields, result: AttrConstraint) -> type[IRDLOperation]:
    """The class of an operation of these operands and properties."""
    members = {
        "name": f"tosa.{name}",
        "__doc__": f"TOSA's {name.upper()}.",
        **{operand: operand_def(constraint) for operand, constraint in operands.items()},
        **{entry: prop_def(constraint) for entry, constraint in properties.items()},
        "output": result_def(result),
    }
    return irdl_op_definition(type(f"Tosa{name.title().replace('_', '')}Op", (IRDLOperation,), members))


def _operations() -> dict[str, type[Operation]]:
    """All operations by name; those declared here take the places of xDSL's."""
    known: dict[str, type[Operation]] = {operation.name: operation for operation in upstream.TOSA.operations}
    own = [_declare(name, operands, properties, TENSOR) for name, (operands, properties) in DECLARED.items()]
    shape = _declare("const_shape", {}, {"values": base(DenseIntOrFPElementsAttr)}, SHAPE)
    return {**known, **{operation.name: operation for operation in (*own, shape)}}


OPERATIONS: Mapping[str, type[Operation]] = _operations()
"""Name, such as `tosa.conv2d` → operation."""

TOSA = Dialect("tosa", list(OPERATIONS.values()), [*upstream.TOSA.attributes, ShapeType, ResizeModeAttr])
"""The dialect."""

PROPAGATE = upstream.NanModeAttr(upstream.NanMode.PROPAGATE)
"""A NaN among operands is the result."""
SINGLE_ROUND = upstream.RoundingModeAttr(upstream.RoundingMode.SINGLE_ROUND)
"""Halves are rounded up, once."""
