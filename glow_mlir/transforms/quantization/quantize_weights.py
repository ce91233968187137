"""`quantize-weights`: block-quantize constant operands of products, and gathered tables."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from glow_mlir.constants.sub_byte_values import DOT_GROUP_BITS, pack_sub_bytes
from glow_mlir.dialects.glow_high.blockwise import FEWEST, Blockwise, BlockwiseDequantizeOp
from glow_mlir.dialects.glow_high.data_movement import PadOp, SliceOp
from glow_mlir.dialects.glow_high.indexing import GatherOp
from glow_mlir.dialects.glow_high.linear import FullyConnectedOp, MatMulOp
from glow_mlir.dialects.properties import flag, integer
from glow_mlir.dialects.shapes import element_of, normalize_axis, rank_of, shape_of
from glow_mlir.errors import OptionError
from glow_mlir.ir import statistics
from glow_mlir.ir.patterns import Kinds, Pattern, PatternPass, Walk, run_walks
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.options.compilation import WEIGHTS
from glow_mlir.quantization.weights import quantize_blocks
from glow_mlir.rewriting.kept_operators import kept_operators
from glow_mlir.support.activity import warn
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class QuantizeWeights(Pattern):
    """Replace a constant f32 matrix by blocks quantized to `bits` bits."""

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
        """Quantize blocks along the depth of the product; the left operand is zero-padded to match."""
        is_turned = isinstance(op, MatMulOp) and flag(op.transpose_right)
        if isinstance(op, MatMulOp) and flag(op.transpose_left):
            return
        numbers = self._numbers(op.operands[1], not is_turned, rewriter)
        if numbers is None:
            return
        left = op.operands[0]
        if missing := self._missing(shape_of(op.operands[1])[is_turned]):
            widths = [0] * (2 * rank_of(left) - 1)
            left = rewriter.emit(PadOp, left, pads=[*widths, missing])
        rewriter.replace(op, MatMulOp.make(left, numbers, op.bias, transpose_right=True))

    def _quantize_table(self, op: GatherOp, rewriter: Rewriter) -> None:
        """Quantize blocks of the rows of a table; padding is sliced off the gathered rows."""
        if len(shape_of(op.input)) != 2 or normalize_axis(integer(op.axis), 2) != 0:
            return
        # A slice of rows of a run-time size cannot be expressed.
        part = shape_of(op.result) if self._missing(shape_of(op.input)[1]) else None
        numbers = self._numbers(op.input, False, rewriter)
        if numbers is None:
            return
        rows = rewriter.emit(GatherOp, numbers, op.indices, axis=0)
        if part is not None:
            rows = rewriter.emit(SliceOp, rows, starts=[0] * len(part), ends=part)
        rewriter.replace(op, (), [rows])

    def _missing(self, depth: int) -> int:
        """The number of quantized values that a row lacks to fill whole dot groups."""
        return -depth % (DOT_GROUP_BITS // self.bits)

    def _numbers(self, value: SSAValue, is_turned: bool, rewriter: Rewriter) -> SSAValue | None:
        """
        The dequantized blocks of a constant matrix, or of its transpose; `None` if it is not quantized.

        Rows are zero-padded to whole dot groups.
        """
        shape = shape_of(value)
        if len(shape) != 2 or element_of(value) != f32 or shape[not is_turned] < FEWEST:
            return None
        known = rewriter.storage.value_of(value)
        if known is None or not np.isfinite(known).all():
            return None
        emit, hint = rewriter.emit, value.name_hint or "weights"
        weights = known.T if is_turned else known
        whole = np.pad(weights, ((0, 0), (0, self._missing(weights.shape[1]))))
        quantized, scales = quantize_blocks(whole, self.bits, self.block)
        operands = emit.constant(pack_sub_bytes(quantized, self.bits), hint), emit.constant(scales, f"{hint}_scales")
        statistics.count("weights quantized")
        return emit(BlockwiseDequantizeOp, *operands, bits=self.bits, block=self.block)


@dataclass(frozen=True)
class QuantizeWeightsPass(PatternPass):
    """
    Quantize weights to `int8` or `int4` with a scale per block of `block` neighbours along the depth: constant right
    operands of matrix products, and embedding tables (Glow's fused rows).

    Applies to finite f32 matrices at least 16 deep; others stay as they are, and a warning reports if there is none.
    Rows are zero-padded to whole dot groups of 32 bits. Operators of the nodes or kinds in `keep` keep their weights.
    No profile is needed: activations stay f32.
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
        ops = (inner for function in high_functions(op) for inner in operations(function))
        if not kept and not any(isinstance(inner, Blockwise) for inner in ops):
            hint = f"those of products with constant matrices of finite f32, at least {FEWEST} deep, can be"
            warn(OptionError(f"no weights are rounded to {self.to}", hint=hint))
