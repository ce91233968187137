"""numpy dtypes by name, also of bfloat16, which numpy itself lacks and `ml_dtypes` adds."""

from __future__ import annotations

from typing import Any

import numpy as np

BFLOAT16 = "bfloat16"
"""The name of the dtype that numpy has only while `ml_dtypes` is loaded."""


def named_dtype(name: str) -> np.dtype[Any]:
    """The dtype of that name; raises `TypeError` where there is none."""
    if name == BFLOAT16:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def is_float_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is of floats; numpy calls bfloat16 a kind of bytes."""
    return dtype.kind == "f" or dtype.name == BFLOAT16


def float_limits(dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """The step behind 1, the smallest normal number and the largest number of a dtype of floats."""
    if dtype.name == BFLOAT16:
        return 2.0**-7, 2.0**-126, float.fromhex("0x1.fep127")
    limits = np.finfo(dtype)
    return float(limits.eps), float(limits.tiny), float(limits.max)
