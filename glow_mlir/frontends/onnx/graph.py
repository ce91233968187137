"""Import of an ONNX graph into a function of `glow_high`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper
from xdsl.dialects.builtin import LocationAttr, ModuleOp, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Operation, SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp, operand_groups
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import element_of, tensor
from glow_mlir.errors import ModelError, UnsupportedError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.node import Node, node_name
from glow_mlir.interpreter.machine import apply_semantics
from glow_mlir.registry import IMPORTERS
from glow_mlir.storage import Storage, constant_op, legal_name

OLDEST_OPSET = 7


@dataclass
class GraphImporter:
    """Imports one graph: keeps what each ONNX name stands for, and what the values of constants are."""

    graph: onnx.GraphProto
    opsets: Mapping[str, int]
    dimensions: Mapping[str, int]
    directory: str = ""
    storage: Storage = field(default_factory=lambda: Storage(ModuleOp([])))
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    folded: dict[SSAValue, np.ndarray | None] = field(default_factory=dict[SSAValue, np.ndarray | None])
    unsupported: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    reasons: list[UnsupportedError] = field(default_factory=list[UnsupportedError])
    missing: set[str] = field(default_factory=set[str])
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict[str, onnx.TensorProto])

    def run(self, name: str) -> ModuleOp:
        """Import the graph as function `name` of a new module."""
        self.initializers = {tensor.name: tensor for tensor in self.graph.initializer}
        inputs = [value for value in self.graph.input if value.name not in self.initializers]
        outputs = [value.name for value in self.graph.output]
        self.function = FuncOp.named(name, [*(value.name for value in inputs)])
        for value in inputs:
            self._import_input(value)
        for proto in sorted_nodes(self.graph, set(self.initializers) | {value.name for value in inputs}):
            self._import_node(proto)
        if self.unsupported or self.reasons:
            self._raise_unsupported()
        bindings = [value.name for value in inputs]
        for output in outputs:
            bindings.append(self._import_output(output))
        self.function.bindings = FuncOp.named(name, bindings).bindings
        self.storage.module.body.block.add_op(self.function)
        return self.storage.module

    def lookup(self, name: str) -> SSAValue:
        """The value that an ONNX name stands for."""
        if name not in self.values and name in self.initializers:
            array = self._initializer(self.initializers[name])
            self.values[name] = self.constant(array, name, named_location(name))
        return self.values[name]

    def insert(self, op: Operation) -> Operation:
        """Append an op to the function; its results take their names from the location."""
        self.function.block.add_op(op)
        if isinstance(op.location, NameLoc):
            for result in op.results:
                result.name_hint = legal_name(op.location.desc.data)
        return op

    def constant(
        self,
        array: np.ndarray | Sequence[int] | float,
        name: str,
        location: LocationAttr,
        like: SSAValue | None = None,
    ) -> SSAValue:
        """A constant with that value."""
        dtype = None if like is None else numpy_dtype(element_of(like))
        value = np.asarray(array, dtype)
        if value.dtype.name not in ELEMENT_TYPES:
            raise UnsupportedError(f"element type {value.dtype.name} is not supported", node=name)
        op = self.insert(constant_op(self.storage, value, name, location))
        self.folded[op.results[0]] = value
        return op.results[0]

    def fold(self, value: SSAValue) -> np.ndarray | None:
        """The array that `value` always is, or `None` where it depends on an input."""
        if value not in self.folded:
            self.folded[value] = self._fold(value)
        return self.folded[value]

    def _fold(self, value: SSAValue) -> np.ndarray | None:
        if (array := self.storage.value_of(value)) is not None:
            return array
        owner = value.owner
        if not isinstance(owner, HighOp):
            return None
        operands: list[object] = []
        for (_, group), (_, declared) in zip(
            operand_groups(owner), owner.get_irdl_definition().operands, strict=True
        ):
            arrays = [None if item is None else self.fold(item) for item in group]
            if any(array is None and item is not None for array, item in zip(arrays, group, strict=True)):
                return None
            operands.append(arrays if type(declared).__name__ == "VarOperandDef" else arrays[0])
        results = apply_semantics(owner, operands)
        return results[owner.results.index(value)]  # pyright: ignore[reportArgumentType]

    def _initializer(self, proto: onnx.TensorProto) -> np.ndarray:
        try:
            return numpy_helper.to_array(proto, self.directory)
        except (ValueError, OSError, KeyError, TypeError) as error:
            raise ModelError(f"initializer '{proto.name}' cannot be read: {error}") from error

    def _import_input(self, value: onnx.ValueInfoProto) -> None:
        if not value.type.HasField("tensor_type"):
            raise UnsupportedError(f"input '{value.name}' is no tensor")
        described = value.type.tensor_type
        kind = onnx.helper.tensor_dtype_to_np_dtype(described.elem_type).name
        if kind not in ELEMENT_TYPES:
            raise UnsupportedError(f"input '{value.name}' has the unsupported element type {kind}")
        shape = [self._dimension(value.name, dimension) for dimension in described.shape.dim]
        placeholder = PlaceholderOp.bound(
            value.name, tensor(shape, ELEMENT_TYPES[kind]), "input", named_location(value.name)
        )
        self.storage.add(placeholder)
        self.values[value.name] = self.insert(GetOp.of(placeholder, named_location(value.name))).results[0]

    def _dimension(self, name: str, dimension: onnx.TensorShapeProto.Dimension) -> int:
        if dimension.HasField("dim_value"):
            return dimension.dim_value
        label = dimension.dim_param
        if label in self.dimensions:
            return self.dimensions[label]
        raise UnsupportedError(
            f"dimension '{label or '?'}' of input '{name}' has no size",
            hint=f"bind it, for example {label or 'N'}=1",
        )

    def _import_node(self, proto: onnx.NodeProto) -> None:
        version = self.opsets.get(proto.domain, self.opsets.get("", 0) if proto.domain == "ai.onnx" else 0)
        function = find_importer(proto.domain, proto.op_type, version)
        if function is None:
            self.unsupported.append((proto.op_type, node_name(proto)))
        if function is None or any(name in self.missing for name in proto.input):
            self.missing.update(proto.output)
            return
        node = Node(proto, version, named_location(node_name(proto)), self)
        try:
            results = function(node)
        except UnsupportedError as error:
            self.reasons.append(error)
            self.missing.update(proto.output)
            return
        values = [results] if isinstance(results, SSAValue) else list(results)
        for name, value in zip(proto.output, values, strict=False):
            self.values[name] = value
        if surplus := [name for name in proto.output[len(values) :] if name]:
            raise UnsupportedError(f"{proto.op_type}: output '{surplus[0]}' is not supported", node=node_name(proto))

    def _raise_unsupported(self) -> None:
        if not self.unsupported and len(self.reasons) == 1:
            raise self.reasons[0]
        listed = [*self.unsupported, *((error.reason, error.node) for error in self.reasons)]
        raise UnsupportedOperatorsError(listed)

    def _import_output(self, name: str) -> str:
        if name not in self.values and name not in self.initializers:
            raise ModelError(f"output '{name}' is computed by no node")
        value = self.lookup(name)
        symbol = self.storage.unique_name(name)
        type_ = value.type
        placeholder = PlaceholderOp.bound(symbol, type_, "output", named_location(name))  # pyright: ignore[reportArgumentType]
        self.storage.add(placeholder)
        self.function.block.add_op(SaveOp.to(value, symbol, named_location(name)))
        return symbol


def named_location(name: str) -> LocationAttr:
    """The location of what comes from the ONNX node or value `name`."""
    return NameLoc(StringAttr(name), UnknownLoc())


def find_importer(domain: str, kind: str, version: int):
    """The importer of an operator for an opset version: the newest that is not newer; `None` where there is none."""
    domain = "" if domain == "ai.onnx" else domain
    best = max(
        (since for d, k, since in IMPORTERS.all() if d == domain and k == kind and since <= version), default=None
    )
    return None if best is None else IMPORTERS.get((domain, kind, best))


def sorted_nodes(graph: onnx.GraphProto, known: set[str]) -> list[onnx.NodeProto]:
    """The nodes in an order in which every operand comes before its use; raises `ModelError` for a cycle."""
    producer = {name: node for node in graph.node for name in node.output if name}
    ordered: list[onnx.NodeProto] = []
    done: set[str] = set(known)
    pending = list(graph.node)
    while pending:
        waiting: list[onnx.NodeProto] = []
        for node in pending:
            if all(name in done for name in node.input if name):
                ordered.append(node)
                done.update(node.output)
            else:
                waiting.append(node)
        if len(waiting) == len(pending):
            _raise_stuck(waiting, done, producer)
        pending = waiting
    return ordered


def _raise_stuck(waiting: list[onnx.NodeProto], done: set[str], producer: Mapping[str, onnx.NodeProto]) -> None:
    for node in waiting:
        for name in node.input:
            if name and name not in done and name not in producer:
                raise ModelError(
                    f"operand '{name}' is neither an input, an initializer nor computed by a node",
                    node=node_name(node),
                )
    names = ", ".join(f"'{node_name(node)}'" for node in waiting[:5])
    raise ModelError(f"the graph has a cycle through {names}", node=node_name(waiting[0]))
