"""The base of the operations of `stablehlo` and `chlo`, and their definition from a line of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.ir import Operation, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    BaseAttr,
    IRDLOperation,
    SameVariadicOperandSize,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure

from glow_mlir.dialects.stablehlo import attributes
from glow_mlir.dialects.stablehlo.forms import FORMS
from glow_mlir.dialects.stablehlo.rules import RULES, Rule
from glow_mlir.dialects.stablehlo.special_syntax import SpecialForm
from glow_mlir.dialects.stablehlo.syntax import Form
from glow_mlir.xdsl_patches.definitions import op_definition

ATTRIBUTES: Mapping[str, Any] = {
    "i64": BaseAttr(IntegerAttr),
    "bool": BaseAttr(IntegerAttr),
    "i64s": BaseAttr(DenseArrayBase),
    "bools": BaseAttr(DenseArrayBase),
    "dense": BaseAttr(DenseIntOrFPElementsAttr),
    "elements": BaseAttr(DenseIntOrFPElementsAttr) | BaseAttr(DenseResourceAttr),
    "float": BaseAttr(FloatAttr),
    "string": BaseAttr(StringAttr),
    "list": BaseAttr(ArrayAttr),
    "dict": BaseAttr(DictionaryAttr),
    "symbol": FlatSymbolRefAttrConstr,
    "any": AnyAttr(),
    "direction": BaseAttr(attributes.ComparisonDirectionAttr),
    "comparison": BaseAttr(attributes.ComparisonTypeAttr),
    "chlo_direction": BaseAttr(attributes.ChloComparisonDirectionAttr),
    "chlo_comparison": BaseAttr(attributes.ChloComparisonTypeAttr),
    "dot": BaseAttr(attributes.DotAttr),
    "dot_algorithm": BaseAttr(attributes.DotAlgorithmAttr),
    "conv": BaseAttr(attributes.ConvAttr),
    "gather": BaseAttr(attributes.GatherAttr),
    "scatter": BaseAttr(attributes.ScatterAttr),
    "ragged_dot": BaseAttr(attributes.RaggedDotAttr),
    "channel": BaseAttr(attributes.ChannelHandleAttr),
    "fft_type": BaseAttr(attributes.FftTypeAttr),
    "transpose": BaseAttr(attributes.TransposeAttr),
    "rng_algorithm": BaseAttr(attributes.RngAlgorithmAttr),
    "rng_distribution": BaseAttr(attributes.RngDistributionAttr),
}
"""The kinds of properties in the tables of operations."""

_TYPE = BaseAttr(TypeAttribute)
"""The constraint of operands and results, whose types are what the checks of an operation say."""


class StablehloOp(IRDLOperation):
    """An operation of `stablehlo` or `chlo`."""

    RULES: ClassVar[tuple[Rule, ...]] = ()
    """What holds for operations of this kind beside the number and the types of operands and properties."""

    def verify_(self) -> None:
        for rule in self.RULES:
            rule(self)


def _declare(word: str, one: Callable[..., Any], several: Callable[..., Any], maybe: Callable[..., Any]) -> Any:
    """The definition for `name`, `name*` (any number) or `name?` (one or none)."""
    return {"*": several, "?": maybe}.get(word[-1], one)(_TYPE)


def operation(
    name: str,
    operands: str = "",
    properties: str = "",
    results: str = "result",
    regions: str = "",
    *,
    document: str = "",
    is_terminator: bool = False,
    is_pure: bool = True,
    has_segments: bool = False,
) -> type[StablehloOp]:
    """
    The class of an operation `dialect.name`.

    `operands`, `results` and `regions` are names, with `*` behind one that stands for any number, and `?` for one or
    none. `properties` are `name:kind`, kinds as in `ATTRIBUTES`, with `?` behind an optional one. Operands that are any
    number are as many as each other, or, with `has_segments`, a property says how many.
    """
    members: dict[str, Any] = {
        "name": name,
        "RULES": RULES.get(name, ()),
        "__annotations__": {"RULES": ClassVar},
        "__doc__": document or f"`{name}`.",
        "__module__": __name__,
    }
    members["traits"] = traits_def(*([IsTerminator()] if is_terminator else []), *([Pure()] if is_pure else []))
    options: list[Any] = []
    if sum(word[-1] in "*?" for word in operands.split()) > 1:
        options.append(AttrSizedOperandSegments(as_property=True) if has_segments else SameVariadicOperandSize())
    if sum(word[-1] in "*?" for word in results.split()) > 1:
        options.append(AttrSizedResultSegments(as_property=True))
    if options:
        members["irdl_options"] = tuple(options)
    for word in operands.split():
        members[_field(word)] = _declare(word, operand_def, var_operand_def, opt_operand_def)
    for word in results.split():
        members[_field(word)] = _declare(word, result_def, var_result_def, var_result_def)
    for word in regions.split():
        members[_field(word)] = var_region_def() if word[-1] == "*" else region_def()
    for word in properties.split():
        key, kind = word.rstrip("?").split(":")
        define: Any = opt_prop_def if word.endswith("?") else prop_def
        members[_field(key)] = define(ATTRIBUTES[kind], prop_name=key)
    if (form := FORMS.get(name)) is not None:
        members |= _methods(form)
    title = "".join(part.title() for part in name.partition(".")[2].replace("-", "_").split("_"))
    return op_definition(type(f"{title}Op", (StablehloOp,), members))


def _methods(form: Form | SpecialForm) -> dict[str, Any]:
    """The methods that read and write a readable form."""

    def parse(cls: type[StablehloOp], parser: Parser) -> Operation:
        return form.parse(cls, parser)

    def print_(op: Operation, printer: Printer) -> None:
        form.print(op, printer)

    return {"parse": classmethod(parse), "print": print_}


_TAKEN = frozenset({"name", "operands", "results", "regions", "properties", "attributes"})


def _field(word: str) -> str:
    """The attribute of the class for a name in a table: those that all operations have get an underscore."""
    plain = word.rstrip("*?")
    return f"{plain}_" if plain in _TAKEN or hasattr(IRDLOperation, plain) else plain
