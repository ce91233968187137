"""
Mutants of textual IR: each ends in one clean error, or in code that stays in its memory and computes what the
interpreter does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from random import Random
from unittest import mock

import numpy as np
from execute import sample
from fuzzing import Fuzzer
from guarded_memory import GuardedMemory
from mutant_programs import TARGET, all_texts
from mutations import mutated
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.api.onnxruntime.inference_session import InferenceSession
from glow_mlir.codegen import build
from glow_mlir.codegen.llvm import objects
from glow_mlir.dialects.control_flow import CountedOp
from glow_mlir.dialects.sizes import shape_at
from glow_mlir.driver import pass_runner
from glow_mlir.driver.compiler import Compilation
from glow_mlir.errors import CompilerBugError, ExecutionError, GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module
from glow_mlir.runtime import machine_code
from glow_mlir.runtime.artifact import Binding
from glow_mlir.support.symbols import symbols_of

LADDER = (
    *("imported", "optimized", "lowered", "scheduled", "instructions"),
    *("stacked", "selected", "allocated", "structured", "llvm"),
)
"""The stages whose text tools accept."""

MAX_ELEMENTS = 1 << 20
"""Above so many elements of a binding, results are not compared: the interpreter would take long."""

MAX_TRIPS = 10_000
"""Code whose loops say more trips is compiled, and not run: the interpreter would take long."""

MAX_CHARACTERS = 20_000
"""Longer texts, of machine code, are not changed: it takes a second to read them."""

TOLERANCES = {np.dtype(np.float16): 3e-2, np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-6}
"""In parts of the largest result: mutants may have any kernel, and none of their sums is larger than that."""

_compiled = cache(objects.compile_text)
"""Many mutants of a program have the same code."""


class Disagreement(AssertionError):
    """Machine code and interpreter differ."""


def mutant(stage: str, seed: int) -> str:
    """The text of a mutant of one of the programs at a stage."""
    texts = [texts[stage] for texts in all_texts() if len(texts[stage]) <= MAX_CHARACTERS]
    return mutated(texts[seed % len(texts)], Random(f"{stage} {seed}"))


def check(stage: str, seed: int) -> bool:
    """Whether a mutant is accepted; raises where it is neither refused cleanly nor computes what it says."""
    return check_text(mutant(stage, seed), at_end=bool(seed % 2))


def check_text(text: str, at_end: bool = True) -> bool:
    """Whether a text is accepted; raises where it is neither refused cleanly nor computes what it says."""
    return is_clean(lambda: _run(text, at_end))


def is_clean(run: Callable[[], None]) -> bool:
    """Whether something succeeds; raises where it fails with anything but one clean error."""
    try:
        run()
    except CompilerBugError:
        raise
    except GlowError as error:
        _check_line(error)
        return False
    except MemoryError:  # Which the tools tell in one line.
        return False
    return True


SMALL_SECONDS = 5.0
"""The processor's seconds that reading something small may take."""


def is_small(run: Callable[[], None]) -> bool:
    """As `is_clean`, but whatever takes long or runs out of memory fails: what it reads is small."""

    def within_memory() -> None:
        try:
            run()
        except MemoryError as error:
            raise Disagreement("it takes too much memory") from error

    begin = time.process_time()
    found = is_clean(within_memory)
    taken = time.process_time() - begin
    if taken > SMALL_SECONDS:
        raise Disagreement(f"it takes {taken:.1f} seconds")
    return found


def _check_line(error: GlowError) -> None:
    line = str(error)
    if not error.reason or "\n" in line or "Traceback" in line:
        raise Disagreement(f"no clean error: {line!r}")


def _run(text: str, at_end: bool) -> None:
    check_module(parse_module(text, new_context(), "mutant.mlir"), at_end)


