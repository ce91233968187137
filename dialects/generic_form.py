"""The form of `generic` that an expression in index notation has: maps, kinds of dimensions, and stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Block
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSymExpr

from glow_mlir.dialects.affine_maps import Terms, dimensions_in, sums_in, symbols_in
from glow_mlir.dialects.element_types import is_float, is_narrow_float, number_width, signless
from glow_mlir.dialects.expressions import Tensor, cast, converted
from glow_mlir.dialects.index_notation import Access, Signature, Sum, index_of, sum_of
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.dialects.stages import POSITION_FOLDS, RUNNING_FOLDS, IndicesOp, RowType, stages_of
from glow_mlir.dialects.staging import Staging, parallel_dimensions, postorder
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.symbols import Size, Sizes

PARALLEL, ROW, REDUCTION = "parallel", "row", "reduction"
"""
Kinds of dimensions: axes of the result whose indices are independent; axes of the result whose indices are computed
together in one chain of stages; dimensions that are folded.
"""
KINDS = (PARALLEL, ROW, REDUCTION)

OUT_OF_RANGE = "an index is out of range"
"""The default error of indexed reads."""


@dataclass(frozen=True)
class IndexedRead:
    """The source of an index: axes whose map has a symbol are read at the index in an element of an integer operand."""

    operand: int
    """The number of the operand that has the index."""
    affine: AffineMap
    """The map from the index space to the element of that operand: dimensions and numbers."""


@dataclass(frozen=True)
class GenericForm:
    """The maps, dimensions and body of a `generic`."""

    maps: tuple[AffineMap, ...]
    """The map of each operand, then that of the result."""
    kinds: tuple[str, ...]
    """The kind of each dimension."""
    block: Block
    """The chain of stages, with an argument for each operand."""
    element: Attribute
    """The element type of the result."""
    extents: Sizes = ()
    """The sizes of the dimensions that are an axis of no operand, in order."""
    borders: tuple[tuple[tuple[int, int], ...], ...] = ()
    """The number of zeros before and after each axis of each operand, if any."""
    reads: tuple[IndexedRead, ...] = ()
    """The indexed read behind each symbol of the maps."""

    def space(self, shapes: Sequence[Sizes]) -> Sizes:
        """The sizes of the index space for operands of these shapes."""
        sizes: dict[int, Size] = {}
        elements = [(read.affine, shapes[read.operand]) for read in self.reads]
        for affine, own in (*zip(self.maps, shapes, strict=False), *elements):
            longer = dimensions_of_symbols(affine, self.reads)
            for expression, size in zip(affine.results, own, strict=True):
                if isinstance(expression, AffineDimExpr) and expression.position not in longer:
                    sizes[expression.position] = size
        extents = iter(self.extents)
        return tuple(sizes[number] if number in sizes else next(extents) for number in range(len(self.kinds)))

    @property
    def is_windowed(self) -> bool:
        """Whether the map of an operand yields a sum."""
        return any(map(sums_in, self.maps))

    def result_sizes(self, shapes: Sequence[Sizes]) -> Sizes:
        """The sizes of the result for operands of these shapes."""
        space, axes = self.space(shapes), self.maps[-1].results
        return tuple(space[axis.position] if isinstance(axis, AffineDimExpr) else 1 for axis in axes)

    @property
    def moves(self) -> bool:
        """Whether each element of the result is an unchanged element of an operand."""
        last = self.block.last_op
        return last is self.block.first_op and last is not None and last.operands[0] in self.block.args

    @property
    def rows(self) -> tuple[int, ...]:
        """The dimensions that are not parallel."""
        return tuple(number for number, kind in enumerate(self.kinds) if kind != PARALLEL)


def dimensions_of_symbols(affine: AffineMap, reads: Sequence[IndexedRead]) -> frozenset[int]:
    """The dimensions on which the symbols of a map depend; an operand may be longer than these dimensions."""
    return frozenset(number for symbol in symbols_in(affine) for number in dimensions_in(reads[symbol].affine))


def generic_form(
    signature: Signature, root: Tensor, elements: Sequence[Attribute], shapes: Sequence[Sizes]
) -> GenericForm:
    """
    The form of an expression whose operands have these element types and sizes.

    Raises `ValueError` if a dimension has two sizes, or if the dimensions of the expression are not the result's.
    """
    sizes = dimension_sizes(signature, shapes)
    given = [axis for axis in signature.result.axes if axis != "1"]
    if frozenset(given) != root.dimensions:
        raise ValueError(f"it gives a value over {_listed(root.dimensions)}, not {_listed(given)}")
    parallel = parallel_dimensions(root, given, sizes)
    indices = list(dict.fromkeys(axis for access in signature.operands for axis in access.axes if index_of(axis)))
    accesses = _read_accesses(signature, root, indices)
    known = Signature(tuple(accesses), signature.result).dimensions()
    rest = [name for name in known if name not in parallel]
    numbers = {name: number for number, name in enumerate((*parallel, *rest))}
    maps = [_map(access, numbers, sizes, own, indices) for access, own in zip(accesses, shapes, strict=True)]
    maps.append(_map(signature.result, numbers, sizes, [sizes.get(axis, 1) for axis in signature.result.axes]))
    axes = {axis for access in signature.operands for axis in access.axes}
    extents = tuple(sizes[name] for name in numbers if name not in axes)
    is_windowed = any(access.is_windowed for access in signature.operands)
    if is_windowed and indices:
        raise ValueError("windows and reads at indices are not in one kernel")
    kinds = [PARALLEL] * len(parallel) + [ROW if name in signature.result.axes else REDUCTION for name in rest]
    reads = tuple(_indexed_read(axis, signature, numbers, sizes, shapes) for axis in indices)
    rows = [row_type(signless(element), affine, reads, kinds) for element, affine in zip(elements, maps, strict=False)]
    block = Block(arg_types=rows)
    Staging(root, block, numbers, frozenset(parallel), sizes, may_keep=not is_windowed).run()
    if is_windowed:
        check_windows(maps, kinds, block)
    borders = tuple(access.borders for access in signature.operands) if is_windowed else ()
    return GenericForm(tuple(maps), tuple(kinds), block, root.element, extents, borders, reads)


def _read_accesses(signature: Signature, root: Tensor, indices: Sequence[str]) -> list[Access]:
    """The accesses to operands; operands that only occur as indices are read along the axes of the index."""
    values = {part.operand for part in postorder(root)}
    found = {index.name: index for axis in reversed(indices) if (index := index_of(axis)) is not None}
    return [
        access
        if number in values or access.name not in found
        else Access(access.name, tuple("0" if axis.isdigit() else axis for axis in found[access.name].axes))
        for number, access in enumerate(signature.operands)
    ]


def _indexed_read(
    axis: str, signature: Signature, numbers: Mapping[str, int], sizes: Mapping[str, Size], shapes: Sequence[Sizes]
) -> IndexedRead:
    """The read of the index at which an axis is accessed."""
    index = index_of(axis)
    assert index is not None
    number = [access.name for access in signature.operands].index(index.name)
    return IndexedRead(number, _map(index, numbers, sizes, shapes[number]))


def check_windows(maps: Sequence[AffineMap], kinds: Sequence[str], block: Block) -> None:
    """
    Check a computation whose maps have sums: windows move along parallel dimensions and are folded completely.

    Raises `ValueError` otherwise.
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
    """An operand as a tensor of an expression."""
    return Tensor(element, access.dimensions, access.name, operand=number, is_windowed=access.is_windowed)


