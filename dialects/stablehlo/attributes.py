"""
Attributes and types of the dialects `stablehlo` and `chlo`, in the notation of OpenXLA.

Words such as a direction of comparison are `#stablehlo<comparison_direction LT>`. Records such as the dimension numbers
of a product are `#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>`; fields that are
empty lists or 0 are not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import ArrayAttr, f64
from xdsl.ir import Attribute, Data, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

Field = int | float | tuple[int, ...] | Attribute
"""A field of a record: a number, a truth value, a list of numbers, or another attribute."""


class _Words(Data[str]):
    """One of a few words."""

    WORDS: ClassVar[Sequence[str]]

    @classmethod
    def parse_word(cls, parser: AttrParser) -> str:
        """Parse one of the words, without anything around it."""
        word = parser.parse_identifier()
        if word not in cls.WORDS:
            parser.raise_error(f"unknown {cls.name} '{word}'; there are {', '.join(cls.WORDS)}")
        return word


class WordAttr(_Words, SpacedOpaqueSyntaxAttribute):
    """One of a few words: `#stablehlo<NAME WORD>`."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return cls.parse_word(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data)


class RecordAttr(Data[tuple[tuple[str, Field], ...]]):
    """
    A record of named fields: `#stablehlo.NAME<field = [1], other = 2>`.

    The fields are in the order of `FIELDS`, and those that are empty lists, 0 or false are left out, in text unless the
    record is `COMPLETE`.
    """

    FIELDS: ClassVar[Mapping[str, type]]
    """Field → the type of its values: `tuple`, `int`, `float`, `bool` or `Attribute`."""

    COMPLETE: ClassVar[bool] = False
    """Whether its text has all fields."""

    @classmethod
    def of(cls, **fields: Field | Sequence[int]) -> Self:
        """The record with these fields; raises `KeyError` for an unknown one."""
        given = {name: tuple(value) if isinstance(value, Sequence) else value for name, value in fields.items()}
        for name in given:
            _ = cls.FIELDS[name]
        return cls(tuple((name, given[name]) for name in cls.FIELDS if given.get(name)))

    def integers(self, name: str) -> tuple[int, ...]:
        """A field that is a list of numbers, which is empty where it is not written."""
        value = dict(self.data).get(name, ())
        assert isinstance(value, tuple)
        return value

    def integer(self, name: str) -> int:
        """A field that is a number, which is 0 where it is not written."""
        value = dict(self.data).get(name, 0)
        assert isinstance(value, int)
        return value

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, Field], ...]:
        found: dict[str, Field] = {}

        def field() -> None:
            name = parser.parse_identifier()
            kind = cls.FIELDS.get(name)
            if kind is None or name in found:
                parser.raise_error(f"unexpected field '{name}' of {cls.name}; there are {', '.join(cls.FIELDS)}")
            parser.parse_punctuation("=")
            found[name] = _parse_field(parser, kind)

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, field)
        return tuple((name, found[name]) for name in cls.FIELDS if found.get(name))

    def print_parameter(self, printer: Printer) -> None:
        given = dict(self.data)
        empty = {name: kind() for name, kind in self.FIELDS.items() if kind is not Attribute}
        shown = {name: given.get(name, empty.get(name)) for name in self.FIELDS} if self.COMPLETE else given
        fields = [(name, value) for name, value in shown.items() if value is not None]
        with printer.in_angle_brackets():
            printer.print_list(fields, lambda field: _print_field(printer, *field))


def parse_integers(parser: AttrParser) -> tuple[int, ...]:
    """Parse `[1, 2]`."""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))


def _parse_field(parser: AttrParser, kind: type) -> Field:
    if kind is tuple:
        return parse_integers(parser)
    if kind is bool:
        return parser.parse_boolean()
    if kind is int:
        return parser.parse_integer(allow_boolean=False)
    if kind is float:
        return float(parser.parse_number())
    return parser.parse_attribute()