def check_module(module: ModuleOp, at_end: bool, inputs: Mapping[str, np.ndarray] | None = None) -> None:
    """
    Run a module on some inputs, or random ones, between guards; raises where results are not the interpreter's.

    It raises `GlowError` where the module is refused, or fails in the interpreter.
    """
    with _guarded(at_end) as memory:
        if any(op.name.startswith("llvm.") for op in module.body.block.ops):
            _check_llvm(module)
        trips = _most_trips(module)
        session = InferenceSession(module, target=TARGET, cache=False)
        if trips > MAX_TRIPS:
            return
        oracle = InferenceSession(module, backend="interpreter")
        bindings = session.machine_entry.bindings
        symbols = session.machine_entry.entry.symbols
        arrays = [memory.array(binding.shape, np.dtype(binding.dtype)) for binding in bindings]
        sizes = _drawn(bindings, Random(len(bindings)))
        given: dict[str, np.ndarray] = {}
        for binding, array in zip(bindings, arrays, strict=True):
            if binding.role in ("input", "state"):
                shape = shape_at(binding.declared, sizes)
                drawn = sample(shape, binding.dtype, len(binding.name))
                given[binding.name] = (inputs or {}).get(binding.name, drawn)
                _part(array, shape)[...] = given[binding.name]
        code = session.machine_code
        packed = {b.name: code.pack(b.name, given) for b in bindings if b.role == "packed"}
        bound = [packed.get(b.name, array) for b, array in zip(bindings, arrays, strict=True)]
        if symbols:  # Behind all bindings: what inputs say, and room for what data decides.
            numbers = memory.array((len(symbols),), np.dtype(np.int64))
            numbers[...] = [sizes.get(symbol.name, symbol.most) for symbol in symbols]
            bound.append(numbers)
        failure = _failure_of(lambda: session.machine_entry.call(bound))
        if any(array.size > MAX_ELEMENTS for array in arrays):
            return
        oracle.set_state({b.name: given[b.name] for b in bindings if b.role == "state"})
        outputs = [argument.name for argument in oracle.get_outputs()]
        found = oracle.run(None, {b.name: given[b.name] for b in bindings if b.role == "input"})
        expected = {**dict(zip(outputs, found, strict=True)), **oracle.get_state()}
        if failure is not None:  # The interpreter may fail alone, on what nobody uses.
            raise Disagreement(f"only machine code fails: {failure}")
        sizes |= (
            {symbol.name: int(number) for symbol, number in zip(symbols, bound[-1], strict=True)} if symbols else {}
        )
        for binding, array in zip(bindings, arrays, strict=True):
            if binding.role != "packed":
                wanted = given[binding.name] if binding.role == "input" else expected[binding.name]
                _compare(binding.name, _part(array, shape_at(binding.declared, sizes)), wanted)


def _most_trips(module: ModuleOp) -> int:
    """How often a loop of a module runs at most, with those around it, as far as the module says it."""
    most = 1
    for op in module.walk():
        if isinstance(op, CountedOp):
            trips, around = op.static_trips or 1, op.parent_op()
            while around is not None:
                trips *= around.static_trips or 1 if isinstance(around, CountedOp) else 1
                around = around.parent_op()
            most = max(most, trips)
    return most


def _drawn(bindings: Sequence[Binding], random: Random) -> dict[str, int]:
    """A value for each symbol that sizes of inputs have."""
    symbols = symbols_of([size for binding in bindings if binding.role == "input" for size in binding.sizes])
    return {symbol.name: random.randint(symbol.least, symbol.most) for symbol in symbols}


def _part(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The elements that there are, of an array that is laid out for the largest sizes."""
    return array[(..., *map(slice, shape))]


def _failure_of(call: Callable[[], None]) -> ExecutionError | None:
    """The error of a call that fails on its data."""
    try:
        call()
    except ExecutionError as error:
        return error
    return None


@contextmanager
def _guarded(at_end: bool) -> Generator[GuardedMemory]:
    """Memory between guards, which constants and activations get as well."""
    memory = GuardedMemory(at_end)
    try:
        with (
            mock.patch.object(build, "aligned", memory.bytes),
            mock.patch.object(machine_code, "aligned", memory.bytes),
            mock.patch.object(build, "compile_text", _compiled),
            mock.patch.object(pass_runner, "write_reproducer", return_value="none"),
        ):
            yield memory
    finally:
        memory.close()


def _compare(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        raise Disagreement(f"{name} is {found.dtype}{found.shape}, in the interpreter {wanted.dtype}{wanted.shape}")
    tolerance = TOLERANCES.get(found.dtype, 0.0)
    finite = np.abs(wanted[np.isfinite(wanted)], dtype=np.float64) if tolerance else np.zeros(0)
    limit = tolerance * max(1.0, float(finite.max(initial=0.0)))
    with np.errstate(all="ignore"):
        same = np.isclose(found, wanted, rtol=tolerance, atol=limit, equal_nan=True) if tolerance else found == wanted
    if not np.all(same):
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        raise Disagreement(f"{name}{list(place)} is {found[place]}, in the interpreter {wanted[place]}")


def _check_llvm(module: ModuleOp) -> None:
    """What `glow-opt` does with text of LLVM's dialect: print it, and climb on from it."""
    parse_module(module_text(module), new_context())
    Compilation(module.clone(), target=TARGET).run()


STAGES: Mapping[str, Fuzzer] = {
    stage: Fuzzer(partial(check, stage), prepare=all_texts, show=partial(mutant, stage)) for stage in LADDER
}
"""A fuzzer for each stage of the ladder."""
