"""Chains of convolutions by blocks of lines: schedules, meaning, and the bits of machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import compile_module
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Graph, GraphBuilder
from validation import validate
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.analysis.line_blocks import Block, LineBuffer, LineStage, Schedule
from glow_mlir.backends.interface import get_backend
from glow_mlir.dialects.glow_high.activations import ReluOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.storage import FuncOp
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.loop import LoopOp
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import OutOfMemoryError
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.rewriting import low_functions
from glow_mlir.transforms.memory.allocate import bound_bytes

SLOW: dict[str, Any] = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large], "deadline": None}


AROUND = (
    *("eliminate-copies", "stack", "fuse-epilogues", "fuse-prologues", "share-buffers", "eliminate-dead-stores"),
    *("shorten-lifetimes", "select", "canonicalize", "cse", "tile-lines", "remove-unused-storage"),
)


def staged(graph: Graph, cache: int, ram: int = 0, **options: Any) -> ModuleOp:
    """The graph as instructions, cut into blocks for a cache of that size, or a limit of memory; 0 for not at all."""
    pipeline = get_backend("cpu").pipeline().with_options("assign-target", l2_bytes=cache, ram_bytes=ram)
    return Compilation(graph.module.clone(), pipeline=pipeline, **options).run(until="stacked")


def finished(g: GraphBuilder) -> Graph:
    """The graph of a builder that has all its operators."""
    g.function.properties.update(FuncOp.named("main", g.bindings).properties)
    g.storage.module.body.block.add_op(g.function)
    return Graph(g.storage.module, g.inputs)


def convolution(g: GraphBuilder, x: SSAValue, kind: str, size: int, stride: int, dilation: int, pads: Any) -> SSAValue:
    """A convolution: depthwise or not, of so many elements each way."""
    channels = shape_of(x)[3]
    filters = channels if kind == "depthwise" else g.draw(st.integers(1, 9))
    shape = (filters, size, size, 1 if kind == "depthwise" else channels)
    properties = {"strides": (stride, stride), "dilations": (dilation, dilation), "pads": pads}
    group = channels if kind == "depthwise" else 1
    return g(ConvOp, x, g.constant(shape), g.constant((filters,)), group=group, **properties)


@st.composite
def chains(draw: Any) -> Graph:
    """Two to four convolutions one after the other, with activations and residuals between them."""
    g = GraphBuilder(draw, np.random.default_rng(draw(st.integers(0, 99))))
    batch, height, width, channels = (draw(st.integers(1, most)) for most in (2, 40, 6, 9))
    value = g.read(g.placeholder((batch, height, width, channels), "input"))
    for _ in range(draw(st.integers(2, 4))):
        kind = draw(st.sampled_from(["pointwise", "depthwise", "full"]))
        size = 1 if kind == "pointwise" else draw(st.integers(2, 4))
        stride, dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (2, 2)]))
        pads = tuple(draw(st.lists(st.integers(0, size - 1), min_size=4, max_size=4)))
        reach = (size - 1) * dilation + 1
        if any(s + pads[i] + pads[i + 2] < reach for i, s in enumerate(shape_of(value)[1:3])):
            continue
        value = convolution(g, value, kind, size, stride, dilation, pads)
        if draw(st.booleans()):
            value = g(ReluOp, value)
        if draw(st.integers(0, 3)) == 0:
            value = g(AddOp, value, g.read(g.placeholder(shape_of(value), "input")))
    g.save(value, g.placeholder(shape_of(value), "output"))
    return finished(g)


@settings(max_examples=examples(60), **SLOW)
@given(graph=chains())
def test_chains_mean_the_same(graph: Graph) -> None:
    """Whatever the cache holds: one line a block, or nearly all."""
    expected = run_function(staged(graph, 0), graph.inputs)
    for cache in (300, 1000, 4000):
        found = run_function(staged(graph, cache), graph.inputs)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
    limited = run_function(staged(graph, 0, ram=1), graph.inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(limited[name], array)


@settings(max_examples=examples(30), **SLOW)
@given(graph=chains(), cache=st.sampled_from([400, 1500, 6000]))
def test_chains_as_machine_code(graph: Graph, cache: int) -> None:
    """The meaning, and the bits of the instructions on whole images."""
    meant = run_function(graph.module.clone(), graph.inputs)
    expected = compile_module(staged(graph, 0)).run(graph.inputs)
    found = compile_module(staged(graph, cache)).run(graph.inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        limit = 1e-4 * max(1.0, float(np.abs(meant[name]).max()))
        np.testing.assert_allclose(array, meant[name], rtol=1e-4, atol=limit)


@settings(max_examples=examples(15), **SLOW)
@given(graph=chains(), names=st.lists(st.sampled_from(AROUND), min_size=1, max_size=4))
def test_passes_meet_loops(graph: Graph, names: list[str]) -> None:
    """Passes on instructions leave loops right, whatever runs around them."""
    instructions = "decompose-data-movement,eliminate-copies,stack,fuse-epilogues,tile-lines"
    module = Compilation(graph.module.clone(), target="host,l2_bytes=1000").run(until="instructions")
    validate(module, ",".join((instructions, *names, "verify-low")), graph.inputs)


def bottleneck(batch: int, stride: int) -> Graph:
    """Expansion, depthwise filter, projection and, where the size stays, a residual, as MobileNetV2 has them."""
    g = GraphBuilder(lambda strategy: None, np.random.default_rng(0))
    x = g.read(g.placeholder((batch, 60, 6, 24), "input"))
    wide = g(ReluOp, g(ConvOp, x, g.constant((144, 1, 1, 24)), g.constant((144,))))
    pads = {"strides": (stride, stride), "pads": (1, 1, 1, 1)}
    deep = g(ReluOp, g(ConvOp, wide, g.constant((144, 3, 3, 1)), g.constant((144,)), group=144, **pads))
    y = g(ConvOp, deep, g.constant((24, 1, 1, 144)), g.constant((24,)))
    y = g(AddOp, x, y) if stride == 1 else y
    g.save(y, g.placeholder(shape_of(y), "output"))
    return finished(g)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("batch", [1, 3])
def test_blocks_give_the_same_bits(batch: int, stride: int) -> None:
    """All three instructions are in one loop, and machine code rounds as it does without."""
    graph = bottleneck(batch, stride)
    tiled = staged(graph, 80_000 if stride == 1 else 50_000)
    loops = [op for op in tiled.walk() if isinstance(op, LoopOp)]
    inner = [op for op in loops[-1].block.ops if isinstance(op, DerivedInstruction)]
    assert (len(loops), len(inner)) == (1 + (batch > 1), 3)
    expected = compile_module(staged(graph, 0)).run(graph.inputs)
    found = compile_module(tiled).run(graph.inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_limits_of_memory_decide_what_is_cut() -> None:
    """
    A limit that the network is within changes nothing; one far below is met with the same bits, and the blocks are as
    large as it lets them be; one that no cuts meet is refused with the layer at which most lives.
    """
    graph = bottleneck(1, 1)

    def compiled(ram: int) -> ModuleOp:
        pipeline = get_backend("cpu").pipeline("avx2").with_options("assign-target", l2_bytes=0, ram_bytes=ram)
        return Compilation(graph.module.clone(), pipeline=pipeline).run(until="allocated")

    def arena(module: ModuleOp) -> int:
        return low_functions(module)[0].activations.value.data  # pyright: ignore

    plain = compiled(0)
    bound = bound_bytes(low_functions(plain)[0])
    assert arena(compiled(bound + arena(plain))) == arena(plain)
    sizes: list[int] = []
    for part in (2, 4, 8):
        limited = compiled(bound + arena(plain) // part)
        sizes.append(arena(limited))
        assert sizes[-1] <= arena(plain) // part
        for name, array in run_function(plain, graph.inputs).items():
            np.testing.assert_array_equal(run_function(limited, graph.inputs)[name], array)
    assert sizes[0] > sizes[1] > sizes[2]
    with pytest.raises(OutOfMemoryError, match=r"@main takes .* more than its limit of"):
        compiled(bound + 64)


def lowest(width: int, filters: int) -> Graph:
    """Three convolutions of one element of few filters over narrow images."""
    g = GraphBuilder(lambda strategy: None, np.random.default_rng(0))
    value = g.read(g.placeholder((1, 120, width, 96), "input"))
    for channels, count in [(96, filters), (filters, 96), (96, filters)]:
        value = g(ConvOp, value, g.constant((count, 1, 1, channels)), g.constant((count,)))
    g.save(value, g.placeholder(shape_of(value), "output"))
    return finished(g)


@pytest.mark.parametrize("filters", [5, 16, 24])
@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_narrow_lines_give_the_same_bits(width: int, filters: int) -> None:
    """Products of few rows and columns split their sums: by the rows of the image, not by those of a block of lines."""
    graph = lowest(width, filters)
    tiled = staged(graph, 600 * width)
    assert any(isinstance(op, LoopOp) for op in tiled.walk())
    expected = compile_module(staged(graph, 0)).run(graph.inputs)
    found = compile_module(tiled).run(graph.inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


def test_images_have_the_lines_that_are_computed() -> None:
    tiled = staged(bottleneck(1, 1), 80_000)
    op = next(op for op in tiled.walk() if isinstance(op, DerivedInstruction) and op.image_lines is not None)
    op.image_lines = IntegerAttr(shape_of(op.outputs()[0])[1] - 1, i64)
    with pytest.raises(VerifyException, match="are not some lines of images of"):
        tiled.verify()


def test_accuracy_decides_what_works_by_lines() -> None:
    """Winograd's algorithm, which is not strict, needs whole images; plain sums do not."""
    g = GraphBuilder(lambda strategy: None, np.random.default_rng(0))
    x = g.read(g.placeholder((1, 100, 18, 16), "input"))
    wide = g(ConvOp, x, g.constant((64, 1, 1, 16)), g.constant((64,)))
    y = g(ConvOp, wide, g.constant((32, 3, 3, 64)), g.constant((32,)))
    g.save(y, g.placeholder(shape_of(y), "output"))
    graph = finished(g)

    def loops(accuracy: str) -> int:
        module = staged(graph, 60_000, fields={"accuracy": accuracy})
        return sum(isinstance(op, LoopOp) for op in module.walk())

    assert loops("default") == 0
    assert loops("strict") > 0


