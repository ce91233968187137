"""The operands of matrix products and convolutions, whatever the algorithm."""

from __future__ import annotations

from xdsl.ir import Attribute

from glow_mlir.codegen.bodies import Epilogue, ExtraOperand, epilogue_of
from glow_mlir.codegen.builder.value import Index, Value
from glow_mlir.codegen.kernels.products.dot_products import MULTIPLY_ADDS_F32, DotProduct
from glow_mlir.codegen.selection.kernel import KernelCall
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ProductOperands:
    """
    The addresses of the operands of a product: the first result, the first element of the input, the packed weights,
    aligned to a whole vector, and optionally a bias with one element per column.

    `dot` tells how they are multiplied and summed. The epilogue is applied to each result; `extras` are its operands.
    """

    out: Value
    inp: Value
    weights: Value
    bias: Value | None = None
    dot: DotProduct = MULTIPLY_ADDS_F32
    epilogue: Epilogue | None = None
    extras: tuple[ExtraOperand, ...] = ()

    @staticmethod
    def of(call: KernelCall, name: str, weights: Value, dot: DotProduct = MULTIPLY_ADDS_F32) -> ProductOperands:
        """Return the operands of a call that multiplies the operand `name` by packed weights."""
        source, bias = call.one(name), call.maybe("bias")
        epilogue, extras = epilogue_of(call)
        start = None if bias is None else bias.pointer
        return ProductOperands(call.result.pointer, source.pointer, weights, start, dot, epilogue, extras)

    @property
    def element(self) -> Attribute:
        """The element type of the accumulators."""
        return self.dot.accumulators

    @property
    def output_element(self) -> Attribute:
        """The element type of the result."""
        return self.element if self.epilogue is None else self.epilogue.element

    def bias_at(self, column: Index) -> Value:
        """Return the address of the bias from a column on; without a bias, an address that is never read."""
        return self.out if self.bias is None else self.bias.at(column, self.element)
