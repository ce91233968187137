"""Gradients of keys and values in one table."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.cache import ExtendCacheOp
from glow_mlir.dialects.glow_high.elementwise_binary import SubOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.properties import size_of_property
from glow_mlir.dialects.shapes import element_of, sizes_of
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(ExtendCacheOp)
def extend_cache(op: ExtendCacheOp, cotangent: SSAValue, emit: Emitter) -> Contributions:
    """Rows get the cotangent of where they are: those of the past up to the start, and the new ones moved back."""
    batch, heads, earlier, depth = sizes_of(op.past)
    nothing = emit.splat(0, cotangent, (batch, heads, 0, depth))

    def past() -> SSAValue:
        return emit(ExtendCacheOp, cotangent, nothing, op.starts, op.starts, length=size_of_property(earlier))

    def rows() -> SSAValue:
        starts, ends = (
            value if element_of(value) == i64 else emit(CastOp, value, to=i64) for value in (op.starts, op.ends)
        )
        back, counts = (emit(SubOp, end, starts) for end in (emit.splat(0, i64, (batch,)), ends))
        count = size_of_property(sizes_of(op.rows)[2])
        return emit(ExtendCacheOp, nothing, cotangent, back, counts, length=count)

    return {"past": past, "rows": rows}
