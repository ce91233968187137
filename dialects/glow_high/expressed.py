"""Operators that an expression in index notation defines: they are forms of `generic` with a name."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.affine_maps import dimensions_in
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.expressions import Number, Tensor, reduce_sum, size_along
from glow_mlir.dialects.generic_form import PARALLEL, GenericForm, generic_form, operand_tensors, rounded
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.independence import IndependentAxis
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.shapes import element_of, rank_of, sizes_of, tensor
from glow_mlir.support.symbols import Sizes


class Expressed(HighOp):
    """
    An operator with one result that `expression` computes; f16 and bf16 are computed with as f32.

    Result types, interpreter and machine code follow from it.
    """

    NOTATION: ClassVar[str] = ""
    """Which dimension each axis of the operands and of the result is, such as `x[..., j], y[..., j] -> z[...]`."""

    def notation(self) -> Signature:
        """The same for the operands, those that there are; raises `VerifyException` where their ranks do not fit."""
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

    def independent_axes(self) -> Sequence[IndependentAxis]:
        return parallel_axes_of(self.generic_form())

    def views(self) -> Sequence[Sizes]:
        """The sizes in which the notation sees each operand: some axes may be split, and so those of the result are."""
        return [sizes_of(value) for value in self.inputs()]

    @abstractmethod
    def expression(self, *operands: Tensor) -> Tensor:
        """What it computes of the operands."""

    def generic_form(self, is_exact: bool = False) -> GenericForm:
        """Maps, kinds of dimensions and stages; `is_exact` where floats, whichever they are, are f64."""
        values, signature = self.inputs(), self.notation()
        elements = [element_of(value) for value in values]
        if is_exact:
            elements = [f64 if is_float(element) else element for element in elements]
        root = rounded(self.expression(*operand_tensors(signature, elements)), elements[0])
        return generic_form(signature, root, elements, self.views())


def parallel_axes_of(form: GenericForm) -> list[IndependentAxis]:
    """The axes along which a computation of that form computes each index by itself."""
    *operands, result = ([str(axis) for axis in affine.results] for affine in form.maps)
    parallel = [f"d{number}" for number, kind in enumerate(form.kinds) if kind == PARALLEL]
    return [
        IndependentAxis(tuple(own.index(name) if name in own else None for own in operands), (result.index(name),))
        for name in parallel
    ]


@cache
def _parsed(notation: str) -> Signature:
    return Signature.parse(notation)


def axis_names(rank: int) -> tuple[str, ...]:
    """The dimensions of a tensor of that rank, one for each axis."""
    return tuple(f"d{axis}" for axis in range(rank))


def broadcast_access(name: str, value: SSAValue, sizes: Sizes) -> Access:
    """How an operand is read that broadcasts to those sizes, whose axes are `axis_names`."""
    own, names = sizes_of(value), axis_names(len(sizes))
    behind = len(sizes) - len(own)
    axes = ("1" if size == 1 and sizes[behind + axis] != 1 else names[behind + axis] for axis, size in enumerate(own))
    return Access(name, tuple(axes))


def mean_along(x: Tensor, names: Sequence[str], sizes: Sizes) -> Tensor:
    """The mean of `x` along dimensions of these names, which have those sizes; of nothing, 0."""
    share: Number | Tensor = 1.0 / size_along(x, names)
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        share = 1.0 / max(math.prod(known), 1)
    return reduce_sum(x, names) * share
