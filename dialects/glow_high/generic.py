"""`generic`: maps, folds and rows over an index space, like linalg.generic, for computations without an operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.irdl import base, opt_prop_def, prop_def, region_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.affine_maps import affine_maps, maps_attribute, sums_in, verify_maps
from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import is_integer, is_narrow, signless
from glow_mlir.dialects.generic_form import (
    KINDS,
    OUT_OF_RANGE,
    PARALLEL,
    REDUCTION,
    ROW,
    GenericForm,
    IndexedRead,
    check_windows,
    row_type,
)
from glow_mlir.dialects.glow_high.access import AccessMap
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.expressed import form_map
from glow_mlir.dialects.glow_high.interfaces import Arithmetic
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.properties import (
    ints,
    optional_ints_prop,
    optional_sizes_prop,
    optional_type_prop,
    sizes,
    text,
)
from glow_mlir.dialects.shapes import Shape, element_of, require, sizes_of, tensor
from glow_mlir.dialects.sizes import largest, smallest
from glow_mlir.dialects.stages import IndicesOp, RowType, StageOp, YieldOp, dimensions_of, element_at, verify_scalar
from glow_mlir.support.symbols import Sizes
from glow_mlir.xdsl_patches.definitions import op_definition

MAX_REACH = 1 << 62
"""The largest index of a sum: the sum of two of them has 64 bits."""


@op_definition
class GenericOp(HighOp):
    """
    A chain of stages at each point of the parallel dimensions, over elements selected by affine maps.

    `maps` has a map from the index space for each operand, and then for the result; each yields a dimension, or 0 where
    an operand broadcasts. `iterators` has the kind of each dimension: `parallel` and `row` ones are axes of the result,
    `reduction` ones are folded, and stages run over these last two. A map may yield sums, `d0 * 2 + d1 - 1`: windows,
    which move along parallel dimensions. Steps of a fold whose elements lie outside of the operand are skipped, and
    `extents` has the sizes of dimensions that no operand has as an axis, in order. The body has an argument for each
    operand, a row over the dimensions that are not parallel, and yields a row or a scalar for the result. `element` is
    the element type of a result of unsigned integers, since the body is signless.

    A symbol of a map is an indexed read: the axis is read at an element of an operand of integers. `indices` has the
    number of that operand for each symbol, `index_maps` which of its elements it is; a negative one counts from the
    back. With one out of range the operator fails, as `failure` says. Along dimensions of its symbols, an operand may
    be longer than the index space.

    ```mlir
    %y = glow_high.generic %x {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                               iterators = ["parallel", "reduction"]} {
    ^bb0(%row: !glow.row<f32, [1]>):
      %sum = glow.stage(%row) over [1] fold [add] along [1] {
      ^bb1(%e: f32):
        %square = arith.mulf %e, %e : f32
        glow.yield %square : f32
      } : f32
      %norm = math.sqrt %sum : f32
      glow.yield %norm : f32
    } : tensor<8xf32>
    ```
    """

    name = "glow_high.generic"

    sources = var_operand_def(TENSOR)
    maps = prop_def(base(ArrayAttr))
    iterators = prop_def(base(ArrayAttr))
    extents = optional_sizes_prop()
    element = optional_type_prop()
    indices = optional_ints_prop()
    index_maps = opt_prop_def(base(ArrayAttr))
    failure = opt_prop_def(StringAttr)
    result = result_def(TENSOR)
    body = region_def("single_block")

    @classmethod
    def of(
        cls,
        sources: Sequence[SSAValue],
        form: GenericForm,
        location: LocationAttr | None = None,
        failure: str = OUT_OF_RANGE,
    ) -> Self:
        """The operator of that form, whose block becomes its body; raises `VerifyException` if the form is invalid."""
        properties: dict[str, Attribute] = {
            "maps": maps_attribute(form.maps),
            "iterators": ArrayAttr(map(StringAttr, form.kinds)),
        }
        if form.extents:
            properties["extents"] = to_attribute(form.extents)
        if form.element != signless(form.element):
            properties["element"] = form.element
        if form.reads:
            properties["indices"] = to_attribute([read.operand for read in form.reads])
            properties["index_maps"] = maps_attribute([read.affine for read in form.reads])
            properties["failure"] = to_attribute(failure)
        return cls.inferred(sources, properties, location, [Region(form.block)])

    def read_operands(self) -> Sequence[int]:
        """Which operand each map is of."""
        return range(len(self.inputs()))

    def read_values(self) -> Sequence[SSAValue]:
        """The operand that each map is of."""
        return self.inputs()

    def views(self) -> Sequence[Sizes]:
        """The sizes of the operands, as the maps see them."""
        return [sizes_of(value) for value in self.inputs()]

    def kinds(self) -> list[str]:
        """The kind of each dimension."""
        return [item.data for item in self.iterators if isinstance(item, StringAttr)]

    def row_dimensions(self) -> Shape:
        """The dimensions that are not parallel."""
        return tuple(number for number, kind in enumerate(self.kinds()) if kind != PARALLEL)

    def own_maps(self) -> tuple[AffineMap, ...]:
        """The map of each operand, then that of the result."""
        return affine_maps(self.maps)

    def own_body(self) -> Block:
        """The chain of stages."""
        return self.body.block

    def generic_form(self) -> GenericForm:
        """The maps, kinds and stages, as they are."""
        kinds, extents = tuple(self.kinds()), sizes(self.extents)
        return GenericForm(self.own_maps(), kinds, self.own_body(), self.result_element(), extents, reads=self.reads())

    def reads(self) -> tuple[IndexedRead, ...]:
        """The indexed read behind each symbol of the maps."""
        return tuple(map(IndexedRead, ints(self.indices), affine_maps(self.index_maps)))

    def result_element(self) -> Attribute:
        """The element type of the result; raises `VerifyException` where the body computes another one."""
        (result,) = yielded_rows(self.own_body())
        computed = element_at(result.type)
        element = computed if self.element is None else self.element
        require(signless(element) == computed, f"the body yields {computed}, which is no {element}")
        return element

    def space(self) -> Sizes:
        """The sizes of the index space; raises `VerifyException` where a dimension has no operand."""
        kinds, (*maps, _) = self.kinds(), self.own_maps()
        inputs = self.inputs()
        symbols = [(read.affine, sizes_of(inputs[read.operand])) for read in self.reads()]
        known = verify_maps(inputs, maps, len(kinds), symbols, may_be_sums=True)
        missing, extents = [number for number in range(len(kinds)) if number not in known], sizes(self.extents)
        moved = {position for affine in maps for terms in sums_in(affine).values() for position in terms.steps}
        unknown = [f"d{number}" for number in missing if not extents or number not in moved]
        require(not unknown, f"no operand says how long {', '.join(unknown)} is")
        require(len(extents) == len(missing), f"extents must have {len(missing)} elements, got {len(extents)}")
        require(all(smallest(size) >= 0 for size in extents), "extents must not be negative")
        return tuple((known | dict(zip(missing, extents, strict=True)))[number] for number in range(len(kinds)))

    def access_map(self) -> AccessMap:
        return form_map(self.own_maps(), self.kinds(), 0)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        count = len(self.own_maps())
        require(count == len(self.inputs()) + 1, f"{len(self.inputs())} operands and a result need as many maps")
        verify_reads(self)
        space = self.space()
        verify_reach(self.own_maps(), space)
        verify_kinds(self.kinds())
        verify_windows(self)
        verify_arguments(self)
        verify_program(self)
        return (tensor(tuple(space[axis] for axis in result_axes(self)), self.result_element()),)

    def arithmetic(self) -> Arithmetic:
        space = tuple(map(largest, self.space()))
        points = math.prod(size for number, size in enumerate(space) if number not in self.row_dimensions())
        total = Arithmetic(0)
        for op in self.own_body().ops:
            over = op.space if isinstance(op, StageOp) else ()
            times = points * math.prod(space[number] for number in over)
            inner = op.body.block.ops if isinstance(op, StageOp) else (op,)
            functions = sum(one.name.startswith("math.") for one in inner)
            total = Arithmetic(
                total.operations + times * (len(tuple(inner)) - functions), total.functions + times * functions
            )
        return total


def yielded_rows(block: Block) -> tuple[SSAValue, ...]:
    """The rows that a chain of stages gives."""
    last = block.last_op
    require(isinstance(last, YieldOp), "the body must end in glow.yield")
    return tuple(cast("YieldOp", last).values)


def result_axes(op: GenericOp) -> Shape:
    """The dimension of each axis of the result; raises `VerifyException` if an axis has none, or two axes have one."""
    affine = op.own_maps()[-1]
    axes = [expression.position for expression in affine.results if isinstance(expression, AffineDimExpr)]
    kinds = op.kinds()
    require(len(axes) == len(affine.results), f"the map {affine} of the result yields dimensions alone")
    expected = sorted(number for number, kind in enumerate(kinds) if kind != REDUCTION)
    require(sorted(axes) == expected, f"the result has the dimensions {expected}, which are no reductions, once each")
    return tuple(axes)


def verify_kinds(kinds: Sequence[str]) -> None:
    """Check the words of `iterators`."""
    for kind in kinds:
        require(kind in KINDS, f"an iterator is one of {', '.join(KINDS)}, not '{kind}'")


def verify_reads(op: GenericOp) -> None:
    """Check the indexed reads: the elements of operands that are indices into other operands."""
    indices, affine = ints(op.indices), affine_maps(op.index_maps)
    require(len(indices) == len(affine), f"{len(indices)} indices have as many maps, not {len(affine)}")
    has_failure = op.failure is not None and bool(text(op.failure))
    require(has_failure == bool(indices), "a failure is told in words where axes are read by index, and nowhere else")
    inputs = op.inputs()
    for read in op.reads():
        require(0 <= read.operand < len(inputs), f"operand {read.operand} of indices is none of {len(inputs)}")
        element, shape = element_of(inputs[read.operand]), sizes_of(inputs[read.operand])
        require(is_integer(element) and not is_narrow(element), f"indices are integers, not {element}")
        fits = read.affine.num_dims == len(op.kinds()) and len(read.affine.results) == len(shape)
        require(fits, f"map {read.affine} does not fit {len(op.kinds())} dimensions and shape {shape}")
        for expression, size in zip(read.affine.results, shape, strict=True):
            number = expression.value if isinstance(expression, AffineConstantExpr) else 0
            is_known = isinstance(expression, AffineDimExpr | AffineConstantExpr)
            require(is_known, f"map {read.affine} yields {expression}, neither a dimension nor a number")
            is_there = not isinstance(expression, AffineConstantExpr) or 0 <= number < smallest(size)
            require(is_there, f"map {read.affine} reads index {number} of {size}")


def verify_reach(maps: Sequence[AffineMap], space: Sizes) -> None:
    """Check that the indices of sums and the bounds of their loops fit into 64 bits."""
    for affine, terms in ((affine, terms) for affine in maps for terms in sums_in(affine).values()):
        reach = abs(terms.offset) + sum(abs(step) * max(largest(space[d]), 1) for d, step in terms.steps.items())
        require(reach <= MAX_REACH, f"map {affine} reaches index {reach}, more than {MAX_REACH}")


def verify_windows(op: GenericOp) -> None:
    """Check that windows move along parallel dimensions, and are folded as a whole."""
    try:
        if op.generic_form().is_windowed:
            require(not op.reads(), "windows and reads at indices are not in one computation")
            check_windows(op.own_maps(), op.kinds(), op.own_body())
    except ValueError as error:
        raise VerifyException(str(error)) from error


def verify_arguments(op: GenericOp) -> None:
    """Check that the body takes the elements of each operand that a point of the parallel dimensions has."""
    reads, kinds = op.reads(), op.kinds()
    expected = [
        row_type(signless(element_of(value)), affine, reads, kinds)
        for value, affine in zip(op.inputs(), op.own_maps(), strict=False)
    ]
    require(list(op.own_body().arg_types) == expected, f"the body must take {', '.join(map(str, expected))}")


def verify_program(op: GenericOp) -> None:
    """Check the ops of the body: stages over dimensions that are not parallel, and scalars in between."""
    rows, block = op.row_dimensions(), op.own_body()
    for inner in block.ops:
        if isinstance(inner, StageOp):
            outside = sorted(set(inner.space) - set(rows))
            require(not outside, f"a stage runs over {outside}, which are parallel, or none")
        elif isinstance(inner, IndicesOp):
            require(inner.dimension in rows, f"indices are along {inner.dimension}, which is parallel, or none")
        elif inner is not block.last_op:
            verify_scalar(inner, "generic")
    yielded = yielded_rows(block)
    require(len(yielded) == 1, f"the body yields one result, not {len(yielded)}")
    wanted = tuple(number for number in rows if op.kinds()[number] == ROW)
    is_operand = isinstance(yielded[0].owner, Block) and isinstance(yielded[0].type, RowType)
    require(not is_operand, "the body yields a row of an operand: a stage copies its elements")
    given = dimensions_of(yielded[0].type)
    require(given == wanted, f"the body yields elements over {list(given)}, the result has {list(wanted)}")
