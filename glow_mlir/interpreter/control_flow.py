"""Semantics of branches and loops."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)

from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high import control_flow as high
from glow_mlir.dialects.glow_high.base import group_like
from glow_mlir.dialects.glow_high.loop import LoopOp as HighLoopOp
from glow_mlir.dialects.glow_high.loop import Rows
from glow_mlir.dialects.glow_low.control_flow import IfOp
from glow_mlir.dialects.glow_low.loop import LoopOp
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.dialects.sizes import shape_at
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.symbols import Size


def _forwards(array: np.ndarray, rows: Rows) -> np.ndarray:
    """Reverse an array if needed, so that the row of the first trip comes first."""
    return array[::-1] if rows.reversed else array


def symbols_of(interpreter: Interpreter) -> dict[str, int]:
    """The values of the symbols known so far, by name."""
    return interpreter.get_data(ControlFlowFunctions, "symbols", dict[str, int])


def _trips(size: Size | None, symbols: Mapping[str, int]) -> int | None:
    """The trip count of a loop for these symbol values; `None` if no size determines it."""
    return None if size is None else shape_at((size,), symbols)[0]


@register_impls
class ControlFlowFunctions(InterpreterFunctions):
    """Implementations of the ops with regions."""

    @impl_terminator(high.YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: high.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    @impl(high.IfOp)
    def run_high_if(self, interpreter: Interpreter, op: high.IfOp, args: PythonValues) -> PythonValues:
        (condition,) = args
        return interpreter.run_ssacfg_region(op.then_region if condition.item() else op.else_region, (), "if")

    @impl(HighLoopOp)
    def run_high_loop(self, interpreter: Interpreter, op: HighLoopOp, args: PythonValues) -> PythonValues:
        trip_count, condition, carried, scanned = group_like(op, args)
        symbols = symbols_of(interpreter)
        trips = _trips(op.size_of_trips, symbols) if trip_count is None else trip_count.item()
        scanned = [_forwards(array, rows) for array, rows in zip(scanned, op.over, strict=True)]
        stacks = [
            np.zeros(shape_at(sizes_of(rows.value), symbols), numpy_dtype(element_of(rows.value))) for rows in op.stacks
        ]
        trip = 0
        while (trips is None or trip < trips) and (condition is None or condition.item()):
            check_cancellation()
            taken = [array[trip, ...] for array in scanned]
            yielded = interpreter.run_ssacfg_region(op.body, (np.array(trip, np.int64), *carried, *taken), "loop")
            condition, yielded = (None, yielded) if condition is None else (yielded[0], yielded[1:])
            carried = yielded[: len(op.initial)]
            for stack, rows, row in zip(stacks, op.stacks, yielded[len(op.initial) :], strict=True):
                _forwards(stack, rows)[trip, ...] = row
            trip += 1
        return (*carried, *stacks)

    @impl(IfOp)
    def run_if(self, interpreter: Interpreter, op: IfOp, args: PythonValues) -> PythonValues:
        (condition,) = args
        interpreter.run_ssacfg_region(op.then_region if condition.array.item() else op.else_region, (), "if")
        return ()

    @impl(LoopOp)
    def run_loop(self, interpreter: Interpreter, op: LoopOp, args: PythonValues) -> PythonValues:
        buffers = dict(zip(op.operands, args, strict=True))
        counted = op.trip_count
        trips = buffers[counted].array.item() if counted else _trips(op.size_of_trips, symbols_of(interpreter))
        trip = 0
        while (trips is None or trip < trips) and (op.condition is None or buffers[op.condition].array.item()):
            check_cancellation()
            interpreter.run_ssacfg_region(op.body, (trip,), "loop")
            trip += 1
        return ()
