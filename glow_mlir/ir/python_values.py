"""Module attributes for values of callers other than tensors of numbers: strings, sequences, maps, optionals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute

from glow_mlir.errors import UnsupportedError

PYTHON_VALUES = "glow.python_values"
"""The module attribute with the entries' descriptions of `runtime.python_values`, and all strings by number."""

Plain = Mapping[str, "Plain"] | list["Plain"] | str | int | bool


def tell_python_values(module: ModuleOp, data: Mapping[str, Any]) -> None:
    """Record the Python values of a module's callers, as described by `runtime.python_values`."""
    module.attributes[PYTHON_VALUES] = _attribute(cast("Plain", data))


def python_values_of(module: ModuleOp) -> dict[str, Any] | None:
    """The recorded Python values of a module's callers; `None` if all are tensors of numbers."""
    attribute = module.attributes.get(PYTHON_VALUES)
    return None if attribute is None else cast("dict[str, Any]", _plain(attribute))


def refuse_python_values(module: ModuleOp, what: str) -> None:
    """
    Raise `UnsupportedError` if `what` would be made of a module whose callers use other values than tensors of numbers.
    """
    data = python_values_of(module)
    if data is None:
        return
    name, entry = next(iter(data["entries"].items()))
    strings = [f"input '{item}' is of strings" for item in entry["strings"]]
    others = [f"output '{item['name']}' is {item['type']}" for item in entry["outputs"] if "tensor" not in item["form"]]
    reason = (strings or others or ["values are no numbers"])[0]
    hint = "leave out what turns numbers into words: skl2onnx does so with options={'zipmap': False} and integer labels"
    raise UnsupportedError(f"{what} has tensors of numbers only, and {reason} in @{name}", hint=hint)


def _attribute(value: Plain) -> Attribute:
    match value:
        case bool():
            return UnitAttr()
        case int():
            return IntegerAttr(value, i64)
        case str():
            return StringAttr(value)
        case list():
            return ArrayAttr(map(_attribute, value))
        case _:
            return DictionaryAttr({name: _attribute(item) for name, item in value.items()})


def _plain(attribute: Attribute) -> Plain:
    match attribute:
        case IntegerAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [_plain(item) for item in attribute]
        case DictionaryAttr():
            return {name: _plain(item) for name, item in attribute.data.items()}
        case _:
            return True
