"""Graphs of a file emitted into the block that is being built: one operator after the other, with given operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from xdsl.ir import SSAValue

from glow_mlir.dialects.element_types import ELEMENT_TYPES
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.tflite.file import CUSTOM, Operator, Tensor
from glow_mlir.frontends.tflite.node import IMPORTERS, GraphValues, Importer, TfliteNode
from glow_mlir.frontends.tflite.sizes import followed, grown_axes
from glow_mlir.support.symbols import NUMBERS_INSTEAD, Sizes

HINTS: Mapping[str, str] = {
    f"{CUSTOM}ethos-u": "the file is compiled for an Ethos-U: give the file that Vela took",
    **dict.fromkeys(
        ("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "HASHTABLE_LOOKUP"),
        "look up in front of the model, and give it the numbers",
    ),
}
"""Operators that are not supported → what to do instead."""

STRINGS_HINT = "strings are not supported: make numbers of them in front of the model"
"""What to do for operators of strings."""

PACKAGE_HINT = "an operator package may have it: docs/add-an-operator.md"
"""What to do for other custom operators."""

STATEFUL = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")
"""Operators that the graphs of branches and loops do not have."""


def import_operator(values: GraphValues, operator: Operator) -> None:
    """
    Emit one operator of a graph, unless an operator in front of it is not supported.

    Raises `UnsupportedError` if it is not supported itself, and `ModelError` if a result has another shape than in the
    file.
    """
    importer = IMPORTERS.first(operator.kind)
    if importer is None:
        hint = HINTS.get(operator.kind, PACKAGE_HINT if operator.kind.startswith(CUSTOM) else "")
        raise UnsupportedError(f"operator {operator.kind} is not supported", node=operator.name, hint=hint)
    named = [values.file_tensors[number] for number in (*operator.inputs, *operator.outputs) if number >= 0]
    if strings := [item.name for item in named if item.dtype == "string"]:
        reason = f"{operator.kind}: '{strings[0]}' has strings"
        raise UnsupportedError(reason, node=operator.name, hint=STRINGS_HINT)
    if others := [item for item in named if item.dtype.startswith("complex")]:
        reason = f"{operator.kind}: '{others[0].name}' of {others[0].dtype} is not supported"
        raise UnsupportedError(reason, node=operator.name)
    if any(number >= 0 and not values.is_known(number) for number in operator.inputs):
        return  # An operator in front of it is not supported, and named.
    if values.is_resized:
        _resize_results(values, operator)
    found = _imported(values, importer, operator)
    results = [] if found is None else [found] if isinstance(found, SSAValue) else found
    for number, result in zip(operator.outputs, results, strict=False):
        _check(values, operator, values.file_tensors[number], sizes_of(result))
        _check_element(operator, values.file_tensors[number], result)
        values.set(number, result)


def _imported(values: GraphValues, importer: Importer, operator: Operator) -> SSAValue | Sequence[SSAValue] | None:
    """What an importer returns; raises `UnsupportedError` if it computes with sizes that have bounds only."""
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # Of damaged scales, which are refused.
            return importer(TfliteNode(values, operator))
    except (TypeError, AttributeError) as error:
        if not values.builder.has_bounds:
            raise
        reason = f"{operator.kind} does not support sizes known only at run time"
        raise UnsupportedError(reason, node=operator.name, hint=NUMBERS_INSTEAD) from error


def _resize_results(values: GraphValues, operator: Operator) -> None:
    """Give results the shapes that follow from the first operand that grows as they do."""
    tensors, file = values.tensors, values.file_tensors
    known = (number for number in operator.inputs if number in values.values)
    grown = next((number for number in known if grown_axes(file[number].shape, tensors[number].shape)), None)
    if grown is None:
        return
    for number in operator.outputs:
        shape = followed(file[number], file[grown], tensors[grown].shape)
        tensors[number] = replace(tensors[number], shape=shape)


def _check(values: GraphValues, operator: Operator, item: Tensor, shape: Sizes) -> None:
    """Raise `ModelError` unless the shape of a result is that of the file, but for free axes."""
    is_free = values.is_resized and len(shape) == len(item.shape)
    if shape != item.shape and not is_free:
        reason = f"a result has the shape {list(shape)}, not {list(item.shape)}"
        raise ModelError(f"{operator.kind}: {reason}", node=operator.name)


def _check_element(operator: Operator, item: Tensor, value: SSAValue) -> None:
    """Raise `ModelError` unless the elements of a value are those of its tensor in the file."""
    wanted, found = ELEMENT_TYPES.get(item.dtype), element_of(value)
    if wanted is not None and found != wanted:
        raise ModelError(f"{operator.kind}: '{item.name}' is of {item.dtype}, not of {found}", node=operator.name)


def _give(inner: GraphValues, node: TfliteNode, inputs: Sequence[int], operands: Sequence[SSAValue]) -> None:
    """Give the inputs of a graph their values; raises `ModelError` unless their types are those of the file."""
    taken = [inner.file_tensors[number] for number in inputs]
    shapes, sizes = [item.shape for item in taken], [sizes_of(value) for value in operands]
    inner.is_resized = shapes != sizes
    may_differ = node.graph.is_resized and [*map(len, shapes)] == [*map(len, sizes)]
    if inner.is_resized and not may_differ:
        reason = f"graph {inner.calls[-1]} takes the shapes {shapes}, not {sizes}"
        raise ModelError(f"{node.kind}: {reason}", node=node.name)
    for number, value in zip(inputs, operands, strict=True):
        _check_element(node.operator, inner.file_tensors[number], value)
        inner.set(number, value)


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
    inner = GraphValues(node.builder, graph.tensors, around.variables, calls=(*around.calls, number))
    _give(inner, node, graph.inputs, operands)
    for operator in graph.operators:
        with node.builder.node_errors(operator.kind, operator.name):
            import_operator(inner, operator)
    missing = [graph.tensors[item].name for item in graph.outputs if not inner.is_known(item)]
    if missing:
        raise node.unsupported(f"graph {number} does not compute '{missing[0]}'")
    return [inner.value(item, node) for item in graph.outputs]
