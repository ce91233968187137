"""Scopes of ONNX names, each with a list of nodes: a graph, a subgraph, or the body of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from xdsl.ir import Block, SSAValue

from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.builder.module_builder import named_location
from glow_mlir.frontends.onnx.model_import import ModelImport
from glow_mlir.frontends.onnx.models.domains import plain_domain
from glow_mlir.frontends.onnx.models.functions import (
    contradiction,
    has_importer,
    instantiate,
    standard_function,
    unknown_operator,
)
from glow_mlir.frontends.onnx.models.order import node_name, sorted_nodes, used_names
from glow_mlir.frontends.onnx.models.refusals import refused_label
from glow_mlir.frontends.onnx.models.sparse import Initializer, initializers_of
from glow_mlir.frontends.onnx.node import Constants, Finding, Node
from glow_mlir.frontends.onnx.string_operands import on_strings
from glow_mlir.frontends.onnx.values import Strings, Structured, Value, is_aware, kind_of_value, type_of_value
from glow_mlir.support.dataclass import dataclass


@dataclass
class Scope:
    """
    The names and values of one list of nodes.

    `caller` is the name of the node that was expanded into these nodes: they have its location, and errors name it.
    `outer` is the enclosing scope, whose names are visible as well.
    """

    model: ModelImport
    opsets: Mapping[str, int]
    caller: str = ""
    outer: Scope | None = None
    values: dict[str, Value | None] = field(default_factory=dict[str, Value | None])
    initializers: dict[str, Initializer] = field(default_factory=dict[str, Initializer])
    lacking: dict[str, UnsupportedError | None] = field(default_factory=dict[str, UnsupportedError | None])
    """Names without a value, and the error to report on use; `None` if it has been reported."""
    nodes: Sequence[onnx.NodeProto] = ()
    findings: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """Analysis → its result for the nodes."""
    block: Block = field(init=False)
    """The block into which the nodes are imported."""

    def __post_init__(self) -> None:
        self.block = self.model.builder.block

    def knows(self, name: str) -> bool:
        """Whether the name is defined here or in an outer scope, even if its value is not supported."""
        here = name in self.values or name in self.initializers or name in self.lacking
        return here or (self.outer is not None and self.outer.knows(name))

    def lookup(self, name: str) -> Value | None:
        """The value of a name; `None` for an absent operand of a function."""
        if name in self.values:
            return self.values[name]
        if name in self.initializers:
            with self.model.builder.inside(self.block):  # Not in the region of the first use.
                value = self.model.initializer(name, self.initializers[name], named_location(self.caller or name))
            self.values[name] = value
            return value
        if self.outer is not None:
            return self.outer.lookup(name)
        raise ModelError(f"'{name}' has no value", hint="it is not an input, an initializer or the result of a node")

    def lacks(self, names: Iterable[str]) -> bool:
        """Whether some of the names lack a value because of an error, which is then reported."""
        found = False
        for name in names:
            if name in self.lacking:
                found = True
                if (error := self.lacking[name]) is not None:
                    self.model.builder.problems.errors.append(error)
                self.lacking[name] = None
            elif self.outer is not None and name not in self.values:
                found |= self.outer.lacks([name])
        return found

    def run(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Import the nodes; collect unsupported ones, but only one for each caller."""
        self.nodes, failed = nodes, False
        for node in sorted_nodes(nodes, self.knows):
            if failed and self.caller:
                imported = False
            elif self.lacks(used_names(node)):
                imported = False
                self._report_unknown(node)
            else:
                imported = self._import(node)
            if not imported:
                self.lacking.update(dict.fromkeys(node.output))
                failed = True

    def _report_unknown(self, proto: onnx.NodeProto) -> None:
        """Report a node that lacks operands if it would not be supported with them either."""
        if not self.caller and (label := unknown_operator(proto.domain, proto.op_type, self.opsets)):
            self.model.builder.problems.unknown.append((label, node_name(proto)))

    def _import(self, proto: onnx.NodeProto) -> bool:
        """Import one node; `False` if it is not supported."""
        domain = plain_domain(proto.domain)
        name = self.caller or node_name(proto)
        version = self.opsets.get(domain, 0)
        function = self.model.importer_of(domain, proto.op_type, version)
        results: Value | Sequence[Value | None] | None = None
        try:
            with self.model.builder.node_errors(proto.op_type, name):
                operands = [self.lookup(operand) if operand else None for operand in proto.input]
                node = Node(proto, domain, version, name, operands, self.model, self)
                results = self.expand(node) if function is None else self._applied(function, node)
        except GlowError:  # Some are errors of values, too.
            raise
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise self._explained(proto, domain, name, error) from error
        if results is None:
            return False
        self._bind(proto, name, (results,) if isinstance(results, Value) else results)
        return True

    def _applied(self, function: Callable[..., Any], node: Node) -> Value | Sequence[Value | None] | None:
        """Call a node's importer; importers that are not aware of strings get the strings' numbers."""
        structured = [operand for operand in node.operands if isinstance(operand, Structured)]
        if not structured or is_aware(function):
            return function(node)
        if all(isinstance(operand, Strings) for operand in structured):
            return on_strings(function, node)
        position = node.operands.index(structured[0])
        raise node.unsupported(f"operand {position} is {kind_of_value(structured[0])}")

    def _bind(self, proto: onnx.NodeProto, node: str, results: Sequence[Value | None]) -> None:
        for position, name in enumerate(proto.output):
            value = results[position] if position < len(results) else None
            if value is not None:
                self.values[name] = value
            elif name:
                reason = f"{proto.op_type}: output {position} ('{name}') is not supported"
                self.lacking[name] = UnsupportedError(reason, node=node)

    def expand(self, node: Node) -> list[Value | None] | None:
        """The results of the standard's function body; reports the operator as unknown if there is none."""
        types = [type_of_value(value) for value in node.operands]
        function = standard_function(node.proto, node.domain, node.version, types)
        if function is None:
            if node.domain not in self.opsets and has_importer(node.domain, node.kind):
                domain = node.domain or "ai.onnx"
                raise ModelError(f"{node.kind}: the model imports no version of opset '{domain}'", node=node.name)
            self.model.builder.problems.unknown.append((refused_label(node.domain, node.kind), node.name))
            return None
        opsets = {opset.domain: opset.version for opset in function.opset_import}
        given = [*node.operands, *[None] * (len(function.input) - len(node.operands))]
        scope = Scope(self.model, opsets, node.name, values=dict(zip(function.input, given, strict=False)))
        scope.run(instantiate(function, node.proto))
        wanted = [name for name, output in zip(function.output, node.proto.output, strict=False) if output]
        if scope.lacks(wanted):
            return None
        return [scope.lookup(name) if name in wanted else None for name in function.output]

    def finding(self, find: Callable[[Sequence[onnx.NodeProto], Constants], Finding]) -> Finding:
        """The result of an analysis of all nodes and initializers of this scope, which is run once."""
        if find not in self.findings:
            self.findings[find] = find(self.nodes, self._initializer)
        return self.findings[find]

    def _initializer(self, name: str) -> np.ndarray | None:
        """The array of an initializer; `None` for any other name."""
        if name not in self.initializers:
            return None
        value = self.lookup(name)
        return self.model.builder.folding.of(value) if isinstance(value, SSAValue) else None

    def inline(self, graph: onnx.GraphProto, caller: str, arguments: Sequence[Value] = ()) -> list[Value | None] | None:
        """
        The outputs of a subgraph with inputs `arguments`, which sees the names of this scope; `None` if unsupported.

        `caller` is the name of the node that its nodes belong to, if they have no locations of their own.
        """
        scope = Scope(self.model, self.opsets, self.caller or caller, outer=self)
        scope.initializers = initializers_of(graph)
        scope.values.update(zip((value.name for value in graph.input), arguments, strict=True))
        scope.run(graph.node)
        self.model.inconsistencies.check_values(graph, scope.values)
        names = [value.name for value in graph.output]
        return None if scope.lacks(names) else [scope.lookup(name) for name in names]

    def _explained(self, proto: onnx.NodeProto, domain: str, name: str, error: Exception) -> Exception:
        """The standard's complaint about a node whose importer failed; the failure itself if the node is valid."""
        types = {operand: type_of_value(self.lookup(operand)) for operand in proto.input if operand}
        if reason := contradiction(proto, domain, self.opsets, types):
            hint = "see https://onnx.ai/onnx/operators"
            return ModelError(f"{proto.op_type}: {reason}", node=name, hint=hint)
        return error
