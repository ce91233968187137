"""Representation of ONNX's values other than numeric tensors: strings, sequences, optionals and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import onnx
from onnx import helper
from xdsl.ir import SSAValue

from glow_mlir.frontends.onnx.models.types import onnx_type
from glow_mlir.support.dataclass import dataclass

Importer = TypeVar("Importer", bound=Callable[..., Any])


@dataclass(frozen=True)
class Strings:
    """A tensor of strings; `numbers` are i64 indices into the model's string table."""

    numbers: SSAValue


@dataclass(frozen=True)
class TensorSequence:
    """
    A sequence of known length, represented by its elements.

    `element` is the declared type of its elements, if there is one.
    """

    items: tuple[Value, ...]
    element: onnx.TypeProto | None = None


@dataclass(frozen=True)
class OptionalValue:
    """An optional: its value, or `None` if it is empty; and the declared type of the value, if there is one."""

    value: Value | None
    element: onnx.TypeProto | None = None


@dataclass(frozen=True)
class Maps:
    """A sequence of maps with the same keys, either strings or numbers; each row has the values of one map."""

    keys: tuple[str, ...] | tuple[int, ...]
    rows: SSAValue


Structured = Strings | TensorSequence | OptionalValue | Maps
Value = SSAValue | Structured

_AWARE: set[Callable[..., Any]] = set()


def takes_values(importer: Importer) -> Importer:
    """Mark an importer that handles operands other than numeric tensors, which it finds in `Node.operands`."""
    _AWARE.add(importer)
    return importer


def is_aware(importer: Callable[..., Any]) -> bool:
    """Whether an importer is marked by `takes_values`."""
    return importer in _AWARE


def kind_of_value(value: Structured) -> str:
    """The kind of a value, for errors."""
    match value:
        case Strings():
            return "a tensor of strings"
        case TensorSequence():
            return "a sequence"
        case OptionalValue():
            return "an optional"
        case Maps():
            return "a sequence of maps"


def type_of_value(value: Value | None) -> onnx.TypeProto:
    """The ONNX type of a value; empty for an absent one."""
    match value:
        case Strings():
            found = onnx_type(value.numbers)
            found.tensor_type.elem_type = onnx.TensorProto.STRING
            return found
        case TensorSequence():
            return helper.make_sequence_type_proto(_element(value.items, value.element))
        case OptionalValue():
            return helper.make_optional_type_proto(
                _element(() if value.value is None else (value.value,), value.element)
            )
        case Maps():
            key = onnx.TensorProto.STRING if value.keys and isinstance(value.keys[0], str) else onnx.TensorProto.INT64
            item = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
            return helper.make_sequence_type_proto(helper.make_map_type_proto(key, item))
        case _:
            return onnx_type(value)


def _element(items: Sequence[Value], declared: onnx.TypeProto | None) -> onnx.TypeProto:
    """The declared type of elements, or else that of the first, or else a float tensor; without a shape."""
    if declared is not None:
        return declared
    found = type_of_value(items[0]) if items else helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    if found.HasField("tensor_type"):
        found.tensor_type.ClearField("shape")
    return found


def type_words(type_: onnx.TypeProto) -> str:
    """A type in onnxruntime's notation, as in `seq(map(int64,tensor(float)))`."""
    match type_.WhichOneof("value"):
        case "tensor_type":
            return f"tensor({element_words(type_.tensor_type.elem_type)})"
        case "sequence_type":
            return f"seq({type_words(type_.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({type_words(type_.optional_type.elem_type)})"
        case "map_type":
            return f"map({element_words(type_.map_type.key_type)},{type_words(type_.map_type.value_type)})"
        case _:
            return ""


def element_words(kind: int) -> str:
    """ONNX's name of a data type, such as `float`."""
    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    return names.get(kind, f"number {kind}").lower()
