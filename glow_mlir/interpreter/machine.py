"""
The interpreter: semantics of both dialects, on xDSL's interpreter framework and numpy.

`run_function` executes a function of either dialect on named arrays. Fresh allocations are always poisoned and dead
ones scrambled: a read of undefined memory gives NaN reliably.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, MemRefType, ModuleOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.traits import SymbolTable

from glow_mlir.backends.interface import get_backend
from glow_mlir.constants.packed_layout import PackedLayout
from glow_mlir.constants.storage import constant_array
from glow_mlir.dialects.attribute_syntax import properties_at
from glow_mlir.dialects.element_types import numpy_dtype
from glow_mlir.dialects.glow_high import storage as high
from glow_mlir.dialects.glow_high.base import HighOp, group_like, is_variadic
from glow_mlir.dialects.glow_high.call import CallOp, read_by, written_by
from glow_mlir.dialects.glow_high.dialect import operators
from glow_mlir.dialects.glow_high.expressed import Expressed
from glow_mlir.dialects.glow_high.sizes import BindSymbolOp as HighBindSymbolOp
from glow_mlir.dialects.glow_low import memory as low
from glow_mlir.dialects.glow_low.body import Body, yielded
from glow_mlir.dialects.glow_low.derive import DerivedInstruction
from glow_mlir.dialects.glow_low.host import CallOp as LowCallOp
from glow_mlir.dialects.glow_low.host import RecordEventOp, TransferOp, WaitEventOp
from glow_mlir.dialects.glow_low.instructions import instruction_of
from glow_mlir.dialects.glow_low.loop import WindowOp
from glow_mlir.dialects.glow_low.packing import PackOp, form_of
from glow_mlir.dialects.glow_low.sizes import BindSymbolOp
from glow_mlir.dialects.glow_low.stack import StackOp
from glow_mlir.dialects.properties import ints, number
from glow_mlir.dialects.shapes import element_of, has_static_shape, sizes_of, tensor
from glow_mlir.dialects.sizes import SizesAttr, shape_at
from glow_mlir.errors import CompilerBugError, InputError, ModelError
from glow_mlir.interpreter.control_flow import ControlFlowFunctions, symbols_of
from glow_mlir.interpreter.index_space import as_stored, index_array, signless_array
from glow_mlir.interpreter.memory import Buffer, allocate, scramble, wrap
from glow_mlir.interpreter.scalar import evaluate
from glow_mlir.interpreter.semantics import apply_semantics
from glow_mlir.ir.locations import source_location
from glow_mlir.ir.rewriting import functions
from glow_mlir.ir.traversal import function_of
from glow_mlir.runtime.layouts import symbol_values
from glow_mlir.support.dtypes import is_float_dtype
from glow_mlir.support.symbols import Sizes, Symbol
from glow_mlir.xdsl_patches.operations import cloned_region

Arrays = Mapping[str, np.ndarray]


class State:
    """The state of a run: storage by name, and the arena of an allocated function."""

    def __init__(self, module: ModuleOp, bindings: dict[str, np.ndarray], symbols: dict[str, int]) -> None:
        self.module = module
        self.bindings = bindings
        self.arena: np.ndarray | None = None
        self.symbols = symbols
        """The values of the symbols known so far."""
        self.sized: dict[str, Buffer] = {}
        """Buffers of storage with symbolic sizes, by name."""

    @property
    def content(self) -> Arrays:
        """The content of all storage that was read or written."""
        return {**self.bindings, **{name: buffer.array for name, buffer in self.sized.items()}}

    def read(self, name: str) -> np.ndarray:
        """The current content of storage `name`."""
        if name in self.bindings:
            return self.bindings[name]
        op = SymbolTable.lookup_symbol(self.module, name)
        if not isinstance(op, high.ConstantOp):
            raise CompilerBugError(f"storage @{name} has no content")
        return self.bindings.setdefault(name, constant_array(op))


def _bind_symbol(state: State, symbol: Symbol, count: np.ndarray) -> None:
    """Bind a symbol to the only element of an array, clipped to its range."""
    state.symbols[symbol.name] = min(max(int(count.item()), symbol.least), symbol.most)


def _state(interpreter: Interpreter) -> State:
    return interpreter.get_data(GlowFunctions, "state", lambda: None)


def _low_operands(op: Any, buffers: Mapping[SSAValue, Buffer]) -> list[Any]:
    """The arrays of an instruction's @in operands, grouped as in the operator's definition."""
    grouped: list[Any] = []
    for name, declared in op.OPERATOR.get_irdl_definition().operands:
        value = getattr(op, name)
        if is_variadic(declared):
            grouped.append([buffers[item].array for item in value])
        else:
            grouped.append(None if value is None else _unpacked(op, name, buffers[value].array))
    return grouped


def _unpacked(op: Any, name: str, array: np.ndarray) -> np.ndarray:
    """Unpack an operand that a backend packed; raises `ModelError` if it does not have that layout."""
    entry = None if op.packing is None else op.packing.data.get(name)
    if not isinstance(entry, DictionaryAttr):
        return array
    form, shape, _ = form_of(entry)
    try:
        plain = _layout(op, entry).unpack(array)
    except (KeyError, ValueError, IndexError, ArithmeticError):
        plain = None
    if plain is None or plain.shape != shape:
        file_position = source_location(op)
        raise ModelError(f"the packed '{name}' of {op.name} is no '{form}' of the shape {shape}", file=file_position)
    return plain


def _layout(op: Operation, entry: DictionaryAttr) -> PackedLayout:
    """The layout of an entry of an instruction's `packing`; raises `KeyError` if there is none."""
    form, shape, numbers = form_of(entry)
    return get_backend(function_of(op).target.backend).packed_forms[form](shape, numbers)


