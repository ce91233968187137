"""An ONNX node under import: its operands, attributes and subgraphs, and the builder of its results."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import onnx
from onnx import helper
from xdsl.ir import Block, SSAValue

from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of, sizes_of
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.agreement import AgreeingBuilder
from glow_mlir.frontends.builder.module_builder import named_location
from glow_mlir.frontends.onnx.model_import import ModelImport
from glow_mlir.frontends.onnx.models.doubts import Doubt
from glow_mlir.frontends.onnx.models.sparse import dense_array
from glow_mlir.frontends.onnx.values import Value
from glow_mlir.support.symbols import Size, Sizes

_INT, _FLOAT, _STRING = onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING
_INTS, _FLOATS, _STRINGS = onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS, onnx.AttributeProto.STRINGS
_TENSOR, _GRAPH = onnx.AttributeProto.TENSOR, onnx.AttributeProto.GRAPH
_SPARSE_TENSOR = onnx.AttributeProto.SPARSE_TENSOR
_LISTS = (_INTS, _FLOATS, _STRINGS)

AGREED = "sizes that data decides"
"""The kind of doubts about sizes, which are reported once for all operators."""

ONNXRUNTIME = "com.microsoft"
"""The domain of onnxruntime's own operators."""

Constants = Callable[[str], np.ndarray | None]
"""Name → the array of an initializer of the graph, `None` for any other name."""

Finding = TypeVar("Finding")


class Surroundings(Protocol):
    """The graph around a node, for nodes with subgraphs and nodes that the standard defines by function bodies."""

    def inline(self, graph: onnx.GraphProto, caller: str, arguments: Sequence[Value] = ()) -> list[Value | None] | None:
        """The outputs of a subgraph of the node, see `Scope.inline`."""
        ...

    def lookup(self, name: str) -> Value | None:
        """The value of a name, see `Scope.lookup`."""
        ...

    def finding(self, find: Callable[[Sequence[onnx.NodeProto], Constants], Finding]) -> Finding:
        """The result of an analysis of the graph's nodes, see `Scope.finding`."""
        ...

    def expand(self, node: Node) -> list[Value | None] | None:
        """The results of the standard's function body for the operator, see `Scope.expand`."""
        ...


