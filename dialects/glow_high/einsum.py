"""Einstein summation: sums of products of elements, by labelled axes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import result_def, var_operand_def

from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.operand_types import NUMBERS, TENSOR
from glow_mlir.dialects.properties import text, text_prop
from glow_mlir.dialects.shapes import broadcast, element_of, rank_of, require, require_equal, sizes_of, tensor
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

Labels = tuple[str, ...]
"""The label of each axis: a letter, or for an axis of `...` its distance from the last of them."""

_TERM = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@dataclass(frozen=True)
class Contraction:
    """An equation applied to operands of certain ranks: the labels of each operand and of the result."""

    terms: tuple[Labels, ...]
    result: Labels

    @staticmethod
    def of(equation: str, ranks: Sequence[int]) -> Contraction:
        """Parse an equation in numpy's syntax; raises `VerifyException` if it does not fit the operands."""
        left, arrow, right = equation.replace(" ", "").partition("->")
        written = left.split(",")
        require(len(written) == len(ranks), f"'{equation}' has {len(written)} terms for {len(ranks)} operands")
        terms = tuple(_labels(term, rank) for term, rank in zip(written, ranks, strict=True))
        present = [label for term in terms for label in term]
        hidden = sorted({label for label in present if label.isdigit()}, key=int, reverse=True)
        if arrow:
            result = _labels(right, len(right.replace("...", "")) + len(hidden) * ("..." in right))
        else:
            result = (*hidden, *sorted(label for label in set(present) - set(hidden) if present.count(label) == 1))
        require(set(hidden) <= set(result), f"the result of '{equation}' lacks the axes of '...'")
        require(set(result) <= set(present), f"the result of '{equation}' has an axis that no term has")
        require(len(set(result)) == len(result), f"the result of '{equation}' has an axis twice")
        return Contraction(terms, result)

    def sizes(self, shapes: Sequence[Sizes]) -> dict[str, Size]:
        """The size of each label; raises `VerifyException` where operands differ. Axes of `...` broadcast."""
        sizes: dict[str, Size] = {}
        for labels, shape in zip(self.terms, shapes, strict=True):
            for label, size in zip(labels, shape, strict=True):
                known = sizes.setdefault(label, size)
                if label.isdigit():
                    (sizes[label],) = broadcast((known,), (size,), behind=None)
                else:
                    require_equal(known, size, f"axis '{label}' is {known} and {size} long")
        return sizes


def _labels(term: str, rank: int) -> Labels:
    """The labels of a term with `rank` axes."""
    match = _TERM.fullmatch(term)
    require(match is not None, f"'{term}' is no list of axes: letters, and '...' once")
    assert match is not None
    before, dots, after = match.groups()
    hidden = rank - len(before) - len(after)
    require(hidden >= 0 if dots else hidden == 0, f"'{term}' does not fit an operand of rank {rank}")
    return (*before, *(str(position) for position in reversed(range(hidden))), *after)


@op_definition
class EinsumOp(HighOp):
    """
    Sums of products of the operands' elements, by the axes that `equation` names (ONNX Einsum).

    ```mlir
    %y = glow_high.einsum %q, %k {equation = "bhid,bhjd->bhij"} : tensor<1x12x128x128xf32>
    ```
    """

    name = "glow_high.einsum"

    terms = var_operand_def(NUMBERS)
    equation = text_prop()
    result = result_def(TENSOR)

    def contraction(self) -> Contraction:
        """The parsed equation."""
        return Contraction.of(text(self.equation), [rank_of(term) for term in self.terms])

    def access_map(self) -> AccessMap:
        contraction = self.contraction()
        terms, labels = contraction.terms, contraction.result
        summed = {label for term in terms for label in term if label not in labels}
        named = [tuple(f"*{label}" if label in summed else label for label in term) for term in terms]
        return AccessMap(tuple(named), (labels,), 0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        contraction = self.contraction()
        elements = {element_of(term) for term in self.terms}
        require(len(elements) == 1, "operands have different element types")
        (element,) = elements
        sizes = contraction.sizes([sizes_of(term) for term in self.terms])
        return (tensor([sizes[label] for label in contraction.result], element),)
