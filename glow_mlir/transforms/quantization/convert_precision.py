"""`convert-precision`: compute in bf16 or f16 instead of f32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from glow_mlir.backends.interface import Backend, get_backend
from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise import Elementwise
from glow_mlir.dialects.glow_high.elementwise_binary import ClipOp
from glow_mlir.dialects.glow_high.elementwise_math import CastOp
from glow_mlir.dialects.glow_high.interfaces import OnQuantized
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.errors import OptionError
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.patterns import Kinds, Pattern, PatternPass, Walk, run_walks
from glow_mlir.ir.rewriter import Rewriter
from glow_mlir.ir.rewriting import high_functions
from glow_mlir.ir.traversal import operations
from glow_mlir.rewriting.kept_operators import kept_operators
from glow_mlir.rewriting.quantization_plan import data_operands, form_of
from glow_mlir.support.dataclass import dataclass

PRECISIONS: dict[str, Attribute] = {"bf16": bf16, "f16": f16}
"""The values of the option `to`."""

MAX_F16 = float(np.finfo(np.float16).max)
"""The largest number of f16."""


@dataclass(frozen=True)
class Narrowing:
    """
    The operators of a function to narrow: `operators` take narrow floats, `readers` read some operands narrow.

    Products that the backend executes in narrow floats are narrowed, and data movement in front of them. Accumulators
    stay f32, and so do operators applied to them before the store. Elementwise operators read the narrow form of stored
    values (by operand number): their loops convert it back.
    """

    operators: AbstractSet[Operation]
    readers: Mapping[Operation, AbstractSet[int]]

    @staticmethod
    def of(function: FunctionOp, storage: Storage, kept: AbstractSet[Operation], to: Attribute) -> Narrowing:
        """The narrowing of a function whose `kept` operators compute in f32."""
        backend = get_backend(function.target.backend)
        program = [op for op in operations(function) if isinstance(op, HighOp) and op not in kept]
        stored: dict[SSAValue, None] = {}
        chosen: set[Operation] = set()
        for op in reversed(program):
            form, data = form_of(op), data_operands(op)
            if form not in (OnQuantized.PRODUCT, OnQuantized.MOVEMENT) or not all(element_of(v) == f32 for v in data):
                continue
            is_moved = form is OnQuantized.MOVEMENT and op.results[0] in stored
            if is_moved or (form is OnQuantized.PRODUCT and _has_narrow_form(op, to, backend)):
                chosen.add(op)
                stored |= dict.fromkeys(data)
        readers: dict[Operation, set[int]] = {}
        for value in stored:
            if isinstance(value.owner, GetOp | Block):
                continue  # Already stored.
            for use in value.uses:
                if isinstance(use.operation, Elementwise) and use.operation not in kept:
                    readers.setdefault(use.operation, set()).add(use.index)
        return Narrowing(chosen, readers)


@dataclass(frozen=True)
class NarrowOperator(Pattern):
    """Narrow a product of f32 with f32 accumulators; moved operands are stored narrow."""

    to: Attribute
    clip: bool
    kept: AbstractSet[Operation] = frozenset()

    @property
    def roots(self) -> Kinds:
        return (HighOp,)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        assert isinstance(op, HighOp)
        assert isinstance(rewriter, Rewriter)
        plan = rewriter.analysis(self._plan)
        emit = rewriter.emit
        if op in plan.readers:
            values = list(op.operands)
            for index in plan.readers[op]:
                values[index] = emit(CastOp, self._narrowed(values[index], emit), to=f32)
            rewriter.replace(op, type(op).inferred(values, op.properties, op.location))
        elif op in plan.operators:
            count = len(data_operands(op))
            operands = [*(self._narrowed(v, emit) for v in op.operands[:count]), *op.operands[count:]]
            if form_of(op) is OnQuantized.PRODUCT:
                rewriter.replace(op, _product(op, operands))
            else:
                moved = emit.insert(type(op).inferred(operands, op.properties, op.location)).results[0]
                rewriter.replace(op, (), [emit(CastOp, moved, to=f32)])

    def _plan(self, function: FunctionOp, storage: Storage) -> Narrowing:
        return Narrowing.of(function, storage, self.kept, self.to)

    def _narrowed(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """Convert an f32 value to the narrow type, or return the value it was widened from."""
        if isinstance(value.owner, CastOp) and element_of(value.owner.input) == self.to:
            return value.owner.input
        if self.clip and self.to == f16:
            value = emit(ClipOp, value, emit.splat(-MAX_F16, f32), emit.splat(MAX_F16, f32))
        return emit(CastOp, value, to=self.to)


@dataclass(frozen=True)
class ConvertPrecisionPass(PatternPass):
    """
    Multiply in `to`, bf16 or f16, instead of f32, and store operands in it; accumulators stay f32 (Glow's
    convertFunctionToFloat16).

    Inputs and outputs keep their types, and operators of the nodes or kinds in `keep` their precision. With `clip`,
    numbers are clipped to the range of f16 before conversion instead of becoming infinite.
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
        ops = (inner for function in high_functions(op) for inner in operations(function))
        kept = frozenset(kept_operators(ops, self.keep))
        run_walks(op, (Walk((NarrowOperator(PRECISIONS[self.to], self.clip, kept),)),))


def _product(op: HighOp, operands: Sequence[SSAValue]) -> HighOp:
    """Rebuild a product with other operands and its accumulators as result."""
    return type(op).inferred(operands, {**op.properties, "to": f32}, op.location)


def _has_narrow_form(op: HighOp, to: Attribute, backend: Backend) -> bool:
    """Whether a backend executes a product of narrow operands as well as of f32."""
    if not backend.supports(op):
        return True  # The product is lowered to another one first.
    data = data_operands(op)
    casts = [CastOp.make(value, to=to) for value in data]
    narrow = _product(op, [*(cast.result for cast in casts), *op.operands[len(data) :]])
    supported = backend.supports(narrow)
    for created in (narrow, *casts):
        created.drop_all_references()
    return supported
