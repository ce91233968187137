"""
Constants of the trigonometric functions and their inverses: polynomials, and parts of pi.

The polynomials are minimax fits (Remez exchange in 50 digits, weighted for relative error), derived for this project:
sine 2^-28 (for f32) and 2^-58 (for f64), cosine 2^-33 and 2^-64, arc tangent 2^-30 and 2^-64, arc sine 2^-31.7 and
2^-55.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

HALF_PI_PARTS = (1.5707963276654482, -8.705515692000731e-10, -3.50343439808993e-19)
"""pi/2; the first two parts have 30 bits each, so that their products with the multiple are exact."""

HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)

HALF_PI_PARTS_OF_F32 = (1.57080078125, -4.454515874385834e-06, 6.077272018956137e-11, -1.7151245100058819e-15)
"""pi/2; the first three parts have 14 bits each, so that their products with a multiple of 10 bits are exact."""

HALF_PI_OF_F32 = (1.5707963705062866, -4.371138828673793e-08)
QUARTER_PI_OF_F32 = (0.7853981852531433, -2.1855694143368964e-08)


class Coefficients(NamedTuple):
    """The polynomials for one precision."""

    sine: Sequence[float]
    cosine: Sequence[float]
    arc_tangent: Sequence[float]
    arc_sine: Sequence[float]


COEFFICIENTS = {
    32: Coefficients(
        sine=(-0.1666665487335786, 0.008332173540391377, -0.00019516655590065513),
        cosine=(0.041666646747889245, -0.001388736145284247, 2.4437730185153505e-05),
        arc_tangent=(
            *(-0.33333315421888887, 0.1999848390658417, -0.14243737155050676),
            *(0.105951286670364, -0.06081129703061583),
        ),
        arc_sine=(
            *(0.16666659991281127, 0.07500504185917464, 0.04451695476568424),
            *(0.03180772257012734, 0.014438587609687943, 0.037516475687653934),
        ),
    ),
    64: Coefficients(
        sine=(
            *(-0.16666666666666632, 0.008333333333322316, -0.00019841269829725346),
            *(2.7557313662094935e-06, -2.5050753269279795e-08, 1.5896505178497513e-10),
        ),
        cosine=(
            *(0.0416666666666666, -0.001388888888887399, 2.480158728939495e-05),
            *(-2.755731432602047e-07, 2.0875719555529986e-09, -1.1359448444202524e-11),
        ),
        arc_tangent=(
            *(-0.33333333333333326, 0.1999999999999767, -0.14285714285388096, 0.11111111088183019),
            *(-0.09090908144708634, 0.0769228276255218, -0.06666226812135238, 0.05877022307030672),
            *(-0.0521840748185795, 0.045035612235226355, -0.03347471265730525, 0.0151953931800129),
        ),
        arc_sine=(
            *(0.16666666666665375, 0.07500000000344834, 0.044642856821955575, 0.030381959396068726),
            *(0.022371751928489694, 0.017359795728114902, 0.013884349957014125, 0.012174944263504963),
            *(0.006503514798814894, 0.01959435155943739, -0.0163267048952318, 0.03198169611982701),
        ),
    ),
}


def in_two_parts(coefficient: float) -> tuple[float, float]:
    """Return a number as a sum of two f32."""
    high = float(np.float32(coefficient))
    return high, float(np.float32(coefficient - high))
