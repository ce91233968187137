"""The registry of host operators, which create strings, take maps or decode files, and run outside machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np
import onnx
from onnx import helper

from glow_mlir.errors import ExecutionError, GlowError, HostValuesError, ModelError
from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.order import node_name
from glow_mlir.support.dataclass import dataclass

Result = TypeVar("Result")

ML, ONNXRUNTIME = "ai.onnx.ml", "com.microsoft"

Evaluate = Callable[..., Any]
"""`(attributes, *operands)` → a numpy array, with `str` objects for strings, or a tuple of results."""

HOST_OPERATORS: Mapping[tuple[str, str], str] = {
    ("", "Cast"): "casts.cast",
    ("", "ImageDecoder"): "images.image_decoder",
    ("", "RegexFullMatch"): "strings.regex_full_match",
    ("", "StringConcat"): "strings.string_concat",
    ("", "StringNormalizer"): "strings.string_normalizer",
    ("", "StringSplit"): "strings.string_split",
    ("", "Unique"): "strings.unique",
    (ML, "CastMap"): "maps.cast_map",
    (ML, "DictVectorizer"): "maps.dict_vectorizer",
    (ONNXRUNTIME, "Tokenizer"): "tokenizer.tokenizer",
}
"""Domain and operator → the module in this package, and the function that computes it."""

ON_STRINGS = frozenset({"Cast", "Unique"})
"""Operators that are host operators only if operands or results are strings."""


_LISTS = (onnx.AttributeProto.STRINGS, onnx.AttributeProto.INTS)
"""Types of list attributes; an empty list may have either one."""

RESULTS = {"Tokenizer": onnx.TensorProto.STRING}
"""Operator unknown to the onnx package → the ONNX data type of its result."""


def is_host_operator(node: onnx.NodeProto) -> bool:
    """Whether a node may be computed in Python; operators of `ON_STRINGS` only are if they have strings."""
    return (plain_domain(node.domain), node.op_type) in HOST_OPERATORS


def check_host_operators(model: onnx.ModelProto) -> None:
    """Raise `HostValuesError` for a model with an operator that is always computed in Python."""
    for node in model.graph.node:
        if is_host_operator(node) and node.op_type not in ON_STRINGS:
            raise computed_by_python(node)


def computed_by_python(node: onnx.NodeProto) -> HostValuesError:
    """The error for a node that a module cannot contain."""
    hint = "use InferenceSession; a module holds only machine code"
    return HostValuesError(f"{node.op_type} runs in Python", node=node_name(node), hint=hint)


@cache
def _function(domain: str, kind: str) -> Evaluate:
    module, _, name = HOST_OPERATORS[domain, kind].partition(".")
    return getattr(import_module(f"{__package__}.{module}"), name)


@dataclass
class Attributes:
    """The attributes of a node, by name; raises `ModelError` about the node for those that are missing or wrong."""

    node: onnx.NodeProto

    def __post_init__(self) -> None:
        self._values = {item.name: item for item in self.node.attribute}
        self._read: dict[str, Any] = {}
        """The values that have been read, since messages of protobuf are slow."""

    def text(self, name: str, default: str | None = None) -> str:
        """A string."""
        return self._decoded(self._value(name, default, onnx.AttributeProto.STRING))

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty if it is absent."""
        return [self._decoded(item) for item in self._value(name, [], onnx.AttributeProto.STRINGS)]

    def int(self, name: str, default: int | None = None) -> int:
        """An integer."""
        return int(self._value(name, default, onnx.AttributeProto.INT))

    def ints(self, name: str) -> list[int]:
        """A list of integers; empty if it is absent."""
        return [int(item) for item in self._value(name, [], onnx.AttributeProto.INTS)]

    def has(self, name: str) -> bool:
        """Whether an attribute is present."""
        return name in self._values

    def wrong(self, reason: str, hint: str = "") -> ModelError:
        """The error for invalid attributes."""
        return ModelError(f"{self.node.op_type}: {reason}", node=node_name(self.node), hint=hint)

    def failed(self, reason: str, hint: str = "") -> ExecutionError:
        """The error for data that the operator cannot take."""
        return ExecutionError(f"{self.node.op_type}: {reason}", node=node_name(self.node), hint=hint)

    def _value(self, name: str, default: Any, kind: int) -> Any:
        if (found := self._values.get(name)) is None:
            if default is None:
                raise self.wrong(f"it has no attribute '{name}'")
            return default
        if name in self._read:
            return self._read[name]
        value: Any = helper.get_attribute_value(found)
        if found.type != kind and not (kind in _LISTS and not value):
            actual = onnx.AttributeProto.AttributeType.Name(found.type)
            raise self.wrong(f"attribute '{name}' is {actual}, not {onnx.AttributeProto.AttributeType.Name(kind)}")
        self._read[name] = value
        return value

    @staticmethod
    def _decoded(value: bytes | str) -> str:
        return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def of_each(words: np.ndarray, function: Callable[[str], Result]) -> list[Result]:
    """What a function gives for each string of an array, in order; it is called once for each distinct string."""
    given: list[str] = words.ravel().tolist()
    known = {word: function(word) for word in dict.fromkeys(given)}
    return list(map(known.__getitem__, given))


def evaluate(attributes: Attributes, operands: Sequence[Any]) -> tuple[Any, ...]:
    """
    The results of a host operator with these attributes on Python operands.

    Raises `ExecutionError` if it fails on these operands, and `ModelError` for an invalid node.
    """
    node = attributes.node
    try:
        found = _function(plain_domain(node.domain), node.op_type)(attributes, *operands)
    except GlowError:
        raise
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise attributes.failed(f"operands do not fit: {error}", "check what the model's inputs are given") from error
    return cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)


def strings_of(words: Any, shape: Sequence[int]) -> np.ndarray:
    """An array of strings with the given shape."""
    found = np.empty(len(words), object)
    found[:] = words
    return found.reshape(shape)
