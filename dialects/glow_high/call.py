"""Calls of functions by functions: the partitions of a model on their devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, cast

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, LocationAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import prop_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.control_flow import FunctionCall
from glow_mlir.dialects.glow_high.base import parse_defined_value
from glow_mlir.dialects.glow_high.storage import FunctionOp, GetOp, PlaceholderOp, StorageOp
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.shapes import require
from glow_mlir.xdsl_patches.definitions import op_definition


class _CallEffect(MemoryEffect):
    """A function may change state."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.WRITE)}


@op_definition
class CallOp(FunctionCall):
    """
    A call of a function of the module, on the device of that function (Glow's partitions and their DAG).

    Operands are the storage that the function reads, inputs and values of other functions, in the order of its
    bindings; results are the storage that it writes, outputs and values for other functions. Each operand is the
    content of its storage: an input, or the result of the call whose function writes it. State is not passed; it stays
    on its device.

    ```mlir
    %features = glow_high.call @encoder(%image) : tensor<1x64xf32>
    ```
    """

    name = "glow_high.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def(TENSOR)
    values = var_result_def(TENSOR)

    traits = traits_def(_CallEffect(), KnownAttributes())

    @classmethod
    def of(cls, callee: FunctionOp, arguments: Sequence[SSAValue], location: LocationAttr | None = None) -> CallOp:
        """A call of a function with those arguments, in the order of the storage that it reads."""
        storage = callee.storage()
        types = [cast("Attribute", storage[name].type) for name in written_by(callee)]
        properties = {"callee": SymbolRefAttr(callee.sym_name.data)}
        return cls.create(operands=arguments, result_types=types, properties=properties, location=location)

    @property
    def callee_name(self) -> str:
        """The name of the function."""
        return self.callee.string_value()

    def function(self, module: ModuleOp) -> FunctionOp | None:
        """The function, where the module has one of that name."""
        return function_named(module, self.callee_name)

    def verify_(self) -> None:
        caller = self.parent_op()
        module = None if caller is None else caller.parent_op()
        if not isinstance(caller, FunctionOp) or not isinstance(module, ModuleOp):
            return
        callee, name = self.function(module), self.callee_name
        if callee is None:
            raise VerifyException(f"there is no function @{name}")
        require(callee is not caller, f"@{name} calls itself")
        storage = callee.storage()
        self._verify_values("arguments", read_by(callee), [value.type for value in self.arguments], storage)
        self._verify_values("results", written_by(callee), [value.type for value in self.values], storage)
        for symbol, argument in zip(read_by(callee), self.arguments, strict=True):
            require(_holds(argument, symbol, module), f"@{name} reads @{symbol}, which is something else here")

    def _verify_values(
        self, noun: str, names: Sequence[str], types: Sequence[Attribute], storage: Mapping[str, StorageOp]
    ) -> None:
        wanted = [storage[name].type for name in names]
        listed = ", ".join(f"@{name} : {storage[name].type}" for name in names) or "none"
        require(list(types) == wanted, f"the {noun} of @{self.callee_name} are {listed}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee_name)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        if self.values:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_defined_value(parser))
        attributes = parser.parse_optional_attr_dict()
        types: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation(":"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.create(
            operands=arguments,
            result_types=types,
            properties={"callee": SymbolRefAttr(name)},
            attributes=attributes,
        )


def function_named(module: ModuleOp, name: str) -> FunctionOp | None:
    """The graph of that name in a module; `None` where there is none."""
    named = (op for op in module.body.block.ops if isinstance(op, FunctionOp))
    return next((op for op in named if op.sym_name.data == name), None)


def read_by(function: FunctionOp) -> list[str]:
    """The storage that a call passes to a function, in order: inputs, and values that another function writes."""
    return [op.sym_name.data for op in _bound(function) if _is_read(function, op)]


def written_by(function: FunctionOp) -> list[str]:
    """The storage that a call of a function returns, in order: outputs, and values that another function reads."""
    return [
        op.sym_name.data
        for op in _bound(function)
        if op.role == "output" or (op.role == "between" and not _is_read(function, op))
    ]


def _bound(function: FunctionOp) -> list[PlaceholderOp]:
    storage = function.storage()
    return [op for name in function.binding_names if isinstance(op := storage[name], PlaceholderOp)]


def _is_read(function: FunctionOp, op: PlaceholderOp) -> bool:
    """Whether a function reads an input, or a value between it and another function."""
    return op.role == "input" or (op.role == "between" and op.sym_name.data not in function.written_names())


def _holds(value: SSAValue, symbol: str, module: ModuleOp) -> bool:
    """Whether a value is the content of that storage: read from it, or the result that a function writes there."""
    owner = value.owner
    if isinstance(owner, GetOp):
        return owner.storage_name == symbol
    if not isinstance(owner, CallOp) or (callee := owner.function(module)) is None:
        return False
    return written_by(callee)[list[SSAValue](owner.values).index(value)] == symbol