@st.composite
def schedules(draw: Any) -> Schedule:
    """Two to four stages, cut into blocks of any size."""
    lines = draw(st.integers(1, 50))
    stages, buffers = [LineStage(1, 1, lines)], list[LineBuffer]()
    for _ in range(draw(st.integers(1, 3))):
        extent, stride, top, bottom = (draw(st.integers(low, 4)) for low in (1, 1, 0, 0))
        extent = min(extent, lines + top + bottom)
        lines = (lines + top + bottom - extent) // stride + 1
        stages.append(LineStage(extent, stride, lines))
        buffers.append(LineBuffer(top, 1))
    return Schedule(stages, buffers, draw(st.integers(1, lines)))


@dataclass
class Simulation:
    """What each buffer holds while a schedule runs: row → line of the image, border included."""

    schedule: Schedule
    made: list[int]
    held: list[dict[int, int]]

    def run(self, block: Block, is_last: bool) -> None:
        """Make the lines of a block, and keep what the next one needs."""
        for i, (first, last) in enumerate(block.ranges):
            assert first == self.made[i]
            self.made[i] = last
            if i and first < last:
                self.read(block, i - 1, is_last)
            if i < len(self.held):
                self.write(block, i)
        for i, rows in enumerate(self.held):
            first, last = block.ranges[i + 1]
            used = (last - first) * self.schedule.stages[i + 1].stride
            self.held[i] = {row: rows[used + row] for row in range(self.schedule.kept[i]) if used + row in rows}

    def read(self, block: Block, i: int, is_last: bool) -> None:
        """See that the lines that the next stage needs are there, in order, but for the border below."""
        end = self.schedule.stages[i].lines + self.schedule.buffers[i].top
        for row in range(self.schedule.needed(block, i)):
            line = self.schedule.start(block, i) + row
            assert self.held[i].get(row) == line or (is_last and line >= end)

    def write(self, block: Block, i: int) -> None:
        """Put new lines into a buffer."""
        first, last = block.ranges[i]
        for row, line in enumerate(range(first, last), self.schedule.place(block, i)):
            assert 0 <= row < self.schedule.heights()[i]
            self.held[i][row] = line + self.schedule.buffers[i].top


@settings(max_examples=examples(300), **SLOW)
@given(schedule=schedules())
def test_schedules_make_each_line_once_and_in_time(schedule: Schedule) -> None:
    if not schedule.is_possible:
        return
    held = [{row: row for row in range(buffer.top)} for buffer in schedule.buffers]
    simulation = Simulation(schedule, [0] * len(schedule.stages), held)
    inner = [moved(schedule.inner(), schedule, trip) for trip in range(schedule.blocks - 1)]
    tail = schedule.tail()
    for block in [schedule.head(), *inner]:
        simulation.run(block, is_last=False)
    if tail is not None:
        simulation.run(tail, is_last=True)
    assert simulation.made[-1] == schedule.stages[-1].lines


def moved(block: Block, schedule: Schedule, trips: int) -> Block:
    """A block of the loop, so many trips later."""
    whole = zip(block.ranges, schedule.steps, strict=True)
    return Block(tuple((first + step * trips, last + step * trips) for (first, last), step in whole))
