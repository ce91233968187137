"""
Stages: the computation of `generic` at each point of its parallel dimensions, as a chain of maps and folds over rows.

A row has an element for each index of some dimensions that are not parallel. A stage combines linalg's `map` and
`reduce`: it runs over an index space, applies a body of scalar ops to the elements of rows, folds some of the yielded
values along dimensions, and keeps the others as rows. A value without dimensions is a scalar, which ops of `arith` and
`math` between stages and the bodies of later stages use directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, StringAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    base,
    irdl_attr_definition,
    param_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure

from glow_mlir.dialects.attribute_syntax import to_attribute
from glow_mlir.dialects.element_types import is_float, is_integer, is_storable, number_width, signless
from glow_mlir.dialects.folds import FLOAT_FOLDS, FOLDS, INTEGER_FOLDS, KINDS
from glow_mlir.dialects.glow_high.base import parse_defined_value
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.properties import ints
from glow_mlir.dialects.scalar_builder import is_scalar_op
from glow_mlir.dialects.shapes import Shape, require
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import LeanOperation

POSITION_FOLDS = {
    f"{which}_{extreme}": (extreme, which == "last")
    for which in ("first", "last")
    for extreme in (fold.word for fold in FOLDS.values() if fold.kind.better)
}
"""
Folds of elements into the index of the first or last extreme along one dimension, NaN before each number, 0 of nothing
→ how the extreme is folded, and whether it is the last.
"""


RUNNING_FOLDS = {
    f"{'before' if exclusive else 'running'}_{word}{'_back' if reverse else ''}": (word, exclusive, reverse)
    for word in (kind.name for kind in KINDS.values() if kind.is_running)
    for exclusive in (False, True)
    for reverse in (False, True)
}
"""
Folds of all elements up to each one along one dimension, which gives a row, carried in f64 where they are floats
→ how they fold, whether without the element itself, and whether from the end.
"""


def index_type(element: Attribute) -> Attribute:
    """The type of indices of elements of a type, chosen so that both have the same number of vector lanes."""
    return i64 if number_width(element) == 64 else i32


@irdl_attr_definition
class RowType(ParametrizedAttribute, TypeAttribute):
    """Elements of one type over dimensions of an index space, in ascending order: `!glow.row<f32, [2]>`."""

    name = "glow.row"

    element: Attribute = param_def()
    dimensions: DenseArrayBase[IntegerType] = param_def()

    @staticmethod
    def over(element: Attribute, dimensions: Sequence[int]) -> Attribute:
        """The type of a row over these dimensions: the element type itself where there are none."""
        if not dimensions:
            return element
        return RowType(element, cast("DenseArrayBase[IntegerType]", to_attribute(sorted(dimensions))))

    def verify(self) -> None:
        dimensions = ints(self.dimensions)
        require(bool(dimensions), "a row has a dimension")
        require(list(dimensions) == sorted(set(dimensions)), f"dimensions of a row ascend, got {list(dimensions)}")

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.element)
        printer.print_string(f", {list(ints(self.dimensions))}>")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        parser.parse_punctuation("<")
        element = parser.parse_type()
        parser.parse_punctuation(",")
        dimensions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(">")
        return [element, DenseArrayBase.from_list(i64, dimensions)]


def element_at(type_: Attribute) -> Attribute:
    """The element type of a row; that of a scalar is its type."""
    return type_.element if isinstance(type_, RowType) else type_


def dimensions_of(type_: Attribute) -> Shape:
    """The dimensions of a row, in ascending order; a scalar has none."""
    return ints(type_.dimensions) if isinstance(type_, RowType) else ()


@op_definition
class YieldOp(LeanOperation):
    """The result elements of a stage's body, or the result rows of `generic`."""

    name = "glow.yield"

    values = var_operand_def(AnyAttr())

    traits = traits_def(IsTerminator(), Pure(), KnownAttributes())

    assembly_format = "$values attr-dict `:` type($values)"


