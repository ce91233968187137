"""Values as callers give them, as arrays of the types that are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from glow_mlir.errors import InputError
from glow_mlir.support.dtypes import is_float_dtype, is_plain


def as_typed(what: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """
    A value as an array: numbers and lists of numbers in the type that is wanted, if it has all of them but for rounding
    of floats; anything else as it is. Raises `InputError` as `as_array`.
    """
    if dtype.kind == "O" and is_plain(value):
        return np.asarray(value, object)  # Arrays of numpy's own strings lose zeros at the end.
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
    """Whether arrays of a dtype hold strings or bytes; those of `numpy.void` keep zeros at the end."""
    return dtype.kind in "US" or (dtype.type is np.void and dtype.names is None and dtype.subdtype is None)


def as_array(what: str, value: Any) -> np.ndarray:
    """A value as an array; raises `InputError` for anything else, such as lists of unequal lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not an array: {error}", hint="convert it with numpy.asarray") from error