def _print_field(printer: Printer, name: str, value: Field) -> None:
    printer.print_string(f"{name} = ")
    if isinstance(value, tuple):
        printer.print_string(f"[{', '.join(map(str, value))}]")
    elif isinstance(value, bool):
        printer.print_string(str(value).lower())
    elif isinstance(value, float):
        printer.print_float(value, f64)
    elif isinstance(value, int):
        printer.print_string(str(value))
    else:
        printer.print_attribute(value)


def _word(name: str, words: str) -> type[WordAttr]:
    """The attribute `#DIALECT<NAME WORD>` with one of these words."""
    title = "".join(part.title() for part in name.split(".")[-1].split("_"))
    members = {"name": name, "WORDS": tuple(words.split()), "__doc__": f"`#{name.replace('.', '<', 1)} WORD>`."}
    return irdl_attr_definition(type(f"{title}Attr", (WordAttr,), members))


def _record(name: str, is_complete: bool = False, **fields: type) -> type[RecordAttr]:
    """The attribute `#NAME<field = value>` with these fields, all of which are in its text if it `is_complete`."""
    title = "".join(part.title() for part in name.split(".")[-1].split("_"))
    members = {"name": name, "FIELDS": fields, "COMPLETE": is_complete, "__doc__": f"`#{name}<{', '.join(fields)}>`."}
    return irdl_attr_definition(type(f"{title}Attr", (RecordAttr,), members))


ComparisonDirectionAttr = _word("stablehlo.comparison_direction", "EQ NE GE GT LE LT")
ComparisonTypeAttr = _word("stablehlo.comparison_type", "NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED")
PrecisionAttr = _word("stablehlo.precision", "DEFAULT HIGH HIGHEST PACKED_NIBBLE")
FftTypeAttr = _word("stablehlo.fft_type", "FFT IFFT RFFT IRFFT")
TransposeAttr = _word("stablehlo.transpose", "TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT")
RngAlgorithmAttr = _word("stablehlo.rng_algorithm", "DEFAULT THREE_FRY PHILOX")
RngDistributionAttr = _word("stablehlo.rng_distribution", "UNIFORM NORMAL")
ChloComparisonDirectionAttr = _word("chlo.comparison_direction", "EQ NE GE GT LE LT")
ChloComparisonTypeAttr = _word("chlo.comparison_type", "NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED")
ChloPrecisionAttr = _word("chlo.precision", "DEFAULT HIGH HIGHEST")

DotAttr = _record(
    "stablehlo.dot",
    lhs_batching_dimensions=tuple,
    rhs_batching_dimensions=tuple,
    lhs_contracting_dimensions=tuple,
    rhs_contracting_dimensions=tuple,
)
DotAlgorithmAttr = _record(
    "stablehlo.dot_algorithm",
    is_complete=True,
    lhs_precision_type=Attribute,
    rhs_precision_type=Attribute,
    accumulation_type=Attribute,
    lhs_component_count=int,
    rhs_component_count=int,
    num_primitive_operations=int,
    allow_imprecise_accumulation=bool,
)
GatherAttr = _record(
    "stablehlo.gather",
    offset_dims=tuple,
    collapsed_slice_dims=tuple,
    operand_batching_dims=tuple,
    start_indices_batching_dims=tuple,
    start_index_map=tuple,
    index_vector_dim=int,
)
ScatterAttr = _record(
    "stablehlo.scatter",
    update_window_dims=tuple,
    inserted_window_dims=tuple,
    input_batching_dims=tuple,
    scatter_indices_batching_dims=tuple,
    scatter_dims_to_operand_dims=tuple,
    index_vector_dim=int,
)
ChannelHandleAttr = _record("stablehlo.channel_handle", is_complete=True, handle=int, type=int)
OutputOperandAliasAttr = _record(
    "stablehlo.output_operand_alias",
    is_complete=True,
    output_tuple_indices=tuple,
    operand_index=int,
    operand_tuple_indices=tuple,
)
RaggedDotAttr = _record(
    "chlo.ragged_dot",
    lhs_batching_dimensions=tuple,
    rhs_batching_dimensions=tuple,
    lhs_contracting_dimensions=tuple,
    rhs_contracting_dimensions=tuple,
    lhs_ragged_dimensions=tuple,
    rhs_group_dimensions=tuple,
)


