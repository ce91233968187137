"""The kernel of `Col2Im`, which adds windows up to an image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from glow_mlir.codegen.access import computed, lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, nest, vector_loop
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.expressions.taps import rounded_up
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.convolution import Col2ImOp
from glow_mlir.dialects.glow_low.memory import contiguous_strides
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.shapes import element_of, largest_shape, shape_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@kernel("col2im")
class Col2ImKernel(Kernel[Col2ImOp]):
    """
    One plane, that is a channel of an image, at a time: each element of all windows is added to it, row by row.

    The plane has the computation type; it is converted and stored to the result when it is complete.
    """

    name = "col2im"
    AXES = ("planes",)
    RUN_TIME_SIZES = True

    def scratch(self, op: Col2ImOp, target: Target) -> Sequence[Buffer]:
        result = op.outputs()[0]
        return [((max(1, math.prod(largest_shape(result)[2:])),), computed(element_of(result)))]

    def private(self, op: Col2ImOp) -> Sequence[int]:
        return (0,)

    def cuts(self, op: Col2ImOp, target: Target) -> Mapping[str, int]:
        return {"planes": math.prod(shape_of(op.outputs()[0])[:2])}

    def emit(self, call: KernelCall[Col2ImOp]) -> None:
        planes = _Planes(call, computed(call.result.element))
        nest(call.b, call.result.extents[:2], planes.plane, call.share("planes"))


@dataclass(frozen=True)
class _Planes:
    """Emits the code of one instruction."""

    call: KernelCall[Col2ImOp]
    type: Attribute

    def plane(self, position: list[Index]) -> None:
        """Compute one channel of one image."""
        b, result = self.call.b, self.call.result
        sizes = ints(self.call.op.image_shape)
        lanes = lanes_for(self.call.target, self.type, (1,))
        vector_loop(b, math.prod(sizes), lanes, lambda i, n: self._at(i).store(b.constant(0, vector(self.type, n))))
        elements = self.call.op.window().kernel
        row = b.index(position[1]) * math.prod(elements)
        steps = contiguous_strides(elements)

        def element(indices: list[Index]) -> None:
            self._add(position[0], row + linear(indices, steps), indices)

        nest(b, elements, element)
        start = linear(position, result.strides[:2])
        strides, within = result.strides[2:], contiguous_strides(sizes)

        def line(outer: list[Index]) -> None:
            def move(i: Index, n: int) -> None:
                value = self._at(linear([*outer, i], within)).load(vector(self.type, n))
                store(b, result, linear([*outer, i], strides) + start, value)

            vector_loop(b, sizes[-1], lanes_for(self.call.target, self.type, strides[-1:]), move)

        nest(b, sizes[:-1], line)

    def _at(self, offset: Index) -> Value:
        return self.call.one("scratch").pointer.at(offset, self.type)

    def _add(self, image: Index, row: Value, element: Sequence[Index]) -> None:
        """Add one element of all windows: a row of the operand."""
        b, source = self.call.b, self.call.one("input")
        window, windows, sizes = self.call.op.window(), self.call.op.windows(), ints(self.call.op.image_shape)
        start = linear([image, row], source.strides[:2])
        origins = [b.index(e) * window.dilations[axis] - window.pads[axis] for axis, e in enumerate(element)]
        into, out_of = contiguous_strides(sizes), contiguous_strides(windows)

        def along(axis: int, target: Index, offset: Index) -> None:
            stride = window.strides[axis]
            first = b.max(rounded_up(b, -origins[axis], stride), 0)
            last = b.min(rounded_up(b, sizes[axis] - origins[axis], stride), windows[axis])
            target = (first * stride + origins[axis]) * into[axis] + target
            offset = first * out_of[axis] + offset
            moves = stride * into[axis], out_of[axis] * source.strides[-1]
            if axis + 1 < len(sizes):
                with b.loop(0, last - first) as i:
                    along(axis + 1, i * moves[0] + target, i * out_of[axis] + offset)
                return

            def add(i: Index, lanes: int) -> None:
                x = load(b, source, (i * out_of[axis] + offset) * source.strides[-1] + start, moves[1], lanes)
                address = self._at(i * moves[0] + target)
                address.store(address.load(vector(self.type, lanes)) + x)

            vector_loop(b, last - first, lanes_for(self.call.target, self.type, moves), add)

        along(0, 0, 0)