@register_impls
class GlowFunctions(InterpreterFunctions):
    """Implementations of storage, memory and stack ops; derived ops, branches and loops are elsewhere."""

    @impl(high.GetOp)
    def run_get(self, interpreter: Interpreter, op: high.GetOp, args: PythonValues) -> PythonValues:
        return (_state(interpreter).read(op.storage_name),)

    @impl(high.SaveOp)
    def run_save(self, interpreter: Interpreter, op: high.SaveOp, args: PythonValues) -> PythonValues:
        _state(interpreter).bindings[op.storage_name] = np.array(args[0])
        return ()

    @impl(CallOp)
    def run_call(self, interpreter: Interpreter, op: CallOp, args: PythonValues) -> PythonValues:
        return self._called(interpreter, op, args)

    @staticmethod
    def _called(interpreter: Interpreter, op: CallOp | LowCallOp, args: PythonValues) -> PythonValues:
        """Run the called function, and store its state; returns its results."""
        state = _state(interpreter)
        callee = op.function(state.module)
        assert callee is not None
        given = dict(zip(read_by(callee), args, strict=True))
        kept = {name: state.bindings[name] for name in callee.binding_names if name in state.bindings}
        found = run_function(state.module, {**kept, **given}, op.callee_name)
        values = tuple(found.pop(name) for name in written_by(callee))
        state.bindings.update(found)
        return values

    @impl(low.WeightOp)
    def run_weight(self, interpreter: Interpreter, op: low.WeightOp, args: PythonValues) -> PythonValues:
        state, type_ = _state(interpreter), op.result.type
        assert isinstance(type_, MemRefType)
        if has_static_shape(type_):
            return (wrap(state.read(op.storage_name), type_),)
        buffer = state.sized[op.storage_name] = allocate(type_, state.symbols)
        if op.storage_name in state.bindings:
            buffer.array[...] = state.bindings[op.storage_name]
        return (buffer,)

    @impl(HighBindSymbolOp)
    def run_high_binding(self, interpreter: Interpreter, op: HighBindSymbolOp, args: PythonValues) -> PythonValues:
        _bind_symbol(_state(interpreter), op.bound, args[0])
        return ()

    @impl(BindSymbolOp)
    def run_binding(self, interpreter: Interpreter, op: BindSymbolOp, args: PythonValues) -> PythonValues:
        _bind_symbol(_state(interpreter), op.bound, args[0].array)
        return ()

    @impl(low.AllocOp)
    def run_alloc(self, interpreter: Interpreter, op: low.AllocOp, args: PythonValues) -> PythonValues:
        type_ = op.result.type
        assert isinstance(type_, MemRefType)
        offset = op.offset.value.data if isinstance(op.offset, IntegerAttr) else 0
        arena = _state(interpreter).arena if op.offset is not None else None
        return (allocate(type_, _state(interpreter).symbols, arena, offset),)

    @impl(low.DeallocOp)
    def run_dealloc(self, interpreter: Interpreter, op: low.DeallocOp, args: PythonValues) -> PythonValues:
        scramble(args[0])
        return ()

    @impl(low.ViewOp)
    def run_view(self, interpreter: Interpreter, op: low.ViewOp, args: PythonValues) -> PythonValues:
        type_ = op.result.type
        assert isinstance(type_, MemRefType)
        return (args[0].view(type_),)

    @impl(WindowOp)
    def run_window(self, interpreter: Interpreter, op: WindowOp, args: PythonValues) -> PythonValues:
        buffer, *indices = args
        type_ = op.result.type
        assert isinstance(type_, MemRefType)
        moved = sum(index * step for index, step in zip(indices, ints(op.steps), strict=True))
        return (buffer.view(type_, moved),)

    @impl(low.CopyOp)
    def run_copy(self, interpreter: Interpreter, op: low.CopyOp, args: PythonValues) -> PythonValues:
        target, source = args
        target.array[...] = source.array
        return ()

    @impl(LowCallOp)
    def run_low_call(self, interpreter: Interpreter, op: LowCallOp, args: PythonValues) -> PythonValues:
        count = len(op.targets)
        found = self._called(interpreter, op, tuple(buffer.array for buffer in args[count:]))
        for target, result in zip(args[:count], found, strict=True):
            target.array[...] = result
        return ()

    @impl(TransferOp)
    def run_transfer(self, interpreter: Interpreter, op: TransferOp, args: PythonValues) -> PythonValues:
        target, source = args
        target.array[...] = source.array
        return ()

    @impl(RecordEventOp)
    def run_record_event(self, interpreter: Interpreter, op: RecordEventOp, args: PythonValues) -> PythonValues:
        return ()  # Execution is sequential.

    @impl(WaitEventOp)
    def run_wait_event(self, interpreter: Interpreter, op: WaitEventOp, args: PythonValues) -> PythonValues:
        return ()

    @impl(low.FillOp)
    def run_fill(self, interpreter: Interpreter, op: low.FillOp, args: PythonValues) -> PythonValues:
        for target in args:
            target.array[...] = target.array.dtype.type(number(op.value))
        return ()

    @impl(PackOp)
    def run_pack(self, interpreter: Interpreter, op: PackOp, args: PythonValues) -> PythonValues:
        target, source = args
        target.array[...] = _layout(op, op.layout).pack(source.array, target.array.dtype)
        return ()

    @impl(StackOp)
    def run_stack(self, interpreter: Interpreter, op: StackOp, args: PythonValues) -> PythonValues:
        count = len(op.targets)
        maps = op.affine_maps()
        sources = zip(args[count:], maps[count:], strict=True)
        inputs = [signless_array(index_array(buffer.array, affine)) for buffer, affine in sources]
        results = _apart(evaluate(op.block, inputs, yielded(op.block)))
        for buffer, affine, result in zip(args[:count], maps[:count], results, strict=True):
            view = index_array(buffer.array, affine)
            view[...] = as_stored(result, view.dtype, np.shape(result))
        return ()


