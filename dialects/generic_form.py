"""The form of `generic` that an expression in index notation has: maps, kinds of dimensions, and stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Block
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from glow_mlir.dialects.affine_maps import Terms, dimensions_in, sums_in
from glow_mlir.dialects.element_types import is_float, is_narrow_float, number_width, signless
from glow_mlir.dialects.expressions import Tensor, cast, converted
from glow_mlir.dialects.index_notation import Access, Signature, Sum, sum_of
from glow_mlir.dialects.sizes import smallest
from glow_mlir.dialects.stages import POSITION_FOLDS, RUNNING_FOLDS, IndicesOp, RowType, stages_of
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
    extents: Sizes = ()
    """The sizes of the dimensions that no operand has as an axis, in order."""
    borders: tuple[tuple[tuple[int, int], ...], ...] = ()
    """For each operand how many zeros there are around it along each axis, if any."""

    def space(self, shapes: Sequence[Sizes]) -> Sizes:
        """The sizes of the index space, where the operands have these."""
        sizes: dict[int, Size] = {}
        for affine, own in zip(self.maps, shapes, strict=False):
            for expression, size in zip(affine.results, own, strict=True):
                if isinstance(expression, AffineDimExpr):
                    sizes[expression.position] = size
        extents = iter(self.extents)
        return tuple(sizes[number] if number in sizes else next(extents) for number in range(len(self.kinds)))

    @property
    def is_windowed(self) -> bool:
        """Whether the map of an operand has a sum."""
        return any(map(sums_in, self.maps))

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
    axes = {axis for access in signature.operands for axis in access.axes}
    extents = tuple(sizes[name] for name in numbers if name not in axes)
    is_windowed = any(access.is_windowed for access in signature.operands)
    kinds = [PARALLEL] * len(parallel) + [ROW if name in signature.result.axes else REDUCTION for name in rest]
    rows = [_row(element, affine, kinds) for element, affine in zip(elements, maps, strict=False)]
    block = Block(arg_types=rows)
    Staging(root, block, numbers, frozenset(parallel), sizes, may_keep=not is_windowed).run()
    if is_windowed:
        check_windows(maps, kinds, block)
    borders = tuple(access.borders for access in signature.operands) if is_windowed else ()
    return GenericForm(tuple(maps), tuple(kinds), block, root.element, extents, borders)


def check_windows(maps: Sequence[AffineMap], kinds: Sequence[str], block: Block) -> None:
    """
    Check a computation of which maps have sums: windows move along parallel dimensions, and are folded as a whole.

    Raises `ValueError` where they are not.
    """
    rows = [number for number, kind in enumerate(kinds) if kind != PARALLEL]
    if any(kinds[number] == ROW for number in rows):
        raise ValueError("windows are folded: each dimension of the result is parallel, in each fold")
    for terms in (terms for affine in maps for terms in sums_in(affine).values()):
        folded = [number for number in terms.steps if number in rows]
        if len(folded) != 1 or min(terms.steps.values()) <= 0:
            raise ValueError("a sum has one dimension that is folded, and each a number above 0 of times")
    for stage in stages_of(block):
        if list(stage.space) != rows or list(stage.folded) != rows:
            raise ValueError("folds along windows are along all dimensions that are folded at all")
        if any(word in POSITION_FOLDS or word in RUNNING_FOLDS for word in stage.words):
            raise ValueError("positions and running folds are not along windows")
    if any(isinstance(op, IndicesOp) for op in block.ops):
        raise ValueError("indices are not along windows")


def operand_tensor(element: Attribute, access: Access, number: int) -> Tensor:
    """An operand of an expression, as it is."""
    names = frozenset(name for name in access.names if name != "1")
    return Tensor(element, names, access.name, operand=number, is_windowed=access.is_windowed)


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
            if sum_of(axis) is not None:
                continue
            known = sizes.setdefault(axis, size)
            if axis.startswith("...") and known == 1:
                sizes[axis] = size
            elif axis == "1" and size != 1:
                raise ValueError(f"an axis of {access} has size 1, got {size}")
            elif known != size and not (axis.startswith("...") and size == 1):
                raise ValueError(f"dimension '{axis}' is {known} and {size} long")
    sizes |= signature.extents
    for access, own in zip(signature.operands, shapes, strict=True):
        for axis, size in zip(access.axes, own, strict=True):
            if (found := sum_of(axis)) is not None:
                _add_windows(axis, found, size, sizes)
    return sizes


def _add_windows(axis: str, found: Sum, size: Size, sizes: dict[str, Size]) -> None:
    """Say how long the dimension of a sum is that nothing else says: as many windows as reach over both ends alike."""
    unknown = [name for name in found.terms if name not in sizes]
    if not unknown:
        return
    if len(unknown) > 1:
        raise ValueError(
            f"nothing says how long '{unknown[-1]}' is in {axis}: write its size, as in '; {unknown[-1]} < 3'"
        )
    reach: Size = 1
    for name, times in found.terms.items():
        if name not in unknown:
            reach = (sizes[name] - 1) * times + reach
    span = size - reach - found.offset + max(-found.offset, 0)
    if smallest(span) < 0:
        raise ValueError(f"a window of {reach} along {axis} exceeds {size} elements and what is beside them")
    sizes[unknown[0]] = span // found.terms[unknown[0]] + 1


def _map(access: Access, numbers: Mapping[str, int], sizes: Mapping[str, Size], own: Sequence[Size]) -> AffineMap:
    """The map of a tensor from the index space."""

    def index(axis: str, size: Size) -> AffineExpr:
        if (found := sum_of(axis)) is not None:
            return Terms({numbers[name]: times for name, times in found.terms.items()}, found.offset).expression()
        is_one = axis == "1" or (size == 1 and sizes[axis] != 1)
        return AffineConstantExpr(0) if is_one else AffineDimExpr(numbers[axis])

    return AffineMap(len(numbers), 0, tuple(map(index, access.axes, own)))


def _row(element: Attribute, affine: AffineMap, kinds: Sequence[str]) -> Attribute:
    """The type of the argument for an operand."""
    return RowType.over(signless(element), [number for number in dimensions_in(affine) if kinds[number] != PARALLEL])


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
