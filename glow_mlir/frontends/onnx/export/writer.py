"""An ONNX graph under export: its nodes and weights, and the names of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from glow_mlir.dialects.element_types import is_narrow, is_narrow_float, is_unsigned, numpy_dtype, storage_of
from glow_mlir.dialects.shapes import Shape, element_of, sizes_of, tensor
from glow_mlir.dialects.sizes import smallest
from glow_mlir.errors import UnsupportedError
from glow_mlir.frontends.onnx.models.order import used_names
from glow_mlir.frontends.onnx.models.traversal import all_graphs
from glow_mlir.ir.locations import location_name
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Factor, Product, Quotient, Size, Sizes, are_numbers, labels_of

OPSET = 21
"""The exported opset version of ONNX."""

FIRST = -(1 << 63) + 1
"""The end of a slice with a negative step that includes the first element: -1 would count from the end."""


def onnx_element(value: SSAValue) -> int:
    """The ONNX data type of a value's elements; for quantized values that of their storage."""
    return helper.np_dtype_to_tensor_dtype(numpy_dtype(storage_of(element_of(value))))


def _wide(element: Attribute) -> np.dtype | None:
    """A dtype that represents all numbers of a narrow element type, and that ONNX can move; `None` for others."""
    storage = storage_of(element)
    if not is_narrow(storage):
        return None
    kind = np.float32 if is_narrow_float(storage) else np.uint8 if is_unsigned(storage) else np.int8
    return np.dtype(kind)


def value_info(name: str, type_: TensorType[Any]) -> onnx.ValueInfoProto:
    """ONNX's declaration of a tensor."""
    kind = helper.np_dtype_to_tensor_dtype(numpy_dtype(storage_of(type_.element_type)))
    return helper.make_tensor_value_info(name, kind, labels_of(sizes_of(type_)))


def fresh_name(wish: str, taken: Counter[str]) -> str:
    """A unique name, added to `taken`: the wish, or the wish with a number."""
    name = wish
    while name in taken:
        taken[wish] += 1
        name = f"{wish}_{taken[wish]}"
    taken[name] += 1
    return name


