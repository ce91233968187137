"""
Scalar bodies: the meaning of an elementwise operator, written once as `arith` and `math` ops on scalars.

An operator's `scalar` method receives `Scalar` values and computes with Python's operators; each builds one op. The
interpreter evaluates the ops on whole arrays, and the CPU backend in vector registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64, i1, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from glow_mlir.dialects import scalar_functions
from glow_mlir.dialects.arith import RemFOp
from glow_mlir.dialects.attribute_syntax import float_attribute, integer_attribute
from glow_mlir.dialects.element_types import (
    is_bool,
    is_float,
    is_integer,
    is_narrow,
    is_narrow_float,
    is_narrow_integer,
    is_unsigned,
    number_width,
    signless,
    ui8,
)
from glow_mlir.dialects.scalar_function import ScalarFunction
from glow_mlir.support.dataclass import dataclass
from glow_mlir.xdsl_patches.creation import created

Number = int | float

SCALAR_DIALECTS = ("arith", "math")
"""The dialects that bodies are written in."""


FALLING = "falling"
"""The attribute of an exponential whose operand is at most 0, or NaN; with `fastmath<afn>`, tiny results may be 0."""


def is_scalar_op(op: Operation) -> bool:
    """Whether an op computes one scalar from scalars."""
    return op.name.split(".")[0] in SCALAR_DIALECTS and len(op.results) == 1 and not op.regions


@dataclass(frozen=True)
class Scalar:
    """One scalar value of a body under construction; `element` says how to read its bits (signed or not)."""

    value: SSAValue
    element: Attribute
    builder: ScalarBuilder

    def __add__(self, other: Scalar | Number) -> Scalar:
        return self.builder.binary("add", self, other)

    def __radd__(self, other: Number) -> Scalar:
        return self.builder.binary("add", self.builder.constant(other, self.element), self)

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return self.builder.binary("sub", self, other)

    def __rsub__(self, other: Number) -> Scalar:
        return self.builder.binary("sub", self.builder.constant(other, self.element), self)

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return self.builder.binary("mul", self, other)

    def __rmul__(self, other: Number) -> Scalar:
        return self * other

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        return self.builder.binary("div", self, other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self.builder.binary("div", self.builder.constant(other, self.element), self)

    def __mod__(self, other: Scalar | Number) -> Scalar:
        """The remainder with the sign of `self`, like C's `%` and `fmod`; exact."""
        return self.builder.binary("rem", self, other)

    def __and__(self, other: Scalar) -> Scalar:
        return self.builder.binary("and", self, other)

    def __or__(self, other: Scalar) -> Scalar:
        return self.builder.binary("or", self, other)

    def __xor__(self, other: Scalar) -> Scalar:
        return self.builder.binary("xor", self, other)

    def __neg__(self) -> Scalar:
        return self.builder.negate(self)

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return self.builder.compare("lt", self, other)

    def __le__(self, other: Scalar | Number) -> Scalar:
        return self.builder.compare("le", self, other)

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return self.builder.compare("gt", self, other)

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return self.builder.compare("ge", self, other)

    def equals(self, other: Scalar | Number) -> Scalar:
        """`self == other` as a truth value; false where either is NaN."""
        return self.builder.compare("eq", self, other)

    def differs(self, other: Scalar | Number) -> Scalar:
        """`self != other` as a truth value; true where either is NaN."""
        return self.builder.compare("ne", self, other)


BINARY: dict[str, tuple[type[IRDLOperation], type[IRDLOperation], type[IRDLOperation]]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.AddiOp),
    "sub": (arith.SubfOp, arith.SubiOp, arith.SubiOp),
    "mul": (arith.MulfOp, arith.MuliOp, arith.MuliOp),
    "div": (arith.DivfOp, arith.DivSIOp, arith.DivUIOp),
    "rem": (RemFOp, arith.RemSIOp, arith.RemUIOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp),
    "min": (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp),
    "and": (arith.AndIOp, arith.AndIOp, arith.AndIOp),
    "or": (arith.OrIOp, arith.OrIOp, arith.OrIOp),
    "xor": (arith.XOrIOp, arith.XOrIOp, arith.XOrIOp),
    "shift_left": (arith.ShLIOp, arith.ShLIOp, arith.ShLIOp),
    "shift_right": (arith.ShRSIOp, arith.ShRSIOp, arith.ShRUIOp),
}
"""Operation → op for floats, signed and unsigned integers."""

