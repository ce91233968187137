"""Emit the loops of gradients from a function that emits one iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Region, SSAValue

from glow_mlir.dialects.glow_high.control_flow import INDEX, YieldOp
from glow_mlir.dialects.glow_high.loop import LoopOp, Rows, Trips
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.ir.emitter import Emitter

Values = Sequence[SSAValue]

Trip = Callable[[Emitter, SSAValue, Values, Values], tuple[Values, Values]]
"""
Emits an iteration from its number, the carried values and its rows; returns the carried values and the stacked rows.
"""


def emit_loop(
    trips: Trips,
    initial: Values,
    rows: Sequence[Rows],
    trip: Trip,
    emit: Emitter,
    reverse: Sequence[bool] = (),
) -> tuple[list[SSAValue], list[SSAValue]]:
    """
    Emit a loop; return the final carried values, and the stacked rows.

    `reverse` tells for each stacked result whether its rows are in reverse order; a single value applies to all.
    """
    taken = [tensor(sizes_of(item.value)[1:], element_of(item.value)) for item in rows]
    block = Block(arg_types=[INDEX, *(value.type for value in initial), *taken])
    end = YieldOp.of([], emit.location)
    block.add_op(end)
    count = 1 + len(initial)
    inner = Emitter(end, emit.storage, location=emit.location)
    carried, stacked = trip(inner, block.args[0], block.args[1:count], block.args[count:])
    end.operands = [*carried, *stacked]
    body, flags = Region([block]), reverse if len(reverse) != 1 else [*reverse] * len(stacked)
    loop = emit.insert(LoopOp.of(trips, initial, rows, body, flags, emit.location))
    assert isinstance(loop, LoopOp)
    return list(loop.finals), list(loop.stacked)
