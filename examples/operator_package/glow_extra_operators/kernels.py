"""Kernels of the CPU backend."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64

from glow_extra_operators.operators import PairwiseDotProductOp
from glow_mlir.codegen.access import lanes_for, load_as
from glow_mlir.codegen.builder.nests import Index, chunks
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.shapes import element_of


@kernel("pairwise-dot-product")
class PairwiseDotProductKernel(Kernel[PairwiseDotProductOp]):
    """One dot product after the other, in vectors along the rows and shorter ones for what remains of them."""

    name = "pairwise-dot-product"

    def accepts(self, op: PairwiseDotProductOp) -> bool:
        return element_of(op.input) in (f32, f64)

    def emit(self, call: KernelCall[PairwiseDotProductOp]) -> None:
        b, source, result = call.b, call.one("input"), call.result
        batch, rows, _ = source.shape
        batch_step, row_step, _ = source.strides
        with b.loop(0, batch) as n, b.loop(0, rows - 1, carried=[b.index(0)]) as first:
            i, position = first.index, first.values[0]
            left = n * batch_step + i * row_step
            with b.loop(i + 1, rows, carried=[position]) as second:
                right = n * batch_step + second.index * row_step
                target = n * result.strides[0] + second.values[0] * result.strides[1]
                result.pointer.at(target, result.element).store(_dot(call, left, right))
                second.set(second.values[0] + 1)
            first.set(second.results[0])


def _dot(call: KernelCall, left: Index, right: Index) -> Value:
    """The dot product of the rows that start at two element offsets."""
    b, source = call.b, call.one("input")
    width, step = source.shape[-1], source.strides[-1]
    total = b.constant(0.0, source.element)
    for start, stop, lanes in chunks(width, lanes_for(call.target, source.element, [step])):

        def element(row: Index, k: Index, lanes: int = lanes) -> Value:
            return load_as(b, source, source.element, row + k * step, step, lanes)

        with b.loop(start, stop, lanes, carried=[b.constant(0.0, vector(source.element, lanes))]) as loop:
            loop.set(b.fma(element(left, loop.index), element(right, loop.index), loop.values[0]))
        total = total + b.reduce(loop.results[0], b.add)
    return total
