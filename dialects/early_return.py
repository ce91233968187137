"""Returns from within loops and branches, which structured control flow cannot express otherwise."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.irdl import AnyAttr, operand_def, traits_def, var_operand_def

from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import LeanOperation


@op_definition
class ReturnIfOp(LeanOperation):
    """
    Return from the enclosing function if the condition holds; otherwise continue with the next operation.

    ```mlir
    glow.return_if %ends, %status : i32
    ```

    It is in a function of the `llvm` dialect, in loops and branches of `scf` at any depth, and returns one value, or
    none from a function without results.
    """

    name = "glow.return_if"

    condition = operand_def(i1)
    values = var_operand_def(AnyAttr())

    traits = traits_def(KnownAttributes())

    assembly_format = "$condition (`,` $values^ `:` type($values))? attr-dict"
