"""The base of elementwise operators: broadcasting, type rules, and the scalar body that defines them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import TensorType, i1
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def
from xdsl.pattern_rewriter import RewritePattern
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import NUMBERS, TENSOR
from glow_mlir.dialects.scalar_builder import Scalar, ScalarBuilder
from glow_mlir.dialects.shapes import broadcast, element_of, sizes_of, tensor


class Elementwise(HighOp, HasFolderInterface, HasCanonicalizationPatternsInterface):
    """
    An operator that computes each element of its result from the elements at the same indices of its operands.

    Operands broadcast as in numpy. `scalar` defines its meaning: it needs no kernel and no semantics of its own.
    """

    TRUTH: ClassVar[bool] = False
    """Whether the result is a truth value for any operands."""
    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = (("result", "*"),)
    TRANSPOSES_ALL: ClassVar[bool] = True

    result = result_def(TENSOR)

    @abstractmethod
    def scalar(self, b: ScalarBuilder, *operands: Any, **_: Any) -> Scalar:
        """
        Compute the result element from the operand elements, in the order of the operands.

        An operator declares one parameter for each operand, each a `Scalar`.
        """

    def check_elements(self) -> Attribute:
        """The element type of the result unless that is a truth value; raises where operands do not fit."""
        first, *others = elements = [element_of(value) for value in self.inputs()]
        if any(element != first for element in others):
            raise VerifyException(f"operands have different element types: {', '.join(map(str, elements))}")
        return first

    def access_map(self) -> AccessMap:
        return self.aligned(tiled=0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        element = self.check_elements()
        shape = broadcast(*(sizes_of(value) for value in self.inputs()))
        return (tensor(shape, i1 if self.TRUTH else element),)

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        from glow_mlir.dialects.glow_high.canonicalization.elementwise import fold_elementwise

        return fold_elementwise(self)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from glow_mlir.dialects.glow_high.canonicalization.elementwise import patterns_of

        return patterns_of(cls)


class Unary(Elementwise):
    """An elementwise operator with one operand, by default of numbers."""

    input = operand_def(NUMBERS)


class Binary(Elementwise):
    """An elementwise operator with two operands that broadcast, by default of numbers."""

    left = operand_def(NUMBERS)
    right = operand_def(NUMBERS)
