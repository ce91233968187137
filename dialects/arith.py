"""The `arith` dialect, completed: xDSL's operations plus the upstream remainder of floats, which it lacks."""

from __future__ import annotations

from xdsl.dialects import arith as xdsl_arith
from xdsl.irdl import traits_def
from xdsl.traits import Pure

from glow_mlir.dialects.completion import completed
from glow_mlir.xdsl_patches.definitions import op_definition


@op_definition
class RemFOp(xdsl_arith.FloatingPointLikeBinaryOperation):
    """
    The remainder of a division towards zero, exact, with the sign of the dividend: C's `fmod`.

    ```mlir
    %r = arith.remf %x, %y : f32
    ```
    """

    name = "arith.remf"

    traits = traits_def(Pure())


ARITH = completed(xdsl_arith.Arith, [RemFOp])
