"""The kernel that writes keys and values to pages."""

from __future__ import annotations

from collections.abc import Sequence

from glow_mlir.codegen.access import lanes_for, load, store
from glow_mlir.codegen.builder.nests import Index, linear, vector_loop
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.attention.page_tables import PageTables
from glow_mlir.codegen.kernels.elements.indexing import start_from
from glow_mlir.codegen.selection.kernel import Kernel, KernelCall
from glow_mlir.codegen.selection.tables import kernel
from glow_mlir.dialects.glow_high.pages import WritePagesOp
from glow_mlir.dialects.properties import flag


@kernel("write-pages")
class WritePagesKernel(Kernel[WritePagesOp]):
    """
    A copy of the pages, unless the result is in their place, then the rows in order, so that the last of a place wins.

    Threads share nothing: most calls write a few rows, and waking a thread takes longer.
    """

    name = "write-pages"
    RUN_TIME_SIZES = True

    def emit(self, call: KernelCall[WritePagesOp]) -> None:
        b, (count, heads, *_) = call.b, call.result.extents
        block = call.result.shape[3 if flag(call.op.transposed) else 2]
        start_from(call, "pages")
        tables = PageTables(call, count, block)
        with b.loop(0, call.one("rows").extents[0]) as row:
            position = tables.position_of(row)
            with b.when(position >= 0):
                page = tables.page_of(row, position // block)
                with b.loop(0, heads) as head:
                    self._write(call, (row, head), page, position % block)

    def _write(self, call: KernelCall[WritePagesOp], source: Sequence[Index], page: Value, slot: Value) -> None:
        """Write one head of a row to a slot of a page."""
        b, rows, result = call.b, call.one("rows"), call.result
        depth, token = (2, 3) if flag(call.op.transposed) else (3, 2)
        out_of, into = rows.strides[2], result.strides[depth]
        begins = linear(source, rows.strides[:2])
        start = linear((page, source[1], slot), (*result.strides[:2], result.strides[token]))
        width = lanes_for(call.target, rows.element, (out_of,)) if into == 1 else 1

        def write(i: Index, lanes: int) -> None:
            store(b, result, start + i * into, load(b, rows, begins + i * out_of, out_of, lanes))

        vector_loop(b, result.shape[depth], width, write)
