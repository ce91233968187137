"""
Run functions of `glow_high` twice: in the interpreter, which says what it means, and as machine code.

The machine code gets its buffers misaligned by one element, between guards that must survive, and an arena full of NaN.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from glow_mlir.backends.interface import get_backend
from glow_mlir.codegen.build import build_region, constants_of
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.host import detect_host
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.llvm.symbols import undefined_symbols
from glow_mlir.constants.storage import Storage
from glow_mlir.constants.weights import add_weights
from glow_mlir.dialects.element_types import element_type, is_bool, is_element, numpy_dtype
from glow_mlir.dialects.glow_high.base import HighOp
from glow_mlir.dialects.glow_high.elementwise_binary import AndOp, MulOp
from glow_mlir.dialects.glow_high.storage import ConstantOp, FuncOp, GetOp, PlaceholderOp, SaveOp
from glow_mlir.dialects.glow_low.memory import FuncOp as LowFuncOp
from glow_mlir.dialects.shapes import element_of, largest_shape, sizes_of, tensor
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pass_runner import PassRunner
from glow_mlir.driver.pipelines import exchanging
from glow_mlir.interpreter.machine import run_function
from glow_mlir.ir.context import new_context
from glow_mlir.ir.entries import symbols_in
from glow_mlir.ir.rewriting import functions
from glow_mlir.runtime.loader import Library
from glow_mlir.support.dtypes import is_float_dtype, named_dtype
from glow_mlir.support.symbols import Size

GUARD = 64
"""Bytes in front of and behind every buffer that a function must not write."""
_GUARD_BYTE = 0xA5

SYMBOLS = "symbols"
"""The binding behind those of a function with the values of the symbols in its sizes, if there are any."""

Given = np.ndarray | Sequence[np.ndarray] | None
"""One operand of an operator under test: an array, several for a variadic one, `None` for an absent one."""


class Case:
    """
    One operator with its operands; those whose positions are in `constants` are constants of the module.

    `symbolic` has positions of operands of which a size is known at run time only → the axis and that size.
    """

    def __init__(
        self,
        operator: type[HighOp],
        *operands: Given,
        constants: Sequence[int] = (),
        symbolic: Mapping[int, tuple[int, Size]] | None = None,
        **properties: Any,
    ) -> None:
        self.operator = operator
        self.operands = operands
        self.constants = tuple(constants)
        self.symbolic = symbolic or {}
        self.properties = properties

    def is_valid(self) -> bool:
        """Whether the operator takes these operands and properties."""
        try:
            module_of(self)
        except VerifyException:
            return False
        return True


class _Assembly:
    """
    A module under construction; `arrays` has what its inputs are bound to.

    With `neighbours`, inputs and results are multiplied by inputs that are 1, or met with `true`.
    """

    def __init__(self, neighbours: bool = False) -> None:
        self.module = ModuleOp([])
        self.neighbours = neighbours
        self.gets: list[GetOp] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.program: list[Operation] = []

    def declare(self, array: np.ndarray, constant: bool, symbolic: tuple[int, Size] | None = None) -> SSAValue:
        """The value of a new input or constant; `symbolic` is an axis, and its size where that is no number."""
        name = f"in{len(self.gets)}"
        sizes: list[Size] = [*array.shape]
        if symbolic is not None:
            sizes[symbolic[0]] = symbolic[1]
        type_ = tensor(tuple(sizes), element_type(array.dtype))
        if constant:
            storage = ConstantOp.of(name, type_, add_weights(np.array(array)))
        else:
            storage = PlaceholderOp.bound(name, type_, "input")
            self.arrays[name] = array
        self.module.body.block.add_op(storage)
        self.gets.append(GetOp.of(storage))
        return self.gets[-1].result

    def given(self, array: np.ndarray, constant: bool, symbolic: tuple[int, Size] | None = None) -> SSAValue:
        """An operand: an input or a constant, behind a neighbour if there are any."""
        value = self.declare(array, constant, symbolic)
        return value if constant else self.beside(value)

    def beside(self, value: SSAValue) -> SSAValue:
        """The same elements behind a neighbour, if there are any; codes have none."""
        if not self.neighbours or not is_element(element_of(value)):
            return value
        one = self.declare(np.ones((), numpy_dtype(element_of(value))), constant=False)
        kind: type[HighOp] = AndOp if is_bool(element_of(value)) else MulOp
        self.program.append(kind.make(value, one))
        return self.program[-1].results[0]

    def add(self, case: Case) -> None:
        """Apply one operator, and save what it gives."""
        values: list[SSAValue | list[SSAValue] | None] = []
        for position, operand in enumerate(case.operands):
            given = position in case.constants, case.symbolic.get(position)
            if operand is None:
                values.append(None)
            elif isinstance(operand, np.ndarray):
                values.append(self.given(operand, *given))
            else:
                values.append([self.given(part, *given) for part in operand])
        op = case.operator.make(*values, **case.properties)
        self.program.append(op)
        for result in op.results:
            name = f"out{sum(isinstance(other, SaveOp) for other in self.program)}"
            self.module.body.block.add_op(
                PlaceholderOp.bound(name, tensor(sizes_of(result), element_of(result)), "output")
            )
            self.program.append(SaveOp.to(self.beside(result), name))

    def finish(self) -> ModuleOp:
        """The module with its only function, verified."""
        block = self.module.body.block
        bound = [storage.sym_name.data for storage in block.ops if isinstance(storage, PlaceholderOp)]
        function = FuncOp.named("main", bound)
        function.block.add_ops([*self.gets, *self.program])
        block.add_op(function)
        self.module.verify()
        return self.module


def module_of(*cases: Case, neighbours: bool = False) -> tuple[ModuleOp, dict[str, np.ndarray]]:
    """
    A module whose function `main` applies operators to the inputs `in0`, `in1`, … and saves `out0`, …; and the inputs.

    With `neighbours`, there are operators in front and behind that change no element, for what is fused with others.
    Raises `VerifyException` where an operator does not take its operands.
    """
    assembly = _Assembly(neighbours)
    for case in cases:
        assembly.add(case)
    return assembly.finish(), assembly.arrays


@dataclass(frozen=True)
class Program:
    """One function as machine code in this process, with what its caller has to provide."""

    library: Library
    name: str
    constants: np.ndarray
    bindings: tuple[tuple[str, tuple[int, ...], np.dtype, bool], ...]
    """Name, shape, element type, and whether the function writes it."""
    activations: int
    packing: Mapping[str, Program] = field(default_factory=dict[str, "Program"])
    """Name of packed state → the function that makes it."""
    places: Sequence[int] = ()
    """For each binding, where it is in the activations, or -1; empty where all have memory of their own."""

    def run(self, inputs: Mapping[str, np.ndarray], parallel: object = None) -> dict[str, np.ndarray]:
        """
        Call the function; returns what it may write, by name. Checks that guards survive, and inputs outside the
        activations.

        `parallel` is a `glow_parallel` as ctypes pass it, by default none.
        """
        inputs = {**inputs, **{name: packing.run(inputs)[name] for name, packing in self.packing.items()}}
        buffers = [
            Guarded.of(shape, dtype, shift=int(name not in self.packing)) for name, shape, dtype, _ in self.bindings
        ]
        arena = Guarded.of((self.activations,), np.dtype(np.uint8), shift=0)
        arena.array.fill(0xFF)
        buffers = [arena.part(*item) for item in zip(buffers, self.places or [-1] * len(buffers), strict=True)]
        for (name, _, _, _), buffer in zip(self.bindings, buffers, strict=True):
            if name in inputs:
                buffer.array[...] = inputs[name]
        goes_on = ctypes.c_int32(0)  # Read by loops.
        addresses = [*(buffer.array.ctypes.data for buffer in buffers), ctypes.addressof(goes_on)]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        entry = self.library.function(self.name, [ctypes.c_void_p] * 4, ctypes.c_int32)
        assert entry(self.constants.ctypes.data, pointers, arena.array.ctypes.data, parallel) == 0
        for buffer in (*(buffer for buffer in buffers if buffer.whole is not arena.whole), arena):
            buffer.check()
        results: dict[str, np.ndarray] = {}
        for (name, _, _, writes), buffer in zip(self.bindings, buffers, strict=True):
            if writes:
                results[name] = buffer.array
            elif buffer.whole is not arena.whole:
                assert buffer.array.tobytes() == inputs[name].tobytes(), f"the input {name} was written"
        return results


@dataclass(frozen=True)
class Guarded:
    """An array between guards."""

    whole: np.ndarray
    array: np.ndarray
    start: int

    @staticmethod
    def of(shape: tuple[int, ...], dtype: np.dtype, shift: int = 1) -> Guarded:
        """An array that starts `shift` elements behind a multiple of 64 bytes."""
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        whole = np.full(size + 2 * GUARD + 64 + shift * dtype.itemsize, _GUARD_BYTE, np.uint8)
        start = GUARD + -(whole.ctypes.data + GUARD) % 64 + shift * dtype.itemsize
        return Guarded(whole, whole[start : start + size].view(dtype).reshape(shape), start)

    def part(self, other: Guarded, offset: int) -> Guarded:
        """An array in the place of another, at an offset in bytes in this one; the other where that is -1."""
        if offset < 0:
            return other
        inside = self.array[offset : offset + other.array.nbytes]
        return Guarded(self.whole, inside.view(other.array.dtype).reshape(other.array.shape), self.start)

    def check(self) -> None:
        """Fail where something was written in front of or behind the array."""
        assert (self.whole[: self.start] == _GUARD_BYTE).all(), "something was written in front of a buffer"
        assert (self.whole[self.start + self.array.nbytes :] == _GUARD_BYTE).all(), (
            "something was written behind a buffer"
        )


def compile_module(
    module: ModuleOp, target: str = "host", threads: int = 1, *, verify_each: bool = True, exchanged: bool = False
) -> Program:
    """
    Take a module down the ladder, in place, from the stage it is at, and load the only function it has.

    It is compiled for `target`, unless it says another one itself. `verify_each` says whether it has to be valid behind
    each pass, `exchanged` that inputs and outputs have places among the activations.
    """
    (graph,) = functions(module)
    is_said = graph.assigned is not None
    verified = PassRunner(verify_each=verify_each)
    given: dict[str, Any] = {"target": None if is_said else target}
    if exchanged:
        given = {"pipeline": exchanging(get_backend("cpu").pipeline(given["target"]), "")}
    compilation = Compilation(module, runner=verified, fields={"threads": threads}, **given)
    compilation.run(until="allocated")
    compiled = [op for op in module.body.block.ops if isinstance(op, LowFuncOp)]
    machine = compiled[0].target
    constants = build_region(constants_of(compiled, Storage(module)))
    described = [(op.sym_name.data, _bindings(module, op), op.properties["activations"]) for op in compiled]
    places = {op.sym_name.data: op.binding_offsets.get_values() for op in compiled if op.binding_offsets is not None}
    # LLVM verifies its own module; verifying it in xDSL as well takes as long as everything else.
    verified.verify_each = False
    compilation.run()
    data = compile_text(emit_module(module), machine)
    assert undefined_symbols(data) == ()
    library, packing, programs = Library(data), dict[str, Program](), list[Program]()
    for name, bindings, activations in reversed(described):  # What packs state is behind what reads it.
        assert isinstance(activations, IntegerAttr)
        used = {bound: packing[bound] for bound, _, _, writes in bindings if bound in packing and not writes}
        own = places.get(name, ())
        programs.append(Program(library, name, constants, bindings, activations.value.data, used, own))
        packing |= {bound: programs[-1] for bound, _, _, writes in bindings if writes}
    return programs[-1]


def _bindings(module: ModuleOp, function: LowFuncOp) -> tuple[tuple[str, tuple[int, ...], np.dtype, bool], ...]:
    found: list[tuple[str, tuple[int, ...], np.dtype, bool]] = []
    for name in function.binding_names:
        placeholder = SymbolTable.lookup_symbol(module, name)
        assert isinstance(placeholder, PlaceholderOp)
        type_ = placeholder.tensor_type
        writes = placeholder.is_mutable or placeholder.packing_function == function.sym_name.data
        found.append((name, largest_shape(type_), numpy_dtype(type_.element_type), writes))
    symbols = symbols_in(function)
    if symbols:
        found.append((SYMBOLS, (len(symbols),), np.dtype(np.int64), False))
    return tuple(found)


def assert_same(
    expected: Mapping[str, np.ndarray], actual: Mapping[str, np.ndarray], tolerance: float | None = None
) -> None:
    """
    Fail where two sets of results differ: floats by more than `tolerance`, relative to themselves or to their mean.

    By default that is 1.6e-2 for bf16, 2e-3 for f16, 1e-5 for f32 and 1e-12 for f64. Integers and truth values must be
    equal, NaN and infinities too.
    """
    assert expected.keys() == actual.keys()
    defaults = {"bfloat16": 1.6e-2, "float16": 2e-3, "float32": 1e-5, "float64": 1e-12}
    for name, wanted in expected.items():
        assert actual[name].dtype == wanted.dtype
        if not is_float_dtype(wanted.dtype):
            np.testing.assert_array_equal(actual[name], wanted)
            continue
        limit = defaults[wanted.dtype.name] if tolerance is None else tolerance
        found, exact = actual[name].astype(np.float64), wanted.astype(np.float64)
        finite = np.abs(exact[np.isfinite(exact)])
        scale = float(finite.mean()) if finite.size else 0.0
        np.testing.assert_allclose(found, exact, rtol=limit, atol=limit * min(scale, 1.0))


def check(
    operator: type[HighOp],
    *operands: Given,
    target: str = "host",
    tolerance: float | None = None,
    constants: Sequence[int] = (),
    **properties: Any,
) -> None:
    """Fail where machine code and interpreter disagree on one operator."""
    check_all([Case(operator, *operands, constants=constants, **properties)], target, tolerance)


def check_all(cases: Sequence[Case], target: str = "host", tolerance: float | None = None) -> None:
    """Fail where machine code and interpreter disagree on one of several operators, which run in one function."""
    module, inputs = module_of(*cases)
    expected = run_function(module.clone(), inputs)
    actual = compile_module(module, target).run(inputs)
    assert_same(expected, actual, tolerance)


_FEATURES = {
    "scalar": frozenset[str](),
    "avx2": frozenset(["avx2", "fma", "f16c"]),
    "avx512": frozenset(["avx512f", "avx512vl", "avx512bw", "avx512dq"]),
}
"""Target → the features that a machine has to have to run code for it."""


def runnable_targets() -> list[str]:
    """The x86 presets that this machine can run, or only `host` on others."""
    host = detect_host()
    if not host.triple.startswith("x86_64"):
        return ["host"]
    return [name for name, features in _FEATURES.items() if features <= host.enabled]


def check_low(
    text: str, inputs: Mapping[str, np.ndarray], target: str = "host", tolerance: float | None = None
) -> None:
    """Like `check`, for the text of a module with a function of `glow_low`."""
    module = Parser(new_context(), f'builtin.module attributes {{glow.stage = "stacked"}} {{{text}}}').parse_module()
    module.verify()
    expected = run_function(module.clone(), inputs)
    actual = compile_module(module, target).run(inputs)
    assert_same(expected, actual, tolerance)


def sample(shape: Sequence[int], dtype: str = "f4", seed: int = 0) -> np.ndarray:
    """Random elements: floats about 0, small integers, truth values."""
    generator = np.random.default_rng(seed + 7 * len(shape) + sum(shape))
    kind = named_dtype(dtype)
    if is_float_dtype(kind):
        return generator.normal(size=shape).astype(kind)
    if kind.kind == "b":
        return generator.integers(0, 2, size=shape).astype(kind)
    return generator.integers(0 if kind.kind == "u" else -9, 10, size=shape).astype(kind)
