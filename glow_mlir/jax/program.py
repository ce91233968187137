"""The objects of jaxlib that hold a StableHLO program as operations of ours, which takes less time than its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from glow_mlir.ir.context import new_context
from glow_mlir.ir.dense_text import ELIDED
from glow_mlir.ir.text import LocatingParser
from glow_mlir.jax.constants import is_left_out, value_of


def operations_of(module: Any) -> ModuleOp:
    """The module of a `jaxlib.mlir.ir.Operation` that is a module, without its locations."""
    return _Conversion().module(module)


class _Conversion:
    """The conversion of one module: what is known of values, types and attributes."""

    def __init__(self) -> None:
        self._context = new_context()
        self._context.allow_unregistered = True
        self._values: dict[Any, SSAValue] = {}
        self._types: dict[str, Attribute] = {}
        self._attributes: dict[str, Attribute] = {}

    def module(self, module: Any) -> ModuleOp:
        """A module."""
        found = self._operation(module)
        assert isinstance(found, ModuleOp)
        return found

    def _operation(self, given: Any) -> Operation:
        """An operation with its regions."""
        kind = self._context.get_op(given.name)
        own = kind.get_irdl_definition().properties if hasattr(kind, "get_irdl_definition") else {}  # pyright: ignore
        properties: dict[str, Attribute] = {}
        attributes: dict[str, Attribute] = {}
        for name in given.attributes:
            target = properties if name in own else attributes
            is_constant = given.name == "stablehlo.constant" and name == "value"
            target[name] = self._value(given) if is_constant else self._attribute(given.attributes[name])
        op = kind.create(
            operands=[self._values[operand] for operand in given.operands],
            result_types=[self._type(result.type) for result in given.results],
            properties=properties,
            attributes=attributes,
            regions=[self._region(region) for region in given.regions],
        )
        self._values.update(zip(given.results, op.results, strict=True))
        return op

    def _region(self, given: Any) -> Region:
        blocks = [Block(arg_types=[self._type(argument.type) for argument in block.arguments]) for block in given]
        for block, source in zip(blocks, given, strict=True):
            self._values.update(zip(source.arguments, block.args, strict=True))
            for each in source.operations:
                block.add_op(self._operation(each.operation))
        return Region(blocks)

    def _type(self, given: Any) -> Attribute:
        return self._read(str(given), self._types, LocatingParser.parse_type)

    def _value(self, constant: Any) -> Attribute:
        """The value of a constant."""
        if is_left_out(constant):
            type_ = self._type(constant.results[0].type)
            assert isinstance(type_, TensorType)
            return DenseResourceAttr.from_params(ELIDED, cast("TensorType[Attribute]", type_))
        return self._attribute(value_of(constant))

    def _attribute(self, given: Any) -> Attribute:
        return self._read(str(given), self._attributes, LocatingParser.parse_attribute)

    def _read(self, text: str, known: dict[str, Attribute], parse: Callable[[LocatingParser], Attribute]) -> Attribute:
        """What a text says, which is read once."""
        found = known.get(text)
        if found is None:
            found = known[text] = parse(LocatingParser(self._context, text, "jax"))
        return found
