"""
The base of all `glow_high` operators: it infers types and implements syntax and verification once.

A concrete operator declares operands, properties, results, and the dimension of each axis. Everything else — printing,
parsing, verification, the builder `make`, the `glow_low` instruction — is derived from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, TensorType, f64, i32
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    OptionalDef,
    RangeLengthConstraint,
    RangeOf,
    VariadicDef,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import (
    AttributeValue,
    parse_properties,
    print_properties,
    to_attribute,
)
from glow_mlir.dialects.element_types import is_float
from glow_mlir.dialects.glow_high.independence import Runs
from glow_mlir.dialects.glow_high.index_ranges import IndexRange
from glow_mlir.dialects.glow_high.interfaces import LinearForm, OnQuantized, Workload
from glow_mlir.dialects.glow_high.ranges import ANY, Range
from glow_mlir.dialects.glow_high.rows import over_rows
from glow_mlir.dialects.glow_high.samples import Samples, mapped_samples
from glow_mlir.dialects.glow_high.transposition import PerAxis, Untransposed, changed, untransposed
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.operand_types import TensorConstraint
from glow_mlir.dialects.properties import sizes
from glow_mlir.dialects.shapes import VALUES, Shape, element_of, shape_of, verify_extent
from glow_mlir.dialects.sizes import static
from glow_mlir.support.identity import MAX_KEPT, kept_by_identity, number_of
from glow_mlir.support.symbols import Size
from glow_mlir.xdsl_patches.operations import LeanOperation, Values, operands_of

SEGMENTS = (AttrSizedOperandSegments(as_property=True),)
"""`irdl_options` of an operator with more than one optional or variadic operand."""

Operand = SSAValue | Operation | Sequence[SSAValue] | None


def _values(operand: Operand) -> Sequence[SSAValue]:
    """The values for one operand definition."""
    if type(operand) in VALUES:  # Most are.
        return (cast("SSAValue", operand),)
    if operand is None or isinstance(operand, SSAValue | Operation):
        return () if operand is None else (_value(operand),)
    return [_value(value) for value in operand]


def _value(operand: SSAValue | Operation) -> SSAValue:
    return operand.results[0] if isinstance(operand, Operation) else operand


class HighOp(LeanOperation, Workload):
    """An operator on tensors, free of side effects; its result types follow from operands and properties."""

    traits = traits_def(Pure(), KnownAttributes())

    INPLACE: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs (result, operand) that may share a buffer: each element is read before it is written."""

    TRANSPOSES_ALL: ClassVar[bool] = False
    """Whether `untransposed` concerns all operands, such as operands that broadcast, instead of only the first."""

    AXIS_PROPERTIES: ClassVar[tuple[str, ...]] = ()
    """The properties whose value is an axis, or a list of axes, of the first operand."""

    LIST_PROPERTIES: ClassVar[Mapping[str, PerAxis]] = {}
    """The properties that are lists with items for each axis of the first operand within `...`."""

    OF_GRAPHS: ClassVar[frozenset[str]] = frozenset(
        {
            "fold",
            "linear_form",
            "of_share",
            "result_samples",
            "runs",
            "stated_batch",
            "untransposed",
        },
    )
    """The methods that only operators in a graph have; instructions do not share them."""

    IS_VIEW: ClassVar[bool] = False
    """Whether the result is a view of the first operand's memory with another type."""

    COMBINES_ROWS: ClassVar[bool] = False
    """Whether algorithms for it may combine rows of its result, which are indices of all axes but the last."""

    ON_QUANTIZED: ClassVar[OnQuantized | None] = None
    """How it computes on quantized values; `None` for an operator that stays in floats."""

    HAS_INSTRUCTION: ClassVar[bool] = True
    """Whether an instruction is derived from it; otherwise a pass replaces it before instructions are generated."""

    FAILURE: ClassVar[str] = ""
    """The error of operands on which it fails at run time; empty if it never fails."""

    def index_ranges(self) -> Sequence[IndexRange]:
        """
        The valid numbers of operands that are indices, for an operator that does not check each one as it uses it.

        It fails for any other number. Constants are checked at compile time, other operands before it executes.
        """
        return ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "name" in vars(cls) and not cls.NOTATION and cls.access_map is Workload.access_map:
            raise TypeError(f"{cls.__name__} has neither a NOTATION nor an access_map")

    def untransposed(self, permutation: Shape) -> Untransposed | None:
        """
        The operator on the sources of operands that are transposed by `permutation`; `None` if it has no such form.

        `permutation` has as many axes as the first operand, or, with `TRANSPOSES_ALL`, as the result.
        """
        return untransposed(self, permutation)

    def over_rows(self, is_row: Sequence[bool], count: Size) -> Mapping[str, Attribute] | None:
        """
        The properties with which the operator computes on all of `count` rows at once.

        Operands that are rows then have one more leading axis, and so has the result; other operands are unchanged.
        `None` if it has no such form.
        """
        return over_rows(self, is_row, count)

    def result_samples(self, operands: Sequence[Samples]) -> Sequence[Samples]:
        """The location of a batch's samples in each result, from their location in the operands."""
        return mapped_samples(self.access_map(), operands, [shape_of(result) for result in self.results])

    def runs(self, operands: Sequence[Runs | None], batch: int) -> Runs | None:
        """
        The runs of a batch's samples in the result, from their runs in operands, for axes that are not independent.
        `None` unless a part of the samples gives the same part of the result.
        """
        return None

    def of_share(self, axis: int, share: int, batch: int) -> Mapping[str, Attribute]:
        """The properties with which it computes `share` of the `batch` samples, along an axis of its result."""
        extents = [name for name, kind in self.LIST_PROPERTIES.items() if kind is PerAxis.EXTENT]
        lists = {name: list(sizes(self.properties[name])) for name in extents}
        for own in lists.values():
            own[axis] = static((own[axis],))[0] * share // batch
        return changed(self, **lists)

    def stated_batch(self) -> int:
        """The number of samples if the operator itself defines the batch axis; otherwise 0."""
        return 0

    def scales_channels(self) -> bool:
        """
        Whether f(s·x) = s·f(x) for factors s above zero, one for each channel, the last axis of its only tensor x.
        """
        return False

    def chooses_elements(self) -> bool:
        """
        Whether each element of the only result is the largest, or the smallest, of one or more elements of the first
        operand, so that limiting the operand to a range is the same as limiting the result.
        """
        return False

    def is_discontinuous(self) -> bool:
        """
        Whether the last bit of an input float may change a result entirely: by default if floats become integers, truth
        values or narrow floats.
        """
        results = map(element_of, self.results)
        return any(is_float(element_of(value)) for value in self.operands) and not all(map(is_float, results))

    def linear_form(self) -> LinearForm | None:
        """Its linear form in the first operand; `None` if it is not linear, or if channels are not the last axis."""
        return None

    def result_range(self, operands: Sequence[Range]) -> Range:
        """The range of a result's elements, from the ranges of the operands, of which there is at least one."""
        return ANY

    @classmethod
    def make(
        cls, *operands: Operand, location: LocationAttr | None = None, **properties: AttributeValue | Region | None
    ) -> Self:
        """
        Build the operator with inferred result types.

        Operands come in the order of their definition: a value, a sequence for a variadic one, `None` for an absent
        optional one (trailing ones may be left out). Numbers have the precision of f64 if operands are f64. Regions are
        given by their names, too. Raises `VerifyException` where operands do not fit.
        """
        definition = cls.get_irdl_definition()
        if len(operands) > len(definition.operands):
            raise VerifyException(f"{cls.name} has {len(definition.operands)} operands, got {len(operands)}")
        flat: list[SSAValue] = []
        segments = [0] * len(definition.operands)
        for position, (name, declared) in enumerate(definition.operands):
            group = operands[position] if position < len(operands) else None
            values = _values(group)
            if group is None and not isinstance(declared, VariadicDef):
                raise VerifyException(f"operand '{name}' is missing")
            flat += values
            segments[position] = len(values)
        attributes: dict[str, Attribute] = {}
        regions: list[Region] = []
        for name, value in properties.items():
            if isinstance(value, Region):
                regions.append(value)
            elif value is not None:
                wide = isinstance(value, float) and any(element_of(operand) == f64 for operand in flat)
                attributes[name] = to_attribute(value, wide)
        if definition.options:
            attributes["operandSegmentSizes"] = to_segments(segments)
        return cls.inferred(flat, attributes, location, regions)

    @classmethod
    def inferred(
        cls,
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
        location: LocationAttr | None = None,
        regions: Sequence[Region] = (),
    ) -> Self:
        """Build the operator from flat operands and complete properties; raises `VerifyException` like `make`."""
        op = cls.create(operands=operands, properties=properties, regions=regions, location=location)
        form = None if regions else _form_of(op)
        types = None if form is None else _INFERRED.get(form)
        if types is None:
            try:
                verify_operands(op, cls)
                types = op.infer_types()
            except VerifyException:
                op.drop_all_references()  # Operands keep no use by an op outside any block.
                raise
            if form is not None:
                if len(_INFERRED) >= MAX_KEPT:
                    _INFERRED.clear()
                _INFERRED[form] = types
        op.set_results(types)
        return op

    def verify_(self) -> None:
        for result, expected in zip(self.results, self.infer_types(), strict=True):
            if result.type != expected:
                raise VerifyException(f"result has type {result.type}, but {expected} follows from the operands")
            verify_extent(expected, "a result")

    def inputs(self) -> tuple[SSAValue, ...]:
        """The operands that are read; on a derived instruction, its @in operands."""
        return tuple(self.operands)

    def outputs(self) -> tuple[SSAValue, ...]:
        """The results; on a derived instruction, the operands that are written."""
        return tuple(self.results)

    def input_names(self) -> Sequence[str]:
        return _operand_names(type(self), len(operands_of(self)), segments_of(self))

    def output_names(self) -> Sequence[str]:
        return _result_names(type(self), len(self.results))

    def plain_shape(self, name: str) -> Shape:
        """The shape of the operand of that name; on a derived instruction, its shape before packing."""
        return shape_of(getattr(self, name))

    def operand_groups(self) -> list[tuple[str, list[SSAValue | None]]]:
        """The operands by name, in order of definition; an absent optional operand is `[None]`."""
        return operand_groups(self)

    def print(self, printer: Printer) -> None:
        values = [value for _, group in self.operand_groups() for value in group]
        while values and values[-1] is None:
            values.pop()
        for position, value in enumerate(values):
            printer.print_string(", " if position else " ")
            printer.print_string("none") if value is None else printer.print_operand(value)
        print_properties(printer, visible_properties(self))
        for region in self.regions:
            printer.print_string(" ")
            printer.print_region(region)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parse_operands(parser)
        properties = parse_properties(parser)
        definition = cls.get_irdl_definition()
        regions = [parser.parse_region() for _ in definition.regions]
        types: list[Attribute] = []
        if parser.parse_optional_punctuation(":"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        segments = assign_segments(parser, [d for _, d in definition.operands], values)
        if definition.options:
            properties["operandSegmentSizes"] = to_segments(segments)
        known, rest = split_known(properties, definition.properties)
        return cls.create(
            operands=[value for value in values if value is not None],
            result_types=types,
            properties=known,
            attributes=rest,
            regions=regions,
        )


Form = tuple[object, ...]
"""A key that operators share only if they have the same result types."""

_INFERRED: dict[Form, tuple[TensorType[Attribute], ...]] = {}
"""Form → the result types, which follow from it alone: a cache for equal layers."""


def _form_of(op: HighOp) -> Form:
    """The kind of an operator without regions, the types of its operands, and its properties."""
    types = [number_of(value.type) for value in operands_of(op)]
    return type(op), *types, *op.properties, *map(number_of, op.properties.values())


def to_segments(sizes: Sequence[int]) -> Attribute:
    """The `operandSegmentSizes` property for those group sizes."""
    return _segments_attribute(tuple(sizes))


@cache
def _segments_attribute(sizes: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i32, sizes)


def visible_properties(op: IRDLOperation) -> dict[str, Attribute]:
    """Properties and attributes worth printing: neither segment sizes nor values equal to their default."""
    definition = op.get_irdl_definition()
    visible: dict[str, Attribute] = {}
    for name, value in (*op.properties.items(), *op.attributes.items()):
        declared = definition.properties.get(name)
        if name == "operandSegmentSizes" or (declared is not None and declared.default_value == value):
            continue
        visible[name] = value
    return visible


def split_known(
    properties: Mapping[str, Attribute], declared: Mapping[str, object]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Split parsed pairs into declared properties and free attributes."""
    known = {name: value for name, value in properties.items() if name in declared}
    return known, {name: value for name, value in properties.items() if name not in declared}


class OperandSpan(NamedTuple):
    """The range `start` to `stop` (exclusive) of the operands of one definition among all operands of an op."""

    name: str
    start: int
    stop: int
    is_variadic: bool


def operand_spans(op: IRDLOperation) -> tuple[OperandSpan, ...]:
    """The span of each operand definition of `op`; decoded once for each class and segment sizes."""
    return decoded_spans(type(op), len(operands_of(op)), segments_of(op))


def segments_of(op: IRDLOperation) -> bytes | None:
    """The segment sizes of `op` in the encoding of the attribute; `None` where it has none."""
    segments: Any = op.properties.get("operandSegmentSizes")
    return segments.data.data if type(segments) is DenseArrayBase else None


@cache
def decoded_spans(kind: type[IRDLOperation], count: int, packed: bytes | None) -> tuple[OperandSpan, ...]:
    """The span of each operand definition in an op of that kind with `count` operands and these segment sizes."""
    definitions = kind.get_irdl_definition().operands
    if packed is None:
        surplus = count - sum(not isinstance(declared, VariadicDef) for _, declared in definitions)
        sizes = tuple(surplus if isinstance(declared, VariadicDef) else 1 for _, declared in definitions)
    else:
        sizes = i32.unpack(packed, len(packed) // i32.size)
    if len(sizes) != len(definitions) or sum(sizes) != count:
        raise VerifyException(f"{kind.name} has {count} operands, which its segment sizes {list(sizes)} do not cover")
    spans: list[OperandSpan] = []
    start = 0
    for (name, declared), size in zip(definitions, sizes, strict=True):
        spans.append(OperandSpan(name, start, start + size, is_variadic(declared)))
        start += size
    return tuple(spans)


@cache
def _operand_names(kind: type[IRDLOperation], count: int, packed: bytes | None) -> tuple[str, ...]:
    """The name of each operand of an op of that kind with `count` operands and these segment sizes."""
    return tuple(span.name for span in decoded_spans(kind, count, packed) for _ in range(span.start, span.stop))


@cache
def _result_names(kind: type[IRDLOperation], count: int) -> tuple[str, ...]:
    """The names of `count` results of an op of that kind, whose last one may be variadic; if 0, all names."""
    names = [name for name, _ in kind.get_irdl_definition().results]
    return (*names, *names[-1:] * (count - len(names)))[: count or None]


class OperandAccessor:
    """A descriptor for an operand, found by spans that are decoded once; xDSL unpacks segment sizes each time."""

    __slots__ = ("_is_optional", "_is_variadic", "_position", "_spans")

    def __init__(self, position: int, declared: object) -> None:
        self._position = position
        self._is_variadic = is_variadic(declared)
        self._is_optional = isinstance(declared, OptionalDef)
        self._spans: dict[tuple[int, bytes | None], tuple[int, int]] = {}

    def __get__(self, op: IRDLOperation, kind: type[IRDLOperation] | None = None) -> Any:
        operands = operands_of(op)
        segments = len(operands), segments_of(op)
        start, stop = self._spans.get(segments) or self._decoded(type(op), *segments)
        if self._is_variadic:
            return Values(operands[start:stop])
        return None if self._is_optional and start == stop else operands[start]

    def __set__(self, op: IRDLOperation, value: object) -> None:
        raise NotImplementedError("operands are written through `operands`")

    def _decoded(self, kind: type[IRDLOperation], count: int, segments: bytes | None) -> tuple[int, int]:
        """Start and stop of the operand in an operation with `count` operands and these segment sizes."""
        _, start, stop, _ = decoded_spans(kind, count, segments)[self._position]
        self._spans[count, segments] = start, stop
        return start, stop


OperationT = TypeVar("OperationT", bound=IRDLOperation)


def with_operand_accessors(kind: type[OperationT]) -> type[OperationT]:
    """The class, with an `OperandAccessor` for each operand if it has segment sizes."""
    for position, (name, declared) in enumerate(kind.get_irdl_definition().operands):
        setattr(kind, name, OperandAccessor(position, declared))
    return kind


@cache
def _constraints(operator: type[IRDLOperation]) -> dict[str, Callable[[Attribute], str]]:
    """Operand name → a function from a type to the error of that type as this operand."""
    found: dict[str, Callable[[Attribute], str]] = {}
    for name, declared in operator.get_irdl_definition().operands:
        each = declared.constr
        if isinstance(each, RangeLengthConstraint):
            each = each.constraint
        if isinstance(each, RangeOf) and isinstance(each.constr, TensorConstraint):
            found[name] = _fault_by(each.constr)
    return found


@cache
def _fault_by(constraint: TensorConstraint) -> Callable[[Attribute], str]:
    """`fault` of a constraint, cached by type."""
    return kept_by_identity(constraint.fault)


def verify_operands(op: IRDLOperation, operator: type[IRDLOperation]) -> None:
    """Check operands, tensors or buffers, against the definition of `operator`; raises `VerifyException`."""
    operands, constraints = operands_of(op), _constraints(operator)
    for name, start, stop, _ in operand_spans(op):
        if (fault_of := constraints.get(name)) is None:
            continue
        for value in operands[start:stop]:
            if fault := fault_of(value.type):
                raise VerifyException(f"operand '{name}' {fault}")


def operand_groups(op: IRDLOperation) -> list[tuple[str, list[SSAValue | None]]]:
    """The operands of any op by name, in order of definition; an absent optional operand is `[None]`."""
    operands = operands_of(op)
    groups: list[tuple[str, list[SSAValue | None]]] = []
    for name, start, stop, variadic in operand_spans(op):
        groups.append((name, list(operands[start:stop]) if variadic or stop > start else [None]))
    return groups


def parse_optional_value(parser: Parser) -> SSAValue | None:
    """Parse `%a` if it follows; the value must be defined before, and has the type of its definition."""
    operand = parser.parse_optional_unresolved_operand()
    if operand is None:
        return None
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error("SSA value used before assignment", operand.span)
    return values[operand.index]


def parse_defined_value(parser: Parser) -> SSAValue:
    """Parse `%a`, which must be defined before."""
    value = parse_optional_value(parser)
    return parser.raise_error("expected an operand") if value is None else value


def is_variadic(declared: object) -> bool:
    """Whether an operand definition takes any number of values, not only one or none."""
    return isinstance(declared, VariadicDef) and not isinstance(declared, OptionalDef)


def group_like(op: IRDLOperation, items: Iterable[Any]) -> list[Any]:
    """
    `items`, one for each operand of `op`, grouped by operand definition.

    A variadic operand gives a list, an absent optional one `None`.
    """
    present = list(items)
    return [
        present[start:stop] if variadic else present[start] if stop > start else None
        for _, start, stop, variadic in operand_spans(op)
    ]


def parse_operands(parser: Parser) -> list[SSAValue | None]:
    """Parse `%a, none, %b`; values must be defined before."""
    values: list[SSAValue | None] = []
    while True:
        if parser.parse_optional_keyword("none"):
            values.append(None)
        elif (value := parse_optional_value(parser)) is not None:
            values.append(value)
        elif values:
            parser.raise_error("expected an operand")
        else:
            return values
        if parser.parse_optional_punctuation(",") is None:
            return values


def assign_segments(parser: Parser, definitions: Sequence[object], values: Sequence[SSAValue | None]) -> list[int]:
    """How many of `values` each operand definition takes; the last one, if variadic, takes the rest."""
    sizes: list[int] = []
    position = 0
    for definition in definitions:
        if isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef):
            sizes.append(len(values) - position)
            position = len(values)
            continue
        present = position < len(values) and values[position] is not None
        if not present and not isinstance(definition, OptionalDef):
            parser.raise_error(f"expected {len(definitions)} operands, got {len(values)}")
        sizes.append(int(present))
        position += 1
    if position < len(values):
        parser.raise_error(f"expected {len(definitions)} operands, got {len(values)}")
    return sizes
