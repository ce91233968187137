"""Instructions cut into parts give the same results, bit for bit, for any number of threads and order of parts."""

from __future__ import annotations

from typing import Any

import cut
import numpy as np
import pytest
from breadth import examples, share
from cut import check_parts
from execute import Case, Program, module_of, runnable_targets, sample
from hypothesis import HealthCheck, given, settings
from random_graphs import Graph, graphs
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from glow_mlir.codegen.builder.partition import Partition
from glow_mlir.codegen.kernels.elements import elementwise
from glow_mlir.dialects.glow_high import (
    activations,
    convolution,
    data_movement,
    elementwise_math,
    linear,
    normalization,
    pooling,
    recurrence,
    reductions,
    resize,
)
from glow_mlir.dialects.glow_high.attention import AttentionOp
from glow_mlir.dialects.target import Target
from glow_mlir.ir.context import new_context

SLOW: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


def check(case: Case, target: str = "host") -> None:
    """Check one operator, which has to be cut."""
    module, inputs = module_of(case)
    assert check_parts(module, inputs, target=target) > 0


SCALED = """
glow_high.placeholder @x : tensor<{batch}x{height}x7x40xf32> {{input}}
glow_high.placeholder @s : tensor<{batch}x1x1x40xf32> {{input}}
glow_high.placeholder @f : tensor<50x1x1x40xf32> {{input}}
glow_high.placeholder @y : tensor<{batch}x{height}x7x50xf32> {{output}}
glow_low.func @main(@x, @s, @f, @y) {{
  %x = glow_low.weight @x : memref<{batch}x{height}x7x40xf32>
  %s = glow_low.weight @s : memref<{batch}x1x1x40xf32>
  %f = glow_low.weight @f : memref<50x1x1x40xf32>
  %y = glow_low.weight @y {{mutable}} : memref<{batch}x{height}x7x50xf32>
  glow_low.conv @out %y, @in %x, @in %f prologue(@in %s) [affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>] {{
  ^bb0(%e: f32, %factor: f32):
    %0 = arith.mulf %e, %factor : f32
    glow_low.yield %0 : f32
  }}
}}
"""


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("height", [7, 28, 29, 42])
@pytest.mark.parametrize("target", runnable_targets())
def test_prologues(target: str, height: int, batch: int) -> None:
    """A block that is an image, which threads share, and blocks that they have for themselves."""
    text = SCALED.format(batch=batch, height=height)
    module = Parser(new_context(), f'builtin.module attributes {{glow.stage = "stacked"}} {{{text}}}').parse_module()
    shapes = {"x": (batch, height, 7, 40), "s": (batch, 1, 1, 40), "f": (50, 1, 1, 40)}
    assert check_parts(module, {name: sample(shape) for name, shape in shapes.items()}, target=target) > 0


@pytest.mark.parametrize("shape", [(70,), (1000,), (3, 70), (5, 6, 7), (40, 1, 3)])
@pytest.mark.parametrize("target", runnable_targets())
def test_elementwise(target: str, shape: tuple[int, ...]):
    check(Case(elementwise_math.ExpOp, sample(shape)), target)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [70, 1003])
def test_streamed(monkeypatch: pytest.MonkeyPatch, dtype: str, size: int):
    """Parts whose stores pass the caches begin and end anywhere between aligned places."""

    def always(target: Target, result_bytes: int) -> bool:
        return True

    monkeypatch.setattr(elementwise, "is_streamed", always)
    check(Case(elementwise_math.ExpOp, sample((size,), dtype)))
    check(Case(activations.ReluOp, sample((size,), dtype)))


@pytest.mark.parametrize("number", range(7))
def test_doubles(number: int):
    """Kernels that compute in f64."""
    cases = [
        Case(elementwise_math.ExpOp, sample((5, 6, 7), "f8")),
        Case(linear.MatMulOp, sample((64, 20), "f8"), sample((20, 9), "f8", seed=1)),
        Case(linear.MatMulOp, sample((5, 20), "f8"), sample((20, 300), "f8", seed=1), constants=(1,)),
        Case(
            convolution.ConvOp,
            *(sample((1, 16, 17, 5), "f8"), sample((9, 3, 3, 5), "f8", seed=1), sample((9,), "f8", seed=2)),
            constants=(1, 2),
            layout="channels_last",
        ),
        Case(normalization.SoftmaxOp, sample((9, 5, 40), "f8"), axis=-1),
        Case(reductions.ReduceSumOp, sample((30, 50), "f8"), axes=(1,)),
        Case(AttentionOp, *(sample((2, 5, 40, 16), "f8") for _ in range(3)), scale=0.25),
    ]
    check(cases[number])