_COMPARE: dict[str, tuple[str, str, str]] = {
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
}

FUNCTIONS: Mapping[str, ScalarFunction] = {
    row.name: row for row in vars(scalar_functions).values() if isinstance(row, ScalarFunction)
}
"""Word → the function of a float."""


def _variant(element: Attribute) -> int:
    return 0 if is_float(element) else 2 if is_unsigned(element) else 1


class ScalarBuilder:
    """Builds the ops of a scalar body; `insert` receives each one in order."""

    def __init__(self, insert: Callable[[Operation], Operation]) -> None:
        self.insert = insert

    def wrap(self, value: SSAValue, element: Attribute) -> Scalar:
        """`value` as a scalar that is read as `element`."""
        return Scalar(value, element, self)

    def _result(self, op: Operation, element: Attribute) -> Scalar:
        self.insert(op)
        return Scalar(op.results[0], element, self)

    def _build(self, kind: type[IRDLOperation], operands: list[Scalar], element: Attribute) -> Scalar:
        op = created(kind, [operand.value for operand in operands], [signless(element)])
        return self._result(op, element)

    def constant(self, value: Number | bool, element: Attribute) -> Scalar:
        """The constant `value` as an `element`."""
        type_ = signless(element)
        if is_float(element):
            attribute: Attribute = float_attribute(float(value), type_)
        else:
            attribute = integer_attribute(_wrapped(int(value), type_), type_)
        return self._result(created(arith.ConstantOp, (), [type_], {"value": attribute}), element)

    def lift(self, value: Scalar | Number, like: Scalar) -> Scalar:
        """`value` itself, or the constant of `like`'s type."""
        return value if isinstance(value, Scalar) else self.constant(value, like.element)

    def binary(self, name: str, left: Scalar, right: Scalar | Number) -> Scalar:
        """One op of `BINARY` on two values of one type."""
        right = self.lift(right, left)
        return self._build(BINARY[name][_variant(left.element)], [left, right], left.element)

    def negate(self, x: Scalar) -> Scalar:
        """`-x`; wraps for integers."""
        if is_float(x.element):
            return self._build(arith.NegfOp, [x], x.element)
        return self.constant(0, x.element) - x

    def compare(self, name: str, left: Scalar, right: Scalar | Number) -> Scalar:
        """A comparison as a truth value; ordered for floats, so false with NaN (`ne`: true)."""
        right = self.lift(right, left)
        variant = _variant(left.element)
        kind = arith.CmpfOp if variant == 0 else arith.CmpiOp
        return self._result(kind(left.value, right.value, _COMPARE[name][variant]), i1)

    def select(self, condition: Scalar, yes: Scalar | Number, no: Scalar | Number) -> Scalar:
        """`yes` where `condition` holds, else `no`; one of the two has to be a scalar."""
        if isinstance(yes, Scalar):
            no = self.lift(no, yes)
        else:
            assert isinstance(no, Scalar)
            yes = self.lift(yes, no)
        return self._build(arith.SelectOp, [condition, yes, no], yes.element)

    def maximum(self, x: Scalar, y: Scalar | Number) -> Scalar:
        """The larger; NaN if either is NaN."""
        return self.binary("max", x, y)

    def minimum(self, x: Scalar, y: Scalar | Number) -> Scalar:
        """The smaller; NaN if either is NaN."""
        return self.binary("min", x, y)

    def clamp(self, x: Scalar, low: Scalar | Number, high: Scalar | Number) -> Scalar:
        """`x` limited to [low, high]; `high` wins where they cross."""
        return self.minimum(self.maximum(x, low), high)

    def unary(self, name: str, x: Scalar) -> Scalar:
        """A function of `FUNCTIONS` on a float."""
        return self._build(FUNCTIONS[name].operation, [x], x.element)

    def fma(self, x: Scalar, y: Scalar, z: Scalar) -> Scalar:
        """`x * y + z` of floats, rounded once."""
        return self._build(math.FmaOp, [x, y, z], x.element)

    def logical_not(self, x: Scalar) -> Scalar:
        """The negation of a truth value; all bits flipped for integers."""
        return self.binary("xor", x, -1 if not is_bool(x.element) else 1)

    def power(self, x: Scalar, y: Scalar) -> Scalar:
        """`x` to the power `y`, of one type: `math.powf` or, for integers, `math.ipowi`."""
        kind = math.PowFOp if is_float(x.element) else math.IPowIOp
        return self._build(kind, [x, y], x.element)

    def convert(self, x: Scalar, to: Attribute) -> Scalar:
        """
        `x` as another element type.

        Float to integer truncates and saturates, integers wrap, everything but zero is true. Narrow types become wider
        ones of their kind first; a float becomes an integer of less than 8 bits by way of an i32, which wraps.
        """
        if x.element == to:
            return x
        if is_narrow(to):
            return self._narrowed(x, to)
        x = self.carried(x)
        if is_bool(to):
            return x.differs(0)
        if is_float(x.element) and is_float(to):
            kind: type[IRDLOperation] = arith.ExtFOp if number_width(to) > number_width(x.element) else arith.TruncFOp
        elif is_float(x.element):
            kind = arith.FPToUIOp if is_unsigned(to) else arith.FPToSIOp
        elif is_float(to):
            kind = arith.UIToFPOp if is_unsigned(x.element) else arith.SIToFPOp
        elif number_width(to) == number_width(x.element):
            return Scalar(x.value, to, self)
        elif number_width(to) < number_width(x.element):
            kind = arith.TruncIOp
        else:
            kind = arith.ExtUIOp if is_unsigned(x.element) else arith.ExtSIOp
        return self._build(kind, [x], to)

    def _narrowed(self, x: Scalar, to: Attribute) -> Scalar:
        """`x` as a narrow type."""
        if is_narrow_float(to):
            return self._build(arith.TruncFOp, [self.as_float(x)], to)
        whole = self.convert(x, i32) if is_float(x.element) or is_narrow_float(x.element) else x
        if number_width(whole.element) == number_width(to):
            return Scalar(whole.value, to, self)
        return self._build(arith.TruncIOp, [whole if is_integer(whole.element) else self.convert(whole, i8)], to)

    def carried(self, x: Scalar) -> Scalar:
        """`x` converted to a type that bodies compute in: a narrow integer to 8 bits, a narrow float to f32."""
        if is_narrow_integer(x.element):
            kind = arith.ExtUIOp if is_unsigned(x.element) else arith.ExtSIOp
            return self._build(kind, [x], ui8 if is_unsigned(x.element) else i8)
        if is_narrow_float(x.element):
            return self._build(arith.ExtFOp, [x], f32)
        return x

    def as_float(self, x: Scalar) -> Scalar:
        """`x` as f32 or, if f32 cannot represent its type exactly, as f64."""
        wide = self.carried(x)
        if is_float(wide.element):
            return wide if wide.element == f64 else self.convert(wide, f32)
        return self.convert(wide, f32 if number_width(wide.element) <= _MAX_IN_F32 else f64)

    def bitcast(self, x: Scalar, to: Attribute) -> Scalar:
        """The bits of `x` as another element type of the same width; a NaN of f16 may become another one."""
        if not any(is_float(element) or is_narrow_float(element) for element in (x.element, to)):
            return self.convert(x, to)
        return x if x.element == to else self._build(arith.BitcastOp, [x], to)


_MAX_IN_F32 = 16
"""The largest width of integers that f32 represents exactly."""


def _wrapped(value: int, type_: Attribute) -> int:
    """`value` modulo the width of `type_`, in the signed range that signless attributes print in."""
    width = number_width(type_)
    if width == 1:
        return value & 1
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value
