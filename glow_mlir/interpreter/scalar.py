"""
Semantics of scalar bodies: `arith` and `math` ops on whole numpy arrays.

Transcendental functions are computed in f64 and rounded once. Integers wrap; division by zero gives 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.dialects.arith import RemFOp
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.scalar_builder import FUNCTIONS as SCALAR_FUNCTIONS
from glow_mlir.dialects.scalar_function import ScalarFunction
from glow_mlir.errors import UnsupportedError
from glow_mlir.ir.locations import location_name
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import BFLOAT16, FLOAT4, NARROW_FLOATS, POWERS_OF_TWO, unsigned_dtype

Array = np.ndarray


def _unsigned(x: Array) -> Array:
    return x.view(unsigned_dtype(x.dtype))


def _on_unsigned(function: Callable[..., Array]) -> Callable[..., Array]:
    def run(*arrays: Array) -> Array:
        result = function(*(_unsigned(np.asarray(array)) for array in arrays))
        return result.view(arrays[0].dtype) if result.dtype.kind == "u" else result

    return run


def _divide(x: Array, y: Array) -> Array:
    safe = np.where(y == 0, np.ones_like(y), y)
    quotient = np.floor_divide(x, safe)
    quotient += ((x - quotient * safe) != 0) & ((x < 0) != (safe < 0))
    return np.where(y == 0, np.zeros_like(x), quotient)


def _remainder(x: Array, y: Array) -> Array:
    safe = np.where(y == 0, np.ones_like(y), y)
    return np.where(y == 0, np.zeros_like(x), np.fmod(x, safe))


def _integer_power(x: Array, y: Array) -> Array:
    result = np.power(x, np.maximum(y, 0))
    negative = np.where(np.abs(x) == 1, np.where(y % 2 == 0, np.ones_like(x), x), np.zeros_like(x))
    return np.where(y < 0, negative, result)


def _wide(function: Callable[..., Array]) -> Callable[..., Array]:
    """Compute `function` in f64, and round to the operands' type."""
    return lambda *arrays: function(*(a.astype(np.float64) for a in arrays)).astype(arrays[0].dtype)


def _each(function: Callable[[float], float], x: Array) -> Array:
    """A function of one number, of each of an array."""
    return np.fromiter(map(function, x.reshape(-1).tolist()), np.float64, x.size).reshape(x.shape)


def _of_function(function: ScalarFunction) -> Callable[..., Array]:
    """What a scalar function is on arrays."""
    reference = function.reference or function.name
    known = getattr(np, reference) if isinstance(reference, str) else partial(_each, reference)
    return known if function.is_exact else _wide(known)


def _to_integer(x: Array, target: np.dtype, unsigned: bool) -> Array:
    info = np.iinfo(target.str.replace("i", "u") if unsigned else target)
    clean = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    result = np.where(clean >= float(info.max), info.max, 0).astype(info.dtype)
    inside = (clean > float(info.min)) & (clean < float(info.max))
    result = np.where(clean <= float(info.min), np.array(info.min, info.dtype), result)
    return np.where(inside, np.where(inside, clean, 0).astype(info.dtype), result).astype(info.dtype).view(target)


def round_float(x: Array, target: np.dtype) -> Array:
    """Convert `x` to a float type with a single rounding to nearest; `ml_dtypes` itself would round to f32 first."""
    if target.name == POWERS_OF_TWO:
        return _to_power_of_two(x.astype(np.float64), target)
    is_narrow = target.name in NARROW_FLOATS
    if (target.name != BFLOAT16 and not is_narrow) or x.dtype.itemsize < 4:
        return x.astype(target)
    exact = x.astype(np.float64)
    near = exact.astype(np.float32)
    back = near.astype(np.float64)
    # Round to odd: truncate, and set the last bit unless the result is exact.
    bits = near.view(np.uint32) - (np.abs(back) > np.abs(exact)) | (back != exact)
    result = np.where(np.isnan(exact), near, bits.astype(np.uint32).view(np.float32))
    if target.name == FLOAT4:
        return np.where(np.isnan(result), 0, result).astype(target)
    return result.astype(target)


