"""A module of `glow_high` under construction: one function, its storage, and analyses of its values."""

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
from glow_mlir.runtime.state import RANDOM
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import name_of
from glow_mlir.support.symbols import Symbol, symbols_of

RANDOM_SEED = f"{RANDOM}seed"
"""The state with the seed of random numbers for nodes without a seed of their own, an i64."""
RANDOM_CALLS = f"{RANDOM}calls"
"""The state with the number of calls of functions with random numbers, an i64."""

_NOWHERE = NoneAttr()
"""The child location of named locations: models have no source text."""


def named_location(name: str) -> LocationAttr:
    """The location for the node or value `name` of a model."""
    return made_of(NameLoc, desc=word(name), location=_NOWHERE)


@dataclass
class ModuleBuilder:
    """
    Build a module with one function: inputs, then operators and constants, then outputs.

    `output_names` are the names of the model's outputs, which no constant may take. With a `pool`, large constants have
    meaningless names. `seed` is the seed of random numbers.
    """

    output_names: Collection[str] = frozenset()
    pool: ConstantPool | None = None
    storage: Storage = field(default_factory=lambda: Storage(ModuleOp([])))
    seed: int = 0
    function: FuncOp = field(default_factory=lambda: FuncOp.named("main", []))
    problems: Problems = field(default_factory=Problems)
    """Nodes that are not supported."""
    dependences: Dependences = field(default_factory=Dependences)
    """The inputs that values depend on."""
    folding: ConstantFolding = field(init=False)
    """Values that do not depend on inputs."""
    symbolic_values: SymbolicValues = field(init=False)
    """Values that depend on shapes only."""
    numbering: ValueNumbering = field(init=False)
    """Equal values, for computations that are emitted once for equal values."""
    block: Block = field(init=False)
    """The block into which operators are inserted: the function's, or that of a region."""
    trip_capacities: Mapping[str, int] = field(default_factory=dict[str, int])
    """The trip capacities of unbounded loops, by label."""
    computes_in_loops: bool = False
    """Whether operands that determine shapes may be computed in each trip of a loop."""
    has_bounds: bool = False
    """Whether dimensions of inputs have bounds; otherwise all sizes known at run time only depend on data."""
    _bindings: list[str] = field(default_factory=list[str])
    """The placeholders of inputs and outputs, in order."""
    _symbols: set[str] = field(default_factory=set[str])
    """The names of symbols in sizes."""
    input_symbols: set[str] = field(default_factory=set[str])
    """The names of symbols in sizes of inputs; nodes compute the other symbols."""
    _random_state: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """The states that random numbers depend on, by name."""
    _labels: Counter[str] = field(default_factory=Counter[str])
    """The number of labels that nodes of a name have."""
    _inserted: int = 0
    """The number of operators, including those in regions."""

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
        Add inputs to the function; those with `values` become constants instead.

        Raises errors like `check_values`, and `UnsupportedError` for types that are too large.
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
            symbol = self.storage.unique_name(name)
            placeholder = PlaceholderOp.bound(symbol, type_, "input", named_location(name))
            if symbol != name:
                placeholder.label = StringAttr(name)
            self.storage.add(placeholder)
        self._bindings.append(placeholder.sym_name.data)
        try:
            value = self.insert(GetOp.of(placeholder, named_location(name))).results[0]
        except UnsupportedError as error:
            error.reason = f"input '{name}': {error.reason}"
            raise
        self.folding.tell(value, None)
        return value

    def _shared(self, name: str, type_: TensorType[Attribute], role: str) -> PlaceholderOp | None:
        """The placeholder of this name, type and role, if another function of the module has one."""
        known = self.storage.by_name.get(name)
        if isinstance(known, PlaceholderOp) and known.type == type_ and known.role == role:
            return known
        return None

    def add_state(self, name: str, array: np.ndarray | Deferred, is_trainable: bool) -> SSAValue:
        """Add state with an initial value, shared by the functions of a module; its value at the start of a call."""
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
        """Add state that the caller of the function keeps; its value at the start of a call."""
        placeholder = PlaceholderOp.bound(self.storage.unique_name(name), type_, "state", named_location(name))
        self.storage.add(placeholder)
        self._bindings.append(placeholder.sym_name.data)
        value = self.insert(GetOp.of(placeholder, named_location(name))).results[0]
        self.folding.tell(value, None)
        return value

    def random_state(self, name: str) -> SSAValue:
        """
        The state `RANDOM_SEED` or `RANDOM_CALLS`, the number of the call: i64 scalars.

        Each call of a function that uses the number of the call increments it.
        """
        if name not in self._random_state:
            with self.inside(self.function.block):
                initial = np.array(self.seed if name == RANDOM_SEED else 0, np.int64)
                self._random_state[name] = self.add_state(name, initial, is_trainable=False)
        return self._random_state[name]

    def random_label(self, name: str) -> str:
        """A label for the random numbers of a node, unique even among nodes of the same name."""
        self._labels[name] += 1
        return f"{name}/{self._labels[name]}"

    def _count_call(self) -> None:
        """Save the number of the next call, if random numbers depend on it."""
        if (calls := self._random_state.get(RANDOM_CALLS)) is None:
            return
        location, owner = named_location(RANDOM_CALLS), calls.owner
        assert isinstance(owner, GetOp)
        one = self.constant(np.array(1, np.int64), RANDOM_CALLS, location)
        counted = self.insert(AddOp.make(calls, one, location=location)).results[0]
        self.function.block.add_op(SaveOp.to(counted, owner.storage_name, location))

    def add_output(self, name: str, value: SSAValue) -> None:
        """Add an output with this value; its symbol differs from its name if an input has that name."""
        symbol = self.storage.unique_name(name)
        type_ = tensor(sizes_of(value), element_of(value))
        placeholder = PlaceholderOp.bound(symbol, type_, "output", named_location(name))
        if symbol != name:
            placeholder.label = StringAttr(name)
        self.storage.add(placeholder)
        self._bindings.append(symbol)
        self.function.block.add_op(SaveOp.to(value, symbol, named_location(name)))

    def finish(self, name: str) -> ModuleOp:
        """Complete the module; its function gets this name."""
        self._count_call()
        self.function.properties.update(FuncOp.named(name, self._bindings).properties)
        self.storage.module.body.block.add_op(self.function)
        return self.storage.module

    # Operators

    def insert(self, op: Operation) -> Operation:
        """
        Append an operation to the block; its results take their names from the location.

        Raises `UnsupportedError` beyond the limits of `limits`, and `CancelledError` if the work is cancelled.
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
        """Emit a constant; `like` gives a plain number its element type."""
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
        """Insert operators at the end of another block within this context."""
        around, self.block = self.block, block
        try:
            yield
        finally:
            self.block = around

    @contextmanager
    def computing_in_loops(self) -> Generator[None]:
        """Set `computes_in_loops` within this context."""
        before, self.computes_in_loops = self.computes_in_loops, True
        try:
            yield
        finally:
            self.computes_in_loops = before

    def new_symbol(self, label: str, least: int, most: int) -> Symbol:
        """A new symbol with bounds; its name is the label, changed if it is invalid or taken."""
        return Symbol(symbol_name(label, self._symbols), least, most)

    # Errors

    def missing_value(self, value: SSAValue, what: str, node: str) -> UnsupportedError:
        """The error for `what`, an operand of a node that determines shapes and depends on inputs."""
        return missing_value(value, what, node, self._bindings, self.folding, self.dependences)

    @contextmanager
    def node_errors(self, kind: str, name: str) -> Generator[None]:
        """
        A context for building a node of a model: errors name the node.

        An `UnsupportedError` is added to the `problems`, so that the rest of the model is checked, too. Operands that
        do not fit, and results that do not fit into memory, raise `ModelError`.
        """
        try:
            yield
        except UnsupportedError as error:
            error.node = error.node or name
            error.hint = fitting_hint(error.hint, self.has_bounds)
            self.problems.errors.append(error)
        except MemoryError as error:
            hint = "check the constants that determine the sizes of its results"
            raise ModelError(f"{kind}: its results do not fit into memory", node=name, hint=hint) from error
        except VerifyException as error:
            raise ModelError(f"{kind}: {error}", node=name) from error
