"""Import of an ONNX graph into a function of `glow_high`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import LocationAttr, ModuleOp, NameLoc, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from glow_mlir.constants.storage import Storage, constant_op
from glow_mlir.dialects.element_types import ELEMENT_TYPES, numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp, group_like
from glow_mlir.dialects.glow_high.storage import FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.shapes import MOST_AXES, bytes_of, element_of, largest_shape, size_of, sizes_of, tensor
from glow_mlir.dialects.sizes import RunTimeSizeError, smallest
from glow_mlir.errors import InputValuesError, LargeInputError, ModelError, UnsupportedError, UnsupportedOperatorsError
from glow_mlir.frontends.onnx.doubts import Doubts
from glow_mlir.frontends.onnx.facts import found_out
from glow_mlir.frontends.onnx.functions import find_importer
from glow_mlir.frontends.onnx.influences import Influences
from glow_mlir.frontends.onnx.numbering import ValueNumbers
from glow_mlir.frontends.onnx.places import Places
from glow_mlir.frontends.onnx.scope import Scope, named_location
from glow_mlir.frontends.onnx.shapes import KnownSizes, operands_of
from glow_mlir.frontends.onnx.sparse import Initializer, dense_array, initializers_of
from glow_mlir.frontends.onnx.tensors import Tensors
from glow_mlir.frontends.onnx.types import (
    check_values,
    element_of_onnx,
    input_types,
    symbol_name,
)
from glow_mlir.interpreter.machine import apply_semantics
from glow_mlir.ir.run_time_sizes import has_run_time_sizes
from glow_mlir.ir.value_names import value_name
from glow_mlir.support.cancellation import check_cancellation
from glow_mlir.support.symbols import Dimension, Symbol, symbols_of

MOST_ELEMENTS = 1 << 40
"""Elements of a value at most: no memory has room for more, and numbers of bytes stay far below the limits of types."""

MOST_OPERATORS = 1 << 20
"""Operators of a graph at most: more take hours to compile, and loops in loops that are unrolled can be any number."""

MOST_FOLDED = 1 << 31
"""Bytes at most of a value that is computed to know it, for shapes that follow from constants."""

MOST_READ = 256
"""
Elements of an input at most for its value to fix shapes: enough for sizes, axes, borders and steps of every axis, and
for lists of pieces. Who compiles for the value of a larger one compiles anew for nearly every call.
"""


@dataclass
class GraphImporter:
    """
    Imports one graph into a function: keeps its storage, and what the values of constants are.

    `tensors` knows what is in the tensors of the model. With `places`, large constants have names without meaning.
    `values` are the inputs that are constants.
    """

    graph: onnx.GraphProto
    opsets: Mapping[str, int]
    dimensions: Mapping[str, Dimension]
    tensors: Tensors = field(default_factory=Tensors)
    places: Places | None = None
    values: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    storage: Storage = field(default_factory=lambda: Storage(ModuleOp([])))
    function: FuncOp = field(default_factory=lambda: FuncOp.named("main", []))
    unsupported: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Kind and name of each node without an importer."""
    reasons: list[UnsupportedError] = field(default_factory=list[UnsupportedError])
    """Errors of importers."""
    importer_of: Callable[[str, str, int], Callable[..., Any] | None] = field(
        default_factory=lambda: cache(find_importer)
    )
    """`find_importer`, which looks through all of them, remembered for this graph."""
    folded: dict[SSAValue, np.ndarray | None] = field(default_factory=dict[SSAValue, np.ndarray | None])
    """Values that are known to be an array, or to depend on an input (`None`)."""
    influences: Influences = field(default_factory=Influences)
    """What values depend on."""
    known_sizes: KnownSizes = field(init=False)
    """What values are that follow from shapes."""
    emitted: ValueNumbers = field(init=False)
    """What has been emitted of which value, for what is emitted once of equal ones."""
    doubts: Doubts = field(default_factory=Doubts)
    """What the model says wrongly, and is imported in spite of."""
    symbols: set[str] = field(default_factory=set[str])
    """The names of symbols in sizes."""
    inserted: int = 0
    """How many operators there are, in regions too."""
    has_bounds: bool = False
    """Whether dimensions of inputs have bounds; what else is known at run time only, data decides."""
    block: Block = field(init=False)
    """Where operators are inserted: that of the function, or of a region."""

    def __post_init__(self) -> None:
        self.block = self.function.block
        self.known_sizes = KnownSizes(self.fold)
        self.emitted = ValueNumbers(self.fold)

    def run(self, name: str) -> ModuleOp:
        """Import the graph as function `name` of a new module."""
        initializers = initializers_of(self.graph)
        inputs = [value for value in self.graph.input if value.name not in initializers]
        outputs = [value.name for value in self.graph.output]
        scope = Scope(self, self.opsets, initializers=initializers)
        types = input_types(inputs, self.dimensions)
        self.symbols.update(symbol.name for type_ in types.values() for symbol in symbols_of(sizes_of(type_)))
        self.has_bounds = bool(self.symbols)
        values = check_values(types, self.values)
        for input_, type_ in types.items():
            if input_ in values:
                scope.values[input_] = self.constant(values[input_], input_, named_location(input_))
            else:
                scope.values[input_] = self._import_input(input_, type_)
        scope.run(self.graph.node)
        self._check_supported(scope, outputs)
        bindings = [value.name for value in inputs if value.name not in values]
        bindings += [self._import_output(scope, output) for output in self.graph.output]
        self.doubts.check_values(self.graph, scope.values, is_main=True)
        self.function.properties.update(FuncOp.named(name, bindings).properties)
        self.storage.module.body.block.add_op(self.function)
        return self.storage.module

    def insert(self, op: Operation) -> Operation:
        """
        Append an op to the block; its results take their names from the location.

        Raises `UnsupportedError` for results of more than `MOST_ELEMENTS` or `MOST_AXES`, and for more operators than
        `MOST_OPERATORS`; `CancelledError` where the import is to end.
        """
        check_cancellation()
        self.inserted += 1
        if self.inserted > MOST_OPERATORS:
            hint = "loops whose shapes change from trip to trip are unrolled: give them fewer trips"
            raise UnsupportedError(f"the graph becomes more than {MOST_OPERATORS} operators", hint=hint)
        for result in op.results:
            if negative := [size for size in sizes_of(result) if smallest(size) < 0 and not isinstance(size, int)]:
                hint = "give bounds for which it is not, or sizes"
                raise UnsupportedError(f"the size {negative[0]} may be negative", hint=hint)
            self.check_size(largest_shape(result))
        self.block.add_op(op)
        if isinstance(op.location, NameLoc):
            hint = value_name(op.location.desc.data)
            for result in op.results:
                result.name_hint = hint
        if any(self.folded.get(operand, ()) is None for operand in op.operands):
            self.folded.update(dict.fromkeys(op.results))
        return op

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Insert operators at the end of a block for a while."""
        around, self.block = self.block, block
        try:
            yield
        finally:
            self.block = around

    def problems(self) -> tuple[int, int]:
        """How many problems have been found so far."""
        return len(self.unsupported), len(self.reasons)

    def forget_problems(self, before: tuple[int, int]) -> None:
        """Forget the problems that have been found since, of what is tried in another way."""
        del self.unsupported[before[0] :], self.reasons[before[1] :]

    def check_size(self, shape: Sequence[int]) -> None:
        """
        Raise `UnsupportedError` for more than `MOST_AXES`, or more elements than `MOST_ELEMENTS`, sizes of 0 aside.

        Raises `VerifyException` for sizes below 0.
        """
        if min(shape, default=0) < 0:
            raise VerifyException(f"no value has the shape {tuple(shape)} (hint: check what its sizes come from)")
        if len(shape) > MOST_AXES:
            hint = f"values have at most {MOST_AXES} axes: merge some that follow each other"
            raise UnsupportedError(f"a value of {len(shape)} axes is not supported", hint=hint)
        if math.prod(size for size in shape if size) > MOST_ELEMENTS:
            hint = "check the sizes of inputs, and constants that say how large a value is"
            raise UnsupportedError(f"a value of shape {tuple(shape)} is too large", hint=hint)

    def new_symbol(self, label: str, least: int, most: int) -> Symbol:
        """A symbol between these numbers; its name is the label, as far as IR can have that and it is free."""
        return Symbol(symbol_name(label, self.symbols), least, most)

    def constant(
        self,
        array: np.ndarray | Sequence[int] | float,
        name: str,
        location: LocationAttr,
        like: SSAValue | None = None,
    ) -> SSAValue:
        """A constant with that value."""
        dtype = None if like is None else numpy_dtype(element_of(like))
        value = np.asarray(array, dtype)
        if value.dtype.name not in ELEMENT_TYPES:
            hint = f"element types are {', '.join(ELEMENT_TYPES)}"
            raise UnsupportedError(f"element type {value.dtype.name} is not supported", node=name, hint=hint)
        # The names of outputs are kept for them.
        wish = f"{name}_constant" if any(name == output.name for output in self.graph.output) else name
        kept = value if self.places is None else self.places.stored(value)
        op = self.insert(constant_op(self.storage, kept, wish, location))
        self.folded[op.results[0]] = value
        return op.results[0]

    def initializer(self, name: str, proto: Initializer, location: LocationAttr) -> SSAValue:
        """The constant that an initializer is."""
        what = f"initializer '{name}'"
        if isinstance(proto, onnx.SparseTensorProto):
            return self.constant(dense_array(proto, self.tensors, what), name, location)
        element_of_onnx(proto.data_type, what)
        return self.constant(self.array(proto, what), proto.name, location)

    def array(self, proto: onnx.TensorProto, what: str) -> np.ndarray:
        """The content of an ONNX tensor; raises `ModelError` about `what` where it cannot be read."""
        return self.tensors.array(proto, what)

    def fold(self, value: SSAValue) -> np.ndarray | None:
        """The array that `value` always is, or `None` where it depends on an input."""
        return found_out(value, self.folded, operands_of, self._fold)

    def _fold(self, value: SSAValue) -> np.ndarray | None:
        """Like `fold`, for a value whose operands are folded."""
        if (array := self.storage.value_of(value)) is not None:
            return array
        owner = value.owner
        if not isinstance(owner, HighOp) or any(self.folded[item] is None for item in owner.operands):
            return None
        if has_run_time_sizes(owner):
            return None
        if (size := sum(map(bytes_of, owner.results))) > MOST_FOLDED:
            reason = f"a constant that has to be known takes {size} bytes, more than {MOST_FOLDED}"
            raise UnsupportedError(reason, hint="compute shapes of small constants")
        operands = group_like(owner, (self.folded[item] for item in owner.operands))
        return apply_semantics(owner, operands)[list(owner.results).index(value)]  # pyright: ignore[reportArgumentType]

    def missing_value(self, value: SSAValue, what: str, node: str) -> UnsupportedError:
        """The error for `what`, an operand of a node that fixes shapes and whose value depends on inputs."""
        reason = f"{what} depends on an input of the model"
        names: set[str] = set()
        for root in self.influences.roots(value):
            if self.fold(root) is not None:
                continue
            if isinstance(root.owner, Operation) and has_run_time_sizes(root.owner):
                return RunTimeSizeError(f"that {what} is computed of")
            if not isinstance(root.owner, GetOp):
                return UnsupportedError(f"{what} is computed anew in each iteration", node=node)
            if (count := size_of(root)) > MOST_READ:
                large = f"'{root.owner.storage_name}' has {count} elements"
                hint = f"{large}, and the value of one with more than {MOST_READ} fixes no shape"
                return LargeInputError(reason, node=node, hint=hint)
            names.add(root.owner.storage_name)
        ordered = [item.name for item in self.graph.input if item.name in names]
        return InputValuesError(reason, ordered, node=node) if ordered else UnsupportedError(reason, node=node)

    def _import_input(self, name: str, type_: TensorType[Attribute]) -> SSAValue:
        placeholder = PlaceholderOp.bound(name, type_, "input", named_location(name))
        self.storage.add(placeholder)
        try:
            value = self.insert(GetOp.of(placeholder, named_location(name))).results[0]
        except UnsupportedError as error:
            error.reason = f"input '{name}': {error.reason}"
            raise
        self.folded[value] = None
        return value

    def _check_supported(self, scope: Scope, outputs: Sequence[str]) -> None:
        """Raise for all that is not supported at once."""
        scope.lacks(outputs)
        if not self.unsupported and len(self.reasons) == 1:
            raise self.reasons[0]
        missing = [error for error in self.reasons if isinstance(error, InputValuesError)]
        if not self.unsupported and missing and len(missing) == len(self.reasons):
            names = dict.fromkeys(name for error in missing for name in error.inputs)
            raise InputValuesError(missing[0].reason, list(names), node=missing[0].node)
        if self.unsupported or self.reasons:
            listed = [*self.unsupported, *((error.reason, error.node) for error in self.reasons)]
            hints = {error.hint for error in self.reasons}
            if not self.unsupported and len(hints) == 1:
                raise UnsupportedOperatorsError(listed, hint=hints.pop())
            raise UnsupportedOperatorsError(listed)

    def _import_output(self, scope: Scope, output: onnx.ValueInfoProto) -> str:
        name = output.name
        value = scope.lookup(name) if scope.knows(name) else None
        if value is None:
            raise ModelError(f"output '{name}' is computed by no node", hint="the model is cut off or edited wrongly")
        symbol = self.storage.unique_name(name)
        type_ = tensor(sizes_of(value), element_of(value))
        placeholder = PlaceholderOp.bound(symbol, type_, "output", named_location(name))
        if symbol != name:
            placeholder.label = StringAttr(name)
        self.storage.add(placeholder)
        self.function.block.add_op(SaveOp.to(value, symbol, named_location(name)))
        return symbol
