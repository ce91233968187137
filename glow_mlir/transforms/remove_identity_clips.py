"""`remove-identity-clips`: drop clips and ReLUs of tensors whose elements lie in the range anyway."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from glow_mlir.analysis.ranges import Range, value_ranges
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.canonicalization.clips import limits_of
from glow_mlir.ir.rewriting import high_functions, replace


@dataclass(frozen=True)
class RemoveIdentityClipsPass(ModulePass):
    """
    Drop operators that limit elements to a range in which they lie (Glow's RemoveIdentityRelu and RemoveIdentityClip).

    That a sigmoid is in [0, 1], or a maximum of positive numbers positive, is known by `analysis.ranges`.
    """

    name = "remove-identity-clips"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        for function in high_functions(op):
            ranges = value_ranges(function.block, storage)
            for candidate in list(function.block.ops):
                limits = limits_of(candidate)
                if limits is None:
                    continue
                known = ranges.get(limits.input, Range())
                if known.within(limits.low, limits.high):
                    replace(candidate, [limits.input])