def operand_tensors(signature: Signature, elements: Sequence[Attribute]) -> list[Tensor]:
    """The operands of an expression, with these element types; half floats are converted to f32."""
    found: list[Tensor] = []
    for number, (access, element) in enumerate(zip(signature.operands, elements, strict=True)):
        given = operand_tensor(element, access, number)
        found.append(cast(given, "float32") if is_half(element) else given)
    return found


def rounded(root: Tensor, element: Attribute) -> Tensor:
    """A value rounded to an element type if that is a half float; other values and operands are unchanged."""
    if not (is_half(element) and is_float(root.element)):
        return root
    is_operand = root.word == "convert" and root.parts[0].operand is not None
    return root.parts[0] if is_operand and root.parts[0].element == element else converted(root, element)


def is_half(element: Attribute) -> bool:
    """Whether elements are floats of 16 bits or less."""
    return is_narrow_float(element) or (is_float(element) and number_width(element) == HALF)


HALF = 16
"""Bits of a half float."""


def dimension_sizes(signature: Signature, shapes: Sequence[Sizes]) -> dict[str, Size]:
    """The size of each dimension; leading axes of size one broadcast."""
    sizes: dict[str, Size] = {}
    longer: list[tuple[str, Size]] = []
    windows: list[tuple[str, Sum, Size]] = []
    own = {access.name: shape for access, shape in zip(signature.operands, shapes, strict=True)}
    indices = [index for access in signature.operands for index in access.indices]
    for access in (*signature.operands, *indices):
        of_indices = frozenset[str]().union(*(index.dimensions for index in access.indices))
        for axis, size in zip(access.axes, own[access.name], strict=True):
            if axis in of_indices:
                longer.append((axis, size))
            elif (found := sum_of(axis)) is not None:
                windows.append((axis, found, size))
            elif index_of(axis) is None and not (axis.isdigit() and access in indices):
                _add_size(access, axis, size, sizes)
    for axis, size in longer:
        if sizes[axis] != size and largest(sizes[axis]) > smallest(size):
            raise ValueError(f"dimension '{axis}' is {sizes[axis]} long, and an axis that it reads {size}")
    sizes |= signature.extents
    for window in windows:
        _add_windows(*window, sizes)
    return sizes


