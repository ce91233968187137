"""Formulas on complex numbers, as pairs of their real and imaginary parts."""

from __future__ import annotations

import math

from glow_mlir.dialects.expressions import (
    Tensor,
    asinh,
    cos,
    cosh,
    equal,
    exp,
    expm1,
    log,
    log1p,
    maximum,
    minimum,
    not_equal,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    where,
)
from glow_mlir.frontends.builder.float_bits import angle

Pair = tuple[Tensor, Tensor]
"""Real and imaginary part."""


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """√(x² + y²), without intermediate overflow."""
    longer, shorter = maximum(abs(x), abs(y)), minimum(abs(x), abs(y))
    ratio = where(longer > 0.0, shorter / longer, 0.0)
    found = longer * sqrt(1.0 + ratio * ratio)
    return where(equal(abs(x), math.inf) | equal(abs(y), math.inf), math.inf, found)


def added(x: Pair, y: Pair) -> Pair:
    """x + y."""
    return x[0] + y[0], x[1] + y[1]


def subtracted(x: Pair, y: Pair) -> Pair:
    """x - y."""
    return x[0] - y[0], x[1] - y[1]


def multiplied(x: Pair, y: Pair) -> Pair:
    """x · y."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def divided(x: Pair, y: Pair) -> Pair:
    """x / y (Smith, 1962): the smaller part of y is divided by the larger one, so that squares do not overflow."""
    (a, b), (c, d) = x, y
    is_wide = abs(c) >= abs(d)
    large, small = where(is_wide, c, d), where(is_wide, d, c)
    ratio = where(equal(abs(small), math.inf), where((small > 0.0) ^ (large > 0.0), -1.0, large * 0.0 + 1.0), 0.0)
    ratio = where(equal(abs(large), math.inf), where(equal(abs(small), math.inf), ratio, 0.0), small / large)
    scale = large + small * ratio
    first, second = where(is_wide, a, b), where(is_wide, b, a)
    real = (first + second * ratio) / scale
    imaginary = (second - first * ratio) / scale
    imaginary = where(is_wide, imaginary, -imaginary)
    is_zero = equal(c, 0.0) & equal(d, 0.0)
    return where(is_zero, a / c, real), where(is_zero, b / c, imaginary)


def exponential(x: Pair) -> Pair:
    """e^x."""
    a, b = x
    size = exp(a)
    return _scaled(size, cos(b)), where(equal(b, 0.0), b, _scaled(size, sin(b)))


def _scaled(size: Tensor, part: Tensor) -> Tensor:
    """A product that is 0 where the size is 0, even for a part that is NaN."""
    return where(equal(size, 0.0), 0.0, size * part)


def exponential_minus_one(x: Pair) -> Pair:
    """e^x - 1, without cancellation for small x."""
    a, b = x
    half = sin(b * 0.5)
    real = expm1(a) * cos(b) - 2.0 * half * half
    return real, where(equal(b, 0.0), b, exp(a) * sin(b))


def size_of_log(x: Pair) -> Tensor:
    """log |x|, without cancellation near 1."""
    a, b = x
    longer, shorter = maximum(abs(a), abs(b)), minimum(abs(a), abs(b))
    is_near = (longer > 0.5) & (longer < 2.0)
    near = 0.5 * log1p((longer - 1.0) * (longer + 1.0) + shorter * shorter)
    return where(is_near, near, log(hypot(a, b)))


def size_of_log_plus_one(x: Pair) -> Tensor:
    """log |1 + x|, without cancellation for small x."""
    a, b = x
    is_near = (abs(a) < 0.5) & (abs(b) < 0.5)
    return where(is_near, 0.5 * log1p(a * (a + 2.0) + b * b), log(hypot(a + 1.0, b)))


class _Scale:
    """A power of 4 by which a number is multiplied, so that sums of its squares neither overflow nor are denormal."""

    def __init__(self, x: Pair) -> None:
        longer = maximum(abs(x[0]), abs(x[1]))
        self._is_small, self._is_large = longer < 1.0, longer > 2.0**100
        self.number = self._chosen(x, 2.0**60, 0.25)

    def _chosen(self, x: Pair, small: float, large: float) -> Pair:
        """A number times one of two factors."""
        found = [where(self._is_small, part * small, where(self._is_large, part * large, part)) for part in x]
        return found[0], found[1]

    def of_root(self, x: Pair) -> Pair:
        """The root that is meant by the root of the scaled number."""
        return self._chosen(x, 2.0**-30, 2.0)

    def of_inverse_root(self, x: Pair) -> Pair:
        """One over the root that is meant by that of the scaled number."""
        return self._chosen(x, 2.0**30, 0.5)


def square_root(x: Pair, is_below: Tensor) -> Pair:
    """The square root whose real part is not negative; `is_below` is the sign bit of the imaginary part."""
    scale = _Scale(x)
    return scale.of_root(_square_root(scale.number, is_below))


def inverse_square_root(x: Pair, is_below: Tensor) -> Pair:
    """One over the square root: the conjugate of the root over the size."""
    scale = _Scale(x)
    size, (real, imaginary) = hypot(*scale.number), _square_root(scale.number, is_below)
    return scale.of_inverse_root((real / size, -imaginary / size))


def _square_root(x: Pair, is_below: Tensor) -> Pair:
    a, b = x
    size = hypot(a, b)
    root = sqrt(size * 0.5 + abs(a) * 0.5)
    other = where(root > 0.0, abs(b) / (root * 2.0), root)
    real, imaginary = where(a >= 0.0, root, other), where(a >= 0.0, other, root)
    is_infinite = equal(abs(b), math.inf)
    real = where(is_infinite, math.inf, where(equal(a, -math.inf), abs(b) * 0.0, real))
    imaginary = where(is_infinite, math.inf, where(equal(a, math.inf), abs(b) * 0.0, imaginary))
    return real, where(is_below, -imaginary, imaginary)


def hyperbolic_tangent(x: Pair) -> Pair:
    """tanh x."""
    a, b = x
    slope, height = tan(b), tanh(a)
    decay = 1.0 / cosh(a)
    scale = height * height * slope * slope + 1.0
    return height * (slope * slope + 1.0) / scale, slope * decay * decay / scale


def hyperbolic_sine(x: Pair) -> Pair:
    """sinh x."""
    return sinh(x[0]) * cos(x[1]), cosh(x[0]) * sin(x[1])


def hyperbolic_cosine(x: Pair) -> Pair:
    """cosh x."""
    return cosh(x[0]) * cos(x[1]), sinh(x[0]) * sin(x[1])


def sine(x: Pair) -> Pair:
    """sin x = -i sinh(i x)."""
    real, imaginary = hyperbolic_sine((-x[1], x[0]))
    return imaginary, -real


def cosine(x: Pair) -> Pair:
    """cos x = cosh(i x)."""
    return hyperbolic_cosine((-x[1], x[0]))


def tangent(x: Pair) -> Pair:
    """tan x = -i tanh(i x)."""
    real, imaginary = hyperbolic_tangent((-x[1], x[0]))
    return imaginary, -real


def sign(x: Pair) -> Pair:
    """x / |x|, or 0 for 0."""
    size = hypot(*x)
    is_zero = equal(size, 0.0)
    return where(is_zero, x[0], x[0] / size), where(is_zero, x[1], x[1] / size)


def power(x: Pair, y: Pair, angle: Tensor) -> Pair:
    """x^y, given the angle of x; 0^0 is 1, and other powers of 0 are 0."""
    (a, b), (c, d) = x, y
    depth = size_of_log(x)
    size, turn = exp(c * depth - d * angle), d * depth + c * angle
    is_zero = equal(a, 0.0) & equal(b, 0.0)
    is_one = equal(c, 0.0) & equal(d, 0.0)
    real = where(is_zero, where(is_one, 1.0, where(c > 0.0, a * 0.0, math.nan)), size * cos(turn))
    imaginary = where(is_zero, where(is_one | (c > 0.0), a * 0.0, math.nan), size * sin(turn))
    return where(is_one, 1.0, real), where(is_one, 0.0, imaginary)


def inverse_cosine(x: Pair) -> Pair:
    """acos x (Kahan, 1987); the sign of a part that is 0 does not count, as in XLA."""
    (a, b), (c, d) = _roots_around_one(x)
    return 2.0 * angle(a, c, a < 0.0, c < 0.0), asinh(c * b - d * a)


def inverse_sine(x: Pair, signs: Pair) -> Pair:
    """asin x (Kahan, 1987); `signs` are the sign bits of both parts."""
    (a, b), (c, d) = _roots_around_one(x)
    width = a * c - b * d
    return angle(x[0], width, signs[0], width < 0.0), asinh(a * d - b * c)


def _roots_around_one(x: Pair) -> tuple[Pair, Pair]:
    """√(1 - x) and √(1 + x)."""
    return square_root((1.0 - x[0], -x[1]), x[1] >= 0.0), square_root((1.0 + x[0], x[1]), x[1] < 0.0)


def inverse_hyperbolic_cosine(x: Pair) -> Pair:
    """acosh x (Kahan, 1987)."""
    (a, b), (c, d) = (square_root((x[0] + shift, x[1]), x[1] < 0.0) for shift in (-1.0, 1.0))
    return asinh(a * c + b * d), 2.0 * angle(b, c, b < 0.0, c < 0.0)


def inverse_hyperbolic_tangent(x: Pair, signs: Pair) -> Pair:
    """atanh x; `signs` are the sign bits of both parts."""
    a, b = abs(x[0]), x[1]
    size = 0.25 * log1p(4.0 * a / ((1.0 - a) * (1.0 - a) + b * b))
    width = (1.0 - a) * (1.0 + a) - b * b
    turn = 0.5 * angle(2.0 * b, width, signs[1], width < 0.0)
    is_far = equal(a, math.inf) | equal(abs(b), math.inf)
    size, turn = where(is_far, 0.0, size), where(is_far & signs[1], -math.pi / 2, where(is_far, math.pi / 2, turn))
    return where(signs[0], -size, size), turn


def are_equal(x: Pair, y: Pair) -> Tensor:
    """Whether both parts are equal."""
    return equal(x[0], y[0]) & equal(x[1], y[1])


def differ(x: Pair, y: Pair) -> Tensor:
    """Whether a part differs."""
    return not_equal(x[0], y[0]) | not_equal(x[1], y[1])
