"""The dialect `glow`: the ops and attributes that `glow_high` and `glow_low` share."""

from __future__ import annotations

from xdsl.ir import Dialect

from glow_mlir.dialects.device import DeviceAttr
from glow_mlir.dialects.early_return import ReturnIfOp
from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.dialects.stages import IndicesOp, RowType, StageOp, YieldOp
from glow_mlir.dialects.target import TargetAttr

GLOW = Dialect("glow", [IndicesOp, ReturnIfOp, StageOp, YieldOp], [DeviceAttr, RowType, SizesAttr, TargetAttr])
"""Targets of functions, devices of modules, run-time sizes, the stages of `generic`, and early returns."""