def _add_size(access: Access, axis: str, size: Size, sizes: dict[str, Size]) -> None:
    """Add the size of a dimension that is an axis of an operand."""
    known = sizes.setdefault(axis, size)
    if axis.startswith("...") and known == 1:
        sizes[axis] = size
    elif axis == "1" and size != 1:
        raise ValueError(f"an axis of {access} has size 1, got {size}")
    elif known != size and not (axis.startswith("...") and size == 1):
        raise ValueError(f"dimension '{axis}' is {known} and {size} long")


def _add_windows(axis: str, found: Sum, size: Size, sizes: dict[str, Size]) -> None:
    """Add the size of a sum's dimension that nothing else determines: windows exceed both ends by the same amount."""
    unknown = [name for name in found.terms if name not in sizes]
    if not unknown:
        return
    if len(unknown) > 1:
        raise ValueError(f"the size of '{unknown[-1]}' in {axis} is unknown: write it, as in '; {unknown[-1]} < 3'")
    reach: Size = 1
    for name, times in found.terms.items():
        if name not in unknown:
            reach = (sizes[name] - 1) * times + reach
    span = size - reach - found.offset + max(-found.offset, 0)
    if smallest(span) < 0:
        raise ValueError(f"a window of {reach} along {axis} exceeds {size} elements and what is beside them")
    sizes[unknown[0]] = span // found.terms[unknown[0]] + 1


def _map(
    access: Access,
    numbers: Mapping[str, int],
    sizes: Mapping[str, Size],
    own: Sequence[Size],
    indices: Sequence[str] = (),
) -> AffineMap:
    """The map from the index space to a tensor; its symbols are the indices at which axes are read."""
    results: list[AffineExpr] = []
    for axis, size in zip(access.axes, own, strict=True):
        if axis in indices:
            results.append(AffineSymExpr(indices.index(axis)))
        elif (found := sum_of(axis)) is not None:
            terms = Terms({numbers[name]: times for name, times in found.terms.items()}, found.offset)
            results.append(terms.expression())
        elif axis.isdigit():
            results.append(AffineConstantExpr(0 if axis == "1" and size == 1 else int(axis)))
        elif size == 1 and sizes[axis] != 1:
            results.append(AffineConstantExpr(0))
        else:
            results.append(AffineDimExpr(numbers[axis]))
    has_symbols = any(axis in indices for axis in access.axes)
    return AffineMap(len(numbers), len(indices) if has_symbols else 0, tuple(results))


def row_type(element: Attribute, affine: AffineMap, reads: Sequence[IndexedRead], kinds: Sequence[str]) -> Attribute:
    """The type of the block argument for an operand with that map."""
    used = {*dimensions_in(affine), *dimensions_of_symbols(affine, reads)}
    return RowType.over(element, [number for number in used if kinds[number] != PARALLEL])


def _listed(names: Sequence[str] | frozenset[str]) -> str:
    return f"[{', '.join(sorted(names))}]"
