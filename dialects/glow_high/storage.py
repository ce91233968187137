"""Module-level storage and functions: the interface of `glow_high` and `glow_low` to callers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Self, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FlatSymbolRefAttrConstr,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    IsolatedFromAbove,
    MemoryEffect,
    MemoryEffectKind,
    NoTerminator,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from glow_mlir.dialects.attribute_syntax import AttributeValue, parse_properties, print_properties, to_attribute
from glow_mlir.dialects.collapsed_layers import names_in_layers
from glow_mlir.dialects.control_flow import ControlFlowOp, FunctionCall
from glow_mlir.dialects.glow_high.base import (
    HighOp,
    Operand,
    parse_defined_value,
    split_known,
    visible_properties,
)
from glow_mlir.dialects.glow_high.signature import ARGUMENT_ROLES, parse_signature, print_signature
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp
from glow_mlir.dialects.known_attributes import KnownAttributes
from glow_mlir.dialects.operand_types import TENSOR
from glow_mlir.dialects.properties import symbol_reference, word
from glow_mlir.dialects.shapes import require, sizes_of, tensor, verify_storable
from glow_mlir.dialects.symbol_binding import verify_bound
from glow_mlir.dialects.target import Target, TargetAttr
from glow_mlir.errors import ModelError
from glow_mlir.support.symbols import Size, symbols_of
from glow_mlir.xdsl_patches.definitions import op_definition
from glow_mlir.xdsl_patches.operations import LeanOperation


class StorageOp(LeanOperation):
    """A named tensor that outlives a call: the base of constants and placeholders."""

    sym_name = prop_def(SymbolNameConstraint())
    type = prop_def(TENSOR)

    traits = traits_def(SymbolOpInterface(), KnownAttributes())

    def verify_(self) -> None:
        verify_storable(self.tensor_type, "a tensor")

    @property
    def tensor_type(self) -> TensorType[Attribute]:
        """Shape and element type of the storage."""
        assert isinstance(self.type, TensorType)
        return self.type

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        rest = {name: value for name, value in visible_properties(self).items() if name not in ("sym_name", "type")}
        print_properties(printer, rest)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        given = parse_properties(parser)
        known, rest = split_known(given, cls.get_irdl_definition().properties)
        return cls.create(properties={"sym_name": name, "type": type_, **known}, attributes=rest)


class ContentOp(StorageOp):
    """
    Storage whose content a module may contain: in the weight store under the digest `weights`, or inline as `value`.
    """

    weights = opt_prop_def(StringAttr)
    value = opt_prop_def(base(DenseIntOrFPElementsAttr))

    def give_content(self, content: str | DenseIntOrFPElementsAttr) -> None:
        """Set the content: the elements, or the digest under which the weight store holds the bytes."""
        self.properties["weights" if isinstance(content, str) else "value"] = (
            word(content) if isinstance(content, str) else content
        )

    @property
    def has_content(self) -> bool:
        """Whether the module contains the content."""
        return self.weights is not None or self.value is not None

    def verify_(self) -> None:
        super().verify_()
        require(self.weights is None or self.value is None, "content is either 'weights' or 'value'")
        if self.value is not None:
            require(self.value.type == self.type, f"value has type {self.value.type}, the storage {self.type}")


@op_definition
class ConstantOp(ContentOp):
    """
    A tensor whose content the compiler knows (Glow's Constant).

    Its bytes are in the weight store under the digest `weights`, or inline as `value` when they are few.

    ```mlir
    glow_high.constant @filter : tensor<64x7x7x3xf32> {weights = "sha256:9f86d081"}
    glow_high.constant @axes : tensor<2xi64> {value = dense<[1, 2]> : tensor<2xi64>}
    ```
    """

    name = "glow_high.constant"

    @classmethod
    def of(
        cls,
        name: str,
        type_: TensorType[Attribute],
        content: str | DenseIntOrFPElementsAttr,
        location: LocationAttr | None = None,
    ) -> ConstantOp:
        """The constant `name`: its elements, or the digest under which the weight store holds its bytes."""
        op = cls.create(properties={"sym_name": word(name), "type": type_}, location=location)
        op.give_content(content)
        return op

    def verify_(self) -> None:
        super().verify_()
        require(self.has_content, "a constant has either 'weights' or 'value'")


def inline_elements(type_: TensorType[Attribute], elements: Sequence[float]) -> DenseIntOrFPElementsAttr:
    """The elements of a constant that are written into the text."""
    return DenseIntOrFPElementsAttr.from_list(cast("TensorType[Any]", type_), elements)


_ROLES = {"input": "input", "output": "output", "state": "state", "packed_by": "packed", "between": "between"}
"""Property of a placeholder → its role."""

_SIDES = {"input": ("given",), "output": ("got",), "state": ("given", "got")}
"""Role of a placeholder that is visible to callers of the model → whether they give or get it."""


@op_definition
class PlaceholderOp(ContentOp):
    """
    A tensor bound at run time (Glow's Placeholder): an input, an output, or state that lives from call to call.

    State may have an initial value, in the form of a constant's content; without one it begins with zeros. Packed state
    is other state in the layout that kernels read, computed by the function `packed_by`. A value `between` functions is
    written by one and read by others, within one call of the function that calls them.

    ```mlir
    glow_high.placeholder @image : tensor<1x3x224x224xf32> {input}
    glow_high.placeholder @momentum : tensor<64xf32> {state, trainable, value = dense<0.5> : tensor<64xf32>}
    glow_high.placeholder @w.panels : tensor<4x64x16xf32> {packed_by = @pack_w}
    glow_high.placeholder @features : tensor<1x64xf32> {between}
    ```
    """

    name = "glow_high.placeholder"

    input = opt_prop_def(UnitAttr)
    output = opt_prop_def(UnitAttr)
    state = opt_prop_def(UnitAttr)
    trainable = opt_prop_def(UnitAttr)
    packed_by = opt_prop_def(FlatSymbolRefAttrConstr)
    between = opt_prop_def(UnitAttr)
    label = opt_prop_def(StringAttr)
    """The name that callers use, where it is not the symbol: an input and an output may have the same."""

    @property
    def public_name(self) -> str:
        """The name that callers use."""
        return self.sym_name.data if self.label is None else self.label.data

    @classmethod
    def bound(
        cls, name: str, type_: TensorType[Attribute], role: str, location: LocationAttr | None = None
    ) -> PlaceholderOp:
        """The placeholder `name`; `role` is `input`, `output`, `state` or `between`."""
        properties = {"sym_name": StringAttr(name), "type": type_, role: UnitAttr()}
        return cls.create(properties=properties, location=location)

    @classmethod
    def packed(cls, name: str, type_: TensorType[Attribute], function: str, location: LocationAttr) -> PlaceholderOp:
        """The packed state `name` that `function` makes."""
        properties = {"sym_name": StringAttr(name), "type": type_, "packed_by": SymbolRefAttr(function)}
        return cls.create(properties=properties, location=location)

    @property
    def role(self) -> str:
        """`input`, `output`, `state`, `packed` or `between`."""
        return next(role for name, role in _ROLES.items() if name in self.properties)

    @property
    def sides(self) -> tuple[str, ...]:
        """Whether callers of the model give it, get it, both (state), or neither."""
        return _SIDES.get(self.role, ())

    @property
    def is_mutable(self) -> bool:
        """Whether any function may write it."""
        return self.role in ("output", "state")

    @property
    def packing_function(self) -> str | None:
        """The name of the function that computes it from other state; `None` unless it is packed state."""
        return None if self.packed_by is None else self.packed_by.string_value()

    def verify_(self) -> None:
        super().verify_()
        roles = [name for name in _ROLES if name in self.properties]
        require(len(roles) == 1, f"a placeholder is exactly one of {', '.join(map(repr, _ROLES))}")
        require(not self.has_content or self.state is not None, "only state has an initial value")
        require(self.trainable is None or self.state is not None, "only state is trainable")
        require(self.label is None or bool(self.sides), "nobody calls it by a label")


class FunctionOp(LeanOperation):
    """
    A function over module-level storage; `bindings` names the placeholders of its entry, in order.

    `assigned` is the machine that it is compiled for, set by the pass `assign-target`; `device` is the name of the
    module's device on which it runs, if there are several.
    """

    IS_QUALIFIED: ClassVar[bool] = False
    """Whether arguments are written with qualifiers, like operands of instructions."""
    SIZED: ClassVar[type[Operation]] = Operation
    """The ops that need the numbers of the symbols in the sizes of their values."""

    sym_name = prop_def(SymbolNameConstraint())
    bindings = prop_def(base(ArrayAttr))
    assigned = opt_prop_def(TargetAttr, prop_name="target")
    device = opt_prop_def(StringAttr)
    argument_roles = opt_prop_def(base(ArrayAttr))
    """The placeholder role of each argument, while the function has arguments."""
    body = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator(), KnownAttributes())

    @classmethod
    def named(
        cls,
        name: str,
        bindings: Sequence[str],
        location: LocationAttr | None = None,
        target: TargetAttr | None = None,
    ) -> Self:
        """An empty function `name` whose entry takes those placeholders, compiled for `target` if one is given."""
        refs = ArrayAttr([SymbolRefAttr(binding) for binding in bindings])
        properties: dict[str, Attribute] = {"sym_name": StringAttr(name), "bindings": refs}
        if target is not None:
            properties["target"] = target
        return cls.create(properties=properties, regions=[Region(Block())], location=location)

    @property
    def target(self) -> Target:
        """The machine that the function is compiled for; raises `ModelError` if none is assigned."""
        if self.assigned is None:
            hint = "run the pass 'assign-target' first"
            raise ModelError(f"@{self.sym_name.data} has no target", hint=hint)
        return self.assigned.data

    @property
    def block(self) -> Block:
        """The only block of the body."""
        return self.body.block

    @property
    def binding_names(self) -> tuple[str, ...]:
        """The names of the placeholders of the entry, in order."""
        names: list[str] = []
        for ref in self.bindings.data:
            assert isinstance(ref, SymbolRefAttr)
            names.append(ref.string_value())
        return tuple(names)

    def storage(self) -> dict[str, StorageOp]:
        """The storage of the module around, by name."""
        module = self.parent
        ops = () if module is None else module.ops
        return {op.sym_name.data: op for op in ops if isinstance(op, StorageOp)}

    def verify_(self) -> None:
        name = self.sym_name.data
        require(name.isascii() and name.isidentifier(), f"@{name} is no name that C code can call")
        require(not self.block.args, "a function takes nothing but its bindings")
        for op in self.block.ops:
            require(self.holds(op), f"a {self.name} does not hold {op.name}")
        if self.parent is None:
            return
        storage = self.storage()
        self._verify_bindings(storage)
        self.verify_storage(storage)
        self._verify_symbols(storage)

    def _verify_bindings(self, storage: Mapping[str, StorageOp]) -> None:
        callers: set[tuple[str, str]] = set()
        seen: set[str] = set()
        for binding in self.binding_names:
            bound = storage.get(binding)
            if not isinstance(bound, PlaceholderOp):
                raise VerifyException(f"@{binding} is bound, but is no placeholder of the module")
            require(binding not in seen, f"@{binding} is bound twice")
            seen.add(binding)
            # An input and an output may have the same name: a caller gives one array and gets another.
            names = {(side, bound.public_name) for side in bound.sides}
            require(not names & callers, f"@{binding} has a name '{bound.public_name}' that another binding has")
            callers |= names
            if bound.packed_by is not None:
                self._verify_packed(bound, storage)

    def _verify_symbols(self, storage: Mapping[str, StorageOp]) -> None:
        """Check that symbols are those of inputs and state, or are bound by an op before all of their uses."""
        bound = (storage[name] for name in self.binding_names)
        written = self.written_names()
        found = [op for op in bound if isinstance(op, PlaceholderOp) and op.role != "output"]
        types = [op.tensor_type for op in found if op.role != "between" or op.sym_name.data not in written]
        given = {symbol.name: symbol for type_ in types for symbol in symbols_of(sizes_of(type_))}
        verify_bound(self.block, given, self.SIZED)

    def _verify_packed(self, bound: PlaceholderOp, storage: Mapping[str, StorageOp]) -> None:
        """Check that packed state is computed by a function bound to it and to state that this function binds too."""
        packing, name = bound.packing_function, bound.sym_name.data
        siblings = () if self.parent is None else self.parent.ops
        made = [op for op in siblings if isinstance(op, FunctionOp) and op.sym_name.data == packing]
        require(bool(made) and name in made[0].binding_names, f"@{name} is packed by no function that is bound to it")
        others = [storage.get(other) for other in made[0].binding_names if other != name]
        plain = all(isinstance(op, PlaceholderOp) and op.state is not None for op in others)
        require(plain, f"@{packing}, which packs @{name}, is bound to something else than state")
        missing = sorted(set(made[0].binding_names) - set(self.binding_names))
        require(not missing, f"@{name} is bound, but not @{', @'.join(missing)}, of which it is packed")

    @abstractmethod
    def holds(self, op: Operation) -> bool:
        """Whether an op may be in the body of the function itself."""

    @abstractmethod
    def written_names(self) -> set[str]:
        """The names of the storage that the function writes."""

    def verify_storage(self, storage: Mapping[str, StorageOp]) -> None:
        """Check how the body uses storage; overridden by each dialect's function."""

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        print_signature(printer, self)
        hidden = ("sym_name", "bindings", ARGUMENT_ROLES)
        if rest := {k: v for k, v in visible_properties(self).items() if k not in hidden}:
            printer.print_string(" attributes")
            print_properties(printer, rest)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        signature = parse_signature(parser, cls.IS_QUALIFIED)
        given = parse_properties(parser) if parser.parse_optional_keyword("attributes") else {}
        region = parser.parse_region(signature.arguments or None)
        if not region.blocks:
            region.add_block(Block())
        signature.check_results(parser, region.block)
        known, rest = split_known(given, cls.get_irdl_definition().properties)
        refs = ArrayAttr([SymbolRefAttr(binding) for binding in signature.bindings])
        return cls.create(
            properties={"sym_name": name, "bindings": refs, **known, **signature.properties()},
            attributes=rest,
            regions=[region],
        )


@op_definition
class FuncOp(FunctionOp):
    """
    A function of `glow_high`: a graph of operators on tensors. The order of ops is their schedule.

    ```mlir
    glow_high.func @main(@x, @y) {
      %0 = glow_high.get @x : tensor<4xf32>
      %1 = glow_high.relu %0 : tensor<4xf32>
      glow_high.save %1, @y
    }
    ```
    """

    name = "glow_high.func"

    def holds(self, op: Operation) -> bool:
        return isinstance(op, GetOp | SaveOp | HighOp | ControlFlowOp | BindSymbolOp | FunctionCall)

    def written_names(self) -> set[str]:
        return {op.storage_name for op in self.block.ops if isinstance(op, SaveOp)}

    def verify_storage(self, storage: Mapping[str, StorageOp]) -> None:
        saved, names = self.written_names(), self.binding_names
        module = self.parent_op()
        erased = names_in_layers(module) if isinstance(module, ModuleOp) else set[str]()
        bound = frozenset(names)
        for op in self.walk():
            if isinstance(op, GetOp | SaveOp):
                _verify_use(op, storage.get(op.storage_name), bound, saved)
        for name, placeholder in ((name, storage[name]) for name in names):
            is_output = isinstance(placeholder, PlaceholderOp) and placeholder.role == "output"
            require(not is_output or name in saved or name in erased, f"output @{name} is never saved")


def _verify_use(op: GetOp | SaveOp, used: StorageOp | None, bound: Collection[str], saved: Collection[str]) -> None:
    """Check that an operation uses storage with its type and role, and within the bindings of its function."""
    name = op.storage_name
    if used is None:
        raise VerifyException(f"there is no storage @{name}")
    type_ = op.result.type if isinstance(op, GetOp) else op.input.type
    require(type_ == used.type, f"@{name} is {used.type}, not {type_}")
    placeholder = isinstance(used, PlaceholderOp)
    require(not placeholder or name in bound, f"@{name} is not among the bindings of the function")
    mutable = isinstance(used, PlaceholderOp) and used.is_mutable
    between = isinstance(used, PlaceholderOp) and used.role == "between"
    if isinstance(op, SaveOp):
        require(mutable or between, f"@{name} cannot be written")
    else:
        require((op.mutable is not None) == mutable, f"'mutable' contradicts what @{name} is")
        require(not between or name not in saved, f"@{name} is read by another function than the one that writes it")


class _StorageEffect(MemoryEffect):
    """Reading or writing a mutable placeholder is an effect on its symbol; reading other storage has no effect."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        if isinstance(op, SaveOp):
            return {EffectInstance(MemoryEffectKind.WRITE, op.symbol)}
        assert isinstance(op, GetOp)
        return {EffectInstance(MemoryEffectKind.READ, op.symbol)} if op.mutable is not None else set()


@op_definition
class GetOp(LeanOperation):
    """
    The current content of a constant or placeholder. `mutable` marks state that `save` may change.

    ```mlir
    %0 = glow_high.get @filter : tensor<64x7x7x3xf32>
    ```
    """

    name = "glow_high.get"

    symbol = prop_def(FlatSymbolRefAttrConstr)
    mutable = opt_prop_def(UnitAttr)
    result = result_def(TENSOR)

    traits = traits_def(_StorageEffect(), KnownAttributes())

    @classmethod
    def of(cls, storage: StorageOp, location: LocationAttr | None = None) -> GetOp:
        """Read `storage`."""
        properties: dict[str, Attribute] = {"symbol": symbol_reference(storage.sym_name)}
        if isinstance(storage, PlaceholderOp) and storage.is_mutable:
            properties["mutable"] = UnitAttr()
        return cls.create(properties=properties, result_types=[storage.tensor_type], location=location)

    @property
    def storage_name(self) -> str:
        """Name of the storage that is read."""
        return self.symbol.string_value()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.storage_name)
        print_properties(printer, {k: v for k, v in visible_properties(self).items() if k != "symbol"})
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        given = parse_properties(parser)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            properties={"symbol": SymbolRefAttr(name), **{k: v for k, v in given.items() if k == "mutable"}},
            attributes={k: v for k, v in given.items() if k != "mutable"},
            result_types=[type_],
        )


@op_definition
class SaveOp(LeanOperation):
    """
    Overwrite a placeholder with a tensor (Glow's Save).

    ```mlir
    glow_high.save %1, @y
    ```
    """

    name = "glow_high.save"

    symbol = prop_def(FlatSymbolRefAttrConstr)
    input = operand_def(TENSOR)

    traits = traits_def(_StorageEffect(), KnownAttributes())

    @classmethod
    def to(cls, value: SSAValue, placeholder: str, location: LocationAttr | None = None) -> SaveOp:
        """Write `value` to the placeholder of that name."""
        return cls.create(operands=[value], properties={"symbol": SymbolRefAttr(placeholder)}, location=location)

    @property
    def storage_name(self) -> str:
        """Name of the placeholder that is written."""
        return self.symbol.string_value()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.input)
        printer.print_string(", ")
        printer.print_symbol_name(self.storage_name)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parse_defined_value(parser)
        parser.parse_punctuation(",")
        name = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=[value], properties={"symbol": SymbolRefAttr(name)}, attributes=attributes)


@op_definition
class SplatOp(HighOp):
    """
    A tensor whose elements are all `value` (Glow's Splat).

    ```mlir
    %0 = glow_high.splat {value = 0.5} : tensor<4xf32>
    ```
    """

    name = "glow_high.splat"
    NOTATION: ClassVar[str] = "-> result[*]"

    value = prop_def(base(FloatAttr) | base(IntegerAttr))
    result = result_def(TENSOR)

    @classmethod
    def make(
        cls, *operands: Operand, location: LocationAttr | None = None, **properties: AttributeValue | None
    ) -> Self:
        """Build a splat of `value` in the shape `shape`, which is stored in its type only."""
        given = dict(properties)
        shape, value = given.pop("shape"), given.pop("value")
        require(value is not None and not operands and not given, "a splat is made of 'value' and 'shape'")
        attribute = to_attribute(cast("AttributeValue", value))
        type_ = tensor(cast("Sequence[Size]", shape), splat_element(attribute))
        return cls.create(properties={"value": attribute}, result_types=[type_], location=location)

    def infer_types(self) -> tuple[TensorType[Attribute], ...]:
        return (tensor(sizes_of(self.result), splat_element(self.value)),)


def splat_element(value: Attribute) -> Attribute:
    """The element type that a splat of `value` has."""
    assert isinstance(value, FloatAttr | IntegerAttr)
    return cast("Attribute", value.type)
