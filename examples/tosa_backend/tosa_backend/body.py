"""
Elementwise operators: their scalar bodies, written on whole tensors.

Every elementwise operator of glow-mlir says what it computes as `arith` and `math` ops on scalars. A table has what
TOSA has for each of these, so that no operator is named here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i1, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.scalar_body import scalar_body
from glow_mlir.dialects.shapes import element_of, rank_of, shape_of
from glow_mlir.support.dataclass import dataclass
from tosa_backend.builder import TosaBuilder
from tosa_backend.dialect import PROPAGATE
from tosa_backend.elements import HELD, OFFSET, offset_of
from tosa_backend.rules import emits


@dataclass(frozen=True)
class Lanes:
    """
    What stands for a scalar of a body: a tensor of TOSA, and what its elements are more than the integers in it.

    Integers of 8 bits that are read without a sign are 128 less there (`elements.py`).
    """

    tensor: SSAValue
    offset: int = 0


Emit = Callable[["Body", Any], Lanes]


class Body:
    """Writes one body."""

    def __init__(self, b: TosaBuilder, rank: int) -> None:
        self.b = b
        self.rank = rank
        self.lanes: dict[SSAValue, Lanes] = {}

    def read(self, value: SSAValue, offset: int = 0) -> SSAValue:
        """A value as a tensor whose elements are so much more than the integers in it."""
        found = self.lanes[value]
        return found.tensor if found.offset == offset else self.b.flipped(found.tensor)

    def splat(self, value: float, like: SSAValue) -> SSAValue:
        """A constant beside a tensor."""
        return self.b.splat(value, element_of(like), (1,) * self.rank)

    def two(
        self, name: str, left: SSAValue, right: SSAValue, element: Attribute | None = None, **fields: Any
    ) -> SSAValue:
        """An operation on two tensors that broadcast."""
        shape = np.broadcast_shapes(shape_of(left), shape_of(right))
        return self.b(name, left, right, shape=shape, element=element, **fields)

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """One of two tensors by a third."""
        shape = np.broadcast_shapes(*map(shape_of, (condition, yes, no)))
        return self.b("select", condition, yes, no, shape=shape, element=element_of(yes))

    def quotient(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """One float over another: TOSA has no division."""
        return self.b.mul(left, self.b("reciprocal", right))

    def whole_quotient(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """One integer over another, towards zero; over zero it is 0."""
        zero = self.splat(0, right)
        is_zero = self.two("equal", right, zero, i1)
        found = self.two("intdiv", left, self.select(is_zero, self.splat(1, right), right))
        return self.select(is_zero, zero, found)

    def truncated(self, x: SSAValue) -> SSAValue:
        """The whole number towards zero."""
        is_below = self.two("greater", self.splat(0, x), x, i1)
        return self.select(is_below, self.b("ceil", x), self.b("floor", x))

    def rounded(self, x: SSAValue) -> SSAValue:
        """The nearest whole number, halves to the even one, as conversions of TOSA round; large ones are whole."""
        near = self.b.cast(self.b.cast(x, i32), f32)
        is_small = self.two("greater", self.splat(float(1 << 23), x), self.b("abs", x), i1)
        return self.select(is_small, near, x)

    def expm1(self, x: SSAValue) -> SSAValue:
        """exp(x) - 1 as tanh(x / 2)·(exp(x) + 1), without cancellation."""
        half = self.b("tanh", self.b.mul(x, self.splat(0.5, x)))
        return self.b.mul(half, self.b.add(self.b("exp", x), self.splat(1, x)))

    def log1p(self, x: SSAValue) -> SSAValue:
        """log(1 + x), with what the sum u = 1 + x lost: less ((u - 1) - x) / u."""
        one = self.splat(1, x)
        u = self.b.add(x, one)
        lost = self.quotient(self.two("sub", self.two("sub", u, one), x), u)
        log = self.b("log", u)
        is_large = self.two("equal", u, x, i1)
        return self.select(is_large, log, self.two("sub", log, lost))


def _unary(name: str) -> Emit:
    return lambda body, op: Lanes(body.b(name, body.read(op.operands[0])))


def _function(of: Callable[[Body, SSAValue], SSAValue]) -> Emit:
    return lambda body, op: Lanes(of(body, body.read(op.operands[0])))


def _binary(name: str, offset: int = 0, **fields: Any) -> Emit:
    """Of two operands, which are so much more than the integers that hold them where these have 8 bits."""

    def emit(body: Body, op: Any) -> Lanes:
        of = offset if element_of(body.lanes[op.operands[0]].tensor) == i8 else 0
        left, right = (body.read(operand, of) for operand in op.operands)
        return Lanes(body.two(name, left, right, **fields), of)

    return emit


def _bits(number: str, truth: str) -> Emit:
    """An operation on all bits, or on truth values."""

    def emit(body: Body, op: Any) -> Lanes:
        left, right = map(body.read, op.operands)
        return Lanes(body.two(truth if element_of(left) == i1 else number, left, right))

    return emit


def _product(body: Body, op: Any) -> Lanes:
    return Lanes(body.b.mul(*map(body.read, op.operands)))


COMPARED: Mapping[str, tuple[str, bool, bool]] = {
    "eq": ("equal", False, False),
    "ne": ("equal", False, True),
    "gt": ("greater", False, False),
    "ge": ("greater_equal", False, False),
    "lt": ("greater", True, False),
    "le": ("greater_equal", True, False),
}
"""Comparison → TOSA's, whether operands change places, whether its negation counts."""


