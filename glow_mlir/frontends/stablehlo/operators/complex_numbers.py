"""Operations on complex numbers, which are pairs of tensors, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import SSAValue

from glow_mlir.dialects.expressions import Tensor
from glow_mlir.dialects.glow_high.data_movement import ConcatOp, SliceOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp, SubOp
from glow_mlir.dialects.glow_high.elementwise_math import NegOp
from glow_mlir.dialects.glow_high.fourier import DftOp
from glow_mlir.dialects.shapes import rank_of, sizes_of
from glow_mlir.dialects.stablehlo.attributes import FftTypeAttr
from glow_mlir.frontends.builder import complex_formulas as formulas
from glow_mlir.frontends.builder.complex_formulas import Pair
from glow_mlir.frontends.builder.float_bits import angle, sign_bit
from glow_mlir.frontends.stablehlo.node import ComplexValue, StablehloNode, Value, part_type, stablehlo_operator
from glow_mlir.frontends.stablehlo.operators.data_movement import expanded
from glow_mlir.support.symbols import Sizes

ONE: Mapping[str, Callable[[Pair], Pair]] = {
    "chlo.cosh": formulas.hyperbolic_cosine,
    "chlo.sinh": formulas.hyperbolic_sine,
    "chlo.square": lambda x: formulas.multiplied(x, x),
    "chlo.tan": formulas.tangent,
    "cosine": formulas.cosine,
    "exponential": formulas.exponential,
    "exponential_minus_one": formulas.exponential_minus_one,
    "sign": formulas.sign,
    "sine": formulas.sine,
    "tan": formulas.tangent,
    "tanh": formulas.hyperbolic_tangent,
}
"""Operation on a complex number → its formula."""

TWO: Mapping[str, Callable[[Pair, Pair], Pair]] = {
    "add": formulas.added,
    "divide": formulas.divided,
    "multiply": formulas.multiplied,
    "subtract": formulas.subtracted,
}
"""Operation on two complex numbers → its formula."""


INVERSE: Mapping[str, tuple[Callable[[Pair, Pair], Pair], bool]] = {
    "chlo.acos": (lambda x, _: formulas.inverse_cosine(x), False),
    "chlo.acosh": (lambda x, _: formulas.inverse_hyperbolic_cosine(x), False),
    "chlo.asin": (formulas.inverse_sine, False),
    "chlo.asinh": (formulas.inverse_sine, True),
    "chlo.atan": (formulas.inverse_hyperbolic_tangent, True),
    "chlo.atanh": (formulas.inverse_hyperbolic_tangent, False),
}
"""Operation → the formula of a complex number and its sign bits, and whether it is that of i·x, times -i."""


def pair_of(node: StablehloNode, position: int) -> Pair:
    """An operand for formulas; a real one has imaginary parts of 0."""
    value = node.value(position)
    if not isinstance(value, ComplexValue):
        real = node.formulas.of(node.input(position))
        return real, real * 0.0
    return node.formulas.of(value.real), node.formulas.of(value.imaginary)


def of_pair(node: StablehloNode, pair: Pair) -> ComplexValue:
    """The complex numbers of formulas."""
    return node.complex(*map(node.formulas.value, pair))


def parts_of(value: Value) -> tuple[SSAValue, SSAValue]:
    """Both parts of complex numbers."""
    assert isinstance(value, ComplexValue)
    return value.real, value.imaginary


@stablehlo_operator(*ONE, of_complex=True)
def function(node: StablehloNode) -> Value:
    """A function of a complex number."""
    return of_pair(node, ONE[node.kind.removeprefix("stablehlo.")](pair_of(node, 0)))


@stablehlo_operator(*INVERSE, of_complex=True)
def inverse(node: StablehloNode) -> Value:
    """The inverse of a trigonometric or hyperbolic function."""
    formula, is_turned = INVERSE[node.kind]
    x = pair_of(node, 0)
    if is_turned:
        x = -x[1], x[0]
    signs = sign_bit(node.formulas, node.formulas.value(x[0])), sign_bit(node.formulas, node.formulas.value(x[1]))
    real, imaginary = formula(x, signs)
    return of_pair(node, (imaginary, -real) if is_turned else (real, imaginary))


@stablehlo_operator(*TWO, of_complex=True)
def pair(node: StablehloNode) -> Value:
    """An operation on two complex numbers."""
    return of_pair(node, TWO[node.kind.removeprefix("stablehlo.")](pair_of(node, 0), pair_of(node, 1)))


def _angle(node: StablehloNode, position: int = 0, shift: float = 0.0) -> Tensor:
    real, imaginary = pair_of(node, position)
    shifted = real + shift if shift else real
    left = sign_bit(node.formulas, node.formulas.value(shifted))
    return angle(imaginary, shifted, sign_bit(node.formulas, node.formulas.value(imaginary)), left)


@stablehlo_operator("log", of_complex=True)
def log(node: StablehloNode) -> Value:
    """The logarithm, whose imaginary part is the angle."""
    return of_pair(node, (formulas.size_of_log(pair_of(node, 0)), _angle(node)))


@stablehlo_operator("log_plus_one", of_complex=True)
def log_plus_one(node: StablehloNode) -> Value:
    """The logarithm of a number and 1."""
    return of_pair(node, (formulas.size_of_log_plus_one(pair_of(node, 0)), _angle(node, 0, 1.0)))


@stablehlo_operator("power", of_complex=True)
def power(node: StablehloNode) -> Value:
    """A power of a complex number."""
    return of_pair(node, formulas.power(pair_of(node, 0), pair_of(node, 1), _angle(node)))


@stablehlo_operator("sqrt", of_complex=True)
def sqrt(node: StablehloNode) -> Value:
    """The square root."""
    value = pair_of(node, 0)
    return of_pair(node, formulas.square_root(value, sign_bit(node.formulas, node.formulas.value(value[1]))))


@stablehlo_operator("rsqrt", of_complex=True)
def rsqrt(node: StablehloNode) -> Value:
    """One over the square root."""
    value = pair_of(node, 0)
    return of_pair(node, formulas.inverse_square_root(value, sign_bit(node.formulas, node.formulas.value(value[1]))))


@stablehlo_operator("logistic", of_complex=True)
def logistic(node: StablehloNode) -> Value:
    """1 / (1 + e^-x)."""
    real, imaginary = pair_of(node, 0)
    below = formulas.exponential((-real, -imaginary))
    one = real * 0.0 + 1.0
    return of_pair(node, formulas.divided((one, one * 0.0), (below[0] + 1.0, below[1])))


@stablehlo_operator("abs", of_complex=True)
def magnitude(node: StablehloNode) -> SSAValue:
    """The distance from 0."""
    return node.formulas.value(formulas.hypot(*pair_of(node, 0)))


@stablehlo_operator("negate", of_complex=True)
def negate(node: StablehloNode) -> Value:
    """Both parts with the opposite sign."""
    return node.complex(*(node.emit(NegOp, part) for part in parts_of(node.value(0))))


@stablehlo_operator("chlo.conj")
def real_conjugate(node: StablehloNode) -> Value:
    """A real number as it is."""
    return node.input()


@stablehlo_operator("chlo.conj", of_complex=True)
def conjugate(node: StablehloNode) -> Value:
    """The imaginary part with the opposite sign."""
    real, imaginary = parts_of(node.value(0))
    return node.complex(real, node.emit(NegOp, imaginary))


@stablehlo_operator("compare", of_complex=True)
def compare(node: StablehloNode) -> SSAValue:
    """Whether two complex numbers are equal, or differ."""
    direction = node.text("comparison_direction")
    if direction not in ("EQ", "NE"):
        raise node.unsupported(f"{direction} of complex numbers is not supported")
    formula = formulas.are_equal if direction == "EQ" else formulas.differ
    return node.formulas.value(formula(pair_of(node, 0), pair_of(node, 1)))


@stablehlo_operator("convert", of_complex=True)
def convert(node: StablehloNode) -> Value:
    """The same numbers with parts of another type; the real part for a type of real numbers."""
    element = node.element()
    real, imaginary = parts_of(node.value(0))
    if (wanted := part_type(element)) is not None:
        return node.complex(*(node.cast(part, wanted) for part in (real, imaginary)))
    return node.cast(real, element)


@stablehlo_operator("bitcast_convert", of_complex=True)
def bitcast_convert(node: StablehloNode) -> Value:
    """The same complex numbers; their bits are no other numbers."""
    if node.element() != node.op.operands[0].type.get_element_type():  # pyright: ignore
        raise node.unsupported("of complex numbers to another type is not supported")
    return node.value(0)


@stablehlo_operator("complex")
def complex_(node: StablehloNode) -> Value:
    """Complex numbers of two parts."""
    return node.complex(*node.inputs())


@stablehlo_operator("real")
def real_of_real(node: StablehloNode) -> SSAValue:
    """A real number as it is."""
    return node.input()


@stablehlo_operator("imag")
def imaginary_of_real(node: StablehloNode) -> SSAValue:
    """0."""
    return expanded(node, node.splat(0, node.input()), sizes_of(node.input()))


@stablehlo_operator("real", of_complex=True)
def real(node: StablehloNode) -> SSAValue:
    """The real part."""
    return parts_of(node.value(0))[0]


@stablehlo_operator("imag", of_complex=True)
def imaginary(node: StablehloNode) -> SSAValue:
    """The imaginary part."""
    return parts_of(node.value(0))[1]


# ---- Products and sums


@stablehlo_operator("dot", "dot_general", "convolution", of_complex=True)
def product(node: StablehloNode) -> Value:
    """Sums of products of complex numbers, by four of their parts."""
    (a, b), (c, d) = (parts_of(node.value(position)) for position in (0, 1))

    def of(one: SSAValue, other: SSAValue) -> SSAValue:
        found = node.delegated(node.kind, [one, other])
        assert isinstance(found, SSAValue)
        return found

    real = node.emit(SubOp, of(a, c), of(b, d))
    return node.complex(real, node.emit(AddOp, of(a, d), of(b, c)))


# ---- Fourier transforms


@stablehlo_operator("fft", of_complex=True)
def fft_of_complex(node: StablehloNode) -> Value:
    """A Fourier transform of complex numbers over the last axes."""
    return _transformed(node, *parts_of(node.value(0)))


@stablehlo_operator("fft")
def fft(node: StablehloNode) -> Value:
    """A Fourier transform of real numbers over the last axes."""
    return _transformed(node, node.input())


def _transformed(node: StablehloNode, *parts: SSAValue) -> Value:
    """The transform over the axes that `fft_length` has lengths of; the last one is that of one half of frequencies."""
    kind, lengths = node.properties["fft_type"], node.integers("fft_length")
    assert isinstance(kind, FftTypeAttr)
    rank = rank_of(parts[0])
    apart = [node.reshaped(part, (*sizes_of(part), 1)) for part in parts]
    value = apart[0] if len(apart) == 1 else node.emit(ConcatOp, apart, axis=rank)
    axes = list(range(rank - len(lengths), rank))
    inverse = kind.data in ("IFFT", "IRFFT")
    order = [*zip(axes, lengths, strict=True)]
    for axis, length in order if kind.data == "IRFFT" else reversed(order):
        onesided = axis == rank - 1 and kind.data in ("RFFT", "IRFFT")
        value = node.emit(DftOp, value, axis=axis, length=length, inverse=inverse, onesided=onesided)
    shape = sizes_of(value)[:-1]
    found = [_part(node, value, at, shape) for at in range(1 if kind.data == "IRFFT" else 2)]
    return found[0] if len(found) == 1 else node.complex(*found)


def _part(node: StablehloNode, value: SSAValue, at: int, shape: Sizes) -> SSAValue:
    """One part of complex numbers along the last axis."""
    if sizes_of(value)[-1] == 1:
        return node.reshaped(value, shape)
    starts, steps = [0] * len(shape) + [at], [1] * (len(shape) + 1)
    return node.reshaped(node.emit(SliceOp, value, starts=starts, ends=(*shape, at + 1), steps=steps), shape)