@irdl_attr_definition
class ResultAccuracyModeAttr(_Words):
    """How accurate a function is to be: `#stablehlo.result_accuracy_mode<HIGHEST>`."""

    name = "stablehlo.result_accuracy_mode"
    WORDS = ("DEFAULT", "HIGHEST", "TOLERANCE")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return cls.parse_word(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


ResultAccuracyAttr = _record("stablehlo.result_accuracy", atol=float, rtol=float, ulps=int, mode=Attribute)


DimensionRole = int | str
"""A spatial dimension, or a letter for another one: b (batch), f (features), i, o (input and output features)."""


@irdl_attr_definition
class ConvAttr(Data[tuple[tuple[DimensionRole, ...], ...]]):
    """
    The roles of the dimensions of images, kernels and results of a convolution.

    ```mlir
    #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
    ```
    """

    name = "stablehlo.conv"

    ROLES: ClassVar[Sequence[str]] = ("bf", "io", "bf")
    """The letters in the three lists."""

    def dimension(self, which: int, role: DimensionRole) -> int:
        """The dimension that has a role in images (0), kernels (1) or results (2)."""
        return self.data[which].index(role)

    def permutation(self, which: int) -> tuple[int, ...]:
        """The dimensions in the order of ONNX: the two letters (batch and features; output and input), then space."""
        letters = "oi" if which == 1 else "bf"
        spatial = range(len(self.data[which]) - len(letters))
        return tuple(self.data[which].index(role) for role in (*letters, *spatial))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[DimensionRole, ...], ...]:
        with parser.in_angle_brackets():
            return cls.parse_lists(parser)

    @classmethod
    def parse_lists(cls, parser: AttrParser) -> tuple[tuple[DimensionRole, ...], ...]:
        """Parse `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
        lists: list[tuple[DimensionRole, ...]] = []
        for before in ("", "x", "->"):
            if before:
                parser.parse_characters(before)
            lists.append(tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_role(parser))))
        return tuple(lists)

    def print_lists(self, printer: Printer) -> None:
        """Print what `parse_lists` reads."""
        images, kernels, results = (f"[{', '.join(map(str, roles))}]" for roles in self.data)
        printer.print_string(f"{images}x{kernels}->{results}")

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            self.print_lists(printer)

    def verify(self) -> None:
        for letters, roles in zip(self.ROLES, self.data, strict=True):
            expected = {*letters, *range(len(roles) - len(letters))}
            if len(roles) < len(letters) or set(roles) != expected:
                raise VerifyException(f"dimensions {list(roles)} are not {', '.join(letters)} and those of space")


def _parse_role(parser: AttrParser) -> DimensionRole:
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    return parser.parse_identifier() if number is None else number


@irdl_attr_definition
class BoundsAttr(Data[tuple[int, ...]]):
    """Upper limits of the dimensions of a tensor, -1 where there is none: `#stablehlo.bounds<4, ?>`."""

    name = "stablehlo.bounds"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        def bound() -> int:
            return -1 if parser.parse_optional_punctuation("?") else parser.parse_integer(allow_negative=False)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, bound))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{', '.join('?' if bound < 0 else str(bound) for bound in self.data)}>")


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """The type of values that only order side effects: `!stablehlo.token`."""

    name = "stablehlo.token"


@irdl_attr_definition
class FutureType(ParametrizedAttribute, TypeAttribute):
    """The type of what an operation of other devices will give: `!stablehlo.future<tensor<4xf32>>`."""

    name = "stablehlo.future"

    types: ArrayAttr[Attribute]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return [ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.types, printer.print_attribute)
