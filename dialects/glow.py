"""The dialect `glow`: attributes that both dialects of ours share."""

from __future__ import annotations

from xdsl.ir import Dialect

from glow_mlir.dialects.sizes import SizesAttr
from glow_mlir.dialects.target import TargetAttr

GLOW = Dialect("glow", [], [SizesAttr, TargetAttr])
"""The target of a function, and sizes that are known at run time only."""
