"""Branches and loops, whose parts are other graphs of the file."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from glow_mlir.dialects.glow_high.control_flow import IfOp, YieldOp
from glow_mlir.dialects.glow_high.data_movement import ReshapeOp
from glow_mlir.dialects.glow_high.loop import Trips
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.errors import ModelError
from glow_mlir.frontends.builder.loops import Body
from glow_mlir.frontends.tflite.node import TfliteNode, tflite_operator
from glow_mlir.frontends.tflite.subgraphs import emit_subgraph


def _truth(node: TfliteNode, value: SSAValue) -> SSAValue:
    """A condition as a scalar."""
    if any(size != 1 for size in sizes_of(value)):
        raise ModelError(f"{node.kind}: a condition has the shape {sizes_of(value)}", node=node.name)
    return node.emit(ReshapeOp, value, shape=()) if sizes_of(value) else value


@tflite_operator("IF")
def branch(node: TfliteNode) -> Sequence[SSAValue]:
    """The results of one of two graphs, by a truth value."""
    operands = [node.input(position) for position in range(1, node.count)]
    condition, regions = _truth(node, node.input(0)), list[Region]()
    types = list[list[TensorType[Attribute]]]()
    for field in (0, 1):
        block = Block()
        with node.builder.inside(block):
            results = emit_subgraph(node, node.options.number(field, "i"), operands)
            block.add_op(YieldOp.of(results, node.location))
        types.append([tensor(sizes_of(value), element_of(value)) for value in results])
        regions.append(Region(block))
    if types[0] != types[1]:
        raise ModelError("IF: the branches have results of other types", node=node.name)
    return node.insert(IfOp.of(condition, types[0], regions, node.location)).results


@tflite_operator("WHILE")
def loop(node: TfliteNode) -> Sequence[SSAValue]:
    """Values that a graph changes as long as another graph says so."""
    condition, following = (node.options.number(field, "i") for field in (0, 1))
    initial = [node.input(position) for position in range(node.count)]
    body = Body(node, initial, ())
    first = _goes_on(node, condition, initial)
    with node.builder.inside(body.block):
        results = emit_subgraph(node, following, body.carried)
        if [(sizes_of(value), element_of(value)) for value in results] != [
            (sizes_of(value), element_of(value)) for value in initial
        ]:
            raise ModelError("WHILE: its graph changes the type of a value", node=node.name)
        goes_on = _goes_on(node, condition, results)
    return body.emit(Trips(None, first), results, (), condition=goes_on)


def _goes_on(node: TfliteNode, number: int, values: Sequence[SSAValue]) -> SSAValue:
    """The result of the graph of a condition."""
    results = emit_subgraph(node, number, values)
    if len(results) != 1:
        raise ModelError(f"WHILE: its condition has {len(results)} results", node=node.name)
    return _truth(node, results[0])
