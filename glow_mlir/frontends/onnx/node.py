"""One ONNX node as the importers of operators see it: operands, attributes, constants, and a way to emit operators."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, SSAValue

from glow_mlir.dialects.attribute_syntax import AttributeValue
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.base import HighOp, Operand
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of, sizes_of
from glow_mlir.dialects.sizes import RunTimeSizeError
from glow_mlir.errors import InputValuesError, LargeInputError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.sparse import dense_array
from glow_mlir.support.symbols import Size, Sizes, SymbolicSize

if TYPE_CHECKING:
    from glow_mlir.frontends.onnx.scope import Scope

_INT, _FLOAT, _STRING = onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING
_INTS, _FLOATS, _STRINGS = onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS, onnx.AttributeProto.STRINGS
_TENSOR, _GRAPH = onnx.AttributeProto.TENSOR, onnx.AttributeProto.GRAPH
_SPARSE_TENSOR = onnx.AttributeProto.SPARSE_TENSOR
_LISTS = (_INTS, _FLOATS, _STRINGS)

ONNXRUNTIME = "com.microsoft"
"""The domain of onnxruntime's own operators."""


class Node:
    """
    An ONNX node under import.

    `domain` and `version` are those of its operator set, `name` is what errors call it. Values are operands and results
    in `glow_high`.
    """

    def __init__(
        self, proto: onnx.NodeProto, domain: str, version: int, name: str, location: LocationAttr, scope: Scope
    ) -> None:
        self.proto = proto
        self.domain = domain
        self.version = version
        self.location = location
        self.scope = scope
        self.graph = scope.graph
        self.kind: str = proto.op_type
        self.name = name
        self.inputs: list[SSAValue | None] = [scope.lookup(operand) if operand else None for operand in proto.input]
        self._attributes: dict[str, onnx.AttributeProto] = {attribute.name: attribute for attribute in proto.attribute}

    # Operands

    def optional(self, position: int) -> SSAValue | None:
        """The operand at `position`, or `None` where it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def input(self, position: int = 0) -> SSAValue:
        """The operand at `position`; raises `ModelError` where it is absent."""
        value = self.optional(position)
        if value is None:
            raise ModelError(f"{self.kind} has no operand {position}", node=self.name)
        return value

    def present(self) -> list[SSAValue]:
        """All operands that are there."""
        return [value for value in self.inputs if value is not None]

    def shape(self, position: int = 0) -> Shape:
        """The shape of the operand at `position`."""
        return shape_of(self.input(position))

    def sizes(self, position: int = 0) -> Sizes:
        """The sizes of the operand at `position`: numbers, or what is known of them before run time."""
        return sizes_of(self.input(position))

    def rank(self, position: int = 0) -> int:
        """The number of axes of the operand at `position`."""
        return rank_of(self.input(position))

    def check_rank(self, position: builtins.int, ranks: Collection[builtins.int], hint: str) -> None:
        """Raise `ModelError` where an operand that is there has another number of axes than one of `ranks`."""
        if self.optional(position) is not None and (rank := self.rank(position)) not in ranks:
            raise ModelError(f"operand {position} of {self.kind} has {rank} axes", node=self.name, hint=hint)

    def element(self, position: int = 0) -> Any:
        """The element type of the operand at `position`."""
        return element_of(self.input(position))

    def known(self, position: int) -> np.ndarray | None:
        """The value of an operand, or `None` where it is absent or depends on an input."""
        value = self.optional(position)
        return None if value is None else self.graph.fold(value)

    def array(self, position: int, role: str) -> np.ndarray:
        """
        The value of an operand that fixes shapes.

        Where it depends on inputs, raises `InputValuesError` if these have few elements, so that their values can be
        given to the import, and else `UnsupportedError`.
        """
        value = self.graph.fold(self.input(position))
        if value is None:
            raise self.graph.missing_value(self.input(position), f"{role} of {self.kind}", self.name)
        return value

    def content(self, position: int, role: str) -> np.ndarray:
        """The value of an operand that is data and has to be constant; raises `UnsupportedError` where it is not."""
        value = self.known(position)
        if value is None:
            raise UnsupportedError(f"{role} of {self.kind} depends on an input of the model", node=self.name)
        return value

    def integers(self, position: int, role: str) -> tuple[int, ...]:
        """Like `array`, as a tuple of integers."""
        return tuple(int(item) for item in self.array(position, role).reshape(-1))

    def told_sizes(self, position: int, role: str) -> Sizes:
        """Like `integers`, where the operand may follow from sizes that are known at run time only."""
        value = self.graph.known_sizes.of(self.input(position))
        if value is None:
            return self.integers(position, role)
        return tuple(item if isinstance(item, SymbolicSize) else int(item) for item in value.reshape(-1))

    def told_or_computed(self, position: int, role: str) -> Sizes | None:
        """
        Like `told_sizes`; `None` for what the program has to compute.

        That is what depends on sizes that data decides, on inputs with too many numbers to be given, or on floats, of
        which a call hardly ever brings the same again.
        """
        try:
            return self.told_sizes(position, role)
        except (RunTimeSizeError, LargeInputError):
            return None
        except InputValuesError:
            if any(is_float(element_of(root)) for root in self.graph.influences.roots(self.input(position))):
                return None
            raise

    # Attributes

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self._attributes

    def int(self, name: str, default: int | None = None) -> int:
        """An integer attribute; raises `ModelError` where it is missing and has no default, or has another type."""
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

    def texts(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """An attribute that is a list of strings."""
        return tuple(_decoded(item) for item in self._attribute(name, default, _STRINGS))

    def tensor(self, name: str) -> np.ndarray:
        """A tensor attribute."""
        return self.graph.array(self._attribute(name, None, _TENSOR), f"attribute '{name}' of node '{self.name}'")

    def sparse_tensor(self, name: str) -> np.ndarray:
        """The dense form of a sparse tensor attribute."""
        what = f"attribute '{name}' of node '{self.name}'"
        return dense_array(self._attribute(name, None, _SPARSE_TENSOR), self.graph.tensors, what)

    def subgraph(self, name: str) -> onnx.GraphProto:
        """A graph attribute."""
        return self._attribute(name, None, _GRAPH)

    def _attribute(self, name: str, default: Any, *kinds: int) -> Any:
        """The value of an attribute that has one of those types."""
        if name not in self._attributes:
            if default is None:
                raise ModelError(f"{self.kind} has no attribute '{name}'", node=self.name)
            return default
        attribute = self._attributes[name]
        value = helper.get_attribute_value(attribute)
        # A list without elements has whatever type its writer took it for.
        is_empty = attribute.type in _LISTS and kinds[0] in _LISTS and not value
        if attribute.type not in kinds and not is_empty:
            actual, wanted = (onnx.AttributeProto.AttributeType.Name(kind) for kind in (attribute.type, kinds[0]))
            raise ModelError(f"attribute '{name}' of {self.kind} is {actual}, not {wanted}", node=self.name)
        return value

    # Results

    def wants(self, position: int) -> bool:
        """Whether the result at `position` has a name, so that something may use it."""
        return position < len(self.proto.output) and bool(self.proto.output[position])

    def emit(self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None) -> SSAValue:
        """Emit an operator and return its first result; raises `VerifyException` where operands do not fit."""
        return self.emit_all(operator, *operands, **properties)[0]

    def emit_all(
        self, operator: type[HighOp], *operands: Operand, **properties: AttributeValue | None
    ) -> tuple[SSAValue, ...]:
        """Emit an operator and return all its results; raises `VerifyException` where operands do not fit."""
        return tuple(self.graph.insert(operator.make(*operands, location=self.location, **properties)).results)

    def once(self, value: SSAValue, emit: Callable[[], SSAValue]) -> SSAValue:
        """What `emit` emits; where nodes of this kind have emitted it for an equal value here, what that was."""
        return self.graph.emitted.once((self.kind, self.graph.block), value, emit)

    def bind_symbol(
        self, count: SSAValue, most: builtins.int, least: builtins.int = 0, result: builtins.int = 0
    ) -> Size:
        """
        A size that is the only element of `count`, from `least` to `most`: a number where that is known, else a symbol.

        It goes by the name of a `result` that has it, else by that of the first.
        """
        known = self.graph.fold(count)
        if not most or known is not None:
            return 0 if known is None else int(known.item())
        names = [*self.proto.output[result : result + 1], *self.proto.output, self.kind]
        symbol = self.graph.new_symbol(f"{next(filter(None, names))}.count", least, most)
        self.graph.block.add_op(BindSymbolOp.to(symbol, count, self.location))
        return SymbolicSize.of(symbol)

    def region(self, name: str, block: Block, arguments: Sequence[SSAValue] = ()) -> list[SSAValue] | None:
        """Import a graph attribute, whose inputs are `arguments`, into a block: its outputs, `None` if unsupported."""
        with self.graph.inside(block):
            return self.inline(name, arguments, caller="")

    def inline(self, name: str, arguments: Sequence[SSAValue] = (), caller: str | None = None) -> list[SSAValue] | None:
        """Import a graph attribute where the node is; its nodes have the location of this one, or of a `caller`."""
        found = self.scope.inline(self.subgraph(name), self.name if caller is None else caller, arguments)
        if found is None:
            return None
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            raise self.unsupported("a graph inside of it gives a value that is absent")
        return values

    def expanded(self) -> Sequence[SSAValue | None] | None:
        """The results of the body by which the standard defines the operator, for what its importer leaves to that."""
        return self.scope.expand(self)

    def constant(
        self, array: np.ndarray | Sequence[int] | float, name: str = "", like: SSAValue | None = None
    ) -> SSAValue:
        """A constant; `like` gives a plain number its element type."""
        return self.graph.constant(array, name or self.name, self.location, like)

    def insert(self, op: Operation) -> Operation:
        """Insert any op behind those that there are."""
        return self.graph.insert(op)

    def check_size(self, *shape: builtins.int) -> None:
        """Raise `UnsupportedError` for the shape of an array that is too large to be made."""
        self.graph.check_size(shape)

    def unsupported(self, reason: str) -> UnsupportedError:
        """The error for something that this importer does not do."""
        return UnsupportedError(f"{self.kind}: {reason}", node=self.name)


def _decoded(value: bytes | str) -> str:
    """A string of an attribute as text; what is no text becomes a word that nobody knows."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
