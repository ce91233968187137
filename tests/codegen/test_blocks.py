"""Blocks of threads, emulated: shared memory, barriers, exchanges, and the check for races."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.context import Context

from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.backends.cuda.driver import Grid
from glow_mlir.backends.cuda.emulation import EmulatedFunction, EmulatedModule
from glow_mlir.backends.cuda.targets import PRESETS
from glow_mlir.codegen.blocks import Block
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, i32, ptr
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.check_races import CheckRacesPass
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import assembly_text, compile_text
from glow_mlir.codegen.nvptx import by_emulated_grid, by_grid
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.errors import ExecutionError

THREADS = 64

Body = Callable[[Block, list[Value]], None]


def emulated(body: Body, *arrays: np.ndarray) -> None:
    """Run a block on arrays."""
    module = ModuleBuilder(PRESETS["sm_80"], host_target())
    with by_emulated_grid(module, "f", [ptr] * len(arrays), 1, THREADS, "") as (b, arguments, _):
        body(Block.of(b, THREADS), arguments)
    CheckRacesPass().apply(Context(), module.module)
    function = EmulatedFunction(EmulatedModule(compile_text(emit_module(flattened(module.module)), host_target())), "f")
    function.run(Grid(1, THREADS), [array.ctypes.data for array in arrays], backwards=False)


def assembled(body: Body, count: int) -> str:
    """The same source as PTX."""
    module = ModuleBuilder(PRESETS["sm_80"])
    with by_grid(module, "f", [ptr] * count, 1, THREADS, "") as (b, arguments, _):
        body(Block.of(b, THREADS), arguments)
    return assembly_text(emit_module(flattened(module.module)), PRESETS["sm_80"])


def reversing(waits: bool) -> Body:
    """Elements in the other order, by way of shared memory."""

    def body(block: Block, arguments: list[Value]) -> None:
        (data,) = arguments
        memory = block.shared(4 * THREADS, 4)
        with block.each_thread() as thread:
            memory.store(thread, thread * 4, data.at(thread, f32).load(f32))
        if waits:
            block.barrier()
        with block.each_thread() as thread:
            data.at(thread, f32).store(memory.load(thread, (thread * -1 + (THREADS - 1)) * 4, f32))

    return body


def test_a_barrier_between_writing_and_reading() -> None:
    data = np.arange(THREADS, dtype=np.float32)
    emulated(reversing(waits=True), data)
    np.testing.assert_array_equal(data, np.arange(THREADS)[::-1])


def test_a_race_is_an_error() -> None:
    with pytest.raises(ExecutionError, match=r"'f' has a race: threads \d+ and \d+ at byte \d+ of shared memory"):
        emulated(reversing(waits=False), np.zeros(THREADS, np.float32))


def test_two_writers_are_a_race() -> None:
    def body(block: Block, arguments: list[Value]) -> None:
        memory = block.shared(16, 4)
        with block.each_thread() as thread:
            memory.store(thread, 0, thread)

    with pytest.raises(ExecutionError, match="threads 1 and 0 at byte 0"):
        emulated(body)


def test_readers_alone_are_none() -> None:
    def body(block: Block, arguments: list[Value]) -> None:
        memory = block.shared(16, 4)
        with block.each_thread() as thread, block.b.when(thread.eq(0)):
            memory.store(thread, 0, thread + 7)
        block.barrier()
        with block.each_thread() as thread:
            arguments[0].at(thread, i32).store(memory.load(thread, 0, i32))

    data = np.zeros(THREADS, np.int32)
    emulated(body, data)
    assert (data == 7).all()


def test_writing_behind_a_reader_is_a_race() -> None:
    def body(block: Block, arguments: list[Value]) -> None:
        memory = block.shared(4 * THREADS, 4)
        with block.each_thread() as thread:
            memory.store(thread, thread * 4, thread)
        block.barrier()
        with block.each_thread() as thread:
            arguments[0].at(thread, i32).store(memory.load(thread, 0, i32))
        with block.each_thread() as thread:
            memory.store(thread, thread * 4, thread)

    with pytest.raises(ExecutionError, match="has a race"):
        emulated(body, np.zeros(THREADS, np.int32))


def summing(block: Block, arguments: list[Value]) -> None:
    """The sum of each warp, in all of its threads."""
    (data,) = arguments
    own, other = block.private(f32, 1), block.private(f32, 1)
    with block.each_thread() as thread:
        own.store(thread, data.at(thread, f32).load(f32))
    for power in range(5):
        block.exchange(own, other, 1 << power)
        with block.each_thread() as thread:
            own.store(thread, own.load(thread) + other.load(thread))
    with block.each_thread() as thread:
        data.at(thread, f32).store(own.load(thread))


def test_exchanges_in_a_warp() -> None:
    data = np.arange(THREADS, dtype=np.float32)
    wanted = np.repeat(data.reshape(2, 32).sum(1), 32)
    emulated(summing, data)
    np.testing.assert_array_equal(data, wanted)


def test_the_same_source_is_ptx() -> None:
    text = assembled(summing, 1)
    assert text.count("shfl.sync.bfly.b32") == 5
    assert ".local" not in text
    text = assembled(reversing(waits=True), 1)
    assert "bar.sync" in text
    assert "st.shared.b32" in text
    assert "ld.shared.b32" in text