def test_bits_are_compared(monkeypatch: pytest.MonkeyPatch):
    """The check itself can fail: where only the sign of a zero differs."""
    program = cut.compile_module

    def negated(module: ModuleOp, target: str, threads: int = 1, **options: bool) -> Program:
        found = program(module, target, threads, **options)
        if threads == 1:
            return found
        run = found.run

        def flipped(*given: Any) -> dict[str, np.ndarray]:
            return {name: -array for name, array in run(*given).items()}

        object.__setattr__(found, "run", flipped)
        return found

    monkeypatch.setattr(cut, "compile_module", negated)
    module, inputs = module_of(Case(activations.ReluOp, np.zeros(1000, np.float32)))
    with pytest.raises(AssertionError, match="1000 elements differ"):
        check_parts(module, inputs)


MATRICES = [
    ((64, 20), (20, 9)),  # Rows.
    ((5, 20), (20, 300)),  # Columns, the last panel partial.
    ((1, 33), (33, 130)),  # One row, whose sums are split.
    ((13, 20), (20, 8)),  # Narrow: sums are split in some tiles.
    ((3, 50, 20), (20, 30)),  # Batches that are one matrix.
    ((2, 3, 9, 20), (2, 1, 20, 30)),  # Batches with matrices of their own.
    ((40, 3, 20), (1, 20, 7)),
]


@pytest.mark.parametrize(("left", "right"), MATRICES)
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("target", runnable_targets())
def test_products(target: str, is_constant: bool, left: tuple[int, ...], right: tuple[int, ...]):
    given = sample(left), sample(right, seed=1)
    check(Case(linear.MatMulOp, *given, constants=(1,) if is_constant else ()), target)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 20, 20, 8), (16, 1, 1, 8), {}),  # Rows of pixels.
    ((1, 16, 17, 5), (9, 3, 3, 5), {}),  # Lines.
    ((1, 17, 5, 4), (70, 3, 3, 4), {"strides": (2, 1)}),  # Lines that are shorter than a tile, many filters.
    ((6, 6, 6, 3), (4, 2, 2, 3), {}),  # Images.
    ((1, 9, 9, 8), (12, 3, 3, 4), {"group": 2}),
    ((1, 5, 8, 9, 4), (6, 2, 3, 3, 4), {}),  # Three axes.
    ((1, 40, 6), (11, 3, 6), {}),
    ((1, 6, 6, 64), (192, 3, 3, 64), {}),  # Winograd, few tiles: panels.
    ((1, 6, 6, 64), (16, 3, 3, 64), {}),  # Winograd, few tiles and filters.
    ((1, 50, 50, 32), (32, 3, 3, 32), {}),  # Winograd, many tiles.
    ((3, 18, 18, 16), (16, 3, 3, 16), {}),
]


@pytest.mark.parametrize(("image", "filters", "properties"), CONVOLUTIONS)
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("target", runnable_targets())
def test_convolutions(
    target: str, is_constant: bool, image: tuple[int, ...], filters: tuple[int, ...], properties: dict[str, Any]
):
    given = sample(image), sample(filters, seed=1), sample(filters[:1], seed=2)
    constants = (1, 2) if is_constant else ()
    check(Case(convolution.ConvOp, *given, constants=constants, layout="channels_last", **properties), target)


LINES: list[Case] = [
    Case(AttentionOp, *(sample((2, 5, 40, 16)) for _ in range(3)), sample((2, 1, 1, 40)), scale=0.25),
    Case(AttentionOp, *(sample((9, size, 24)) for size in (3, 50, 50)), causal=True, past=47),
    Case(normalization.SoftmaxOp, sample((9, 5, 40)), axis=-1),
    Case(normalization.SoftmaxOp, sample((5, 7, 300)), axis=1),
    Case(normalization.LogSoftmaxOp, sample((3, 700)), axis=0),
    Case(normalization.LayerNormalizationOp, sample((6, 5, 33)), sample((33,)), sample((33,)), axis=-1),
    Case(reductions.ReduceMeanOp, sample((4, 6, 6, 300)), axes=(1, 2)),
    Case(reductions.ReduceSumOp, sample((30, 50)), axes=(1,)),
    Case(reductions.ArgMaxOp, sample((30, 50)), axis=1),
    Case(reductions.CumSumOp, sample((30, 50)), axis=1),
    Case(pooling.MaxPoolOp, sample((2, 9, 8, 24)), kernel_shape=(3, 2), pads=(1, 0, 1, 1)),
    Case(pooling.AvgPoolOp, sample((1, 7, 7, 700)), kernel_shape=(7, 7)),
    Case(pooling.AvgPoolOp, sample((2, 3, 9, 40)), kernel_shape=(2, 3), layout="channels_first"),
    Case(data_movement.TransposeOp, sample((3, 20, 50)), permutation=(0, 2, 1)),
    Case(data_movement.TransposeOp, sample((90, 50)), permutation=(1, 0)),
    Case(data_movement.ConcatOp, [sample((20, 30)), sample((20, 50))], axis=1),
    Case(data_movement.SliceOp, sample((40, 40)), starts=(30, 39), ends=(-1, -1), steps=(-2, -1)),
    Case(data_movement.TileOp, sample((30, 50)), repeats=(2, 3)),
    Case(data_movement.PadOp, sample((30, 40)), pads=(1, 2, 3, 0), mode="reflect"),
    Case(data_movement.PadOp, sample((30, 40)), pads=(1, 2, 3, 0)),
    Case(resize.ResizeOp, sample((1, 9, 8, 24)), shape=(1, 12, 17, 24), mode="linear"),
    Case(resize.ResizeOp, sample((1, 9, 8, 24)), shape=(1, 18, 16, 24)),
    Case(convolution.ConvOp, sample((1, 12, 11, 24)), sample((24, 3, 3, 1)), None, group=24),
    Case(convolution.ConvOp, sample((9, 12, 24)), sample((24, 3, 1)), None, group=24),
]


