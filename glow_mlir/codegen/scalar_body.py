"""Scalar bodies in machine code: each `arith` or `math` op of a body as `llvm` ops on scalars or vectors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from types import MappingProxyType
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.types import f32, f64, type_info, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.high_products import HighProduct
from glow_mlir.codegen.math.exponentials import exp_falling
from glow_mlir.codegen.math.half import narrow_double
from glow_mlir.codegen.math.long_division import quotient, remainder, signed_quotient, signed_remainder
from glow_mlir.codegen.math.narrow import cut, extended, from_memory, held, in_memory, is_held_as_f32, to_memory
from glow_mlir.codegen.math.quotients import (
    corrects_quotients,
    quotient_by_number,
    quotient_by_value,
    quotient_of_halves,
)
from glow_mlir.codegen.math.scalar_math import CHAINS, MATH
from glow_mlir.codegen.math.wide_integers import to_float, to_integer_saturating, to_odd_f32
from glow_mlir.codegen.quantized_rounding import RoundedValue
from glow_mlir.dialects.arith import RemFOp
from glow_mlir.dialects.element_types import byte_width, is_bool, is_narrow_integer, numpy_dtype
from glow_mlir.dialects.powers import expanded_power, is_small
from glow_mlir.dialects.scalar_builder import FALLING
from glow_mlir.dialects.scalar_parameters import parameter_number
from glow_mlir.dialects.target import Target

Emit = Callable[[Builder, Operation, list[Value]], Value]


def _divide_signed(b: Builder, op: Operation, v: list[Value]) -> Value:
    """Division that does not trap: by 0 it gives 0, and the smallest integer by -1 wraps."""
    x, y = v
    special = b.compare("ule", y + 1, 1)
    quotient = signed_quotient(b, x, b.select(special, 1, y), _is_by_number(op))
    return b.select(y.eq(0), 0, b.select(y.eq(-1), -x, quotient))


def _remainder_signed(b: Builder, op: Operation, v: list[Value]) -> Value:
    x, y = v
    special = b.compare("ule", y + 1, 1)
    return b.select(special, 0, signed_remainder(b, x, b.select(special, 1, y), _is_by_number(op)))


def _divide_unsigned(b: Builder, op: Operation, v: list[Value]) -> Value:
    x, y = v
    return b.select(y.eq(0), 0, quotient(b, x, b.select(y.eq(0), 1, y), _is_by_number(op)))


def _remainder_unsigned(b: Builder, op: Operation, v: list[Value]) -> Value:
    x, y = v
    return b.select(y.eq(0), 0, remainder(b, x, b.select(y.eq(0), 1, y), _is_by_number(op)))


def _is_by_number(op: Operation) -> bool:
    """Whether the divisor of integers is known at compile time."""
    divisor = op.operands[1]
    return isinstance(divisor.owner, arith.ConstantOp) and parameter_number(divisor) is None


def _is_number(value: SSAValue) -> bool:
    """Whether a float value is a constant other than NaN."""
    owner = value.owner
    return (
        isinstance(owner, arith.ConstantOp)
        and isinstance(owner.value, FloatAttr)
        and owner.value.value.data == owner.value.value.data
    )


def _number(value: SSAValue) -> float:
    """The number of a constant."""
    assert isinstance(value.owner, arith.ConstantOp)
    assert isinstance(value.owner.value, FloatAttr)
    return value.owner.value.value.data


def _divisor(op: Operation) -> float | None:
    """The number by which an operation divides; `None` if it is not known at compile time."""
    if not isinstance(op, arith.DivfOp) or not _is_number(op.rhs) or parameter_number(op.rhs) is not None:
        return None
    return float(numpy_dtype(op.rhs.type).type(_number(op.rhs)))


def _uniform_divisor(op: Operation, uniform: Collection[SSAValue]) -> SSAValue | None:
    """The argument by which an operation divides, if all lanes have the same; else `None`."""
    return op.rhs if isinstance(op, arith.DivfOp) and op.rhs in uniform else None


def _quotient(b: Builder, op: Operation, v: list[Value]) -> Value:
    divisor = _divisor(op)
    is_half = isinstance(op.results[0].type, Float16Type | BFloat16Type)
    return quotient_of_halves(b, v[0], divisor) if is_half and divisor is not None else b.fdiv(*v)


def _maximum(b: Builder, op: Operation, v: list[Value]) -> Value:
    # One instruction if the second operand cannot be NaN; the order keeps a NaN of the first.
    if _is_number(op.operands[1]):
        return b.select(b.compare("olt", v[0], v[1]), v[1], v[0])
    return b.maximum(v[0], v[1])


def _minimum(b: Builder, op: Operation, v: list[Value]) -> Value:
    if _is_number(op.operands[1]):
        return b.select(b.compare("ogt", v[0], v[1]), v[1], v[0])
    return b.minimum(v[0], v[1])


def _integer_select(predicate: str) -> Emit:
    return lambda b, op, v: b.select(b.compare(predicate, v[0], v[1]), v[0], v[1])


def _method(name: str) -> Emit:
    return lambda b, op, v: getattr(b, name)(*v)


def _convert(signed: bool) -> Emit:
    def convert(b: Builder, op: Operation, v: list[Value]) -> Value:
        value, target = v[0], op.results[0].type
        if isinstance(target, BFloat16Type) and not value.info.is_float and value.info.bits > 16:
            # Convert by way of f64, or of f32 rounded to odd: a rounded f32 would be rounded twice.
            if not (b.target.doubles and b.target.wide_integers):
                return to_odd_f32(b, value, signed)
            value = b.cast(value, f64, signed=signed)
        if is_held_as_f32(target) and value.info.element == f64:
            return narrow_double(b, value)
        if is_narrow_integer(target):
            return cut(b, value, cast(IntegerType, target))
        if is_narrow_integer(op.operands[0].type):
            value = extended(b, value, op.operands[0].type, signed)
        if type_info(held(target)).is_float and not value.info.is_float:
            return to_float(b, value, held(target), signed)
        return b.cast(value, held(target), signed=signed)

    return convert


def _to_integer(signed: bool) -> Emit:
    return lambda b, op, v: to_integer_saturating(b, v[0], op.results[0].type, signed)


def _bitcast(b: Builder, op: Operation, v: list[Value]) -> Value:
    """Reinterpret bits; floats that are held as f32 are converted to their bits or from them."""
    return _of_bits(b, to_memory(b, v[0], op.operands[0].type), op.results[0].type)


def _of_bits(b: Builder, stored: Value, element: Attribute) -> Value:
    """An element as bodies hold it, from the bits of another element in memory."""
    return from_memory(b, b.bitcast(stored, in_memory(element)), element)


def _compare_float(b: Builder, op: Operation, v: list[Value]) -> Value:
    assert isinstance(op, arith.CmpfOp)
    return b.compare(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], v[0], v[1])


def _compare_integer(b: Builder, op: Operation, v: list[Value]) -> Value:
    assert isinstance(op, arith.CmpiOp)
    return b.compare(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], v[0], v[1])


def _constant(b: Builder, op: Operation, lanes: int) -> Value:
    assert isinstance(op, arith.ConstantOp)
    value = op.value
    assert isinstance(value, FloatAttr | IntegerAttr)
    if (parameter := parameter_number(op)) is not None:
        return b.splat(b.scalar(parameter, value.type), lanes)
    number = value.value.data
    if is_held_as_f32(value.type):
        number = float(numpy_dtype(value.type).type(number))
    return b.constant(number, vector(held(value.type), lanes))


def _integer_power(b: Builder, op: Operation, v: list[Value]) -> Value:
    """x to an integer power, by squaring; a negative power gives 0 unless x = ±1."""
    x, y = v
    one = x * 0 + 1
    odd = (y & 1).ne(0)
    unit = b.select(x.eq(1), one, b.select(x.eq(-1), b.select(odd, x, one), 0))

    def square(result: Value, base: Value, rest: Value) -> list[Value]:
        return [b.select((rest & 1).ne(0), result * base, result), base * base, b.lshr(rest, 1)]

    def goes_on(result: Value, base: Value, rest: Value) -> Value:
        return b.any(rest.ne(0))

    result, _, _ = b.repeat([one, x, b.select(y < 0, 0, y)], square, goes_on)
    return b.select(y < 0, unit, result)


def _power(b: Builder, op: Operation, v: list[Value]) -> Value:
    """x to the power y: by products and square roots, where y is a number that these make up."""
    (x, y), exponent = v, op.operands[1]
    number = _number(exponent) if _is_number(exponent) and parameter_number(exponent) is None else 0
    if not is_small(number):
        return MATH["powf"](b, x, y)
    value = expanded_power(x, number, b.mul, partial(MATH["sqrt"], b))
    return 1.0 / value if number < 0 else value


def _exponential(b: Builder, op: Operation, v: list[Value]) -> Value:
    return exp_falling(b, v[0]) if FALLING in op.attributes else MATH["exp"](b, v[0])


EMITTERS: dict[type[Operation], Emit] = {
    arith.AddfOp: _method("add"),
    arith.SubfOp: _method("sub"),
    arith.MulfOp: _method("mul"),
    arith.DivfOp: _quotient,
    arith.NegfOp: _method("neg"),
    arith.MaximumfOp: _maximum,
    arith.MinimumfOp: _minimum,
    arith.MaxnumfOp: lambda b, op, v: b.max(v[1], v[0]),
    arith.MinnumfOp: lambda b, op, v: b.min(v[1], v[0]),
    arith.AddiOp: _method("add"),
    arith.SubiOp: _method("sub"),
    arith.MuliOp: _method("mul"),
    arith.DivSIOp: _divide_signed,
    arith.DivUIOp: _divide_unsigned,
    arith.RemSIOp: _remainder_signed,
    arith.RemUIOp: _remainder_unsigned,
    RemFOp: lambda b, op, v: MATH["remf"](b, *v),
    arith.MaxSIOp: _integer_select("sgt"),
    arith.MinSIOp: _integer_select("slt"),
    arith.MaxUIOp: _integer_select("ugt"),
    arith.MinUIOp: _integer_select("ult"),
    arith.AndIOp: _method("and_"),
    arith.OrIOp: _method("or_"),
    arith.XOrIOp: _method("xor"),
    arith.ShLIOp: _method("shl"),
    arith.ShRSIOp: _method("ashr"),
    arith.ShRUIOp: _method("lshr"),
    arith.SelectOp: _method("select"),
    arith.CmpfOp: _compare_float,
    arith.CmpiOp: _compare_integer,
    arith.ExtFOp: _convert(signed=True),
    arith.TruncFOp: _convert(signed=True),
    arith.SIToFPOp: _convert(signed=True),
    arith.UIToFPOp: _convert(signed=False),
    arith.FPToSIOp: _to_integer(signed=True),
    arith.FPToUIOp: _to_integer(signed=False),
    arith.TruncIOp: _convert(signed=True),
    arith.ExtSIOp: _convert(signed=True),
    arith.ExtUIOp: _convert(signed=False),
    arith.BitcastOp: _bitcast,
    math.ExpOp: _exponential,
    math.IPowIOp: _integer_power,
    math.PowFOp: _power,
}
"""Op → its emitter. Other ops of `math` on floats are in `scalar_math.MATH`."""


def clipping_of(block: Block) -> float | None:
    """
    The upper bound if a body only clips its only argument, an f32, to it and to 0; infinity if it clips only at 0.

    `None` for a body that does anything else.
    """
    value, *others = block.args
    if others or value.type != f32:
        return None
    found: SSAValue = value
    lower, upper = -inf, inf
    for op in block.ops:
        if isinstance(op, arith.ConstantOp) or not op.results:
            continue
        if op.operands[0] is not found or not _is_number(op.operands[-1]):
            return None
        number = _number(op.operands[1])
        if isinstance(op, arith.MaximumfOp):
            lower = max(lower, number)
        elif isinstance(op, arith.MinimumfOp):
            upper = min(upper, number)
        else:
            return None
        found = op.results[0]
    last = block.last_op
    return upper if lower == 0 < upper and last is not None and list(last.operands) == [found] else None


def can_emit(op: Operation) -> bool:
    """Whether an op of a scalar body can be emitted."""
    return type(op) is arith.ConstantOp or type(op) in EMITTERS or _math_name(op) in MATH


def _math_name(op: Operation) -> str:
    dialect, _, name = op.name.partition(".")
    return name if dialect == "math" else ""


def count_chains(block: Block) -> int:
    """The number of mathematical functions in a body whose operations depend on each other."""
    return sum(_math_name(op) in CHAINS for op in block.ops)


def has_angles(block: Block) -> bool:
    """Whether a body has functions of angles, whose vectors branch if an angle is large."""
    return any(_math_name(op) in ("sin", "cos", "tan") for op in block.ops)


def has_quotients(block: Block, target: Target, uniform: Collection[SSAValue] = ()) -> bool:
    """
    Whether a body divides by a number, or by one of its `uniform` arguments, and vectors on the target branch if a
    quotient is unusual.
    """
    return any(
        (_divisor(op) is not None or _uniform_divisor(op, uniform) is not None)
        and _is_corrected(target, op.results[0].type)
        for op in block.ops
    )


def emit_scalar_body(
    b: Builder,
    block: Block,
    arguments: Sequence[Value],
    outputs: Sequence[SSAValue],
    lanes: int,
    around: Mapping[SSAValue, Value] = MappingProxyType({}),
    may_branch: bool = False,
    uniform: Mapping[SSAValue, Value] = MappingProxyType({}),
) -> list[Value]:
    """
    Emit the ops of a body on `arguments`, scalars or vectors of `lanes`; return the values of `outputs`.

    Floats of at most 16 bits are passed and returned in their own types, but are held as f32 that is rounded after each
    op; values from `around` the body are held that way already. A body that `may_branch`, as in loops over elements,
    divides by a number in fewer instructions, and by its `uniform` arguments. Those are the same in all lanes; their
    scalars are given.
    """
    loaded: dict[SSAValue, Value] = dict(zip(block.args, arguments, strict=True))
    values = {**around, **{argument: from_memory(b, value, argument.type) for argument, value in loaded.items()}}
    emit_scalar_ops(b, block.ops, values, lanes, outputs, loaded, may_branch, uniform)
    return [to_memory(b, values[output], output.type) for output in outputs]


def emit_scalar_ops(
    b: Builder,
    ops: Iterable[Operation],
    values: dict[SSAValue, Value],
    lanes: int,
    outputs: Sequence[SSAValue] = (),
    loaded: Mapping[SSAValue, Value] = MappingProxyType({}),
    may_branch: bool = False,
    uniform: Mapping[SSAValue, Value] = MappingProxyType({}),
) -> None:
    """
    Emit scalar ops on `values`, as bodies hold them, and add their results to `values`.

    `outputs` are the values that are stored; `loaded` has values in their types in memory.
    """
    ops, stored = list(ops), set(outputs)
    rounded = {op: value for op in ops if (value := RoundedValue.of(op, uniform)) is not None}
    products = {op: found for op in ops if (found := HighProduct.of(op, b.target, lanes)) is not None}
    skipped = {step for value in (*rounded.values(), *products.values()) for step in value.steps}
    for op in ops:
        if (conversion := rounded.get(op)) is not None:
            values[op.results[0]] = conversion.emit(b, values[conversion.number], op, uniform)
        elif (product := products.get(op)) is not None:
            values[op.results[0]] = product.emit(b, values[product.left], values[product.right])
        elif op.results and op not in skipped:
            result = op.results[0]
            if isinstance(op, arith.BitcastOp) and op.input in loaded:
                value = _of_bits(b, loaded[op.input], result.type)
            elif may_branch and not is_held_as_f32(result.type) and (divisor := _divisor(op)) is not None:
                value = quotient_by_number(b, values[op.operands[0]], divisor)
            elif (
                may_branch
                and lanes > 1
                and _is_corrected(b.target, result.type)
                and (divider := _uniform_divisor(op, uniform)) is not None
            ):
                value = quotient_by_value(b, values[op.operands[0]], uniform[divider])
            else:
                value = _emit_op(b, op, [values[operand] for operand in op.operands], lanes)
            # A result that is only stored is rounded when it is stored.
            is_read = result not in stored or not result.has_one_use()
            if is_read and is_held_as_f32(result.type):
                value = from_memory(b, to_memory(b, value, result.type), result.type)
            values[result] = value


def _is_corrected(target: Target, type_: Attribute) -> bool:
    """Whether a target divides vectors of such floats by one number in fewer instructions."""
    return not is_held_as_f32(type_) and corrects_quotients(target, type_info(type_).bits)


def _emit_op(b: Builder, op: Operation, operands: list[Value], lanes: int) -> Value:
    """The result of one op of a body."""
    if isinstance(op, arith.ConstantOp):
        return _constant(b, op, lanes)
    emitter = EMITTERS.get(type(op))
    return MATH[_math_name(op)](b, *operands) if emitter is None else emitter(b, op, operands)


def widest(block: Block, elements: Sequence[Attribute]) -> int:
    """Bits of the widest value that a body or its operands hold; it determines how many lanes fit a register."""
    types = [*elements, *(result.type for op in block.ops for result in op.results)]
    return max((8 * byte_width(held(type_)) for type_ in types if not is_bool(type_)), default=8)