def _compare(body: Body, op: arith.CmpiOp | arith.CmpfOp) -> Lanes:
    word = (arith.CMPF_COMPARISON_OPERATIONS if isinstance(op, arith.CmpfOp) else arith.CMPI_COMPARISON_OPERATIONS)[
        op.predicate.value.data
    ]
    name, swaps, negates = COMPARED[word[-2:]]
    is_unsigned = isinstance(op, arith.CmpiOp) and word[0] == "u"
    operands = [_wide(body, operand, OFFSET if is_unsigned else 0) for operand in op.operands]
    left, right = reversed(operands) if swaps else operands
    if element_of(left) == i1:
        found = body.b("logical_not", body.two("logical_xor", left, right))
    else:
        found = body.two(name, left, right, element=i1)
    return Lanes(body.b("logical_not", found) if negates else found)


def _wide(body: Body, value: SSAValue, offset: int) -> SSAValue:
    """An operand of what TOSA does on 32 bits alone; integers of fewer bits in the order that an offset gives them."""
    element = element_of(body.lanes[value].tensor)
    tensor = body.read(value, offset if element == i8 else 0)
    return tensor if element in (f32, i1) else body.b.cast(tensor, i32)


def _extreme(name: str, offset: int = 0) -> Emit:
    """The larger or the smaller of two, which TOSA finds among floats and integers of 32 bits."""

    def emit(body: Body, op: Any) -> Lanes:
        element = element_of(body.lanes[op.operands[0]].tensor)
        left, right = (_wide(body, operand, offset) for operand in op.operands)
        found = body.two(name, left, right, nan_mode=PROPAGATE)
        return Lanes(body.b.cast(found, element), offset if element == i8 else 0)

    return emit


def _select(body: Body, op: arith.SelectOp) -> Lanes:
    condition, yes, no = op.operands
    offset = body.lanes[yes].offset
    return Lanes(body.select(body.read(condition), body.read(yes, offset), body.read(no, offset)), offset)


def _constant(body: Body, op: arith.ConstantOp) -> Lanes:
    assert isinstance(op.value, FloatAttr | IntegerAttr)
    return Lanes(body.b.splat(op.value.value.data, HELD[op.result.type], (1,) * body.rank))


def _converted(body: Body, op: Any) -> Lanes:
    """Integers with a sign in more or fewer bits, or as floats; one of 64 is held in 32."""
    return Lanes(body.b.cast(body.read(op.operands[0]), HELD[op.results[0].type]))


def _without_sign(body: Body, op: Any) -> Lanes:
    """Integers or truth values without a sign in more bits, or as floats: what holds them, plus the offset."""
    (value,), to = op.operands, HELD[op.results[0].type]
    tensor = body.lanes[value].tensor
    if element_of(tensor) == i1:
        wide = body.b.cast(tensor, i32)
    else:
        wide = body.b.rescale(body.read(value, OFFSET), i32, zero_points=(-OFFSET, 0))
    return Lanes(body.b.cast(wide, to))


def _float_as_whole(body: Body, op: Any) -> Lanes:
    """TOSA rounds to the nearest, and saturates."""
    whole = body.truncated(body.read(op.operands[0]))
    return Lanes(body.b.cast(whole, HELD[op.results[0].type]))


def _float_as_unsigned(body: Body, op: Any) -> Lanes:
    """To 8 bits without a sign: the number less what a `ui8` is more than the integer that holds it."""
    x = body.truncated(body.read(op.operands[0]))
    return Lanes(body.b.cast(body.two("sub", x, body.splat(OFFSET, x)), i8), OFFSET)


