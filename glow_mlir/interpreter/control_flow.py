"""Meaning of branches and loops."""

from __future__ import annotations

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

from glow_mlir.dialects.glow_high import control_flow as high
from glow_mlir.dialects.glow_high.base import group_like
from glow_mlir.dialects.glow_low.control_flow import IfOp
from glow_mlir.dialects.glow_low.loop import LoopOp


@register_impls
class ControlFlowFunctions(InterpreterFunctions):
    """Implementations of the ops that run regions."""

    @impl_terminator(high.YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: high.YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        return ReturnedValues(args), ()

    @impl(high.IfOp)
    def run_high_if(self, interpreter: Interpreter, op: high.IfOp, args: PythonValues) -> PythonValues:
        (condition,) = args
        return interpreter.run_ssacfg_region(op.then_region if condition.item() else op.else_region, (), "if")

    @impl(high.LoopOp)
    def run_high_loop(self, interpreter: Interpreter, op: high.LoopOp, args: PythonValues) -> PythonValues:
        trip_count, condition, carried = group_like(op, args)
        trips = op.static_trips if trip_count is None else trip_count.item()
        trip = 0
        while (trips is None or trip < trips) and (condition is None or condition.item()):
            yielded = interpreter.run_ssacfg_region(op.body, (np.array(trip, np.int64), *carried), "loop")
            condition, carried = (None, yielded) if condition is None else (yielded[0], yielded[1:])
            trip += 1
        return tuple(carried)

    @impl(IfOp)
    def run_if(self, interpreter: Interpreter, op: IfOp, args: PythonValues) -> PythonValues:
        (condition,) = args
        interpreter.run_ssacfg_region(op.then_region if condition.array.item() else op.else_region, (), "if")
        return ()

    @impl(LoopOp)
    def run_loop(self, interpreter: Interpreter, op: LoopOp, args: PythonValues) -> PythonValues:
        buffers = dict(zip(op.operands, args, strict=True))
        trips = op.static_trips if op.trip_count is None else buffers[op.trip_count].array.item()
        trip = 0
        while (trips is None or trip < trips) and (op.condition is None or buffers[op.condition].array.item()):
            interpreter.run_ssacfg_region(op.body, (trip,), "loop")
            trip += 1
        return ()
