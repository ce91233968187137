"""The kernel of n-gram counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import f32

from glow_mlir.codegen.access import lanes_for, load, read_index, store
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.nests import Index, linear, nest, vector_loop
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.elements.index_checks import checked
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.ngrams import TfIdfVectorizerOp
from glow_mlir.dialects.properties import integer, text
from glow_mlir.dialects.shapes import shape_of
from glow_mlir.dialects.target import Target


@kernel("ngrams")
class NgramKernel(Kernel[TfIdfVectorizerOp]):
    """One row after the other; the n-gram at each position is found in the sorted n-grams by binary search."""

    name = "ngrams"
    AXES = ("rows",)

    def cuts(self, op: TfIdfVectorizerOp, target: Target) -> Mapping[str, int]:
        return {"rows": math.prod(shape_of(op.outputs()[0])[:-1])}

    def emit(self, call: KernelCall[TfIdfVectorizerOp]) -> None:
        op = call.op
        skips = integer(op.max_skip_count)

        def row(indices: list[Index]) -> None:
            _fill(call, indices)
            for pool in call.many("pools"):
                for distance in range(1, 2 + (skips if pool.shape[1] > 2 else 0)):
                    _count(call, indices, pool, distance)
            if text(op.mode) != "TF":
                _weigh(call, indices, text(op.mode) == "IDF")

        nest(call.b, call.result.shape[:-1], row, call.share("rows"))


def _columns(call: KernelCall, row: Sequence[Index], body: Callable[[Index, Index, int], None]) -> None:
    """Emit a loop over vectors of the counts of a row; `body` gets the column, its offset in the result, and lanes."""
    result = call.result
    start, step = linear(row, result.strides[:-1]), result.strides[-1]
    lanes = lanes_for(call.target, f32, (step,))
    vector_loop(call.b, result.shape[-1], lanes, lambda i, n: body(i, i * step + start, n))


def _fill(call: KernelCall, row: Sequence[Index]) -> None:
    """Set the counts of a row to 0."""
    b, result = call.b, call.result
    _columns(call, row, lambda _, offset, lanes: store(b, result, offset, b.constant(0.0, vector(f32, lanes))))


def _weigh(call: KernelCall, row: Sequence[Index], once: bool) -> None:
    """Multiply counts by weights; if `once`, replace each positive count by its weight."""
    b, result, weights = call.b, call.result, call.maybe("weights")

    def weigh(column: Index, offset: Index, lanes: int) -> None:
        count = load(b, result, offset, 1, lanes)
        weight = b.constant(1.0, count.type)
        if weights is not None:
            step = weights.strides[0]
            weight = load(b, weights, column * step, step, lanes)
        store(b, result, offset, b.select(count > 0.0, weight, 0.0) if once else count * weight)

    _columns(call, row, weigh)


def _count(call: KernelCall, indices: Sequence[Index], pool: Operand, distance: int) -> None:
    """Count the n-grams of a pool at all positions of a row; their numbers lie `distance` apart."""
    b, source, result = call.b, call.one("input"), call.result
    length = pool.shape[1] - 1
    steps = source.strides
    with b.loop(0, source.shape[-1] - distance * (length - 1)) as start:
        row = linear([*indices, start], steps)
        numbers = [read_index(b, source, row + position * distance * steps[-1]) for position in range(length)]
        first = _position(b, pool, numbers)
        with b.when(first < pool.shape[0]):
            same = [one.eq(other) for one, other in zip(_ngram(b, pool, first), numbers, strict=True)]
            for other in same[1:]:
                same[0] = same[0] & other
            with b.when(same[0]):
                column = read_index(b, pool, linear([first, length], pool.strides))
                column = checked(call, column, result.shape[-1], wraps=False)
                offset = linear([*indices, column], result.strides)
                store(b, result, offset, load(b, result, offset, 1, 1) + 1.0)


def _ngram(b: Builder, pool: Operand, number: Value) -> list[Value]:
    """Load the numbers of an n-gram of a pool; its column follows them."""
    row, step = number * pool.strides[0], pool.strides[1]
    return [read_index(b, pool, row + position * step) for position in range(pool.shape[1] - 1)]


def _position(b: Builder, pool: Operand, numbers: Sequence[Value]) -> Value:
    """
    Return the first n-gram of a pool that does not come before `numbers`, or the length of the pool.

    The number of steps depends on the pool alone, and no step branches: searches of several positions run at once.
    """
    first, left = b.index(0), pool.shape[0]
    while left > 0:
        half = (left + 1) // 2
        is_before = _comes_before(_ngram(b, pool, first + (half - 1)), numbers)
        first = b.select(is_before, first + half, first)
        left -= half
    return first


def _comes_before(one: Sequence[Value], other: Sequence[Value]) -> Value:
    """Whether one n-gram comes before another of the same length."""
    result = one[-1] < other[-1]
    for x, y in zip(one[-2::-1], other[-2::-1], strict=True):
        result = (x < y) | (x.eq(y) & result)
    return result