class Node(AgreeingBuilder):
    """
    An ONNX node under import.

    `domain` and `version` identify its operator set, `name` is its name in errors. `operands` are its operands in
    `glow_high`; in `inputs`, operands that are not numeric tensors are `None`.
    """

    def __init__(
        self,
        proto: onnx.NodeProto,
        domain: str,
        version: int,
        name: str,
        operands: list[Value | None],
        model: ModelImport,
        surroundings: Surroundings,
    ) -> None:
        super().__init__(model.builder, proto.op_type, name, named_location(name), proto.output)
        self.proto = proto
        self.domain = domain
        self.version = version
        self.operands = operands
        self.inputs = [operand if isinstance(operand, SSAValue) else None for operand in operands]
        self.strings = model.strings
        """Numbers for all strings of the model."""
        self._tensors = model.tensors
        self._inconsistencies = model.inconsistencies
        self._surroundings = surroundings
        self._attributes: dict[str, onnx.AttributeProto] = {attribute.name: attribute for attribute in proto.attribute}

    def doubt(self, reason: str, assumed: str, hint: str = "") -> None:
        """Record a fault of the node and the assumption made instead; an error if the import is strict."""
        doubt = Doubt(f"{self.kind}: {reason}", assumed, node=self.name, hint=hint)
        self._inconsistencies.doubts.append((self.kind, doubt))

    def custom(self, reason: str, assumed: str) -> None:
        """Record a form that is common in files but not standard; reported only if the import is strict."""
        doubt = Doubt(f"{self.kind}: {reason}", assumed, node=self.name)
        self._inconsistencies.customs.append((self.kind, doubt))

    def assume_equal(self, one: Size, other: Size) -> None:
        """Record the assumption that two sizes are equal, at least one of which depends on data."""
        assumed = "they are assumed to match, which each call checks"
        doubt = Doubt(f"{self.kind}: the match of sizes {one} and {other} depends on data", assumed, node=self.name)
        self._inconsistencies.doubts.append((AGREED, doubt))

    # Operands

    def optional(self, position: int) -> SSAValue | None:
        """The operand at `position`, or `None` if it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def input(self, position: int = 0) -> SSAValue:
        """The operand at `position`; raises `ModelError` if it is absent."""
        value = self.optional(position)
        if value is None:
            raise ModelError(f"{self.kind} has no operand {position}", node=self.name)
        return value

    def operand(self, position: int = 0) -> Value:
        """The operand at `position`, of any type; raises `ModelError` if it is absent."""
        value = self.operands[position] if position < len(self.operands) else None
        if value is None:
            raise ModelError(f"{self.kind} has no operand {position}", node=self.name)
        return value

    def present(self) -> list[SSAValue]:
        """All operands that are present."""
        return [value for value in self.inputs if value is not None]

    def shape(self, position: int = 0) -> Shape:
        """The shape of the operand at `position`."""
        return shape_of(self.input(position))

    def sizes(self, position: int = 0) -> Sizes:
        """The sizes of the operand at `position`: numbers, or symbolic sizes."""
        return sizes_of(self.input(position))

    def rank(self, position: int = 0) -> int:
        """The number of axes of the operand at `position`."""
        return rank_of(self.input(position))

    def check_rank(self, position: builtins.int, ranks: Collection[builtins.int], hint: str) -> None:
        """Raise `ModelError` if an operand is present and its rank is not one of `ranks`."""
        if self.optional(position) is not None and (rank := self.rank(position)) not in ranks:
            raise ModelError(f"operand {position} of {self.kind} has {rank} axes", node=self.name, hint=hint)

    def element(self, position: int = 0) -> Any:
        """The element type of the operand at `position`."""
        return element_of(self.input(position))

    def known(self, position: int) -> np.ndarray | None:
        """The value of an operand, or `None` if it is absent or depends on an input."""
        value = self.optional(position)
        return None if value is None else self.fold(value)

    def array(self, position: int, role: str) -> np.ndarray:
        """The value of an operand that determines shapes; raises errors like `required_array`."""
        return self.required_array(self.input(position), role)

    def content(self, position: int, role: str) -> np.ndarray:
        """The value of an operand that must be constant; raises `UnsupportedError` if it is not."""
        value = self.known(position)
        if value is None:
            raise UnsupportedError(f"{role} of {self.kind} depends on an input of the model", node=self.name)
        return value

    def integers(self, position: int, role: str) -> tuple[int, ...]:
        """Like `array`, as a tuple of integers."""
        return self.required_integers(self.input(position), role)

    def known_sizes(self, position: int, role: str) -> Sizes:
        """Like `integers`, but the operand may depend on symbolic sizes."""
        return self.required_sizes(self.input(position), role)

    def named(self, name: str) -> SSAValue:
        """The value with a name given by an attribute; raises `ModelError` if there is none."""
        value = self._surroundings.lookup(name)
        if not isinstance(value, SSAValue):
            raise ModelError(f"{self.kind}: '{name}' has no value", node=self.name)
        return value

    # Attributes

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self._attributes

    def int(self, name: str, default: int | None = None) -> int:
        """An integer attribute; raises `ModelError` if it is missing and has no default, or has another type."""
        return int(self._attribute(name, default, _INT))

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer attribute that is a truth value."""
        return bool(self._attribute(name, int(default), _INT))

    def float(self, name: str, default: float | None = None) -> float:
        """A float attribute."""
        return float(self._attribute(name, default, _FLOAT, _INT))

    def text(self, name: str, default: str | None = None) -> str:
        """A string attribute."""
        return _decoded(self._attribute(name, default, _STRING))

    def ints(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        return tuple(int(item) for item in self._attribute(name, default, _INTS))

    def floats(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """An attribute that is a list of floats."""
        return tuple(float(item) for item in self._attribute(name, default, _FLOATS, _INTS))

    def array_of(self, name: str) -> np.ndarray:
        """An attribute that is a list of integers, floats or bytes, as an array; empty if it is missing."""
        found = self._attributes.get(name)
        if found is not None and found.type == _FLOATS:
            return np.array(found.floats, np.float32)
        if found is not None and found.type == _STRINGS:
            return np.array(found.strings[:], np.bytes_)
        return np.array(self._attribute(name, (), _INTS), np.int64)

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """An attribute that is a list of strings."""
        return tuple(_decoded(item) for item in self._attribute(name, default, _STRINGS))

    def tensor(self, name: str) -> np.ndarray:
        """A tensor attribute."""
        return self._tensors.array(self._attribute(name, None, _TENSOR), f"attribute '{name}' of node '{self.name}'")

    def sparse_tensor(self, name: str) -> np.ndarray:
        """The dense form of a sparse tensor attribute."""
        what = f"attribute '{name}' of node '{self.name}'"
        return dense_array(self._attribute(name, None, _SPARSE_TENSOR), self._tensors, what)

    def type_attribute(self, name: str) -> onnx.TypeProto:
        """A type attribute."""
        return self._attribute(name, None, onnx.AttributeProto.TYPE_PROTO)

    def subgraph(self, name: str) -> onnx.GraphProto:
        """A graph attribute."""
        return self._attribute(name, None, _GRAPH)

    def _attribute(self, name: str, default: Any, *kinds: int) -> Any:
        """The value of an attribute; raises `ModelError` if its type is not one of `kinds`."""
        if name not in self._attributes:
            if default is None:
                raise ModelError(f"{self.kind} has no attribute '{name}'", node=self.name)
            return default
        attribute = self._attributes[name]
        value = helper.get_attribute_value(attribute)
        # An empty list may have any list type.
        is_empty = attribute.type in _LISTS and kinds[0] in _LISTS and not value
        if attribute.type not in kinds and not is_empty:
            actual, wanted = (onnx.AttributeProto.AttributeType.Name(kind) for kind in (attribute.type, kinds[0]))
            raise ModelError(f"attribute '{name}' of {self.kind} is {actual}, not {wanted}", node=self.name)
        return value

    # The surrounding graph

    def finding(self, find: Callable[[Sequence[onnx.NodeProto], Constants], Finding]) -> Finding:
        """The result of an analysis of the graph's nodes and initializers, which is run once for each graph."""
        return self._surroundings.finding(find)

    # Results

    def wants(self, position: int) -> bool:
        """Whether the result at `position` has a name, so that it may be used."""
        return position < len(self.results) and bool(self.results[position])

    # Its subgraphs

    def region_values(self, name: str, block: Block) -> list[Value] | None:
        """Like `region`, but without arguments, and outputs may have any type."""
        with self.builder.inside(block):
            return self._all_of(self.outputs_of(name, (), caller=""))

    def region(self, name: str, block: Block, arguments: Sequence[SSAValue] = ()) -> list[SSAValue] | None:
        """Import a graph attribute with inputs `arguments` into a block; its outputs, `None` if unsupported."""
        with self.builder.inside(block):
            return self.inline(name, arguments, caller="")

    def inline(self, name: str, arguments: Sequence[SSAValue] = (), caller: str | None = None) -> list[SSAValue] | None:
        """Import a graph attribute in place of the node; its nodes get the location of this node, or of `caller`."""
        found = self._all_of(self.outputs_of(name, arguments, caller))
        if found is None:
            return None
        values = [value for value in found if isinstance(value, SSAValue)]
        if len(values) < len(found):
            raise self.unsupported("a graph inside of it yields a value that is not a numeric tensor")
        return values

    def _all_of(self, found: list[Value | None] | None) -> list[Value] | None:
        """The outputs of a subgraph, all of which must be present."""
        if found is None:
            return None
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            raise self.unsupported("a graph inside of it yields an absent value")
        return values

    def inline_values(self, name: str, arguments: Sequence[Value] = ()) -> list[Value] | None:
        """Like `inline`, but values may have any type."""
        return self._all_of(self.outputs_of(name, arguments))

    def outputs_of(
        self, name: str, arguments: Sequence[Value] = (), caller: str | None = None
    ) -> list[Value | None] | None:
        """Like `inline`, but outputs may be absent or have any type."""
        return self._surroundings.inline(self.subgraph(name), self.name if caller is None else caller, arguments)

    def expanded(self) -> Sequence[Value | None] | None:
        """The results of the standard's function body, for forms that the importer does not handle itself."""
        return self._surroundings.expand(self)


def _decoded(value: bytes | str) -> str:
    """A string of an attribute as text; invalid UTF-8 becomes backslash escapes."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