@op_definition
class IndicesOp(LeanOperation):
    """
    The indices of a dimension as a row: `%i = glow.indices : !glow.row<i32, [1]>` holds 0, 1, 2, … along dimension 1.
    """

    name = "glow.indices"

    row = result_def(RowType)

    traits = traits_def(Pure(), KnownAttributes())

    assembly_format = "attr-dict `:` type($row)"

    @property
    def dimension(self) -> int:
        """The dimension whose indices they are."""
        return dimensions_of(self.row.type)[0]

    def verify_(self) -> None:
        type_ = self.row.type
        is_known = len(dimensions_of(type_)) == 1 and element_at(type_) in (i32, i64)
        require(is_known, f"indices are i32 or i64 along one dimension, not {type_}")


@op_definition
class StageOp(LeanOperation):
    """
    One pass over the index space of the dimensions `over`: apply the body to the elements of the rows `inputs`.

    The first values that the body yields are folded `along` some of the dimensions, each by its word in `folds`; their
    results are rows over the other dimensions, or scalars. The other values are kept as rows over all of `over`. Rows
    are complete before a later stage reads them.

    ```mlir
    %sum, %powers = glow.stage(%x) over [1] fold [add] along [1] {
    ^bb0(%e: f32):
      %0 = arith.subf %e, %peak : f32
      %1 = math.exp %0 : f32
      glow.yield %1, %1 : f32, f32
    } : f32, !glow.row<f32, [1]>
    ```
    """

    name = "glow.stage"

    inputs = var_operand_def(AnyAttr())
    over = prop_def(base(DenseArrayBase))
    along = prop_def(base(DenseArrayBase))
    folds = prop_def(base(ArrayAttr))
    results_ = var_result_def(AnyAttr())
    body = region_def("single_block")

    traits = traits_def(Pure(), KnownAttributes())

    @classmethod
    def of(
        cls, inputs: Sequence[SSAValue], over: Sequence[int], along: Sequence[int], folds: Sequence[str], body: Block
    ) -> StageOp:
        """A stage with that body, whose result types follow."""
        left = [dimension for dimension in over if dimension not in along]
        yielded = cast("Operation", body.last_op).operands
        types = [
            RowType.over(folded_type(value.type, word), over if word in RUNNING_FOLDS else left)
            for value, word in zip(yielded, folds, strict=False)
        ]
        types += [RowType.over(value.type, sorted(over)) for value in yielded[len(folds) :]]
        return cls.create(
            operands=inputs,
            properties={
                "over": to_attribute(sorted(over)),
                "along": to_attribute(sorted(along)),
                "folds": ArrayAttr(map(StringAttr, folds)),
            },
            result_types=types,
            regions=[Region(body)],
        )

    @property
    def space(self) -> Shape:
        """The dimensions that it runs over."""
        return ints(self.over)

    @property
    def folded(self) -> Shape:
        """The dimensions that it folds along."""
        return ints(self.along)

    @property
    def words(self) -> list[str]:
        """The fold of each of the first values."""
        return [item.data for item in self.folds if isinstance(item, StringAttr)]

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """The values that the body yields."""
        return tuple(cast("Operation", self.body.block.last_op).operands)

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        printer.print_list(self.inputs, printer.print_operand)
        printer.print_string(f") over {list(self.space)}")
        if self.words:
            printer.print_string(f" fold [{', '.join(self.words)}] along {list(self.folded)}")
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_list(self.result_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> StageOp:
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_defined_value(parser))
        parser.parse_keyword("over")
        over = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        folds: list[str] = []
        along: list[int] = []
        if parser.parse_optional_keyword("fold") is not None:
            folds = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
            parser.parse_keyword("along")
            along = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        region = parser.parse_region()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.create(
            operands=inputs,
            properties={
                "over": to_attribute(over),
                "along": to_attribute(along),
                "folds": ArrayAttr(map(StringAttr, folds)),
            },
            result_types=types,
            regions=[region],
        )

    def verify_(self) -> None:
        over, along, words = self.space, self.folded, self.words
        for what, listed in (("over", over), ("along", along)):
            require(list(listed) == sorted(set(listed)), f"dimensions '{what}' ascend, got {list(listed)}")
        require(bool(over), "a stage runs over a dimension at least: ops around stages compute scalars")
        require(set(along) <= set(over), f"it folds along {list(along)}, but runs over {list(over)}")
        require(bool(along) == bool(words), "folds need dimensions to fold along, and these folds")
        for value in self.inputs:
            require(isinstance(value.type, RowType), f"a stage takes rows: its body uses {value.type} as it is")
            outside = sorted(set(dimensions_of(value.type)) - set(over))
            require(not outside, f"a row over {list(dimensions_of(value.type))} has elements along {outside} too")
        self._verify_body(over, along, words)

    def _verify_body(self, over: Shape, along: Shape, words: Sequence[str]) -> None:
        block = self.body.block
        expected = [element_at(value.type) for value in self.inputs]
        require(list(block.arg_types) == expected, f"the body must take {', '.join(map(str, expected))}")
        for op in block.ops:
            verify_scalar(op, "the body of a stage")
        last = block.last_op
        require(isinstance(last, YieldOp), "the body must end in glow.yield")
        require(len(self.yielded) >= len(words), f"{len(words)} folds need as many elements")
        left = [dimension for dimension in over if dimension not in along]
        for position, (value, result) in enumerate(zip(self.yielded, self.results, strict=False)):
            is_folded = position < len(words)
            word = words[position] if is_folded else ""
            is_running = word in RUNNING_FOLDS
            if is_folded and not is_running:
                known = folds_of(value.type)
                require(bool(known), f"elements of {value.type} are not folded: convert them")
                require(word in known, f"{value.type} is folded by {', '.join(known)}, not '{word}'")
            element = folded_type(value.type, word)
            wanted = RowType.over(element, left if is_folded and not is_running else over)
            is_position = word in POSITION_FOLDS
            require(not is_position or len(along) == 1, f"positions are along one dimension, not {list(along)}")
            is_alone = len(over) == 1 and len(words) == len(self.results) == 1
            require(not is_running or is_alone, "a running fold has a stage over one dimension to itself")
            require(result.type == wanted, f"result {position} is {wanted}, not {result.type}")
        require(len(self.yielded) == len(self.results), f"{len(self.yielded)} elements give as many results")