PARTS: dict[type[Operation], Emit] = {
    arith.ConstantOp: _constant,
    arith.AddfOp: _binary("add"),
    arith.AddiOp: _binary("add"),
    arith.SubfOp: _binary("sub"),
    arith.SubiOp: _binary("sub"),
    arith.MulfOp: _product,
    arith.MuliOp: _product,
    arith.DivfOp: lambda body, op: Lanes(body.quotient(*map(body.read, op.operands))),
    arith.DivSIOp: lambda body, op: Lanes(body.whole_quotient(*map(body.read, op.operands))),
    arith.MaximumfOp: _extreme("maximum"),
    arith.MaxSIOp: _extreme("maximum"),
    arith.MaxUIOp: _extreme("maximum", OFFSET),
    arith.MinimumfOp: _extreme("minimum"),
    arith.MinSIOp: _extreme("minimum"),
    arith.MinUIOp: _extreme("minimum", OFFSET),
    arith.AndIOp: _bits("bitwise_and", "logical_and"),
    arith.OrIOp: _bits("bitwise_or", "logical_or"),
    arith.XOrIOp: _bits("bitwise_xor", "logical_xor"),
    arith.ShLIOp: _binary("logical_left_shift"),
    arith.ShRSIOp: _binary("arithmetic_right_shift", round=False),
    arith.ShRUIOp: _binary("logical_right_shift"),
    arith.CmpfOp: _compare,
    arith.CmpiOp: _compare,
    arith.SelectOp: _select,
    arith.NegfOp: lambda body, op: Lanes(body.b.negate(body.read(op.operands[0]))),
    arith.ExtSIOp: _converted,
    arith.ExtUIOp: _without_sign,
    arith.TruncIOp: _converted,
    arith.SIToFPOp: _converted,
    arith.UIToFPOp: _without_sign,
    arith.FPToSIOp: _float_as_whole,
    arith.FPToUIOp: _float_as_unsigned,
    math.AbsFOp: _unary("abs"),
    math.CeilOp: _unary("ceil"),
    math.CosOp: _unary("cos"),
    math.ErfOp: _unary("erf"),
    math.ExpM1Op: _function(Body.expm1),
    math.ExpOp: _unary("exp"),
    math.FloorOp: _unary("floor"),
    math.Log1pOp: _function(Body.log1p),
    math.LogOp: _unary("log"),
    math.PowFOp: _binary("pow"),
    math.RoundEvenOp: _function(Body.rounded),
    math.SinOp: _unary("sin"),
    math.SqrtOp: _function(lambda body, x: body.two("pow", x, body.splat(0.5, x))),
    math.TanOp: _function(lambda body, x: body.quotient(body.b("sin", x), body.b("cos", x))),
    math.TanhOp: _unary("tanh"),
    math.TruncOp: _function(Body.truncated),
}
"""Op of a body → what TOSA has for it; nothing multiplies and adds with one rounding."""

ON_WIDE = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp, arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
"""What TOSA computes on integers of 32 bits alone."""


def can_write(op: Elementwise) -> bool:
    """Whether TOSA has all that the body of an operator is made of."""
    block, _ = scalar_body(op)
    return all(map(_has, block.ops))


def _has(part: Operation) -> bool:
    """Whether TOSA has one op of a body, on its types."""
    types = [value.type for value in (*part.operands, *part.results)]
    if type(part) not in PARTS or not all(type_ in HELD for type_ in types):
        return False
    if isinstance(part, ON_WIDE):
        return types[0] == i32
    return not isinstance(part, arith.FPToUIOp) or types[1] == i8


@emits(Elementwise, when=can_write)
def elementwise(op: Elementwise, b: TosaBuilder) -> SSAValue:
    """The body, part by part; operands get axes of size 1 in front."""
    block, result = scalar_body(op)
    body = Body(b, rank_of(op.result))
    for argument, value in zip(block.args, op.operands, strict=True):
        tensor = b.ranked(b.value(value), body.rank)
        body.lanes[argument] = Lanes(tensor, offset_of(element_of(value)))
    for part in block.ops:
        body.lanes[part.results[0]] = PARTS[type(part)](body, part)
    found = body.read(result, offset_of(element_of(op.result)))
    shape = shape_of(op.result)
    if shape_of(found) == shape:
        return found
    # A result that reads not all operands.
    return b.tile(found, [size // given for size, given in zip(shape, shape_of(found), strict=True)])
