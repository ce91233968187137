"""The common part of kernels that compute cells of image regions: a row of all channels for each cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from xdsl.ir import Attribute

from glow_mlir.codegen.access import computed, lanes_for
from glow_mlir.codegen.builder.nests import Index, nest, vector_loop
from glow_mlir.codegen.builder.types import vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.selection.kernel import Buffer, Kernel, KernelCall
from glow_mlir.dialects.glow_high.sampling import RoiAlignOp, RoiPoolOp
from glow_mlir.dialects.shapes import element_of, largest_shape, shape_of
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass

Regions = TypeVar("Regions", RoiAlignOp, RoiPoolOp)


class CellKernel(Kernel[Regions], Generic[Regions]):
    """
    A kernel that computes one cell of a region at a time; its elements or samples go into a row of all channels.

    The row has the computation type; it is converted and stored to the result when the cell is complete.
    """

    AXES = ("cells",)
    RUN_TIME_SIZES = True
    TIME_BY_VALUES = True

    def scratch(self, op: Regions, target: Target) -> Sequence[Buffer]:
        return [((max(1, largest_shape(op.input)[-1]),), computed(element_of(op.input)))]

    def private(self, op: Regions) -> Sequence[int]:
        return (0,)

    def cuts(self, op: Regions, target: Target) -> Mapping[str, int]:
        return {"cells": math.prod(shape_of(op.outputs()[0])[:-1])}

    def emit_cells(self, call: KernelCall[Regions], cell: Callable[[list[Index]], None]) -> None:
        """Emit loops over region, row and column of each cell; they end early if the call is cancelled."""

        def unless_cancelled(indices: list[Index]) -> None:
            with call.unless_cancelled():
                cell(indices)

        nest(call.b, call.result.extents[:-1], unless_cancelled, call.share("cells"))


@dataclass(frozen=True)
class CellRow(Generic[Regions]):
    """The row of one instruction; `type` is its computation type."""

    call: KernelCall[Regions]
    type: Attribute

    def channels(self, body: Callable[[Index, int], None]) -> None:
        """Emit a loop over vectors of channels."""
        source = self.call.one("input")
        moves = (source.strides[-1], self.call.result.strides[-1])
        vector_loop(self.call.b, source.extents[-1], lanes_for(self.call.target, self.type, moves), body)

    @contextmanager
    def lines(self, first: Value, end: Value) -> Generator[Value]:
        """Emit a loop over the lines of one cell, which may be as large as the image; it ends early on cancellation."""
        with self.call.b.loop(first, end) as line, self.call.unless_cancelled():
            yield line

    def row(self, channel: Index) -> Value:
        """Return the address of a channel in the row."""
        return self.call.one("scratch").pointer.at(channel, self.type)

    def fill(self, value: float) -> None:
        """Initialize all channels with a number."""
        b = self.call.b
        self.channels(lambda i, lanes: self.row(i).store(b.constant(value, vector(self.type, lanes))))
