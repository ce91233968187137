"""Branches and loops in pictures: what decides flows in, what is yielded flows out, nothing flows in circles."""

from __future__ import annotations

import pytest
from random_regions import region_program

from glow_mlir.constants.storage import Storage
from glow_mlir.driver.compiler import Compilation
from glow_mlir.ir.rewriting import functions
from glow_mlir.pictures.graph import graph_of
from glow_mlir.pictures.layout import layers_of
from glow_mlir.pictures.memory import memory_of


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