def folded_type(element: Attribute, word: str) -> Attribute:
    """The result type of a fold of elements: for a position, the type of indices."""
    return index_type(element) if word in POSITION_FOLDS else element


def folds_of(element: Attribute) -> tuple[str, ...]:
    """The folds of elements of a type: floats of at least 32 bits and integers of at least 8 bits have some."""
    if is_float(element):
        return (*FLOAT_FOLDS, *_positions(FLOAT_FOLDS)) if number_width(element) >= MIN_FOLDED else ()
    return (*INTEGER_FOLDS, *_positions(INTEGER_FOLDS)) if is_integer(element) else ()


def _positions(words: Sequence[str]) -> list[str]:
    """The position folds that belong to some folds."""
    return [word for word, (extreme, _) in POSITION_FOLDS.items() if extreme in words]


MIN_FOLDED = 32
"""The minimum width of floats that are folded: sums of narrower floats would lose most of their digits."""


def verify_scalar(op: Operation, where: str) -> None:
    """Check that an op computes a scalar from scalars, or ends a block."""
    if isinstance(op, YieldOp):
        return
    require(is_scalar_op(op), f"{where} does not hold {op.name}")
    for value in (*op.operands, *op.results):
        fits = is_storable(value.type) and signless(value.type) == value.type
        require(fits, f"{op.name} in {where} has {value.type}, which is no element")


def stages_of(block: Block) -> Iterator[StageOp]:
    """The stages of a block, in order."""
    return (op for op in block.ops if isinstance(op, StageOp))


def scalar_ops_of(block: Block) -> Iterator[Operation]:
    """The ops on scalars of a block and of the bodies of its stages, in order."""
    for op in block.ops:
        if isinstance(op, StageOp):
            yield from scalar_ops_of(op.body.block)
        elif not isinstance(op, YieldOp | IndicesOp):
            yield op