def _to_power_of_two(x: Array, target: np.dtype) -> Array:
    """The exponents of the nearest powers of two from 2⁻¹²⁷ to 2¹²⁷, halves up; NaN beyond."""
    fraction, exponent = np.frexp(x)
    code = exponent + 126 + (fraction >= _HALFWAY)
    within = np.isfinite(x) & (x >= 2.0**-127) & (code <= _LARGEST_POWER)
    return np.where(within, code, 255).astype(np.uint8).view(target)


_HALFWAY = 0.75
"""The midpoint between powers of two, for numbers from 1/2 to 1."""
_LARGEST_POWER = 254
"""The encoding of 2¹²⁷."""


def _fma(x: Array, y: Array, z: Array) -> Array:
    """`x * y + z` in f32, rounded once."""
    if x.dtype == np.float64:
        return x * y + z
    product, addend = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    total = product + addend
    # The rounding error of the sum (Knuth's TwoSum); it decides ties between two f32 numbers.
    shift = total - product
    lost = (product - (total - shift)) + (addend - shift)
    return _to_odd(total, lost).astype(np.float32)


def _to_odd(near: Array, lost: Array) -> Array:
    """Round an f64 with the error `lost` to odd: a second rounding then equals a single one."""
    bits = near.view(np.int64)
    is_even = (bits & 1) == 0
    outward = (lost > 0) == (near > 0)
    moved = np.where(is_even & (lost != 0) & np.isfinite(near), bits + np.where(outward, 1, -1), bits)
    return moved.view(np.float64)


def _round_half_away(x: Array) -> Array:
    """Round to nearest, ties away from zero."""
    whole = np.trunc(x)
    return np.copysign(whole + np.sign(x) * (np.abs(x - whole) >= 0.5), x).astype(x.dtype)


def _reciprocal_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _count_ones(x: Array) -> Array:
    """The number of set bits of each integer."""
    octets = np.ascontiguousarray(x)[..., None].view(np.uint8)
    return np.unpackbits(octets, axis=-1).sum(-1).astype(x.dtype)


_FLOAT_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "oeq": np.equal,
    "une": np.not_equal,
    "olt": np.less,
    "ole": np.less_equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
}

_INTEGER_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "ult": _on_unsigned(np.less),
    "ule": _on_unsigned(np.less_equal),
    "ugt": _on_unsigned(np.greater),
    "uge": _on_unsigned(np.greater_equal),
}

FUNCTIONS: dict[type[Operation], Callable[..., Array]] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
    arith.NegfOp: np.negative,
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.DivSIOp: _divide,
    arith.DivUIOp: _on_unsigned(_divide),
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _on_unsigned(_remainder),
    RemFOp: np.fmod,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.MaxUIOp: _on_unsigned(np.maximum),
    arith.MinUIOp: _on_unsigned(np.minimum),
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.ShLIOp: np.left_shift,
    arith.ShRSIOp: np.right_shift,
    arith.ShRUIOp: _on_unsigned(np.right_shift),
    arith.SelectOp: np.where,
    math.AbsIOp: np.abs,
    math.CopySignOp: np.copysign,
    math.CtPopOp: _count_ones,
    math.RoundOp: _round_half_away,
    math.Atan2Op: _wide(np.arctan2),
    math.CbrtOp: _wide(np.cbrt),
    math.Exp2Op: _wide(np.exp2),
    math.FPowIOp: _wide(np.power),
    math.Log10Op: _wide(np.log10),
    math.Log2Op: _wide(np.log2),
    math.RsqrtOp: _wide(_reciprocal_root),
    math.FmaOp: _fma,
    math.IPowIOp: _integer_power,
    math.PowFOp: _wide(np.power),
    **{function.operation: _of_function(function) for function in SCALAR_FUNCTIONS.values()},
}
"""Op → its function on arrays."""

