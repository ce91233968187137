"""Operators defined by an expression in index notation: named forms of `generic`."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import TensorType, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.affine_maps import dimensions_in, sums_in
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.expressions import Number, Tensor, reduce_sum, size_along
from glow_mlir.dialects.generic_form import PARALLEL, GenericForm, generic_form, operand_tensors, rounded
from glow_mlir.dialects.glow_high.access import STAR, AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.shapes import MAX_AXES, element_of, rank_of, sizes_of, tensor
from glow_mlir.support.symbols import Sizes, numbers_in


class Expressed(HighOp):
    """
    An operator with one result that `expression` computes; f16 and bf16 are converted to f32 for the computation.

    Result types, interpreter, machine code and the folded dimensions are derived from it; the notation has no stars.
    """

    def notation(self) -> Signature:
        """The dimension of each axis; raises `VerifyException` where ranks of operands do not fit."""
        try:
            return _parsed(self.NOTATION).expanded([rank_of(value) for value in self.inputs()])
        except ValueError as error:
            raise VerifyException(str(error)) from error

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        try:
            form = self.generic_form()
        except ValueError as error:
            raise VerifyException(str(error)) from error
        space = form.space(self.views())
        return (tensor(tuple(space[dimension] for dimension in dimensions_in(form.maps[-1])), form.element),)

    def read_operands(self) -> Sequence[int]:
        """Which operand each access of the notation reads: one may be read in several ways."""
        return range(len(self.inputs()))

    def read_values(self) -> Sequence[SSAValue]:
        """The operand that each access of the notation reads."""
        inputs = self.inputs()
        return [inputs[number] for number in self.read_operands()]

    def read_elements(self) -> Sequence[Attribute]:
        """The element type as which the expression sees what each access reads."""
        return [element_of(value) for value in self.read_values()]

    def access_map(self) -> AccessMap:
        if list(self.views()) != [sizes_of(value) for value in self.inputs()]:
            return self.whole_map()  # The form has other axes than the operands.
        form = self.generic_form()
        return form_map(form.maps, form.kinds)

    def views(self) -> Sequence[Sizes]:
        """The sizes in which the notation sees what it reads; some axes may be split, and those of the result."""
        return [sizes_of(value) for value in self.read_values()]

    @abstractmethod
    def expression(self, *operands: Tensor) -> Tensor:
        """The result as an expression of the operands."""

    def generic_form(self, is_exact: bool = False) -> GenericForm:
        """Maps, kinds of dimensions and stages; `is_exact` where floats that are computed with are all f64."""
        signature, elements = self.notation(), self.read_elements()
        root = rounded(self.expression(*operand_tensors(signature, elements)), elements[0])
        if is_exact and root.operand is None:
            elements = [f64 if is_float(element) else element for element in elements]
            root = rounded(self.expression(*operand_tensors(signature, elements)), elements[0])
        return generic_form(signature, root, elements, self.views())


def form_map(maps: Sequence[AffineMap], kinds: Sequence[str], tiled: int = MAX_AXES) -> AccessMap:
    """
    The access map of a computation with these maps of operands and result, and kinds of dimensions.

    Axes that windows move along are read as a whole.
    """
    moved = {position for affine in maps for terms in sums_in(affine).values() for position in terms.steps}
    *operands, result = (
        tuple(
            STAR
            if not isinstance(axis, AffineDimExpr)
            else str(axis)
            if kinds[axis.position] == PARALLEL and axis.position not in moved
            else f"*{axis}"
            for axis in affine.results
        )
        for affine in maps
    )
    return AccessMap(tuple(operands), (result,), tiled)


@cache
def _parsed(notation: str) -> Signature:
    return Signature.parse(notation)


def axis_names(rank: int) -> tuple[str, ...]:
    """The dimensions of a tensor of that rank, one for each axis."""
    return tuple(f"d{axis}" for axis in range(rank))


def broadcast_access(name: str, value: SSAValue, sizes: Sizes) -> Access:
    """The access to an operand that broadcasts to those sizes, whose axes are `axis_names`."""
    own, names = sizes_of(value), axis_names(len(sizes))
    behind = len(sizes) - len(own)
    axes = ("1" if size == 1 and sizes[behind + axis] != 1 else names[behind + axis] for axis, size in enumerate(own))
    return Access(name, tuple(axes))


def mean_along(x: Tensor, names: Sequence[str], sizes: Sizes) -> Tensor:
    """The mean of `x` along dimensions of these names and sizes; 0 if there are no elements."""
    share: Number | Tensor = 1.0 / size_along(x, names)
    known = numbers_in(sizes)
    if len(known) == len(sizes):
        share = 1.0 / max(math.prod(known), 1)
    return reduce_sum(x, names) * share