@pytest.mark.parametrize("case", share(LINES, "lines"), ids=lambda case: case.operator.name)
def test_lines(case: Case):
    check(case)


@pytest.mark.parametrize("shape", [(300, 128, 512), (60, 512, 256), (97, 256, 1536)], ids=str)
def test_strassen(shape: tuple[int, int, int]):
    """Rows; columns; several blocks."""
    rows, columns, depth = shape
    left, right = sample((rows, depth)), sample((depth, columns), seed=1)
    check(Case(linear.MatMulOp, left, right, constants=(1,)))
    image, filters = left.reshape(1, rows, 1, depth), np.ascontiguousarray(right.T).reshape(columns, 1, 1, depth)
    check(Case(convolution.ConvOp, image, filters, sample((columns,)), constants=(1, 2)))


@pytest.mark.parametrize("shape", [(3, 49), (9, 50), (40, 4), (2, 301)], ids=str)
@pytest.mark.parametrize("columns", [128, 512])
def test_strassen_of_several_items(shape: tuple[int, int], columns: int):
    """Items that make one block, several, or several each; rows, and columns."""
    check(Case(linear.MatMulOp, sample((*shape, 256)), sample((256, columns), seed=1), constants=(1,)))


def recurrences(steps: int, batch: int, hidden: int, constants: tuple[int, ...]) -> list[Case]:
    """One recurrence of each kind; a GRU without bias has two products a step."""

    def given(gates: int) -> list[np.ndarray]:
        weights = sample((hidden, gates * hidden), seed=1) / hidden
        return [sample((steps, batch, gates * hidden)), weights.astype(np.float32), sample((batch, hidden), seed=2)]

    lengths = np.arange(batch, dtype=np.int32) * 3 % (steps + 1)
    return [
        Case(recurrence.LstmRecurrenceOp, *given(4), sample((batch, hidden)), constants=constants),
        Case(recurrence.GruRecurrenceOp, *given(3), constants=constants),
        Case(recurrence.GruRecurrenceOp, *given(3), sample((hidden,)), constants=constants),
        Case(recurrence.RnnRecurrenceOp, *given(1), constants=constants, reverse=True),
        Case(
            recurrence.LstmRecurrenceWithSumsOp, *given(4), sample((batch, hidden)), None, lengths, constants=constants
        ),
        Case(recurrence.GruRecurrenceWithSumsOp, *given(3), None, lengths, constants=constants, reverse=True),
    ]


@pytest.mark.parametrize("sizes", [(4, 1, 300), (3, 7, 150), (1, 1, 300)], ids=str)
@pytest.mark.parametrize("constants", [(), (1,)], ids=["run-time", "constant"])
def test_recurrences(sizes: tuple[int, int, int], constants: tuple[int, ...]):
    for case in recurrences(*sizes, constants):
        check(case)


@settings(max_examples=examples(12), **SLOW)
@given(graph=graphs())
def test_random_graphs(graph: Graph):
    check_parts(graph.module, graph.inputs, (2, 5))


def test_parts_that_depend_on_each_other_are_seen(monkeypatch: pytest.MonkeyPatch):
    """The check itself can fail: where parts leave something out."""

    def half(self: Partition, total: int, first: int, count: int) -> tuple[int, int]:
        return 0, count if self.is_all else count // 2

    monkeypatch.setattr(Partition, "within", half)
    module, inputs = module_of(Case(elementwise_math.ExpOp, sample((1000,))))
    with pytest.raises(AssertionError, match="threads"):
        check_parts(module, inputs)