CONVERSIONS: dict[type[Operation], Callable[[Array, np.dtype], Array]] = {
    arith.ExtFOp: lambda x, to: x.astype(to),
    arith.TruncFOp: round_float,
    arith.SIToFPOp: round_float,
    arith.UIToFPOp: lambda x, to: round_float(_unsigned(x), to),
    arith.FPToSIOp: lambda x, to: _to_integer(x, to, unsigned=False),
    arith.FPToUIOp: lambda x, to: _to_integer(x, to, unsigned=True),
    arith.TruncIOp: lambda x, to: x.astype(to),
    arith.ExtSIOp: lambda x, to: x.astype(to),
    arith.ExtUIOp: lambda x, to: _unsigned(x).astype(to),
    arith.BitcastOp: lambda x, to: x.view(to),
}
"""Conversion → its function on an array and the target dtype (signed for integers)."""


def _constant(op: arith.ConstantOp) -> Callable[..., Array]:
    value = op.value
    assert isinstance(value, FloatAttr | IntegerAttr)
    array = np.array(value.value.data).astype(numpy_dtype(value.type))
    array.flags.writeable = False
    return lambda: array


def _converted(conversion: Callable[[Array, np.dtype], Array], to: np.dtype, array: Array) -> Array:
    return conversion(array, to)


def function_of(op: Operation) -> Callable[..., Array]:
    """The function of a scalar op on arrays; it keeps no reference to the IR."""
    if isinstance(op, arith.ConstantOp):
        return _constant(op)
    if isinstance(op, arith.CmpfOp):
        return _FLOAT_COMPARE[arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]]
    if isinstance(op, arith.CmpiOp):
        return _INTEGER_COMPARE[arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data]]
    if (conversion := CONVERSIONS.get(type(op))) is not None:
        return partial(_converted, conversion, numpy_dtype(op.results[0].type))
    if (function := FUNCTIONS.get(type(op))) is None:
        raise UnsupportedError(f"the interpreter does not execute {op.name}", node=location_name(op.location))
    return function


def evaluate(
    body: Block,
    arguments: Sequence[Array],
    outputs: Sequence[SSAValue],
    around: Mapping[SSAValue, Array] = MappingProxyType({}),
) -> list[Array]:
    """
    Run the ops of a scalar body on whole arrays that broadcast.

    `arguments` are the signless arguments of the body, `around` its captured values; returns the arrays of `outputs`.
    """
    values: dict[SSAValue, Any] = {**around, **dict(zip(body.args, map(np.asarray, arguments), strict=True))}
    for op in body.ops:
        if op.results:
            evaluate_op(op, values)
    return [values[output] for output in outputs]


def evaluate_op(op: Operation, values: dict[SSAValue, Any]) -> None:
    """Add the result of one scalar op, on arrays that broadcast, to the known values."""
    with np.errstate(all="ignore"):
        values[op.results[0]] = function_of(op)(*[values[operand] for operand in op.operands])


@dataclass(frozen=True)
class ScalarProgram:
    """A scalar body without its IR: each step is a function, and the numbers of its operands."""

    steps: Sequence[tuple[Callable[..., Array], Sequence[int]]]
    output: int

    @staticmethod
    def of(body: Block, output: SSAValue) -> ScalarProgram:
        """The program of a body with one result; values are numbered from its arguments on."""
        numbers: dict[SSAValue, int] = {argument: number for number, argument in enumerate(body.args)}
        steps: list[tuple[Callable[..., Array], Sequence[int]]] = []
        for op in body.ops:
            if op.results:
                steps.append((function_of(op), [numbers[operand] for operand in op.operands]))
                numbers[op.results[0]] = len(numbers)
        return ScalarProgram(steps, numbers[output])

    def run(self, arguments: Sequence[Array]) -> Array:
        """Evaluate the program on whole arrays that broadcast."""
        values = [np.asarray(argument) for argument in arguments]
        with np.errstate(all="ignore"):
            for function, operands in self.steps:
                values.append(function(*[values[number] for number in operands]))
        return values[self.output]
