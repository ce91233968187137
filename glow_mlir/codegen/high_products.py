"""Upper halves of products of i32 in scalar bodies: on x86 from the products of even and of odd lanes."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Operation, SSAValue

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.builder.x86 import multiplies_even_lanes, shifted_products
from glow_mlir.dialects.scalar_parameters import parameter_number
from glow_mlir.dialects.target import Target
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class HighProduct:
    """
    A conversion to i32 of (`left` · `right` + `added`) / 2^`shift`, rounded down, where factors of i32 are multiplied
    as i64. `steps` are the operations before it, which have no other users.
    """

    left: SSAValue
    right: SSAValue
    added: int
    shift: int
    steps: tuple[Operation, ...]

    @staticmethod
    def of(op: Operation, target: Target, lanes: int) -> HighProduct | None:
        """The product that an operation converts, where vectors of `lanes` have fewer instructions for it."""
        if not isinstance(op, arith.TruncIOp) or op.results[0].type != i32 or not multiplies_even_lanes(target, lanes):
            return None
        shifted = _step(op.input, arith.ShRSIOp)
        total = None if shifted is None else _step(shifted.operands[0], arith.AddiOp)
        product = None if total is None else _step(total.operands[0], arith.MuliOp)
        if shifted is None or total is None or product is None:
            return None
        shift, added = _number(shifted.operands[1]), _number(total.operands[1])
        factors = [_step(factor, arith.ExtSIOp) for factor in product.operands]
        widened = [factor for factor in factors if factor is not None and factor.operands[0].type == i32]
        if shift is None or added is None or not 0 < shift < i32.width.data or len(widened) != len(factors):
            return None
        left, right = (factor.operands[0] for factor in widened)
        return HighProduct(left, right, added, shift, (shifted, total, product, *widened))

    def emit(self, b: Builder, left: Value, right: Value) -> Value:
        """The quotient of two vectors of i32."""
        return shifted_products(b, left, right, self.added, self.shift)


def _step(value: SSAValue, kind: type[Operation]) -> Operation | None:
    """The operation of a kind that computes a value for one user alone."""
    owner = value.owner
    return owner if isinstance(owner, kind) and value.has_one_use() else None


def _number(value: SSAValue) -> int | None:
    """The number of a constant of i64 that is known at compile time."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or value.type != i64 or parameter_number(value) is not None:
        return None
    assert isinstance(owner.value, IntegerAttr)
    return owner.value.value.data
