"""
Special functions as formulas: error functions, the Gamma function and related ones.

They are accurate to about f32 if they are computed in f64, and to the precision of f32 less a few digits in f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glow_mlir.dialects.expressions import (
    Tensor,
    equal,
    erf,
    exp,
    log,
    maximum,
    minimum,
    not_equal,
    round_even,
    sin,
    sqrt,
    tan,
    where,
)


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """A polynomial; coefficients start with the highest power (Horner)."""
    found = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        found = found * x + coefficient
    return found


# Error functions

ERFC_NEAR = (
    (
        2.46196981473530512524e-10,
        5.64189564831068821977e-1,
        7.46321056442269912687,
        4.86371970985681366614e1,
        1.96520832956077098242e2,
        5.26445194995477358631e2,
        9.34528527171957607540e2,
        1.02755188689515710272e3,
        5.57535335369399327526e2,
    ),
    (
        1.0,
        1.32281951154744992508e1,
        8.67072140885989742329e1,
        3.54937778887819891062e2,
        9.75708501743205489753e2,
        1.82390916687909736289e3,
        2.24633760818710981792e3,
        1.65666309194161350182e3,
        5.57535340817727675546e2,
    ),
)
"""The polynomials whose quotient is exp(x²) erfc(x) from 1 to 8 (Moshier's Cephes, 1989)."""

ERFC_FAR = (
    (
        5.64189583547755073984e-1,
        1.27536670759978104416,
        5.01905042251180477414,
        6.16021097993053585195,
        7.40974269950448939160,
        2.97886665372100240670,
    ),
    (
        1.0,
        2.26052863220117276590,
        9.39603524938001434673,
        1.20489539808096656605e1,
        1.70814450747565897222e1,
        9.60896809063285878198,
        3.36907645100081516050,
    ),
)
"""The polynomials whose quotient is exp(x²) erfc(x) from 8 on (Moshier's Cephes, 1989)."""

FAR = 8.0
"""The boundary between the two quotients."""


def _scaled_tail(magnitude: Tensor) -> Tensor:
    """exp(x²) erfc(x) for x ≥ 1."""
    near, far = minimum(maximum(magnitude, 1.0), FAR), maximum(magnitude, FAR)
    (top, bottom), inverse = ERFC_FAR, 1.0 / far
    # The denominator has the higher degree; powers of 1/x do not overflow.
    tail = inverse * polynomial(inverse, top[::-1]) / polynomial(inverse, bottom[::-1])
    return where(magnitude < FAR, polynomial(near, ERFC_NEAR[0]) / polynomial(near, ERFC_NEAR[1]), tail)


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x), without cancellation."""
    magnitude = abs(x)
    tail = exp(-(magnitude * magnitude)) * _scaled_tail(magnitude)
    return where(magnitude < 1.0, 1.0 - erf(x), where(x < 0.0, 2.0 - tail, tail))


def scaled_erfc(x: Tensor) -> Tensor:
    """exp(x²) erfc(x)."""
    tail, square = _scaled_tail(abs(x)), exp(x * x)
    return where(abs(x) < 1.0, square * (1.0 - erf(x)), where(x < 0.0, 2.0 * square - tail, tail))


ERFINV_NEAR = (
    (-0.140543331, 0.914624893, -1.645349621, 0.886226899),
    (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0),
)
"""The polynomials in x² whose quotient approximates erfinv(x) / x up to 0.7."""

ERFINV_FAR = ((1.641345311, 3.429567803, -1.624906493, -1.970840454), (1.637067800, 3.543889200, 1.0))
"""The polynomials in √-log((1 - x) / 2) whose quotient approximates erfinv(x) beyond 0.7."""

STEPS = 2
"""The number of Newton steps that give f64 precision from there."""


def erfinv(x: Tensor) -> Tensor:
    """The number whose error function is x."""
    magnitude = abs(x)
    square, depth = x * x, sqrt(-log((1.0 - magnitude) * 0.5))
    far = polynomial(depth, ERFINV_FAR[0]) / polynomial(depth, ERFINV_FAR[1])
    near = x * polynomial(square, ERFINV_NEAR[0]) / polynomial(square, ERFINV_NEAR[1])
    found = where(magnitude <= 0.7, near, where(x < 0.0, -far, far))
    for _ in range(STEPS):
        found = found - (erf(found) - x) / (exp(-(found * found)) * (2 / math.sqrt(math.pi)))
    end = where(x < 0.0, x * 0.0 - math.inf, math.inf)
    return where(equal(magnitude, 1.0), end, where(magnitude <= 1.0, found, math.nan))


QUANTILE = ((0.010328, 0.802853, 2.515517), (0.001308, 0.189269, 1.432788, 1.0))
"""
The polynomials in t = √(-2 log p) whose quotient minus t approximates the normal quantile of a probability p up to 1/2
(Abramowitz and Stegun, 1964, 26.2.23).
"""


def normal_quantile(probability: Tensor) -> Tensor:
    """The quantile of the normal distribution."""
    is_high = probability > 0.5
    tail = where(is_high, 1.0 - probability, probability)
    depth = sqrt(-2.0 * log(tail))
    found = polynomial(depth, QUANTILE[0]) / polynomial(depth, QUANTILE[1]) - depth
    for _ in range(STEPS + 1):
        # Newton steps on logarithms converge even far in the tail.
        below = erfc(found * -math.sqrt(0.5)) * 0.5
        slope = exp(found * found * -0.5) / math.sqrt(2 * math.pi)
        found = found - (log(below) - log(tail)) * below / slope
    end = where(equal(tail, 0.0), tail * 0.0 - math.inf, math.nan)
    found = where(tail > 0.0, found, end)
    return where(is_high, -found, found)


# The Gamma function

LANCZOS = (
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""The coefficients of the Lanczos series (1964) for the Gamma function, with the shift `LANCZOS_SHIFT`."""

