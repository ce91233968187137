"""PyTorch's arithmetic, comparisons and functions of one operand, where they are not those of ONNX."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from traced_operators import computed

INF, NAN = math.inf, math.nan


def single(*items: float) -> np.ndarray:
    """Numbers as an array of f32."""
    return np.array(items, np.float32)


def double(*items: float) -> np.ndarray:
    """Numbers as an array of f64."""
    return np.array(items, np.float64)


def long(*items: int) -> np.ndarray:
    """Numbers as an array of i64."""
    return np.array(items, np.int64)


def truth(*items: int) -> np.ndarray:
    """Truth values."""
    return np.array(items, np.bool_)


Case = tuple[str, Sequence[Any], Mapping[str, Any], Sequence[np.ndarray]]

CASES: Mapping[str, Case] = {
    "sum with a factor": ("add.Tensor", (long(1, 2), long(3, 4)), {"alpha": 3}, [long(10, 14)]),
    "sum of truth values": ("add.Tensor", (truth(0, 1, 0), truth(1, 1, 0)), {}, [truth(1, 1, 0)]),
    "product of truth values": ("mul.Tensor", (truth(0, 1), truth(1, 1)), {}, [truth(0, 1)]),
    "quotient of integers": ("div.Tensor", (long(7, -7), 2), {}, [single(3.5, -3.5)]),
    "floored": (
        "div.Tensor_mode",
        (long(7, -7, 7, -8), long(2, 2, -2, 2)),
        {"rounding_mode": "floor"},
        [long(3, -4, -4, -4)],
    ),
    "truncated": ("div.Tensor_mode", (long(7, -7, 7), long(2, 2, -2)), {"rounding_mode": "trunc"}, [long(3, -3, -3)]),
    "floored of floats": (
        "div.Tensor_mode",
        (double(1.0, -1.0, 6.0, 1.0, INF), double(0.1, 0.1, -4.0, 0.0, 2.0)),
        {"rounding_mode": "floor"},
        [double(9.0, -10.0, -2.0, INF, NAN)],
    ),
    "remainder": ("remainder.Tensor", (double(-1, 5, 3), double(3, -3, INF)), {}, [double(2, -1, 3)]),
    "fmod": ("fmod.Tensor", (double(-1, 5, 3), double(3, -3, INF)), {}, [double(-1, 2, 3)]),
    "power of integers": ("pow.Tensor_Tensor", (long(3, -1, -2), long(4, 3, 0)), {}, [long(81, -1, 1)]),
    "hypot": (
        "hypot.default",
        (single(3, 1e30, -INF, 0), single(-4, 1e30, NAN, 0)),
        {},
        [single(5, 2**0.5 * 1e30, INF, 0)],
    ),
    "atan2": (
        "atan2.default",
        (double(0.0, -0.0, 1, -1, INF, 0.0), double(-1, -1, 0, -1, -INF, 0.0)),
        {},
        [double(math.pi, -math.pi, math.pi / 2, -3 * math.pi / 4, 3 * math.pi / 4, 0)],
    ),
    "copysign": ("copysign.Tensor", (single(1, -2, 3), single(-0.0, 0.0, -NAN)), {}, [single(-1, 2, -3)]),
    "signbit": ("signbit.default", (single(-0.0, 0.0, -INF, 2),), {}, [truth(1, 0, 1, 0)]),
    "fmax": ("fmax.default", (single(NAN, 1, NAN), single(2, NAN, NAN)), {}, [single(2, 1, NAN)]),
    "maximum": ("maximum.default", (single(NAN, 1, 3), single(2, NAN, 4)), {}, [single(NAN, NAN, 4)]),
    "nextafter": (
        "nextafter.default",
        (single(0.0, 0.0, 1, -1, INF, 2), single(1, -1, 2, 0, 0, NAN)),
        {},
        [np.nextafter(single(0.0, 0.0, 1, -1, INF, 2), single(1, -1, 2, 0, 0, NAN))],
    ),
    "frexp": (
        "frexp.Tensor",
        (single(8, -0.75, 1e-40, 0.0, INF),),
        {},
        [*np.frexp(single(8, -0.75, 1e-40, 0.0, INF))],
    ),
    "comparison of truth values": ("lt.Tensor", (truth(0, 1), truth(1, 1)), {}, [truth(1, 0)]),
    "comparison with a float": ("gt.Scalar", (long(2, 3), 2.5), {}, [truth(0, 1)]),
    "shift": ("bitwise_right_shift.Tensor", (long(-8, 8, 8), long(1, 2, 64)), {}, [long(-4, 2, 0)]),
    "sign": ("sign.default", (single(-2, 0, NAN, INF),), {}, [single(-1, 0, 0, 1)]),
    "decimals": ("round.decimals", (double(1.25, -1.35, 2.675),), {"decimals": 1}, [double(1.2, -1.4, 2.7)]),
    "tens": ("round.decimals", (double(149, 155),), {"decimals": -1}, [double(150, 160)]),
    "logarithms of powers": ("log2.default", (single(8, 0.125, 0, -1),), {}, [single(3, -3, -INF, NAN)]),
    "decadic logarithms": ("log10.default", (single(1000, 1e-5),), {}, [single(3, -5)]),
    "isnan of integers": ("isnan.default", (long(1, 2),), {}, [truth(0, 0)]),
    "clamp of truth values": ("clamp.Tensor", (truth(0, 1), truth(1, 1)), {}, [truth(1, 1)]),
    "softplus": (
        "softplus.default",
        (single(-2, 30, INF), 2.0, 20.0),
        {},
        [single(math.log1p(math.exp(-4)) / 2, 30, INF)],
    ),
}


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_operator(name: str, backend: str) -> None:
    """Machine code and the interpreter give what PyTorch defines."""
    target, arguments, keywords, expected = CASES[name]
    found = computed(f"aten.{target}", arguments, expected, keywords, backend=backend)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
