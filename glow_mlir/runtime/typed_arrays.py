"""Convert callers' values to arrays of the required types."""

from __future__ import annotations

from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.support.dtypes import is_float_dtype, is_plain


def as_typed(what: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """
    Convert a value to an array: numbers and lists of numbers to `dtype`, if it represents all of them up to float
    rounding; anything else keeps its type. Raises `InputError` as `as_array`.
    """
    if dtype.kind == "O" and is_plain(value):
        return np.asarray(value, object)  # numpy's own string arrays drop trailing zeros.
    array = as_array(what, value)
    if dtype.kind == "O" and _holds_text(array.dtype):
        return array.astype(object)
    if array is value or array.dtype == dtype or not is_plain(value):
        return array
    is_float = is_float_dtype(dtype)
    if array.size and (array.dtype.kind not in ("iuf" if is_float else "iu") or dtype.kind == "b"):
        return array
    with np.errstate(over="ignore"):
        found = array.astype(dtype)
    return found if is_float or bool((found == array).all()) else array


def _holds_text(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds strings or bytes, except `numpy.void`, which keeps trailing zeros."""
    return dtype.kind in "US" or (dtype.type is np.void and dtype.names is None and dtype.subdtype is None)


def as_array(what: str, value: Any) -> np.ndarray:
    """Convert a value to an array; raises `InputError` if that fails, for example for lists of unequal lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not an array: {error}", hint="convert it with numpy.asarray") from error
