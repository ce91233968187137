"""`convert-precision`: compute in bf16 or f16 instead of f32."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.exceptions import VerifyException

from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import ClipOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.quantization import DequantizeOp, IntegerRescaleOp, QuantizeOp, RescaleOp
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, SaveOp, SplatOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.errors import OptionError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Kinds, Pattern, PatternPass, Walk, run_walks
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.transforms.kept_operators import kept_operators

PRECISIONS: dict[str, Attribute] = {"bf16": bf16, "f16": f16}
"""What the option `to` may be."""

MOST_F16 = float(np.finfo(np.float16).max)
"""The largest number of f16."""

AS_THEY_ARE = (CastOp, GetOp, SaveOp, SplatOp, QuantizeOp, DequantizeOp, RescaleOp, IntegerRescaleOp)
"""Operators whose types say what they are for."""


@dataclass(frozen=True)
class NarrowOperator(Pattern):
    """An operator on f32 takes and gives narrower floats, between conversions, where the backend executes it so."""

    to: Attribute
    clip: bool
    kept: AbstractSet[Operation] = frozenset()

    @property
    def roots(self) -> Kinds:
        return (HighOp,)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(op, HighOp)
        assert isinstance(rewriter, Rewriter)
        floats = [value for value in (*op.operands, *op.results) if element_of(value) == f32]
        if isinstance(op, AS_THEY_ARE) or op in self.kept or not floats or not op.operands:
            return
        emit = rewriter.emit
        operands = [self._narrowed(value, emit) if element_of(value) == f32 else value for value in op.operands]
        try:
            narrow = type(op).inferred(operands, op.properties, op.location)
        except VerifyException:  # Some operands have to be f32.
            rewriter.discard()
            return
        backend = rewriter.analysis(_backend_of)
        if backend.supports(op) and not backend.supports(narrow):
            narrow.drop_all_references()
            rewriter.discard()
            return
        emit.insert(narrow)
        pairs = zip(op.results, narrow.results, strict=True)
        rewriter.replace(op, (), [new if old.type == new.type else emit(CastOp, new, to=f32) for old, new in pairs])

    def _narrowed(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """A value of f32 as a narrower one: what it was widened from, where it was."""
        if isinstance(value.owner, CastOp) and element_of(value.owner.input) == self.to:
            return value.owner.input
        if self.clip and self.to == f16:
            value = emit(ClipOp, value, emit.splat(-MOST_F16, f32), emit.splat(MOST_F16, f32))
        return emit(CastOp, value, to=self.to)


@dataclass(frozen=True)
class ConvertPrecisionPass(PatternPass):
    """
    Compute in `to`, bf16 or f16, what is computed in f32, and store it so; sums stay f32 (Glow's
    convertFunctionToFloat16).

    Inputs and outputs keep their types, and operators of the nodes or kinds in `keep` their precision. With `clip`,
    numbers are limited to the range of f16 before they are converted, in place of becoming infinite.
    """

    name = "convert-precision"

    to: str = "bf16"
    keep: tuple[str, ...] = ()
    clip: bool = True

    def __post_init__(self) -> None:
        if self.to not in PRECISIONS:
            raise OptionError(f"there is no precision '{self.to}'", hint=f"it is f32, or {' or '.join(PRECISIONS)}")

    def walks(self) -> tuple[Walk, ...]:
        return (Walk((NarrowOperator(PRECISIONS[self.to], self.clip),)),)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kept = kept_operators((inner for function in high_functions(op) for inner in operations(function)), self.keep)
        run_walks(op, (Walk((NarrowOperator(PRECISIONS[self.to], self.clip, kept),)),))


def _backend_of(function: FunctionOp, storage: Storage) -> Backend:
    return get_backend(function.target.backend)
