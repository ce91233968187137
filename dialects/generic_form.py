"""The form of `generic` that an expression in index notation has: maps, kinds of dimensions, and stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Block
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from glow_mlir.dialects.affine_maps import dimensions_in
from glow_mlir.dialects.element_types import is_float, is_narrow_float, number_width, signless
from glow_mlir.dialects.expressions import Tensor, cast, converted
from glow_mlir.dialects.index_notation import Access, Signature
from glow_mlir.dialects.stages import RowType
from glow_mlir.dialects.staging import Staging, parallel_dimensions
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes

PARALLEL, ROW, REDUCTION = "parallel", "row", "reduction"
"""
Kinds of dimensions: of the result, each index for itself; of the result, all indices in one chain of stages; not of it.
"""
KINDS = (PARALLEL, ROW, REDUCTION)


@dataclass(frozen=True)
class GenericForm:
    """What `generic` says of a computation."""

    maps: tuple[AffineMap, ...]
    """The map of each operand, then that of the result."""
    kinds: tuple[str, ...]
    """The kind of each dimension."""
    block: Block
    """The chain of stages, with an argument for each operand."""
    element: Attribute
    """The element type of the result."""

    def space(self, shapes: Sequence[Sizes]) -> Sizes:
        """The sizes of the index space, where the operands have these."""
        sizes: dict[int, Size] = {}
        for affine, own in zip(self.maps, shapes, strict=False):
            for expression, size in zip(affine.results, own, strict=True):
                if isinstance(expression, AffineDimExpr):
                    sizes[expression.position] = size
        return tuple(sizes[number] for number in range(len(self.kinds)))

    def result_sizes(self, shapes: Sequence[Sizes]) -> Sizes:
        """The sizes of the result, where the operands have these."""
        space, axes = self.space(shapes), self.maps[-1].results
        return tuple(space[axis.position] if isinstance(axis, AffineDimExpr) else 1 for axis in axes)

    @property
    def rows(self) -> tuple[int, ...]:
        """The dimensions that are not parallel."""
        return tuple(number for number, kind in enumerate(self.kinds) if kind != PARALLEL)


def generic_form(
    signature: Signature, root: Tensor, elements: Sequence[Attribute], shapes: Sequence[Sizes]
) -> GenericForm:
    """
    The form of an expression, whose operands have these element types and sizes.

    Raises `ValueError` where a dimension has two sizes, or the expression other dimensions than the result.
    """
    sizes = _sizes(signature, shapes)
    given = [axis for axis in signature.result.axes if axis != "1"]
    if frozenset(given) != root.dimensions:
        raise ValueError(f"it gives a value over {_listed(root.dimensions)}, not {_listed(given)}")
    parallel = parallel_dimensions(root, given, sizes)
    rest = [name for name in signature.dimensions() if name not in parallel]
    numbers = {name: number for number, name in enumerate((*parallel, *rest))}
    maps = [_map(access, numbers, sizes, own) for access, own in zip(signature.operands, shapes, strict=True)]
    maps.append(_map(signature.result, numbers, sizes, [sizes.get(axis, 1) for axis in signature.result.axes]))
    kinds = [PARALLEL] * len(parallel) + [ROW if name in signature.result.axes else REDUCTION for name in rest]
    rows = [_row(element, affine, kinds) for element, affine in zip(elements, maps, strict=False)]
    block = Block(arg_types=rows)
    Staging(root, block, numbers, frozenset(parallel), sizes).run()
    return GenericForm(tuple(maps), tuple(kinds), block, root.element)


def operand_tensor(element: Attribute, access: Access, number: int) -> Tensor:
    """An operand of an expression, as it is."""
    names = frozenset(axis for axis in access.axes if axis != "1")
    return Tensor(element, names, access.name, operand=number)


def operand_tensors(signature: Signature, elements: Sequence[Attribute]) -> list[Tensor]:
    """The operands of an expression, of these element types; half floats are computed with as f32."""
    found: list[Tensor] = []
    for number, (access, element) in enumerate(zip(signature.operands, elements, strict=True)):
        given = operand_tensor(element, access, number)
        found.append(cast(given, "float32") if is_half(element) else given)
    return found


def rounded(root: Tensor, element: Attribute) -> Tensor:
    """A float as one of an element type, if that is a half float; anything else as it is."""
    if not (is_half(element) and is_float(root.element)):
        return root
    return converted(root, element)


def is_half(element: Attribute) -> bool:
    """Whether elements are floats of 16 bits or less."""
    return is_narrow_float(element) or (is_float(element) and number_width(element) == HALF)


HALF = 16
"""Bits of a half float."""


def _sizes(signature: Signature, shapes: Sequence[Sizes]) -> dict[str, Size]:
    """How long each dimension is; leading axes of one element broadcast."""
    sizes: dict[str, Size] = {}
    for access, own in zip(signature.operands, shapes, strict=True):
        for axis, size in zip(access.axes, own, strict=True):
            known = sizes.setdefault(axis, size)
            if axis.startswith("...") and known == 1:
                sizes[axis] = size
            elif axis == "1" and size != 1:
                raise ValueError(f"an axis of {access} has size 1, got {size}")
            elif known != size and not (axis.startswith("...") and size == 1):
                raise ValueError(f"dimension '{axis}' is {known} and {size} long")
    return sizes


def _map(access: Access, numbers: Mapping[str, int], sizes: Mapping[str, Size], own: Sequence[Size]) -> AffineMap:
    """The map of a tensor from the index space."""
    results: list[AffineExpr] = [
        AffineConstantExpr(0) if axis == "1" or (size == 1 and sizes[axis] != 1) else AffineDimExpr(numbers[axis])
        for axis, size in zip(access.axes, own, strict=True)
    ]
    return AffineMap(len(numbers), 0, tuple(results))


def _row(element: Attribute, affine: AffineMap, kinds: Sequence[str]) -> Attribute:
    """The type of the argument for an operand."""
    return RowType.over(signless(element), [number for number in dimensions_in(affine) if kinds[number] != PARALLEL])


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
