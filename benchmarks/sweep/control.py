"""Templates of control flow, sequences and optional values, which take graphs of several nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from sweep.drawing import FLOATS, Draw, draws
from sweep.points import ELEMENTS, Composed, Operand, given

node = helper.make_node


def _value(name: str, dtype: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(ELEMENTS[dtype]))
    return helper.make_tensor_value_info(name, kind, shape)


@draws(FLOATS, "If")
def branches(draw: Draw, operator: str, dtype: str) -> Composed:
    shape = draw.shape(2, cost=2)
    ways: dict[str, Any] = {
        f"{way}_branch": helper.make_graph([node(kind, ["x"], [way])], way, [], [_value(way, dtype, shape)])
        for way, kind in (("then", "Exp"), ("else", "Neg"))
    }
    operands = {"c": Operand((), "bool", "", False, [draw.chance()]), "x": Operand(shape, dtype)}
    return Composed(operator, [node("If", ["c"], ["y"], **ways)], operands)


@draws(FLOATS, "Loop")
def loop(draw: Draw, operator: str, dtype: str) -> Composed:
    shape = draw.shape(2, cost=16)
    nodes = [node("Mul", ["s", "w"], ["t"]), node("Tanh", ["t"], ["r"]), node("Identity", ["c"], ["d"])]
    first = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        _value("s", dtype, shape),
    ]
    last = [helper.make_tensor_value_info("d", TensorProto.BOOL, []), _value("r", dtype, shape)]
    body = helper.make_graph(nodes, "body", first, last)
    operands = {
        "n": Operand((), "i64", "", True, [draw.size(3, 20)]),
        "x": Operand(shape, dtype),
        "w": Operand(shape, dtype),
    }
    return Composed(operator, [node("Loop", ["n", "", "x"], ["y"], body=body)], operands)


@draws(FLOATS, "Scan")
def scan(draw: Draw, operator: str, dtype: str) -> Composed:
    steps, width = draw.size(5, 50), draw.size(17, 600)
    nodes = [node("Add", ["s", "e"], ["a"]), node("Tanh", ["a"], ["r"]), node("Identity", ["r"], ["o"])]
    row = [width]
    body = helper.make_graph(
        nodes,
        "body",
        [_value("s", dtype, row), _value("e", dtype, row)],
        [_value("r", dtype, row), _value("o", dtype, row)],
    )
    operands = {"x": Operand(row, dtype), "rows": Operand((steps, width), dtype)}
    return Composed(
        operator, [node("Scan", ["x", "rows"], ["z", "y"], body=body, num_scan_inputs=1)], operands, ("z", "y")
    )


SEQUENCES = (
    *("SequenceConstruct", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength", "SequenceEmpty"),
    *("ConcatFromSequence", "SplitToSequence"),
)


@draws(("f32", "i64", "f64"), *SEQUENCES)
def sequences(draw: Draw, operator: str, dtype: str) -> Composed:
    """A sequence is made of tensors, or of a tensor's parts, changed by the operator, and read."""
    shape = draw.shape(draw.size(2, 3))
    operands = {name: Operand(shape, dtype) for name in ("a", "b", "c")}
    operands |= {"p": given(1)}
    made = node("SequenceConstruct", ["a", "b", "c"], ["s"])
    joined = node("ConcatFromSequence", ["t"], ["y"], axis=0)
    match operator:
        case "SequenceAt":
            nodes = [made, node("SequenceAt", ["s", "p"], ["y"])]
        case "SequenceInsert":
            nodes = [made, node("SequenceInsert", ["s", "a", "p"], ["t"]), joined]
        case "SequenceErase":
            nodes = [made, node("SequenceErase", ["s", "p"], ["t"]), joined]
        case "SequenceLength":
            nodes = [made, node("SequenceLength", ["s"], ["y"])]
        case "SequenceEmpty":
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(ELEMENTS[dtype]))
            nodes = [
                *(node("SequenceEmpty", [], ["e"], dtype=kind), node("SequenceInsert", ["e", "a"], ["u"])),
                *(node("SequenceInsert", ["u", "b"], ["t"]), joined),
            ]
        case "SplitToSequence":
            operands["p"] = given(max(1, shape[0] // 3))
            nodes = [
                *(node("SplitToSequence", ["a", "p"], ["s"], axis=0), node("SequenceAt", ["s", "q"], ["y"])),
            ]
            operands["q"] = given(0)
        case _:
            nodes = [node("SequenceConstruct", ["a", "b", "c"], ["t"]), joined]
    used = {name for item in nodes for name in item.input}
    return Composed(operator, nodes, {name: operand for name, operand in operands.items() if name in used})


@draws(("f32", "i64", "f64"), "Optional", "OptionalGetElement", "OptionalHasElement")
def optionals(draw: Draw, operator: str, dtype: str) -> Composed:
    read = "OptionalHasElement" if operator == "OptionalHasElement" else "OptionalGetElement"
    nodes = [node("Optional", ["x"], ["o"]), node(read, ["o"], ["y"])]
    return Composed(operator, nodes, {"x": Operand(draw.shape(2), dtype)})
