"""A module of `glow_high` under construction: one function, its storage, and what is known of its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

import numpy as np
from xdsl.dialects.builtin import LocationAttr, ModuleOp, NameLoc, NoneAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.constants.deferred import Deferred
from glow_mlir.constants.storage import Storage, constant_op, content_of
from glow_mlir.dialects.element_types import ELEMENT_TYPES, element_type, numpy_dtype
from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.properties import made_of, word
from glow_mlir.dialects.shapes import element_of, sizes_of, tensor
from glow_mlir.dialects.sizes import fitting_hint
from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.builder.constant_folding import ConstantFolding
from glow_mlir.frontends.builder.constant_pool import ConstantPool
from glow_mlir.frontends.builder.dependences import Dependences
from glow_mlir.frontends.builder.inputs import check_values, symbol_name
from glow_mlir.frontends.builder.limits import check_count, check_results
from glow_mlir.frontends.builder.missing_values import missing_value
from glow_mlir.frontends.builder.problems import Problems
from glow_mlir.frontends.builder.symbolic_values import SymbolicValues
from glow_mlir.frontends.builder.value_numbering import ValueNumbering
from glow_mlir.ir.value_names import value_name
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import name_of
from glow_mlir.support.symbols import Symbol, symbols_of

RANDOM_SEED = "random.seed"
"""The state that is the seed of all random numbers whose nodes have none of their own, an i64."""
RANDOM_CALLS = "random.calls"
"""The state that counts calls of functions with random numbers, an i64."""

_NOWHERE = NoneAttr()
"""Where what has a name lies in no text; every location of a model has it."""


def named_location(name: str) -> LocationAttr:
    """The location of what comes from the node or value `name` of a model."""
    return made_of(NameLoc, desc=word(name), location=_NOWHERE)


@dataclass
class ModuleBuilder:
    """
    Builds a module with one function: inputs, then operators and constants, then outputs.

    `output_names` are the names of the model's outputs, which are kept for them. With a `pool`, large constants have
    names without meaning. Random numbers follow from the `seed`.
    """

    output_names: Collection[str] = frozenset()
    pool: ConstantPool | None = None
    storage: Storage = field(default_factory=lambda: Storage(ModuleOp([])))
    seed: int = 0
    function: FuncOp = field(default_factory=lambda: FuncOp.named("main", []))
    problems: Problems = field(default_factory=Problems)
    """What is not supported."""
    dependences: Dependences = field(default_factory=Dependences)
    """Which inputs values depend on."""
    folding: ConstantFolding = field(init=False)
    """What values are that depend on no input."""
    symbolic_values: SymbolicValues = field(init=False)
    """What values are that follow from shapes."""
    numbering: ValueNumbering = field(init=False)
    """What has been emitted of which value, for what is emitted once of equal ones."""
    block: Block = field(init=False)
    """Where operators are inserted: that of the function, or of a region."""
    trip_capacities: Mapping[str, int] = field(default_factory=dict[str, int])
    """For how many trips there is room in loops that nothing bounds."""
    computes_in_loops: bool = False
    """Whether what fixes shapes may be computed anew in each trip of a loop."""
    has_bounds: bool = False
    """Whether dimensions of inputs have bounds; what else is known at run time only, data decides."""
    _bindings: list[str] = field(default_factory=list[str])
    """The placeholders of inputs and outputs, in order."""
    _symbols: set[str] = field(default_factory=set[str])
    """The names of symbols in sizes."""
    input_symbols: set[str] = field(default_factory=set[str])
    """Those in sizes of inputs, which are free; nodes compute the others."""
    _random_state: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """What random numbers follow from that is state."""
    _labels: Counter[str] = field(default_factory=Counter[str])
    """How many labels nodes of a name have."""
    _inserted: int = 0
    """How many operators there are, in regions too."""

    def __post_init__(self) -> None:
        self.block = self.function.block
        self.folding = ConstantFolding(self.storage)
        self.symbolic_values = SymbolicValues(self.folding.of)
        self.numbering = ValueNumbering(self.folding.of)

    # Inputs, outputs, and the module

    def add_inputs(
        self, types: Mapping[str, TensorType[Attribute]], values: Mapping[str, np.ndarray]
    ) -> dict[str, SSAValue]:
        """
        Inputs of the function; those with `values` are constants instead.

        Raises what `check_values` raises, and `UnsupportedError` for types that are too large.
        """
        symbols = {symbol.name for type_ in types.values() for symbol in symbols_of(sizes_of(type_))}
        self._symbols |= symbols
        self.input_symbols |= symbols
        self.has_bounds |= bool(symbols)
        known = check_values(types, values)
        return {
            name: self.constant(known[name], name, named_location(name))
            if name in known
            else self._add_input(name, type_)
            for name, type_ in types.items()
        }

    def _add_input(self, name: str, type_: TensorType[Attribute]) -> SSAValue:
        placeholder = self._shared(name, type_, "input")
        if placeholder is None:
            placeholder = PlaceholderOp.bound(name, type_, "input", named_location(name))
            self.storage.add(placeholder)
        self._bindings.append(name)
        try:
            value = self.insert(GetOp.of(placeholder, named_location(name))).results[0]
        except UnsupportedError as error:
            error.reason = f"input '{name}': {error.reason}"
            raise
        self.folding.tell(value, None)
        return value

    def _shared(self, name: str, type_: TensorType[Attribute], role: str) -> PlaceholderOp | None:
        """The placeholder of that name, type and role that another function of the module has."""
        known = self.storage.by_name.get(name)
        if isinstance(known, PlaceholderOp) and known.type == type_ and known.role == role:
            return known
        return None

    def add_state(self, name: str, array: np.ndarray | Deferred, is_trainable: bool) -> SSAValue:
        """State that begins with a value, as it is at the beginning of a call; functions of a module share it."""
        type_ = tensor(array.shape, element_type(array.dtype))
        placeholder = self._shared(name, type_, "state")
        if placeholder is None:
            placeholder = PlaceholderOp.bound(self.storage.unique_name(name), type_, "state", named_location(name))
            placeholder.give_content(content_of(array, type_))
            if is_trainable:
                placeholder.trainable = UnitAttr()
            self.storage.add(placeholder)
        self._bindings.append(placeholder.sym_name.data)
        value = self.insert(GetOp.of(placeholder, named_location(name))).results[0]
        self.folding.tell(value, None)
        return value

    def add_open_state(self, name: str, type_: TensorType[Attribute]) -> SSAValue:
        """State of a type that whoever calls the function keeps, as it is at the beginning of a call."""
        placeholder = PlaceholderOp.bound(self.storage.unique_name(name), type_, "state", named_location(name))
        self.storage.add(placeholder)
        self._bindings.append(placeholder.sym_name.data)
        value = self.insert(GetOp.of(placeholder, named_location(name))).results[0]
        self.folding.tell(value, None)
        return value

    def random_state(self, name: str) -> SSAValue:
        """
        The `RANDOM_SEED` or the number of the call, `RANDOM_CALLS`: i64 scalars that are state of the module.

        Each call of a function that asks for the number adds 1 to it.
        """
        if name not in self._random_state:
            with self.inside(self.function.block):
                initial = np.array(self.seed if name == RANDOM_SEED else 0, np.int64)
                self._random_state[name] = self.add_state(name, initial, is_trainable=False)
        return self._random_state[name]

    def random_label(self, name: str) -> str:
        """The label of the random numbers of a node, which tells nodes of one name from each other."""
        self._labels[name] += 1
        return f"{name}/{self._labels[name]}"

    def _count_call(self) -> None:
        """Save the number of the next call, if random numbers follow from it."""
        if (calls := self._random_state.get(RANDOM_CALLS)) is None:
            return
        location, owner = named_location(RANDOM_CALLS), calls.owner
        assert isinstance(owner, GetOp)
        one = self.constant(np.array(1, np.int64), RANDOM_CALLS, location)
        counted = self.insert(AddOp.make(calls, one, location=location)).results[0]
        self.function.block.add_op(SaveOp.to(counted, owner.storage_name, location))

    def add_output(self, name: str, value: SSAValue) -> None:
        """An output of the function, which has that value; its symbol is another one where an input has the name."""
        symbol = self.storage.unique_name(name)
        type_ = tensor(sizes_of(value), element_of(value))
        placeholder = PlaceholderOp.bound(symbol, type_, "output", named_location(name))
        if symbol != name:
            placeholder.label = StringAttr(name)
        self.storage.add(placeholder)
        self._bindings.append(symbol)
        self.function.block.add_op(SaveOp.to(value, symbol, named_location(name)))

    def finish(self, name: str) -> ModuleOp:
        """The module, whose function has that name."""
        self._count_call()
        self.function.properties.update(FuncOp.named(name, self._bindings).properties)
        self.storage.module.body.block.add_op(self.function)
        return self.storage.module

    # Operators

    def insert(self, op: Operation) -> Operation:
        """
        Append an op to the block; its results take their names from the location.

        Raises `UnsupportedError` for what is beyond the limits of `limits`, and `CancelledError` where the work is to
        end.
        """
        check_cancellation()
        self._inserted += 1
        check_count(self._inserted)
        check_results(op)
        self.block.add_op(op)
        if isinstance(op.location, NameLoc):
            hint = value_name(op.location.desc.data)
            for result in op.results:
                result.name_hint = hint
        self.folding.follow(op)
        return op

    def constant(
        self,
        array: np.ndarray | Sequence[int] | float,
        name: str,
        location: LocationAttr,
        like: SSAValue | None = None,
    ) -> SSAValue:
        """A constant with that value; `like` gives a plain number its element type."""
        dtype = None if like is None else numpy_dtype(element_of(like))
        value = np.asarray(array, dtype)
        if name_of(value.dtype) not in ELEMENT_TYPES:
            hint = f"element types are {', '.join(ELEMENT_TYPES)}"
            raise UnsupportedError(f"element type {value.dtype.name} is not supported", node=name, hint=hint)
        wish = f"{name}_constant" if name in self.output_names else name
        kept = value if self.pool is None else self.pool.stored(value)
        op = self.insert(constant_op(self.storage, kept, wish, location))
        self.folding.tell(op.results[0], value)
        return op.results[0]

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Insert operators at the end of a block for a while."""
        around, self.block = self.block, block
        try:
            yield
        finally:
            self.block = around

    @contextmanager
    def computing_in_loops(self) -> Generator[None]:
        """Take for a while what fixes shapes also where it is computed anew in each trip of a loop."""
        before, self.computes_in_loops = self.computes_in_loops, True
        try:
            yield
        finally:
            self.computes_in_loops = before

    def new_symbol(self, label: str, least: int, most: int) -> Symbol:
        """A symbol between these numbers; its name is the label, as far as IR can have that and it is free."""
        return Symbol(symbol_name(label, self._symbols), least, most)

    # Errors

    def missing_value(self, value: SSAValue, what: str, node: str) -> UnsupportedError:
        """The error for `what`, an operand of a node that fixes shapes and whose value depends on inputs."""
        return missing_value(value, what, node, self._bindings, self.folding, self.dependences)

    @contextmanager
    def node_errors(self, kind: str, name: str) -> Generator[None]:
        """
        While a node of a model is built: errors name it.

        What is not supported of it becomes one of the `problems`, so that the rest of the model is looked at, too.
        Operands that do not fit, and results that memory has no room for, are raised as `ModelError`.
        """
        try:
            yield
        except UnsupportedError as error:
            error.node = error.node or name
            error.hint = fitting_hint(error.hint, self.has_bounds)
            self.problems.errors.append(error)
        except MemoryError as error:
            hint = "check the constants that say how large its results are"
            raise ModelError(f"{kind}: its results do not fit into memory", node=name, hint=hint) from error
        except VerifyException as error:
            raise ModelError(f"{kind}: {error}", node=name) from error
