"""The kernel of the largest elements of windows and their indices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Extents, Index, linear, nest, numbers, product, vector_loop
from glow_mlir.codegen.builder.types import i64, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.elements.folds import combined
from glow_mlir.codegen.kernels.elements.index_checks import as_i64
from glow_mlir.codegen.kernels.elements.top_k import goes_before
from glow_mlir.codegen.kernels.expressions.pooling import Image, Taps
from glow_mlir.codegen.lines import moved_by
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall, Operand
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.pooling import MaxPoolWithIndicesOp
from glow_mlir.dialects.properties import flag
from glow_mlir.dialects.target import Target
from glow_mlir.dialects.windows import is_channels_last
from glow_mlir.support.dataclass import dataclass


@kernel("max-pool-with-indices")
class MaxPoolWithIndicesKernel(Kernel[MaxPoolWithIndicesOp]):
    """A loop over pixels, with vectors over channels; each lane carries the index of its largest element so far."""

    name = "max-pool-with-indices"
    AXES = ("pixels",)
    RUN_TIME_SIZES = True

    def cuts(self, op: MaxPoolWithIndicesOp, target: Target) -> Mapping[str, int]:
        last = is_channels_last(op.layout)
        return {"pixels": math.prod(numbers(Image.of(op.outputs()[0], last).sizes[:-1]))}

    def emit(self, call: KernelCall[MaxPoolWithIndicesOp]) -> None:
        emission = _Pixels.of(call)
        nest(call.b, emission.values.sizes[:-1], emission.pixel, call.share("pixels"))


@dataclass(frozen=True)
class _Pixels:
    """Emits the code of one instruction."""

    call: KernelCall[MaxPoolWithIndicesOp]
    source: Image
    values: Image
    indices: Image
    index_strides: Extents
    """The strides of the index along each spatial axis."""

    @staticmethod
    def of(call: KernelCall[MaxPoolWithIndicesOp]) -> _Pixels:
        """Return the images of the operands of a call."""
        last = is_channels_last(call.op.layout)
        operands = (call.one(name) for name in ("input", "result", "indices"))
        source, values, indices = (Image.of(x.value, last, x.extents) for x in operands)
        spatial = source.sizes[1:-1]
        index_strides = _steps(spatial[::-1])[::-1] if flag(call.op.column_major) else _steps(spatial)
        return _Pixels(call, source, values, indices, index_strides)

    def pixel(self, position: list[Index]) -> None:
        """Compute all channels of one window."""
        call, b = self.call, self.call.b
        batch, *outputs = position
        window, sizes = self.call.op.window(), self.source.sizes
        taps = [
            Taps.of(b, window, axis, output, (self.values.sizes[axis + 1], sizes[axis + 1]))
            for axis, output in enumerate(outputs)
        ]
        origins = [tap.origin for tap in taps]
        start = linear([batch, *origins], self.source.strides[:-1])
        plane_size = product(sizes[1:-1])
        plane = 0 if flag(call.op.by_channel) else batch * sizes[-1]
        first = b.index(linear([plane, *origins], (plane_size, *self.index_strides)))
        element = computed(call.one("input").element)
        steps = (self.source.strides[-1], self.values.strides[-1], self.indices.strides[-1])

        def channels(channel: Index, lanes: int) -> None:
            best = b.constant(combined("max", call.one("input").element).initial(element)[0][0], vector(element, lanes))
            nowhere = b.constant(-1, vector(i64, lanes))
            offset = moved_by(start, channel, steps[0])
            value, index = self._window(taps, offset, b.cast(first, i64), [best, nowhere])
            if not flag(call.op.by_channel):
                index = index + (b.iota(i64, lanes) + b.cast(b.index(channel), i64)) * as_i64(b, plane_size)
            for operand, image, result in (
                (call.result, self.values, value),
                (call.one("indices"), self.indices, index),
            ):
                store(b, operand, moved_by(linear(position, image.strides[:-1]), channel, image.strides[-1]), result)

        vector_loop(b, sizes[-1], lanes_for(call.target, element, steps), channels)

    def _window(self, taps: Sequence[Taps], offset: Index, position: Value, best: Sequence[Value]) -> list[Value]:
        """Emit loops over the taps that carry the largest element of each lane and its index in its channel."""
        b, source = self.call.b, self.call.one("input")
        if not taps:
            return self._better(source, offset, position, *best)
        axis = len(self.index_strides) - len(taps)
        dilation = self.call.op.window().dilations[axis]
        with b.loop(taps[0].first, taps[0].last, 1, carried=best) as loop:
            moved = moved_by(offset, loop.index, self.source.strides[axis + 1] * dilation)
            there = position + b.cast(loop.index, i64) * as_i64(b, self.index_strides[axis] * dilation)
            loop.set(*self._window(taps[1:], moved, there, loop.values))
        return loop.results

    def _better(self, source: Operand, offset: Index, position: Value, best: Value, index: Value) -> list[Value]:
        b = self.call.b
        x = load(b, source, offset, 1, best.lanes)
        is_first = b.compare("lt", index, 0)
        takes = goes_before(source.element, True)(b, x, best) | is_first
        return [
            b.select(takes, x, best),
            b.select(takes, b.splat(position, best.lanes) if best.lanes > 1 else position, index),
        ]


def _steps(sizes: Extents) -> list[Index]:
    """Return the strides of a position in row-major order."""
    steps: list[Index] = [1]
    for size in reversed(sizes[1:]):
        steps.insert(0, size * steps[0])
    return steps
