"""The gradient of variables, which are equal to their operands."""

from __future__ import annotations

from functools import partial

from xdsl.ir import SSAValue

from glow_mlir.dialects.glow_high.gradient import VariablesOp
from glow_mlir.differentiation.contributions import Contributions
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.registry import gradient


@gradient(VariablesOp)
def variables(op: VariablesOp, cotangents: SSAValue | tuple[SSAValue | None, ...], emit: Emitter) -> Contributions:
    """The cotangent of each variable, for derivatives with respect to values behind the operands."""
    given = (cotangents,) if isinstance(cotangents, SSAValue) else cotangents
    return {"values": [partial(_same, cotangent) for cotangent in given]}


def _same(cotangent: SSAValue | None) -> SSAValue | None:
    return cotangent
