"""Export of branches and loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from glow_mlir.dialects.glow_high.control_flow import IfOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.glow_high.storage import FuncOp
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of
from glow_mlir.frontends.onnx.export.writer import FIRST, Writer
from glow_mlir.ir.registry import onnx_export


def _scalar(writer: Writer, value: SSAValue) -> str:
    """The only element of a value, as a scalar."""
    return writer.name(value) if rank_of(value) == 0 else writer.reshaped(value, ())


@onnx_export(IfOp)
def if_(writer: Writer, op: IfOp) -> Sequence[str]:
    """An If with a graph for each branch."""
    condition = _scalar(writer, op.condition)
    graphs = {
        name: writer.subgraph(name, region.block, op.yielded(region))
        for name, region in (("then_branch", op.then_region), ("else_branch", op.else_region))
    }
    return writer.emit_all("If", len(op.results), condition, **graphs)


@onnx_export(LoopOp)
def loop(writer: Writer, op: LoopOp) -> Sequence[str]:
    """A Loop whose body gathers its rows by trip number; results stacked backward are reversed after it."""
    number = "" if op.size_of_trips is None else writer.reshaped(writer.sizes((op.size_of_trips,)), ())
    if op.trip_count is not None:
        number = _scalar(writer, op.trip_count)
    condition = "" if op.condition is None else _scalar(writer, op.condition)
    initial = [writer.name(value) for value in op.initial]
    yielded = op.yielded(op.body)
    goes_on, rest = (None, yielded) if op.condition is None else (yielded[0], yielded[1:])
    body = writer.body(op.body.block, goes_on, rest, [op.index, *op.carried], lambda: _take_rows(writer, op))
    results = writer.emit_all("Loop", len(op.results), number, condition, *initial, body=body)
    carried, stacked = results[: len(op.initial)], results[len(op.initial) :]
    if op.condition is not None:
        stacked = [_filled(writer, name, value) for name, value in zip(stacked, op.stacked, strict=True)]
    turned = [
        _turned(writer, name, element_of(value)) if rows.reversed else name
        for name, rows, value in zip(stacked, op.stacks, op.stacked, strict=True)
    ]
    return [*carried, *turned]


def _filled(writer: Writer, name: str, value: SSAValue) -> str:
    """The stacked rows of a loop, padded with zeros to the maximum number of trips."""
    sizes = sizes_of(value)
    element = element_of(value)
    zeros = writer.moved("Expand", [writer.like(0, value)], element, writer.sizes(sizes))
    every = writer.moved("Concat", [name, zeros], element, axis=0)
    return writer.moved("Slice", [every], element, *map(writer.sizes, ((0,), sizes[:1], (0,))))


def _take_rows(writer: Writer, op: LoopOp) -> None:
    """Gather and name the rows of a trip."""
    for rows, row in zip(op.over, op.rows, strict=True):
        writer.names[row] = writer.moved(
            "Gather", [rows.value], element_of(rows.value), _trip_index(writer, op, rows), axis=0
        )


def _trip_index(writer: Writer, op: LoopOp, rows: Rows) -> str:
    """The index of a tensor's row in a trip."""
    if not rows.reversed:
        return writer.name(op.index)
    assert op.static_trips is not None
    return writer.emit("Sub", writer.constant(op.static_trips - 1), op.index)


def _turned(writer: Writer, name: str, element: Attribute) -> str:
    """Reverse the order of rows."""
    return writer.moved("Slice", [name], element, *(writer.constant([number]) for number in (-1, FIRST, 0, -1)))


@onnx_export(BindSymbolOp)
def bind_symbol(writer: Writer, op: BindSymbolOp) -> Sequence[str]:
    """Define a symbol's value; it is clipped to the symbol's bounds."""
    if not isinstance(op.parent_op(), FuncOp):
        raise writer.unsupported("a size that each iteration computes cannot be exported")
    if op.bound.name in writer.counts:
        return []
    limited = writer.emit(
        "Clip", _scalar(writer, op.count), *(writer.constant(item) for item in (op.bound.least, op.bound.most))
    )
    writer.counts[op.bound.name] = writer.reshaped(limited, (1,))
    return []
