"""Gradients through saved values: propagate to their computation, which is not repeated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.saved import SavedOp
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(SavedOp)
def saved(op: SavedOp, cotangents: SSAValue | Sequence[SSAValue | None], emit: Emitter) -> Contributions:
    """The cotangents of the computed values."""
    listed = [cotangents] if isinstance(cotangents, SSAValue) else cotangents
    known = [None] * len(listed)
    return {"operands_": [partial(_same, cotangent) for cotangent in (*listed, *known)]}


def _same(cotangent: SSAValue | None) -> SSAValue | None:
    return cotangent