@dataclass
class Writer:
    """
    Write nodes and weights; `names` maps values of `glow_high` to names in ONNX. Inverse transposes cancel out.

    `reserved` are the names of inputs and outputs, `op` is the operator being written.
    """

    reserved: Sequence[str] = ()
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    op: Operation | None = None
    write: Callable[[Block], None] = lambda block: None
    """Writes the operators of a block."""
    counts: dict[str, str] = field(default_factory=dict[str, str])
    """Symbol → the name of its value, a vector of one number."""
    cuts: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """Slice that equals a result of an ONNX node → the name of that result."""
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """Constant of the module → the name of its weight."""
    _taken: Counter[str] = field(default_factory=Counter[str])
    _constants: dict[tuple[str, Shape, bytes], str] = field(default_factory=dict[tuple[str, Shape, bytes], str])
    _sizes: dict[Sizes, str] = field(default_factory=dict["Sizes", str])
    _transposed: dict[str, tuple[str, Shape]] = field(default_factory=dict[str, tuple[str, Shape]])

    def __post_init__(self) -> None:
        self._taken.update(self.reserved)

    def fresh(self, wish: str) -> str:
        """A unique name, derived from a wish."""
        return fresh_name(wish, self._taken)

    def label(self) -> str:
        """The location name of the operator, from which names are derived."""
        return location_name(self.op.location) if self.op is not None else ""

    def name(self, value: SSAValue | None) -> str:
        """The name of a value; empty for an absent operand."""
        return "" if value is None else self.names[value]

    def weight(self, array: np.ndarray, wish: str) -> str:
        """Add an initializer; its name."""
        name = self.fresh(wish)
        self.weights[name] = array
        return name

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """A small initializer, shared by all uses of the same value."""
        array = np.asarray(value, dtype)
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(array, "constant")
        return self._constants[key]

    def like(self, number: float, value: SSAValue) -> str:
        """A constant of the element type of a value."""
        return self.constant(number, numpy_dtype(element_of(value)))

    def emit(self, kind: str, *operands: str | SSAValue | None, **attributes: Any) -> str:
        """Write a node and return the name of its result; attributes that are `None` are omitted."""
        return self.emit_all(kind, 1, *operands, **attributes)[0]

    def emit_all(self, kind: str, count: int, *operands: str | SSAValue | None, **attributes: Any) -> list[str]:
        """Write a node and return the names of its `count` results."""
        return self._write(kind, self.label() or kind.lower(), count, *operands, **attributes)

    def _write(
        self, kind: str, wish: str, count: int, *operands: str | SSAValue | None, **attributes: Any
    ) -> list[str]:
        """Write a node named `wish`; `name_nodes` later makes names unique."""
        inputs = [item if isinstance(item, str) else self.name(item) for item in operands]
        least = defs.get_schema(kind, OPSET).min_input
        while len(inputs) > least and not inputs[-1]:
            inputs.pop()
        outputs = [self.fresh(f"{wish}_output") for _ in range(count)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(kind, inputs, outputs, wish, **given))
        return outputs

    def moved(
        self,
        kind: str,
        parts: Sequence[str | SSAValue],
        element: Attribute,
        *others: str | SSAValue | None,
        **attributes: Any,
    ) -> str:
        """Write a node that moves the elements of `parts`, its first operands; narrow elements are widened for it."""
        wide = [self.widened(part, element) for part in parts]
        return self.narrowed(self.emit(kind, *wide, *others, **attributes), element)

    def widened(self, operand: str | SSAValue, element: Attribute) -> str:
        """Cast an operand of narrow elements to a type that all ONNX operators can move, without loss."""
        name = operand if isinstance(operand, str) else self.name(operand)
        wide = _wide(element)
        return name if wide is None else self.emit("Cast", name, to=helper.np_dtype_to_tensor_dtype(wide))

    def narrowed(self, name: str, element: Attribute) -> str:
        """Undo `widened`."""
        if _wide(element) is None:
            return name
        storage = storage_of(element)
        # Infinities stay infinite.
        saturate = 0 if is_narrow_float(storage) else None
        return self.emit("Cast", name, to=helper.np_dtype_to_tensor_dtype(numpy_dtype(storage)), saturate=saturate)

    def transposed(self, operand: str | SSAValue, permutation: Shape) -> str:
        """Permute the axes of an operand; constants are transposed at once, and transposes of transposes are merged."""
        name = operand if isinstance(operand, str) else self.name(operand)
        source, first = self._transposed.get(name, (name, tuple(range(len(permutation)))))
        both = tuple(first[axis] for axis in permutation)
        if both == tuple(range(len(both))):
            return source
        if source in self.weights:
            return self.weight(np.transpose(self.weights[source], both), f"{source}_transposed")
        result = self._write("Transpose", f"{self.label()}/Transpose", 1, source, perm=both)[0]
        self._transposed[result] = (source, both)
        return result

    def reshaped(self, operand: str | SSAValue, shape: Sizes) -> str:
        """Reshape an operand."""
        zero = 1 if min(map(smallest, shape), default=1) == 0 else None
        return self.emit("Reshape", operand, self.sizes(shape), allowzero=zero)

    def sizes(self, sizes: Sizes) -> str:
        """Sizes as a vector: a constant, or computed from symbols."""
        if are_numbers(sizes):
            return self.constant(sizes)
        if sizes not in self._sizes:
            parts = [self._size(size) for size in sizes]
            self._sizes[sizes] = parts[0] if len(parts) == 1 else self.emit("Concat", *parts, axis=0)
        return self._sizes[sizes]

    def _size(self, size: Size) -> str:
        """A size as a vector of one number: a sum of products of symbols and quotients."""
        if isinstance(size, int):
            return self.constant([size])
        terms = [self._term(product, factor) for product, factor in size.terms]
        return self._folded("Add", [*terms, *([self.constant([size.offset])] if size.offset else [])])

    def _term(self, product: Product, factor: int) -> str:
        factors = [self._factor(item) for item in product]
        return self._folded("Mul", [*factors, *([self.constant([factor])] if factor != 1 else [])])

    def _factor(self, factor: Factor) -> str:
        """A factor of a size: a symbol or a quotient; neither side of a division is negative."""
        if isinstance(factor, Quotient):
            return self.emit("Div", self._size(factor.dividend), self.constant([factor.divisor]))
        if factor.name not in self.counts:
            raise self.unsupported(f"no input has the size '{factor.name}' itself")
        return self.counts[factor.name]

    def _folded(self, kind: str, names: Sequence[str]) -> str:
        """Combine values by a binary operator, from left to right."""
        found = names[0]
        for name in names[1:]:
            found = self.emit(kind, found, name)
        return found

    # Subgraphs

    def subgraph(self, name: str, block: Block, yielded: Sequence[SSAValue]) -> onnx.GraphProto:
        """A subgraph without inputs, with the operators of a block, whose outputs are the yielded values."""
        with self._inside() as nodes:
            self.write(block)
            return self._graph(name, nodes, [], yielded)

    def body(
        self,
        block: Block,
        goes_on: SSAValue | None,
        yielded: Sequence[SSAValue],
        arguments: Sequence[SSAValue],
        begin: Callable[[], None],
    ) -> onnx.GraphProto:
        """
        The body of a loop. Inputs are trip number, condition and carried values, outputs the condition and `yielded`.

        `goes_on` is `None` if only the trip count ends the loop. `begin` writes nodes before those of the block.
        """
        with self._inside() as nodes:
            for argument in arguments:
                self.names[argument] = self.fresh("carried")
            inputs = [value_info(self.names[argument], _tensor_type(argument)) for argument in arguments]
            inputs.insert(1, helper.make_tensor_value_info(self.fresh("is_trip"), onnx.TensorProto.BOOL, []))
            begin()
            self.write(block)
            unlimited = self.emit("Identity", inputs[1].name) if goes_on is None else self.reshaped(goes_on, ())
            further = helper.make_tensor_value_info(unlimited, onnx.TensorProto.BOOL, [])
            return self._graph("body", nodes, inputs, yielded, [further])

    @contextmanager
    def _inside(self) -> Generator[list[onnx.NodeProto]]:
        """Collect nodes in a new list within this context; sizes computed in it are valid in it only."""
        around, op, known = self.nodes, self.op, dict(self._sizes)
        self.nodes = []
        try:
            yield self.nodes
        finally:
            self.nodes, self.op, self._sizes = around, op, known

    def _graph(
        self,
        name: str,
        nodes: list[onnx.NodeProto],
        inputs: Sequence[onnx.ValueInfoProto],
        yielded: Sequence[SSAValue],
        before: Sequence[onnx.ValueInfoProto] = (),
    ) -> onnx.GraphProto:
        """A subgraph; its outputs have new names for the yielded values."""
        own = [self.emit("Identity", value) for value in yielded]
        outputs = [*before, *(value_info(one, _tensor_type(value)) for one, value in zip(own, yielded, strict=True))]
        live = _live(nodes, [item.name for item in outputs])
        return helper.make_graph(live, self.fresh(name), list(inputs), outputs)

    def unsupported(self, reason: str) -> UnsupportedError:
        """The error for an operator that ONNX cannot express."""
        return UnsupportedError(reason, node=self.label())

    def call(self, value: SSAValue, wish: str) -> None:
        """Rename a value to the name of an output; if its name is shared, by an Identity."""
        name = self.names[value]
        last = self.nodes[-1] if self.nodes else None
        if last is not None and name in last.output and not self._is_shared(name):
            last.output[list(last.output).index(name)] = wish
        else:
            self.nodes.append(helper.make_node("Identity", [name], [wish], self.fresh(f"{wish}_identity")))
        self.names[value] = wish

    def _is_shared(self, name: str) -> bool:
        """Whether a name belongs to an output, a size, a cached transpose, or several values."""
        tables = (self.reserved, self._transposed, self.counts.values(), self._sizes.values())
        return any(name in table for table in tables) or Counter(self.names.values())[name] > 1

    def initializers(self, nodes: Sequence[onnx.NodeProto]) -> list[onnx.TensorProto]:
        """The weights that nodes use, as ONNX's tensors."""
        used = {name for node in nodes for name in used_names(node)}
        return [numpy_helper.from_array(array, name) for name, array in self.weights.items() if name in used]

    def live_nodes(self, outputs: Sequence[str]) -> list[onnx.NodeProto]:
        """The nodes on which outputs depend, in order."""
        return _live(self.nodes, outputs)


def _live(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes on which outputs depend, in order."""
    needed, kept = set(outputs), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(used_names(node))
            kept.append(node)
    return kept[::-1]


def name_nodes(graph: onnx.GraphProto) -> None:
    """
    Make the names of nodes unique, including those of subgraphs.

    The last node with a name in the outermost graph keeps it, because it computes the result; the others append their
    operator.
    """
    nodes = [node for inner in all_graphs(graph) for node in reversed(inner.node)]
    taken = Counter(node.name for node in nodes)
    kept = set[str]()
    for node in nodes:
        if node.name in kept:
            node.name = fresh_name(f"{node.name}/{node.op_type}", taken)
        kept.add(node.name)


def _tensor_type(value: SSAValue) -> TensorType[Attribute]:
    return tensor(sizes_of(value), element_of(value))