LANCZOS_FIRST, LANCZOS_SHIFT = 0.99999999999980993, 6.5


def _angle(x: Tensor) -> Tensor:
    """π x minus a multiple of π, exact if x is an integer."""
    return (x - round_even(x)) * math.pi


def lgamma(x: Tensor) -> Tensor:
    """The logarithm of the magnitude of the Gamma function."""
    is_low = x < 0.5
    above = where(is_low, 1.0 - x, x)
    series = above * 0.0 + LANCZOS_FIRST
    for position, coefficient in enumerate(LANCZOS):
        series = series + coefficient / (above + float(position))
    shifted = above + LANCZOS_SHIFT
    found = (above - 0.5) * log(shifted) - shifted + log(series * math.sqrt(2 * math.pi))
    reflected = math.log(math.pi) - log(abs(sin(_angle(x)))) - found
    return where(equal(abs(x), math.inf), math.inf, where(is_low, reflected, found))


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
"""The Bernoulli numbers of even index, from 2 on."""

SHIFT = 9
"""The shift of the argument of asymptotic series, from which on they have f64 precision."""


def digamma(x: Tensor) -> Tensor:
    """The derivative of lgamma; NaN at negative integers, infinite at 0."""
    is_low = x < 0.5
    above = where(is_low, 1.0 - x, x)
    rest = 1.0 / above
    for step in range(1, SHIFT):
        rest = rest + 1.0 / (above + float(step))
    shifted = above + float(SHIFT)
    inverse = 1.0 / (shifted * shifted)
    series = [number / (2 * position) for position, number in enumerate(BERNOULLI, 1)]
    found = log(shifted) - 0.5 / shifted - polynomial(inverse, (*series[::-1], 0.0)) - rest
    angle = _angle(x)
    reflected = where(equal(angle, 0.0) & not_equal(x, 0.0), math.nan, found - math.pi / tan(angle))
    return where(equal(x, 0.0), -1.0 / x, where(is_low, reflected, found))


def raised(x: Tensor, exponent: int) -> Tensor:
    """x to the power of a positive integer."""
    if exponent == 1:
        return x
    half = raised(x, exponent // 2)
    return half * half * x if exponent % 2 else half * half


def hurwitz_zeta(exponent: int, x: Tensor) -> Tensor:
    """Σ (x + k)^-exponent over all k ≥ 0, for x > 0 (Euler and Maclaurin)."""
    total = raised(1.0 / x, exponent)
    for step in range(1, SHIFT):
        total = total + raised(1.0 / (x + float(step)), exponent)
    inverse = 1.0 / (x + float(SHIFT))
    power = raised(inverse, exponent - 1)
    total = total + power * (1 / (exponent - 1) + inverse * 0.5)
    factor, term = float(exponent), power * inverse * inverse
    for position, number in enumerate(BERNOULLI, 1):
        total = total + term * (number / math.factorial(2 * position) * factor)
        factor *= (exponent + 2 * position - 1) * (exponent + 2 * position)
        term = term * inverse * inverse
    return total


def cotangent_derivative(order: int) -> tuple[float, ...]:
    """A derivative of the cotangent, as coefficients of a polynomial in the cotangent, lowest power first."""
    found = [0.0, 1.0]
    for _ in range(order):
        slope = [power * coefficient for power, coefficient in enumerate(found)][1:]
        found = [0.0] * (len(slope) + 2)
        for power, coefficient in enumerate(slope):
            found[power] -= coefficient
            found[power + 2] -= coefficient
    return tuple(found)


def polygamma(order: int, x: Tensor) -> Tensor:
    """The derivative of digamma of an order; digamma for 0."""
    if order == 0:
        return digamma(x)
    is_low = x < 0.5
    above = where(is_low, 1.0 - x, x)
    sign = 1.0 if order % 2 else -1.0
    found = hurwitz_zeta(order + 1, above) * (sign * math.factorial(order))
    angle = _angle(x)
    slope = polynomial(1.0 / tan(angle), cotangent_derivative(order)[::-1]) * math.pi ** (order + 1)
    reflected = where(equal(angle, 0.0), sign * math.inf, -slope - sign * found)
    return where(is_low, reflected, found)
