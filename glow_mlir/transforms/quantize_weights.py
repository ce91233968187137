"""`quantize-weights`: constant operands of products, and tables that rows are taken from, become blocks of codes."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from glow_mlir.constants.codes import pack_codes
from glow_mlir.dialects.glow_high.blockwise import FEWEST, BlockwiseDequantizeOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, normalize_axis, shape_of
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.patterns import Kinds, Pattern, PatternPass, Walk, run_walks
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.quantization.options import WEIGHTS
from glow_mlir.quantization.weights import block_codes
from glow_mlir.transforms.kept_operators import kept_operators


@dataclass(frozen=True)
class QuantizeWeights(Pattern):
    """An operator that reads a constant matrix of f32 reads the numbers of codes of so many `bits` in its place."""

    bits: int
    block: int
    kept: AbstractSet[Operation] = frozenset()

    @property
    def roots(self) -> Kinds:
        return (MatMulOp, FullyConnectedOp, GatherOp)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(rewriter, Rewriter)
        if op in self.kept:
            return
        if isinstance(op, GatherOp):
            self._quantize_table(op, rewriter)
        elif isinstance(op, MatMulOp | FullyConnectedOp):
            self._quantize_product(op, rewriter)

    def _quantize_product(self, op: MatMulOp | FullyConnectedOp, rewriter: Rewriter) -> None:
        """Blocks are along the depth of the product."""
        is_turned = isinstance(op, MatMulOp) and flag(op.transpose_right)
        if isinstance(op, MatMulOp) and flag(op.transpose_left):
            return
        numbers = self._numbers(op.operands[1], not is_turned, rewriter)
        if numbers is not None:
            rewriter.replace(op, MatMulOp.make(op.operands[0], numbers, op.bias, transpose_right=True))

    def _quantize_table(self, op: GatherOp, rewriter: Rewriter) -> None:
        """Blocks are parts of a row."""
        if len(shape_of(op.input)) != 2 or normalize_axis(integer(op.axis), 2) != 0:
            return
        numbers = self._numbers(op.input, False, rewriter)
        if numbers is not None:
            rewriter.replace(op, GatherOp.make(numbers, op.indices, axis=0))

    def _numbers(self, value: SSAValue, is_turned: bool, rewriter: Rewriter) -> SSAValue | None:
        """The numbers that a constant matrix, or its transpose, is rounded to; `None` where it has no blocks."""
        shape = shape_of(value)
        if len(shape) != 2 or element_of(value) != f32:
            return None
        depth = shape[0] if is_turned else shape[1]
        known = rewriter.storage.value_of(value) if depth >= FEWEST and depth * self.bits % 32 == 0 else None
        if known is None or not np.isfinite(known).all():
            return None
        emit, hint = rewriter.emit, value.name_hint or "weights"
        codes, scales = block_codes(known.T if is_turned else known, self.bits, self.block)
        operands = emit.constant(pack_codes(codes, self.bits), hint), emit.constant(scales, f"{hint}_scales")
        statistics.count("weights quantized")
        return emit(BlockwiseDequantizeOp, *operands, bits=self.bits, block=self.block)


@dataclass(frozen=True)
class QuantizeWeightsPass(PatternPass):
    """
    Round weights to codes, `int8` or `int4`, of which `block` neighbours along the depth have a scale: constant right
    operands of matrix products, and tables of embeddings (Glow's fused rows).

    Operators of the nodes or kinds in `keep` keep theirs. No profile is needed: what is computed on stays f32.
    """

    name = "quantize-weights"

    to: str = "int8"
    block: int = 32
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.to not in WEIGHTS:
            raise OptionError(f"there are no weights of '{self.to}'", hint=f"they are f32, or {' or '.join(WEIGHTS)}")
        if self.block < FEWEST or self.block & (self.block - 1):
            raise OptionError(f"blocks cannot have {self.block} weights", hint=f"a power of two from {FEWEST} on")

    def walks(self) -> tuple[Walk, ...]:
        return (Walk((QuantizeWeights(WEIGHTS[self.to], self.block),)),)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = (inner for function in high_functions(op) for inner in operations(function))
        kept = kept_operators(ops, self.keep, "whose weights to keep")
        run_walks(op, (Walk((QuantizeWeights(WEIGHTS[self.to], self.block, kept),)),))
