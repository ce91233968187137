"""The operators of ai.onnx.ml that take maps, which callers pass as dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from glow_mlir.frontends.onnx.given_values import TypedMap
from glow_mlir.frontends.onnx.host_operators.registry import Attributes, strings_of


def dict_vectorizer(attributes: Attributes, given: object) -> np.ndarray:
    """The values of a vocabulary's keys as one row; 0 or the empty string for missing keys."""
    items = _map(attributes, given)
    name, other = "string_vocabulary", "int64_vocabulary"
    if not items.has_words:
        name, other = other, name
    if attributes.has(other) and not attributes.has(name):
        kind = "strings" if items.has_words else "int64"
        raise attributes.wrong(f"the map has {kind} keys, but the operator has {other}", name)
    keys: list[Any] = attributes.texts(name) if items.has_words else attributes.ints(name)
    if not keys:
        raise attributes.wrong("it has no vocabulary", f"{name} has the keys")
    if items.dtype.kind == "O":
        return strings_of([items.get(key, "") for key in keys], (1, len(keys)))
    return np.array([[items.get(key, 0) for key in keys]], items.dtype)


def cast_map(attributes: Attributes, given: object) -> np.ndarray:
    """The values of a map as one row: in the order of their keys, or each at the position given by its key."""
    given_items = _map(attributes, given)
    if given_items.has_words:
        raise attributes.wrong("keys of the map are strings", "int64")
    to, form = attributes.text("cast_to", "TO_FLOAT"), attributes.text("map_form", "DENSE")
    casts = {"TO_FLOAT": (float, 0.0), "TO_INT64": (int, 0), "TO_STRING": (_words, "0.f")}
    if to not in casts or form not in ("DENSE", "SPARSE"):
        raise attributes.wrong(f"cast_to is '{to}', map_form '{form}'", "TO_FLOAT, TO_INT64, TO_STRING; DENSE, SPARSE")
    cast, missing = casts[to]
    items = sorted((key, cast(value)) for key, value in given_items.items())
    row = [value for _, value in items]
    if form == "SPARSE":
        width = attributes.int("max_map", 1)
        if any(not 0 <= key < width for key, _ in items):
            raise attributes.failed(f"a key is not in [0, {width}), given by max_map")
        row = [dict(items).get(position, missing) for position in range(width)]
    if to == "TO_STRING":
        return strings_of(row, (1, len(row)))
    return np.array([row], np.float32 if to == "TO_FLOAT" else np.int64)


def _words(value: object) -> str:
    """A value in C++'s format."""
    return value if isinstance(value, str) else f"{float(value):f}"  # pyright: ignore[reportArgumentType]


def _map(attributes: Attributes, given: object) -> TypedMap:
    """The map; raises `ExecutionError` for anything else."""
    if not isinstance(given, TypedMap):
        raise attributes.failed(f"it takes a dict, not a '{type(given).__name__}'", "one map for each call")
    return given
