"""Tables of operators that correspond one-to-one to ONNX's, and of attributes of others that are our properties."""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.dialects.glow_high import activations as act
from glow_mlir.dialects.glow_high import elementwise_binary as binary
from glow_mlir.dialects.glow_high import elementwise_math as math
from glow_mlir.dialects.glow_high import indexing, linear, normalization, reductions
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.data_movement import ConcatOp
from glow_mlir.frontends.onnx.operators.attribute_map import NO_ATTRIBUTES, AttributeMap, flag, integer, real, word
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class PlainOperator:
    """
    An operator that corresponds one-to-one to ONNX's: same operands and results, an attribute for each property.

    Its importer and, if `is_exported`, its exporter are derived from this.
    """

    kind: str
    """ONNX's name."""
    operator: type[HighOp]
    attributes: AttributeMap = NO_ATTRIBUTES
    since: int = 1
    """The first opset version with this form."""
    moved: tuple[str, ...] = ()
    """The operands whose elements are copied to the result unchanged."""
    is_exported: bool = True
    """Whether ONNX allows all of its forms; otherwise its exporter is written by hand."""


_AXIS = AttributeMap(integer("axis", 0))
_LAST_AXIS = AttributeMap(integer("axis", -1))
_POSITION = AttributeMap(integer("axis", 0), flag("keepdims", True), flag("select_last_index"))
_ALPHA = AttributeMap(real("alpha", 1.0))

PLAIN_OPERATORS: Mapping[str, PlainOperator] = {
    row.kind: row
    for row in (
        *(PlainOperator(kind.FUNCTION.onnx, kind) for kind in math.FLOAT_FUNCTIONS.values() if kind.FUNCTION.onnx),
        PlainOperator("Abs", math.AbsOp),
        PlainOperator("Add", binary.AddOp, since=7),
        PlainOperator("And", binary.AndOp, since=7),
        PlainOperator("ArgMax", reductions.ArgMaxOp, _POSITION),
        PlainOperator("ArgMin", reductions.ArgMinOp, _POSITION),
        PlainOperator("BitwiseAnd", binary.BitwiseAndOp),
        PlainOperator("BitwiseNot", math.BitwiseNotOp),
        PlainOperator("BitwiseOr", binary.BitwiseOrOp),
        PlainOperator("BitwiseXor", binary.BitwiseXorOp),
        PlainOperator("Celu", act.CeluOp, _ALPHA),
        PlainOperator("Concat", ConcatOp, AttributeMap(integer("axis")), since=4, moved=("parts",)),
        PlainOperator("Det", linear.DetOp),
        PlainOperator("Div", binary.DivOp, since=7),
        PlainOperator("Elu", act.EluOp, _ALPHA),
        PlainOperator("Equal", binary.EqualOp, since=7),
        PlainOperator("Gather", indexing.GatherOp, _AXIS, moved=("input",)),
        PlainOperator("GatherElements", indexing.GatherElementsOp, _AXIS, moved=("input",)),
        PlainOperator("GatherND", indexing.GatherNDOp, AttributeMap(integer("batch_dims", 0)), moved=("input",)),
        PlainOperator("Gelu", act.GeluOp, AttributeMap(word("approximate", "none"))),
        PlainOperator("Greater", binary.GreaterOp, since=7),
        PlainOperator("GreaterOrEqual", binary.GreaterOrEqualOp),
        PlainOperator("HardSigmoid", act.HardSigmoidOp, AttributeMap(real("alpha", 0.2), real("beta", 0.5))),
        PlainOperator("HardSwish", act.HardSwishOp),
        PlainOperator("Hardmax", normalization.HardmaxOp, _LAST_AXIS, since=13),
        PlainOperator(
            "IsInf",
            math.IsInfOp,
            AttributeMap(
                flag("detect_positive", True, to="positive"),
                flag("detect_negative", True, to="negative"),
            ),
        ),
        PlainOperator("IsNaN", math.IsNanOp),
        PlainOperator("LeakyRelu", act.LeakyReluOp, AttributeMap(real("alpha", 0.01))),
        PlainOperator("Less", binary.LessOp, since=7),
        PlainOperator("LessOrEqual", binary.LessOrEqualOp),
        PlainOperator("LogSoftmax", normalization.LogSoftmaxOp, _LAST_AXIS, since=13),
        PlainOperator("Mish", act.MishOp),
        PlainOperator("Mod", binary.ModOp, AttributeMap(flag("fmod"))),
        PlainOperator("Mul", binary.MulOp, since=7),
        PlainOperator("Neg", math.NegOp),
        PlainOperator("Not", math.NotOp),
        PlainOperator("Or", binary.OrOp, since=7),
        PlainOperator("PRelu", act.PReluOp, since=7),
        PlainOperator("Pow", binary.PowOp, since=7),
        PlainOperator("Reciprocal", math.ReciprocalOp),
        PlainOperator("Relu", act.ReluOp),
        PlainOperator(
            "ReverseSequence",
            indexing.ReverseSequenceOp,
            AttributeMap(integer("batch_axis", 1), integer("time_axis", 0)),
            is_exported=False,
        ),
        PlainOperator(
            "ScatterElements",
            indexing.ScatterElementsOp,
            AttributeMap(integer("axis", 0), word("reduction", "none")),
            moved=("input", "updates"),
        ),
        PlainOperator(
            "ScatterND",
            indexing.ScatterNDOp,
            AttributeMap(word("reduction", "none")),
            moved=("input", "updates"),
        ),
        PlainOperator(
            "Selu",
            act.SeluOp,
            AttributeMap(real("alpha", 1.67326319217681884765625), real("gamma", 1.05070102214813232421875)),
            since=6,
        ),
        PlainOperator("Shrink", act.ShrinkOp, AttributeMap(real("bias", 0.0), real("lambd", 0.5))),
        PlainOperator("Sigmoid", act.SigmoidOp),
        PlainOperator("Sign", math.SignOp),
        PlainOperator("Softmax", normalization.SoftmaxOp, _LAST_AXIS, since=13),
        PlainOperator("Softplus", act.SoftplusOp),
        PlainOperator("Softsign", act.SoftsignOp),
        PlainOperator("Sub", binary.SubOp, since=7),
        PlainOperator("Tanh", act.TanhOp),
        PlainOperator("ThresholdedRelu", act.ThresholdedReluOp, _ALPHA),
        PlainOperator("Where", binary.WhereOp),
        PlainOperator("Xor", binary.XorOp, since=7),
    )
}
"""ONNX's name → the plain operator, in its newest form."""

