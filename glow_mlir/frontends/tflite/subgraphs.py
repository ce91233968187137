"""Graphs of a file emitted into the block that is being built: one operator after the other, with given operands."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from glow_mlir.dialects.shapes import sizes_of
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.tflite.file import Operator
from glow_mlir.frontends.tflite.node import IMPORTERS, GraphValues, TfliteNode

STATEFUL = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")
"""Operators that the graphs of branches and loops do not have."""


def import_operator(values: GraphValues, operator: Operator) -> None:
    """
    Emit one operator of a graph, unless an operator in front of it is not supported.

    Raises `UnsupportedError` if it is not supported itself, and `ModelError` if a result has another shape than in the
    file.
    """
    importer = IMPORTERS.get(operator.kind)
    if importer is None:
        raise UnsupportedError(f"operator {operator.kind} is not supported", node=operator.name)
    if any(number >= 0 and not values.is_known(number) for number in operator.inputs):
        return  # An operator in front of it is not supported, and named.
    found = importer(TfliteNode(values, operator))
    results = [] if found is None else [found] if isinstance(found, SSAValue) else found
    for number, result in zip(operator.outputs, results, strict=False):
        if sizes_of(result) != values.tensors[number].shape:
            reason = f"a result has the shape {sizes_of(result)}, not {values.tensors[number].shape}"
            raise ModelError(f"{operator.kind}: {reason}", node=operator.name)
        values.values[number] = result


def emit_subgraph(node: TfliteNode, number: int, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """
    Emit the operators of a graph of the file, with these operands as its inputs; returns its outputs.

    Raises `UnsupportedError` for graphs with state, and `ModelError` where operands do not fit.
    """
    subgraphs, around = node.graph.variables.file.subgraphs, node.graph
    if not 0 <= number < len(subgraphs):
        raise ModelError(f"{node.kind}: calls graph {number} of {len(subgraphs)}", node=node.name)
    if number in around.calls:
        raise ModelError(f"{node.kind}: graph {number} calls itself", node=node.name)
    graph = subgraphs[number]
    if any(item.kind in STATEFUL for item in graph.operators) or any(item.is_variable for item in graph.tensors):
        raise node.unsupported("of graphs with variables is not supported")
    shapes = [graph.tensors[item].shape for item in graph.inputs]
    if shapes != [sizes_of(value) for value in operands]:
        given = [sizes_of(value) for value in operands]
        raise ModelError(f"{node.kind}: graph {number} takes the shapes {shapes}, not {given}", node=node.name)
    inner = GraphValues(node.builder, graph.tensors, around.variables, calls=(*around.calls, number))
    inner.values.update(zip(graph.inputs, operands, strict=True))
    for operator in graph.operators:
        with node.builder.node_errors(operator.kind, operator.name):
            import_operator(inner, operator)
    missing = [graph.tensors[item].name for item in graph.outputs if not inner.is_known(item)]
    if missing:
        raise node.unsupported(f"graph {number} does not compute '{missing[0]}'")
    return [inner.value(item, node) for item in graph.outputs]
