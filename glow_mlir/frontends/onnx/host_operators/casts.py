"""ONNX's Cast between numbers and strings."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import helper

from glow_mlir.frontends.onnx.host_operators.registry import Attributes, strings_of


def cast(attributes: Attributes, value: np.ndarray) -> np.ndarray:
    """Convert numbers to strings in onnxruntime's format, or strings to numbers."""
    to = attributes.int("to")
    if to == onnx.TensorProto.STRING:
        return strings_of([_written(number) for number in value.ravel().tolist()], value.shape)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(to))
    numbers = [_number(attributes, word, dtype) for word in value.ravel().tolist()]
    return np.array(numbers).astype(dtype).reshape(value.shape)


def _written(number: float | bool) -> str:
    """A number as text: floats with at most eight digits, truth values as 0 and 1."""
    if isinstance(number, float):
        if math.isnan(number):
            return "NaN"
        return ("INF" if number > 0 else "-INF") if math.isinf(number) else f"{number:.8g}"
    return str(int(number))


def _number(attributes: Attributes, word: str, dtype: np.dtype) -> float:
    """Parse a string as a number; raises `ExecutionError` if it is not one."""
    try:
        return float(word) if dtype.kind not in "iub" else int(float(word)) if not _is_whole(word) else int(word)
    except (ValueError, OverflowError) as error:
        raise attributes.failed(f"'{word}' is not a number", "check the strings that the model is given") from error


def _is_whole(word: str) -> bool:
    return word.strip().lstrip("+-").isdigit()
