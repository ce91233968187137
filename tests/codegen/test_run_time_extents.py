"""Loops over extents that are known at run time only: one function computes for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from emitted import TARGETS, compiled, guarded

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, vector_nest
from glow_mlir.codegen.builder.types import f32, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.elements.elementwise import StackKernel
from glow_mlir.codegen.selection.kernel import KernelCall, Operand
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import parse_module

BATCH = "#glow.sizes<[batch], batch = 0 to 64>"

STACKS = {
    "rows": f"""
glow_low.func @main(@in %x: memref<?x6xf32, {BATCH}>, @in %b: memref<6xf32>, @out %y: memref<?x6xf32, {BATCH}>) {{
  glow_low.stack @out %y, @in %x, @in %b {{maps = [
    affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>
  ], iterators = ["parallel", "parallel"]}} {{
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    glow_low.yield %2 : f32
  }}
}}
""",
    "flat": f"""
glow_low.func @main(@in %x: memref<?x6xf32, {BATCH}>, @in %b: memref<?x6xf32, {BATCH}>,
                    @out %y: memref<?x6xf32, {BATCH}>) {{
  glow_low.stack @out %y, @in %x, @in %b {{maps = [
    affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>
  ], iterators = ["parallel", "parallel"]}} {{
  ^bb0(%0: f32, %1: f32):
    %2 = arith.addf %0, %1 : f32
    glow_low.yield %2 : f32
  }}
}}
""",
}
"""Sums of rows: with a vector, and of two arrays, which are one line of `batch * 6` elements."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("given", STACKS)
def test_a_stack_of_symbolic_sizes_computes_any_of_them(given: str, target: str) -> None:
    module = parse_module(STACKS[given], new_context(), "stack.mlir")
    (stack,) = (op for op in module.walk() if isinstance(op, StackOp))

    def emit(b: Builder, arguments: list[Value]) -> None:
        y, x, bias, batch = arguments
        operands = {
            "targets": [Operand(y, stack.targets[0])],
            "sources": [Operand(x, stack.sources[0]), Operand(bias, stack.sources[1])],
        }
        StackKernel().emit(KernelCall(b, b.module, stack, operands, symbols={"batch": b.index(batch)}))

    run = compiled(PRESETS[target], 3, 1, emit, verify=True)
    for batch in (0, 1, 2, 7, 64):
        x = np.arange(batch * 6, dtype=np.float32).reshape(batch, 6)
        bias = np.full((batch, 6) if given == "flat" else 6, 0.5, np.float32)
        y = guarded(batch * 6, np.float32)
        kept = y[batch * 6 :].copy()
        run(y, x, bias, batch)
        np.testing.assert_array_equal(y[: batch * 6].reshape(batch, 6), x + bias)
        np.testing.assert_array_equal(y[batch * 6 :], kept)


@pytest.mark.parametrize("target", TARGETS)
def test_a_nest_covers_each_element_once_whatever_extents_are(target: str) -> None:
    def emit(b: Builder, arguments: list[Value]) -> None:
        data, rows, columns = arguments[0], b.index(arguments[1]), b.index(arguments[2])

        def add(outer: list[Index], i: Index, lanes: int) -> None:
            place = data.at(outer[0] * columns + i, f32)
            place.store(place.load(vector(f32, lanes)) + 1.0)

        vector_nest(b, (rows, columns), 8, add)

    run = compiled(PRESETS[target], 1, 2, emit, verify=True)
    for rows in (0, 1, 3):
        for columns in range(20):
            counts = guarded(rows * columns, np.float32)
            expected = counts + (np.arange(counts.size) < rows * columns)
            run(counts, rows, columns)
            np.testing.assert_array_equal(counts, expected)
