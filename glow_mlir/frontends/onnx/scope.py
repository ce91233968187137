"""Names of ONNX values and the nodes that use them: a graph, a branch inside it, or the body of a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx
from xdsl.dialects.builtin import LocationAttr, NameLoc, NoneAttr, StringAttr
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.sizes import fitting_hint
from glow_mlir.errors import GlowError, ModelError, UnsupportedError
from glow_mlir.frontends.onnx.domains import plain_domain
from glow_mlir.frontends.onnx.functions import (
    contradiction,
    has_importer,
    instantiate,
    standard_function,
    unknown_operator,
)
from glow_mlir.frontends.onnx.node import Node
from glow_mlir.frontends.onnx.order import node_name, sorted_nodes, used_names
from glow_mlir.frontends.onnx.sparse import Initializer, initializers_of
from glow_mlir.frontends.onnx.types import onnx_type
from glow_mlir.ir.registry import operator_label

if TYPE_CHECKING:
    from glow_mlir.frontends.onnx.graph import GraphImporter


def named_location(name: str) -> LocationAttr:
    """The location of what comes from the ONNX node or value `name`."""
    return NameLoc(StringAttr(name), NoneAttr())


@dataclass
class Scope:
    """
    What names stand for in one list of nodes.

    `caller` names the node that the nodes were expanded from: they carry its location, and errors name it. `outer` is
    the scope whose names are visible as well.
    """

    graph: GraphImporter
    opsets: Mapping[str, int]
    caller: str = ""
    outer: Scope | None = None
    values: dict[str, SSAValue | None] = field(default_factory=dict[str, SSAValue | None])
    initializers: dict[str, Initializer] = field(default_factory=dict[str, Initializer])
    lacking: dict[str, UnsupportedError | None] = field(default_factory=dict[str, UnsupportedError | None])
    """Names without a value, and the error for who needs one; `None` where it has been reported."""
    block: Block = field(init=False)
    """Where the nodes become operators."""

    def __post_init__(self) -> None:
        self.block = self.graph.block

    def knows(self, name: str) -> bool:
        """Whether the name stands for something here or in an outer scope, also where that is not supported."""
        here = name in self.values or name in self.initializers or name in self.lacking
        return here or (self.outer is not None and self.outer.knows(name))

    def lookup(self, name: str) -> SSAValue | None:
        """The value behind a name; `None` for an absent operand of a function."""
        if name in self.values:
            return self.values[name]
        if name in self.initializers:
            with self.graph.inside(self.block):  # A region that asks first is not all that may use it.
                value = self.graph.initializer(name, self.initializers[name], named_location(self.caller or name))
            self.values[name] = value
            return value
        if self.outer is not None:
            return self.outer.lookup(name)
        raise ModelError(f"'{name}' has no value", hint="no node computes it, and it is no input or initializer")

    def lacks(self, names: Iterable[str]) -> bool:
        """Whether some of the names have no value for a reason, which is then reported."""
        found = False
        for name in names:
            if name in self.lacking:
                found = True
                if (error := self.lacking[name]) is not None:
                    self.graph.reasons.append(error)
                self.lacking[name] = None
            elif self.outer is not None and name not in self.values:
                found |= self.outer.lacks([name])
        return found

    def run(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Import the nodes; what is not supported is collected in the graph, but of one caller only once."""
        failed = False
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
        """Report a node whose operands are lacking, where it would not be supported with them either."""
        if not self.caller and (label := unknown_operator(proto, self.opsets)):
            self.graph.unsupported.append((label, node_name(proto)))

    def _import(self, proto: onnx.NodeProto) -> bool:
        """Import one node; `False` where it is not supported."""
        domain = plain_domain(proto.domain)
        name = self.caller or node_name(proto)
        version = self.opsets.get(domain, 0)
        function = self.graph.importer_of(domain, proto.op_type, version)
        try:
            node = Node(proto, domain, version, name, named_location(name), self)
            results: SSAValue | Sequence[SSAValue | None] | None = (
                self.expand(node) if function is None else function(node)
            )
        except UnsupportedError as error:
            error.node = error.node or name
            error.hint = fitting_hint(error.hint, self.graph.has_bounds)
            self.graph.reasons.append(error)
            return False
        except MemoryError as error:
            hint = "check the constants that say how large its results are"
            raise ModelError(f"{proto.op_type}: its results do not fit into memory", node=name, hint=hint) from error
        except VerifyException as error:
            raise ModelError(f"{proto.op_type}: {error}", node=name) from error
        except GlowError:  # Some are errors of values, too.
            raise
        except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise self._explained(proto, domain, name, error) from error
        if results is None:
            return False
        self._bind(node, (results,) if isinstance(results, SSAValue) else results)
        return True

    def _bind(self, node: Node, results: Sequence[SSAValue | None]) -> None:
        for position, name in enumerate(node.proto.output):
            value = results[position] if position < len(results) else None
            if value is not None:
                self.values[name] = value
            elif name:
                self.lacking[name] = node.unsupported(f"output {position} ('{name}') is not supported")

    def expand(self, node: Node) -> list[SSAValue | None] | None:
        """The results of the body by which the standard defines the operator; reports it where there is none."""
        types = [onnx_type(value) for value in node.inputs]
        function = standard_function(node.proto, node.domain, node.version, types)
        if function is None:
            if node.domain not in self.opsets and has_importer(node.domain, node.kind):
                domain = node.domain or "ai.onnx"
                raise ModelError(f"{node.kind}: the model imports no version of opset '{domain}'", node=node.name)
            self.graph.unsupported.append((operator_label(node.domain, node.kind), node.name))
            return None
        opsets = {opset.domain: opset.version for opset in function.opset_import}
        given = [*node.inputs, *[None] * (len(function.input) - len(node.inputs))]
        scope = Scope(self.graph, opsets, node.name, values=dict(zip(function.input, given, strict=False)))
        scope.run(instantiate(function, node.proto))
        wanted = [name for name, output in zip(function.output, node.proto.output, strict=False) if output]
        if scope.lacks(wanted):
            return None
        return [scope.lookup(name) if name in wanted else None for name in function.output]

    def inline(
        self, graph: onnx.GraphProto, caller: str, arguments: Sequence[SSAValue] = ()
    ) -> list[SSAValue | None] | None:
        """
        The outputs of a subgraph, whose inputs are `arguments`, and which sees the names of this scope.

        `caller` names the node that its nodes belong to, if they have no locations of their own. `None` if something is
        not supported.
        """
        scope = Scope(self.graph, self.opsets, self.caller or caller, outer=self)
        scope.initializers = initializers_of(graph)
        scope.values.update(zip((value.name for value in graph.input), arguments, strict=True))
        scope.run(graph.node)
        self.graph.doubts.check_values(graph, scope.values)
        names = [value.name for value in graph.output]
        return None if scope.lacks(names) else [scope.lookup(name) for name in names]

    def _explained(self, proto: onnx.NodeProto, domain: str, name: str, error: Exception) -> Exception:
        """What is wrong with a node that made its importer fail; the failure itself where the node is right."""
        types = {operand: onnx_type(self.lookup(operand)) for operand in proto.input if operand}
        if reason := contradiction(proto, domain, self.opsets, types):
            hint = f"the standard says what {proto.op_type} takes: https://onnx.ai/onnx/operators"
            return ModelError(f"{proto.op_type}: {reason}", node=name, hint=hint)
        return error