def _apart(results: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Copy several results: one that is an unchanged operand must survive the store of another over it."""
    return tuple(map(np.array, results)) if len(results) > 1 else tuple(results)


def _run_high(ft: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    high_op = cast(HighOp, op)
    with _with_numbers(high_op, _state(interpreter).symbols) as known:
        return apply_semantics(known, group_like(high_op, args))


@contextmanager
def _with_numbers(op: HighOp | DerivedInstruction, symbols: Mapping[str, int]) -> Generator[Operation]:
    """
    The operation with symbolic sizes replaced by numbers in its properties, and in its types if the sizes of arrays do
    not determine all others.
    """
    is_symbolic = any(isinstance(value, SizesAttr) for value in op.properties.values())
    is_made = not all(map(has_static_shape, op.outputs())) and (not op.inputs() or _has_extents(op))
    if not is_symbolic and not is_made:
        yield op
        return
    operands = Block(arg_types=[_type_at(value, symbols) for value in op.operands]).args if is_made else op.operands
    copy = type(op).create(
        operands=operands,
        result_types=[_type_at(result, symbols) for result in op.results],
        properties=properties_at(op.properties, symbols),
        attributes=op.attributes,
        regions=[cloned_region(region) for region in op.regions],
        location=op.location,
    )
    yield copy
    copy.erase()


def _has_extents(op: HighOp | DerivedInstruction) -> bool:
    """Whether an expression runs over dimensions that no operand has as an axis, such as those of windows."""
    kind = getattr(op, "OPERATOR", type(op))
    return issubclass(kind, Expressed) and bool(cast(Expressed, op).notation().extents)


def _type_at(value: SSAValue, symbols: Mapping[str, int]) -> Attribute:
    """The type of a tensor or buffer for these symbol values."""
    shape = shape_at(sizes_of(value), symbols)
    of_buffer = isinstance(value.type, MemRefType)
    return low.buffer_type(shape, element_of(value)) if of_buffer else tensor(shape, element_of(value))


def _run_low(ft: InterpreterFunctions, interpreter: Interpreter, op: Operation, args: PythonValues) -> PythonValues:
    assert isinstance(op, DerivedInstruction)
    buffers: dict[SSAValue, Buffer] = dict(zip(op.operands, args, strict=True))
    operands = _low_operands(op, buffers)
    if (prologue := op.prologue) is not None:
        group = cast("list[np.ndarray]", operands[0] if isinstance(operands[0], list) else operands)
        (group[0],) = _run_body(prologue, group[0], buffers, [group[0].dtype])
    with _with_numbers(op, _state(interpreter).symbols) as known:
        results = apply_semantics(known, operands)
    outputs = op.outputs()
    if (epilogue := op.epilogue) is not None:
        first, *others = outputs
        dtypes = [buffers[value].array.dtype for value in (first, *epilogue.targets)]
        outputs = (first, *epilogue.targets, *others)
        results = _apart((*_run_body(epilogue, results[0], buffers, dtypes), *results[1:]))
    for value, result in zip(outputs, results, strict=True):
        buffers[value].array[...] = result
    return ()


def _run_body(
    body: Body, first: np.ndarray, buffers: Mapping[SSAValue, Buffer], dtypes: Sequence[np.dtype]
) -> tuple[np.ndarray, ...]:
    """Evaluate a body over the index space of `first`; results for targets have their own axis order."""
    maps = body.maps[len(body.targets) :]
    sources = [index_array(buffers[value].array, affine) for value, affine in zip(body.sources, maps, strict=True)]
    results = evaluate(body.block, [signless_array(array) for array in (first, *sources)], yielded(body.block))
    identity = AffineMap.identity(first.ndim)
    positions = [identity] * (len(results) - len(body.targets)) + list(body.maps[: len(body.targets)])
    return tuple(
        _in_order(as_stored(result, dtype, first.shape), affine)
        for result, dtype, affine in zip(results, dtypes, positions, strict=True)
    )


def _in_order(array: np.ndarray, affine: AffineMap) -> np.ndarray:
    """Transpose elements of an index space to the axis order of an operand with that map."""
    return array.transpose([e.position for e in affine.results if isinstance(e, AffineDimExpr)])


@cache
def _derived_functions() -> InterpreterFunctions:
    """Implementations of operators and instructions with registered semantics."""
    members: dict[str, Any] = {}
    for operator in operators():
        if issubclass(operator, HighOp):
            instruction = instruction_of(operator)
            members[operator.name] = impl(operator)(_run_high)
            members[instruction.name] = impl(instruction)(_run_low)
    return register_impls(type("DerivedFunctions", (InterpreterFunctions,), members))()


def new_interpreter(
    module: ModuleOp, bindings: dict[str, np.ndarray], listeners: Sequence[Interpreter.Listener] = ()
) -> Interpreter:
    """An interpreter of `module` whose placeholders have the content `bindings`."""
    interpreter = Interpreter(module, listeners=tuple(listeners))
    interpreter.register_implementations(GlowFunctions())
    interpreter.register_implementations(ControlFlowFunctions())
    interpreter.register_implementations(_derived_functions())
    interpreter.set_data(GlowFunctions, "state", State(module, bindings, symbols_of(interpreter)))
    return interpreter


def find_function(module: ModuleOp, name: str | None = None) -> high.FunctionOp:
    """The function of that name, or the only one; raises `InputError` if there is none."""
    found = functions(module)
    for function in found:
        if name in (None, function.sym_name.data):
            return function
    known = ", ".join(f"@{function.sym_name.data}" for function in found) or "none"
    raise InputError(f"no function @{name or 'main'} in the module (it has {known})")


def run_function(
    module: ModuleOp,
    inputs: Arrays,
    name: str | None = None,
    listeners: Sequence[Interpreter.Listener] = (),
) -> dict[str, np.ndarray]:
    """
    Run a function of either dialect, and return the placeholders that it may write, by name.

    `inputs` binds inputs and state by name. Outputs and unbound state start poisoned; packed state is packed first.
    Raises `InputError` for a missing or misshapen input.
    """
    function = find_function(module, name)
    own_name = function.sym_name.data
    bindings: dict[str, np.ndarray] = {}
    written: list[str] = []
    mutable = function.written_names()
    sizes = symbol_values(_sized(module, function, inputs), {name: array.shape for name, array in inputs.items()})
    for binding in function.binding_names:
        placeholder = SymbolTable.lookup_symbol(module, binding)
        assert isinstance(placeholder, high.PlaceholderOp)
        packing = placeholder.packing_function
        if packing not in (None, own_name):
            bindings[binding] = run_function(module, inputs, packing)[binding]
            continue
        is_given_on = placeholder.role == "between" and binding in mutable
        if not (placeholder.role == "output" or is_given_on) or has_static_shape(placeholder.tensor_type):
            bindings[binding] = _bind(placeholder, {} if is_given_on else inputs, sizes)
        if placeholder.is_mutable or packing is not None or is_given_on:
            written.append(binding)
    interpreter = new_interpreter(module, bindings, listeners)
    state = _state(interpreter)
    state.symbols.update(sizes)
    if (size := function.properties.get("activations")) is not None:
        assert isinstance(size, IntegerAttr)
        state.arena = np.empty(size.value.data, np.uint8)
    interpreter.run_ssacfg_region(function.body, (), own_name)
    content = state.content
    return {binding: content[binding] for binding in written}


def _sized(module: ModuleOp, function: high.FunctionOp, inputs: Arrays) -> Iterator[tuple[str, Sizes]]:
    """Names and sizes of the given inputs and state with symbolic sizes."""
    for name in function.binding_names:
        placeholder = SymbolTable.lookup_symbol(module, name)
        assert isinstance(placeholder, high.PlaceholderOp)
        if name in inputs and not has_static_shape(placeholder.tensor_type):
            yield name, sizes_of(placeholder.tensor_type)


def _bind(placeholder: high.PlaceholderOp, inputs: Arrays, symbols: Mapping[str, int]) -> np.ndarray:
    name = placeholder.sym_name.data
    shape = shape_at(sizes_of(placeholder.tensor_type), symbols)
    dtype = numpy_dtype(placeholder.tensor_type.element_type)
    if placeholder.role in ("output", "packed") or (placeholder.role in ("state", "between") and name not in inputs):
        array = np.empty(shape, dtype)
        array.fill(np.nan if is_float_dtype(dtype) else 1)
        return array
    if name not in inputs:
        raise InputError(f"input '{name}' is missing")
    array = inputs[name]
    if array.shape != shape or array.dtype != dtype:
        raise InputError(f"input '{name}' must be {dtype.name}{list(shape)}, not {array.dtype.name}{list(array.shape)}")
    # numpy adds an axis to a scalar when it makes it contiguous.
    return np.array(array) if placeholder.is_mutable else np.ascontiguousarray(array).reshape(shape)