_RECURRENT = (word("direction", "forward"), flag("layout", to="batch_first"))

ATTRIBUTE_MAPS: Mapping[str, AttributeMap] = {
    "CumSum": AttributeMap(flag("exclusive"), flag("reverse")),
    "DeformConv": AttributeMap(integer("offset_group", 1), integer("group", 1)),
    "GRU": AttributeMap(*_RECURRENT, flag("linear_before_reset")),
    "GridSample": AttributeMap(
        word("mode", "linear"),
        word("padding_mode", "zeros", to="padding"),
        flag("align_corners"),
    ),
    "GroupNormalization": AttributeMap(integer("num_groups", to="groups"), real("epsilon", 1e-5)),
    "LRN": AttributeMap(integer("size"), real("alpha", 1e-4), real("beta", 0.75), real("bias", 1.0)),
    "LSTM": AttributeMap(*_RECURRENT, flag("input_forget")),
    "LayerNormalization": AttributeMap(integer("axis", -1), real("epsilon", 1e-5)),
    "MaxPool": AttributeMap(flag("storage_order", to="column_major")),
    "RNN": AttributeMap(*_RECURRENT),
    "Resize": AttributeMap(
        word("mode", "nearest"),
        word("coordinate_transformation_mode", "half_pixel", to="coordinates"),
        word("nearest_mode", "round_prefer_floor", to="rounding"),
        real("cubic_coeff_a", -0.75, to="cubic_coefficient"),
        flag("exclude_outside"),
        flag("antialias"),
        real("extrapolation_value", 0.0, to="extrapolation"),
    ),
    "MaxRoiPool": AttributeMap(real("spatial_scale", 1.0)),
    "RoiAlign": AttributeMap(integer("sampling_ratio", 0), real("spatial_scale", 1.0), word("mode", "avg")),
    "TopK": AttributeMap(integer("axis", -1), flag("largest", True), flag("sorted", True)),
}
"""ONNX's name of an operator that is not plain → the attributes that are properties, in its newest form."""
