"""Branches and loops in pictures: what decides flows in, what is yielded flows out, nothing flows in circles."""

from __future__ import annotations

import re

import pytest
from control_flow_models import greedy_decoder
from random_regions import region_program

from glow_mlir.constants.storage import Storage
from glow_mlir.driver.compiler import Compilation
from glow_mlir.frontends.onnx.importer import import_model
from glow_mlir.ir.context import new_context
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.text import parse_module
from glow_mlir.pictures.dot import dot
from glow_mlir.pictures.graph import PASSIVE, Graph, graph_of
from glow_mlir.pictures.layout import layers_of
from glow_mlir.pictures.memory import memory_of
from glow_mlir.pictures.page import StepTime, graph_data, memory_data, step_times
from glow_mlir.transforms.devices.assign_target import AssignTargetPass


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
    AssignTargetPass(target="host,triple=x86_64-unknown-linux-gnu,cpu=skylake").apply(new_context(), module)
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


@pytest.mark.parametrize("stage", ["imported", "allocated"])
def test_branches_and_loops_lead_into_their_regions(stage: str) -> None:
    compilation = Compilation(parse_module(NESTED, new_context()))
    module = compilation.run(until=stage) if stage != "imported" else compilation.module
    graph = graph_of(functions(module), Storage(module))
    heads = {number for number, node in enumerate(graph.nodes) if node.kind in ("if", "loop")}
    entered = {graph.nodes[edge.target].frame for edge in graph.edges if edge.source in heads}
    inner = {number for number, frame in enumerate(graph.frames) if frame.around is not None}
    filled = {node.frame for node in graph.nodes if node.family not in PASSIVE} & inner
    assert len(filled) >= 3
    assert filled <= entered


def test_a_loop_stands_above_what_it_repeats() -> None:
    module = Compilation(import_model(greedy_decoder(3, 8, 4))).run(until="allocated")
    graph = graph_of(functions(module), Storage(module))
    layers = layers_of(graph)
    (loop,) = (number for number, node in enumerate(graph.nodes) if node.kind == "loop")
    body = [number for number, node in enumerate(graph.nodes) if len(graph.path(node.frame)) == 2]
    assert any(graph.nodes[number].kind == "arg_max" for number in body)
    (first,) = (edge.target for edge in graph.edges if edge.source == loop)
    assert first in body
    assert layers[loop] < min(layers[number] for number in body if graph.nodes[number].kind in ("gather", "arg_max"))


def test_steps_have_times_beside_a_loop() -> None:
    module = Compilation(parse_module(NESTED, new_context())).run(until="allocated")
    memory = memory_of(module)
    assert memory is not None
    outer = [step.kind for step in memory.steps if not step.depth]
    assert "loop" in outer
    assert max(step.depth for step in memory.steps) == 2
    times = [StepTime(kind, float(number), number / 2) for number, kind in enumerate(outer)]
    found = step_times(memory.steps, times)
    assert [pair for pair in found if pair[0] is not None] == [(time.microseconds, time.least) for time in times]
    assert all((pair[0] is None) == bool(step.depth) for step, pair in zip(memory.steps, found, strict=True))
    data = memory_data(memory, times)
    assert (data["time"], data["least"]) == (sum(range(len(outer))), sum(range(len(outer))) / 2)
    assert set(step_times(memory.steps, times[1:])) == {(None, None)}
    assert memory_data(memory, times[1:])["time"] is memory_data(memory, times[1:])["least"] is None


def test_what_decides_is_an_edge() -> None:
    graph = nested_graph()
    labels = {(graph.nodes[edge.source].name, graph.nodes[edge.target].kind): edge.label for edge in graph.edges}
    assert labels["flag", "if"] == "condition: i1"
    assert labels["n", "loop"] == "trip count: i64"


def test_page_names_functions_and_their_targets() -> None:
    data = graph_data(nested_graph())
    assert data["functions"] == ["@main (cpu, skylake)", "@second (cpu, skylake)"]
    assert any("in: @main (cpu, skylake) › loop body › if then" in node[6] for node in data["nodes"])
