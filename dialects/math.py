"""The `math` dialect, completed: xDSL's operations, and those of scalar functions that it lacks."""

from __future__ import annotations

from xdsl.dialects import math

from glow_mlir.dialects.completion import completed
from glow_mlir.dialects.scalar_builder import FUNCTIONS

MATH = completed(math.Math, [function.operation for function in FUNCTIONS.values()])
