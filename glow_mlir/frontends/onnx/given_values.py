"""Convert Python values from callers to the types that a model declares for its inputs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import onnx

from glow_mlir.errors import InputError, MapError
from glow_mlir.frontends.onnx.values import element_words, type_words
from glow_mlir.runtime.string_table import as_strings, as_text
from glow_mlir.runtime.typed_arrays import as_typed
from glow_mlir.support.dtypes import ONNX_NUMBERS, STRING, named_dtype

NUMBERS = {**ONNX_NUMBERS, STRING: onnx.TensorProto.STRING}
"""Names of dtypes → ONNX data types."""

_DTYPES = {number: name for name, number in NUMBERS.items()}
"""ONNX data types → names of dtypes."""


class TypedMap(dict[Any, Any]):
    """A map as a model declares it: `str` or `int` keys, and Python values that `dtype` represents exactly."""

    def __init__(self, items: dict[Any, Any], key: int, dtype: np.dtype[Any]) -> None:
        super().__init__(items)
        self.has_words = key == onnx.TensorProto.STRING
        """Whether keys are strings."""
        self.dtype = dtype


def value_of(what: str, type_: onnx.TypeProto, value: object) -> Any:
    """
    Convert a value to the declared type: arrays, lists of values, a `TypedMap`, or `None` for an empty optional.

    Numbers, lists of numbers and items of maps are converted; arrays must already have the declared type. Raises
    `InputError` about `what` for anything else.
    """
    match type_.WhichOneof("value"):
        case "sequence_type":
            element = type_.sequence_type.elem_type
            given = enumerate(list_of(what, value))
            return [value_of(f"element {position} of {what}", element, item) for position, item in given]
        case "optional_type":
            return None if value is None else value_of(what, type_.optional_type.elem_type, value)
        case "map_type":
            return _map_of(what, type_, value)
        case _:
            return tensor_of(what, type_.tensor_type.elem_type, value)


def list_of(what: str, value: object) -> list[Any]:
    """The elements of a sequence; raises `InputError` about `what` unless `value` is a list or tuple."""
    if not isinstance(value, list | tuple):
        raise InputError(f"{what} has to be a list, not a '{type(value).__name__}'")
    return list(cast("list[Any]", value))


def tensor_of(what: str, element: int, value: object) -> np.ndarray:
    """An array of an ONNX data type, strings as `str`; raises `InputError` about `what` for another dtype."""
    if element == onnx.TensorProto.STRING and type(value) is np.ndarray and value.dtype == object:
        return as_strings(value, what)
    if value is None:
        raise InputError(f"{what} has no value", hint=f"it consists of {element_words(element)}")
    array = as_typed(what, value, named_dtype(_DTYPES.get(element, STRING)))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if NUMBERS.get(array.dtype.name) != element:
        raise InputError(f"{what} consists of {element_words(element)}, not of {array.dtype.name}")
    return as_strings(array, what) if element == onnx.TensorProto.STRING else array


def _map_of(what: str, type_: onnx.TypeProto, value: object) -> TypedMap:
    if not isinstance(value, dict):
        raise InputError(f"{what} has to be a dict, not a '{type(value).__name__}'", hint=f"it is {type_words(type_)}")
    declared = type_.map_type
    key, element = declared.key_type, declared.value_type.tensor_type.elem_type
    if key not in _KEYS or element not in _ITEMS:
        raise InputError(f"{what} is {type_words(type_)}, which no operator takes")
    convert_key, convert = _KEYS[key], _ITEMS[element]
    items: dict[Any, Any] = {}
    for name, item in cast("dict[Any, Any]", value).items():
        part, wrong = "key", name
        try:
            own = convert_key(name)
            part, wrong = "value", item
            items[own] = convert(item)
        except (TypeError, ValueError, OverflowError) as error:
            # onnxruntime's wording, which programs look for.
            words = f"Unexpected {part} type  {type(wrong)}, it cannot be linked to C type {_C_TYPES[key]}"
            raise MapError(f"{what} is {type_words(type_)}, and has {name!r}: {item!r}: {words}") from error
    return TypedMap(items, key, named_dtype(_DTYPES[element]))


# ---- keys and values of maps

_C_TYPES: dict[int, str] = {onnx.TensorProto.INT64: "int64_t", onnx.TensorProto.STRING: "string"}
"""ONNX data type of the keys of a map → its name in onnxruntime's errors."""


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _whole(value: Any) -> int:
    """Convert to an integer; raises `OverflowError` beyond int64."""
    return int(np.int64(operator.index(value)))


def _float(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError
    return float(value)


def _float32(value: Any) -> float:
    """Round a number to float32; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return float(np.float32(_float(value)))


_KEYS: dict[int, Callable[[Any], Any]] = {onnx.TensorProto.INT64: _whole, onnx.TensorProto.STRING: _word}
"""ONNX data type of the keys of a map → conversion of a key."""

_ITEMS: dict[int, Callable[[Any], Any]] = {
    onnx.TensorProto.FLOAT: _float32,
    onnx.TensorProto.DOUBLE: _float,
    onnx.TensorProto.INT64: _whole,
    onnx.TensorProto.STRING: lambda value: as_text(value, "a map"),
}
"""ONNX data type of the values of a map → conversion of a value."""
