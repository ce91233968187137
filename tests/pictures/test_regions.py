"""Branches and loops in pictures: what decides flows in, what is yielded flows out, nothing flows in circles."""

from __future__ import annotations

import re

import pytest
from random_regions import region_program

from glow_mlir.constants.storage import Storage
from glow_mlir.driver.compiler import Compilation
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import parse_module
from glow_mlir.pictures.dot import dot
from glow_mlir.pictures.graph import Graph, graph_of
from glow_mlir.pictures.layout import layers_of
from glow_mlir.pictures.memory import memory_of
from glow_mlir.pictures.page import graph_data
from glow_mlir.transforms.assign_target import AssignTargetPass


@pytest.mark.parametrize("stage", ["imported", "allocated"])
def test_every_region_is_in_the_picture(stage: str) -> None:
    compilation = Compilation(region_program(3))
    module = compilation.run(until=stage) if stage != "imported" else compilation.module
    graph = graph_of(functions(module), Storage(module))
    assert {"if", "loop"} & {node.kind for node in graph.nodes}
    assert all(edge.source < edge.target or stage == "allocated" for edge in graph.edges)
    layers = layers_of(graph)
    assert all(layers[edge.source] < layers[edge.target] for edge in graph.edges)


def test_results_flow_from_what_is_yielded() -> None:
    module = region_program(3)
    graph = graph_of(functions(module), Storage(module))
    outputs = [number for number, node in enumerate(graph.nodes) if node.kind == "output"]
    assert outputs
    assert all(any(edge.target == number for edge in graph.edges) for number in outputs)


def test_memory_of_regions_is_in_the_arena() -> None:
    memory = memory_of(Compilation(region_program(3)).run(until="allocated"))
    assert memory is not None
    assert memory.buffers
    assert all(buffer.offset + buffer.size <= memory.size for buffer in memory.buffers)


NESTED = """
glow_high.placeholder @x : tensor<4xf32> {input}
glow_high.placeholder @flag : tensor<i1> {input}
glow_high.placeholder @n : tensor<i64> {input}
glow_high.placeholder @y : tensor<4xf32> {output}
glow_high.func @main(@x, @flag, @n, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %flag = glow_high.get @flag : tensor<i1>
  %n = glow_high.get @n : tensor<i64>
  %0 = glow_high.loop %i = %n (%c = %x) {
    %1 = glow_high.if %flag {
      %2 = glow_high.sqrt %c : tensor<4xf32>
      glow_high.yield %2
    } else {
      %2 = glow_high.sin %c : tensor<4xf32>
      glow_high.yield %2
    } : tensor<4xf32>
    glow_high.yield %1
  } : tensor<4xf32>
  glow_high.save %0, @y
}
glow_high.func @second(@x, @y) {
  %x = glow_high.get @x : tensor<4xf32>
  %0 = glow_high.loop %i = 3 (%c = %x) {
    %1 = glow_high.cos %c : tensor<4xf32>
    glow_high.yield %1
  } : tensor<4xf32>
  glow_high.save %0, @y
}
"""


def nested_graph() -> Graph:
    module = parse_module(NESTED, new_context())
    AssignTargetPass(backend="cpu", triple="x86_64-unknown-linux-gnu", cpu="skylake").apply(new_context(), module)
    return graph_of(functions(module), Storage(module))


def test_regions_and_functions_are_frames() -> None:
    graph = nested_graph()
    frames = {node.kind: graph.path(node.frame) for node in graph.nodes}
    main, second = "@main (cpu, skylake)", "@second (cpu, skylake)"
    assert frames["sqrt"] == [main, "loop body", "if then"]
    assert frames["sin"] == [main, "loop body", "if else"]
    assert frames["if"] == [main, "loop body"]
    assert frames["cos"] == [second, "loop body, 3 trips"]
    text = dot(graph, "nested")
    assert re.search(
        r'label="@main \(cpu, skylake\)".*label="loop body".*label="if then".*sqrt.*\}.*label="if else".*sin.*\}',
        text,
        re.S,
    )
    assert text.count("subgraph") == len(graph.frames)


def test_what_decides_is_an_edge() -> None:
    graph = nested_graph()
    labels = {(graph.nodes[edge.source].name, graph.nodes[edge.target].kind): edge.label for edge in graph.edges}
    assert labels["flag", "if"] == "condition: i1"
    assert labels["n", "loop"] == "trip count: i64"


def test_page_names_functions_and_their_targets() -> None:
    data = graph_data(nested_graph())
    assert data["functions"] == ["@main (cpu, skylake)", "@second (cpu, skylake)"]
    assert any("in: @main (cpu, skylake) › loop body › if then" in node[6] for node in data["nodes"])
