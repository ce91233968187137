"""`expand-powers`: compute small powers by products and square roots."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from glow_mlir.constants.storage import Storage
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.elementwise_binary import MulOp, PowOp
from glow_mlir.dialects.glow_high.elementwise_math import ReciprocalOp, SqrtOp
from glow_mlir.dialects.shapes import element_of
from glow_mlir.ir.emitter import Emitter
from glow_mlir.ir.rewriting import erase_dead, high_functions, replace
from glow_mlir.transforms.matching import Matcher

LARGEST = 4
"""The largest exponent: beyond, roundings add up."""


@dataclass(frozen=True)
class ExpandPowersPass(ModulePass):
    """
    Replace powers of floats whose exponent is a known multiple of 1/4 between -4 and 4 by products, square roots and a
    reciprocal, which take a tenth of the time of a general power: `x^0.75`, as local response normalization has it, is
    `sqrt(x) · sqrt(sqrt(x))`.

    The roots of -0 and of minus infinity, which are those of their opposites as powers, become -0 and NaN.
    """

    name = "expand-powers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage(op)
        matcher = Matcher(storage)
        for function in high_functions(op):
            for candidate in list(function.block.ops):
                if isinstance(candidate, PowOp) and is_float(element_of(candidate.left)):
                    _expand(candidate, matcher.number_of(candidate.right), storage)
            erase_dead(function.block)


def _expand(op: PowOp, exponent: float | None, storage: Storage) -> None:
    """Replace one power, where its exponent is among those; its base must not broadcast."""
    if exponent is None or op.left.type != op.result.type:
        return
    if not 0 < abs(exponent) <= LARGEST or (4 * exponent) % 1:
        return
    whole, quarters = divmod(int(abs(exponent) * 4), 4)
    emit = Emitter(op, storage)
    factors = [*_whole_power(op.left, whole, emit), *_root(op.left, quarters, emit)]
    value = factors[0]
    for factor in factors[1:]:
        value = emit(MulOp, value, factor)
    replace(op, [emit(ReciprocalOp, value) if exponent < 0 else value])


def _whole_power(x: SSAValue, exponent: int, emit: Emitter) -> list[SSAValue]:
    """Factors of x to a whole power, by squaring."""
    factors: list[SSAValue] = []
    while exponent:
        if exponent % 2:
            factors.append(x)
        exponent //= 2
        x = emit(MulOp, x, x) if exponent else x
    return factors


def _root(x: SSAValue, quarters: int, emit: Emitter) -> list[SSAValue]:
    """Factors of x to as many quarters, less than four."""
    factors: list[SSAValue] = []
    root = emit(SqrtOp, x) if quarters else x
    if quarters >= 2:
        factors.append(root)
    if quarters % 2:
        factors.append(emit(SqrtOp, root))
    return factors
