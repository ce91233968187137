"""Kernels on views: operators read slices of larger tensors and write into larger ones, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from breadth import examples
from execute import assert_same, compile_module
from hypothesis import HealthCheck, given, settings
from random_graphs import Graph, GraphBuilder, graphs, step_concat, step_expand, step_pad, step_slice, step_transpose
from xdsl.dialects.builtin import ModuleOp, f32

from glow_mlir.constants.storage import constant_op
from glow_mlir.dialects.glow_high import data_movement as data
from glow_mlir.dialects.glow_high import indexing, normalization, pooling, recurrence, reductions, resize
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.linear import MatMulOp
from glow_mlir.dialects.glow_high.storage import FuncOp, SplatOp
from glow_mlir.dialects.glow_low.memory import CopyOp
from glow_mlir.dialects.shapes import Shape, element_of, rank_of, shape_of
from glow_mlir.driver.compiler import Compilation
from glow_mlir.interpreter.machine import run_function

SLOW: dict[str, Any] = {"suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
INDICES = np.array([[0, 2], [1, 0]], np.int64)
WINDOW: dict[str, Any] = {"kernel_shape": (3, 3), "strides": (1, 2), "pads": (1, 1, 1, 1)}

CASES: dict[str, tuple[type[HighOp], tuple[Shape | np.ndarray, ...], dict[str, Any]]] = {
    "add": (AddOp, ((2, 7, 9, 5), (9, 5)), {}),
    "matmul": (MatMulOp, ((2, 3, 7, 9), (2, 3, 9, 17)), {}),
    "matmul of transposed": (MatMulOp, ((7, 9), (17, 9)), {"transpose_right": True}),
    "attention": (AttentionOp, ((2, 3, 7, 9), (2, 3, 5, 9), (2, 1, 5, 17), (7, 5)), {}),
    "conv": (ConvOp, ((2, 7, 9, 8), (16, 3, 3, 8)), {}),
    "depthwise": (ConvOp, ((2, 7, 9, 8), (8, 3, 3, 1)), {"group": 8}),
    "max-pool": (pooling.MaxPoolOp, ((2, 7, 9, 5),), WINDOW),
    "avg-pool": (pooling.AvgPoolOp, ((2, 7, 9, 5),), WINDOW),
    "avg-pool in rows": (
        pooling.AvgPoolOp,
        ((2, 5, 7, 19),),
        {**WINDOW, "strides": (1, 1), "layout": "channels_first"},
    ),
    "softmax": (normalization.SoftmaxOp, ((3, 21),), {"axis": 1}),
    "softmax across": (normalization.LogSoftmaxOp, ((3, 4, 21),), {"axis": 1}),
    "layer-norm": (normalization.LayerNormalizationOp, ((3, 4, 21), (21,), (21,)), {"axis": 2}),
    "sum": (reductions.ReduceSumOp, ((3, 4, 21),), {"axes": (0, 2), "keepdims": False}),
    "max": (reductions.ReduceMaxOp, ((3, 4, 21),), {"axes": (1,), "keepdims": True}),
    "position": (reductions.ArgMaxOp, ((3, 21),), {"axis": 1, "keepdims": False}),
    "running": (reductions.CumSumOp, ((3, 21),), {"axis": 1}),
    "top-k": (reductions.TopKOp, ((3, 21),), {"axis": 1, "k": 4}),
    "gather": (indexing.GatherOp, ((3, 21), INDICES), {"axis": 0}),
    "gather-elements": (indexing.GatherElementsOp, ((3, 2), INDICES), {"axis": 0}),
    "gather-nd": (indexing.GatherNDOp, ((3, 4, 9), INDICES), {}),
    "scatter-elements": (indexing.ScatterElementsOp, ((3, 2), INDICES, (2, 2)), {"axis": 0}),
    "scatter-nd": (indexing.ScatterNDOp, ((3, 4, 9), INDICES, (2, 9)), {}),
    "resize": (resize.ResizeOp, ((1, 4, 6, 5),), {"shape": (1, 8, 12, 5), "mode": "linear"}),
    "recurrence": (recurrence.LstmRecurrenceOp, ((3, 2, 32), (8, 32), (2, 8), (2, 8)), {}),
    "tile": (data.TileOp, ((3, 5),), {"repeats": (2, 3)}),
    "reflect": (data.PadOp, ((3, 7),), {"pads": (1, 1, 1, 1), "mode": "reflect"}),
}


def strided(name: str, axis: int) -> Graph:
    """An operator on slices along an axis, counted from the back; its results are parts of concats along it."""
    operator, operands, properties = CASES[name]
    g = GraphBuilder(lambda strategy: None, np.random.default_rng(0))
    values: list[Any] = []
    for operand in operands:
        if isinstance(operand, np.ndarray):
            values.append(g.add(constant_op(g.storage, operand, "indices", g.location())))
            continue
        starts = [3 if at == len(operand) - axis else 0 for at in range(len(operand))]
        whole = [size + 5 if start else size for size, start in zip(operand, starts, strict=True)]
        value = g.read(g.placeholder(tuple(whole), "input"))
        ends = [start + size for start, size in zip(starts, operand, strict=True)]
        values.append(g(data.SliceOp, value, starts=starts, ends=ends))
    op = operator.make(*values, location=g.location(), **properties)
    g.function.block.add_op(op)
    for result in op.results:
        if element_of(result) == f32 and rank_of(result) >= axis:
            result = g(
                data.ConcatOp, [result, g(SplatOp, value=1.0, shape=shape_of(result))], axis=rank_of(result) - axis
            )
            g.save(result, g.placeholder(shape_of(result), "output"))
    g.function.properties.update(FuncOp.named("main", g.bindings).properties)
    g.storage.module.body.block.add_op(g.function)
    return Graph(g.storage.module, g.inputs)


def assert_same_as_machine_code(graph: Graph, tolerance: float = 1e-5) -> None:
    """Fail where machine code and interpreter disagree on a graph."""
    expected = run_function(graph.module.clone(), graph.inputs)
    assert_same(expected, compile_module(graph.module).run(graph.inputs), tolerance)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_operator_on_views(name: str, axis: int) -> None:
    assert_same_as_machine_code(strided(name, axis))


def copies(module: ModuleOp) -> int:
    """Copies on the stage `stacked`."""
    Compilation(module).run(until="stacked")
    return sum(isinstance(op, CopyOp) for op in module.walk())


@pytest.mark.parametrize("name", sorted(set(CASES) - {"conv", "depthwise", "recurrence"}))
def test_views_need_no_copies(name: str) -> None:
    """
    Kernels take rows with gaps between them.

    Filters of convolutions are dense; the last state of a recurrence goes to two outputs.
    """
    assert copies(strided(name, 2).module) == 0


@settings(max_examples=examples(25), deadline=None, **SLOW)
@given(graph=graphs((step_concat, step_slice, step_pad, step_transpose, step_expand)))
def test_movement_between_operators(graph: Graph) -> None:
    assert_same_as_machine_code(graph, 1e-4)
