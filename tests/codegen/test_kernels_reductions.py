"""Kernels of reductions, positions, running totals and of the k largest, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from execute import check, check_low, runnable_targets, sample

from glow_mlir.dialects.glow_high import reductions as ops
from glow_mlir.dialects.glow_high.base import HighOp

REDUCTIONS = [ops.ReduceSumOp, ops.ReduceMeanOp, ops.ReduceProdOp, ops.ReduceMaxOp, ops.ReduceMinOp]
NUMBERS = ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8"]
AXES = [
    ((3, 37), (1,)),
    ((3, 5, 7), (1,)),
    ((3, 5, 37), (0, 1)),
    ((3, 5, 37), (0, 2)),
    ((130,), (0,)),
    ((2, 3, 4, 5), (1, 3)),
    ((2, 1), ()),
    ((2, 3), (0, 1)),
    ((3, 0, 2), (1,)),
]


@pytest.mark.parametrize(("shape", "axes"), AXES)
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_axes(operator: type[HighOp], shape: tuple[int, ...], axes: tuple[int, ...]):
    check(operator, sample(shape), axes=axes, keepdims=len(axes) != 1)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_element_types(operator: type[HighOp], dtype: str):
    check(operator, sample((3, 19), dtype), axes=(1,))
    check(operator, sample((19, 20), dtype), axes=(0,))


@pytest.mark.parametrize("operator", [ops.ReduceMaxOp, ops.ReduceMinOp])
def test_truth_values_and_nan(operator: type[HighOp]):
    check(operator, sample((5, 19), "?"), axes=(1,))
    x = sample((4, 50))
    x[1, 33] = np.nan
    check(operator, x, axes=(1,))
    check(operator, np.ascontiguousarray(x.T), axes=(0,))


def test_mean_of_more_bytes_than_a_byte_counts():
    check(ops.ReduceMeanOp, np.full((2, 300), 1, np.int8), axes=(1,))


@pytest.mark.parametrize("target", runnable_targets())
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((16384, 5), (0,)), ((16385, 32), (0,)), ((3, 100003), (1,)), ((700, 3, 24), (0, 2))],
)
def test_long_sums_of_floats(shape: tuple[int, ...], axes: tuple[int, ...], target: str):
    """They are added up in blocks, and lose about one rounding in all, of numbers of one sign."""
    positive = np.abs(sample(shape))
    for operator in (ops.ReduceSumOp, ops.ReduceMeanOp):
        check(operator, positive, axes=axes, target=target, tolerance=1e-6)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("operator", [ops.ArgMaxOp, ops.ArgMinOp])
def test_positions(operator: type[HighOp], last: bool):
    special = sample((4, 33))
    special[1, [5, 9]] = np.nan
    special[2] = -np.inf
    special[3] = np.inf
    for x in (special, sample((3, 37), "i4"), sample((9, 20), "u1"), sample((5, 6), "f8")):
        check(operator, x, axis=1, select_last_index=last)
        check(operator, np.ascontiguousarray(x.T), axis=0, select_last_index=last, keepdims=False)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("operator", [ops.CumSumOp, ops.CumProdOp])
def test_running(operator: type[HighOp], exclusive: bool, reverse: bool):
    for shape, axis, dtype in (((3, 9), 1, "f4"), ((9, 19), 0, "i4"), ((2, 3, 4), 1, "f8"), ((5,), 0, "u1")):
        check(operator, sample(shape, dtype), axis=axis, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1"])
def test_top_k(dtype: str, largest: bool):
    for shape, axis, k in (((3, 50), 1, 5), ((50, 3), 0, 50), ((2, 9, 4), 1, 1), ((7,), 0, 0)):
        check(ops.TopKOp, sample(shape, dtype), k=k, axis=axis, largest=largest)


@pytest.mark.parametrize("largest", [False, True])
def test_top_k_of_special_values(largest: bool):
    x = sample((3, 40))
    x[:, ::7] = np.nan
    x[1, 3] = -np.inf
    x[2, :20] = 0
    x[2, 1] = -0.0
    check(ops.TopKOp, x, k=17, axis=1, largest=largest)


@pytest.mark.parametrize("target", runnable_targets())
def test_targets(target: str):
    check(ops.ReduceSumOp, sample((5, 150)), axes=(1,), target=target)
    check(ops.ReduceMaxOp, sample((150, 5)), axes=(0,), target=target)
    check(ops.ArgMaxOp, sample((5, 50)), axis=1, target=target)
    check(ops.ReduceMeanOp, sample((5, 50), "f2"), axes=(1,), target=target)


def test_strided_operands():
    check_low(
        """
        glow_high.placeholder @x : tensor<9x40xf32> {input}
        glow_high.placeholder @y : tensor<9x3xf32> {state}
        glow_high.placeholder @z : tensor<40xi64> {output}
        glow_low.func @main(@x, @y, @z) {
          %x = glow_low.weight @x : memref<9x40xf32>
          %y = glow_low.weight @y {mutable} : memref<9x3xf32>
          %z = glow_low.weight @z {mutable} : memref<40xi64>
          %a = glow_low.view %x : memref<9x40xf32> to memref<9x33xf32, strided<[40, 1], offset: 7>>
          %t = glow_low.view %x : memref<9x40xf32> to memref<40x9xf32, strided<[1, 40]>>
          %b = glow_low.view %y : memref<9x3xf32> to memref<9xf32, strided<[3], offset: 1>>
          glow_low.reduce_sum @out %b, @in %a {axes = [1], keepdims = false}
          glow_low.arg_max @out %z, @in %t {axis = 1, keepdims = false}
        }
        """,
        {"x": sample((9, 40)), "y": sample((9, 3))},
    )
