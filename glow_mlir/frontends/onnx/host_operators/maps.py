"""The operators of ai.onnx.ml that take maps, which callers give as dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from glow_mlir.frontends.onnx.host_operators.registry import Attributes, strings_of

Map = dict[Any, Any]


def dict_vectorizer(attributes: Attributes, given: Map) -> np.ndarray:
    """The values of the keys of a vocabulary, 0 or the empty string for those that are not there, as one row."""
    _check(attributes, given)
    keys: list[Any] = attributes.texts("string_vocabulary") or attributes.ints("int64_vocabulary")
    if not keys:
        raise attributes.wrong("it has no vocabulary", "string_vocabulary or int64_vocabulary")
    values = list(given.values())
    if values and isinstance(values[0], str):
        return strings_of([given.get(key, "") for key in keys], (1, len(keys)))
    is_whole = all(isinstance(value, int | np.integer) for value in values) and bool(values)
    dtype = np.int64 if is_whole else np.float64 if any(isinstance(v, np.float64) for v in values) else np.float32
    return np.array([[given.get(key, 0) for key in keys]], dtype)


def cast_map(attributes: Attributes, given: Map) -> np.ndarray:
    """The values of a map as one row: in the order of their keys, or each at the place that its key is."""
    _check(attributes, given)
    to, form = attributes.text("cast_to", "TO_FLOAT"), attributes.text("map_form", "DENSE")
    casts = {"TO_FLOAT": (float, 0.0), "TO_INT64": (int, 0), "TO_STRING": (_words, "0.f")}
    if to not in casts or form not in ("DENSE", "SPARSE"):
        raise attributes.wrong(f"cast_to is '{to}', map_form '{form}'", "TO_FLOAT, TO_INT64, TO_STRING; DENSE, SPARSE")
    cast, missing = casts[to]
    items = sorted((int(key), cast(value)) for key, value in given.items())
    row = [value for _, value in items]
    if form == "SPARSE":
        width = attributes.int("max_map", 1)
        if any(not 0 <= key < width for key, _ in items):
            raise attributes.failed(f"a key is not below max_map, {width}")
        row = [dict(items).get(place, missing) for place in range(width)]
    if to == "TO_STRING":
        return strings_of(row, (1, len(row)))
    return np.array([row], np.float32 if to == "TO_FLOAT" else np.int64)


def _words(value: object) -> str:
    """A value as C++ writes it."""
    return value if isinstance(value, str) else f"{float(value):f}"  # pyright: ignore[reportArgumentType]


def _check(attributes: Attributes, given: object) -> None:
    """Raise `ExecutionError` for what is no map."""
    if not isinstance(given, dict):
        raise attributes.failed(f"it takes a dict, not a '{type(given).__name__}'", "one map for each call")
