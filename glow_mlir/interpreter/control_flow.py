"""Meaning of branches and loops."""

from __future__ import annotations

from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls

from glow_mlir.dialects.glow_low.control_flow import IfOp
from glow_mlir.dialects.glow_low.loop import LoopOp


@register_impls
class ControlFlowFunctions(InterpreterFunctions):
    """Implementations of the ops that run regions."""

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
