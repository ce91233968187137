"""Device functions in PTX: entries that are launched over a grid of blocks of threads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Attribute

from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import Param, define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import i32, i64
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.check_races import BLOCKS

BLOCK = 128
"""The number of threads of a block in which each thread runs a separate part."""

RESIDENT = 512
"""The minimum number of threads on a multiprocessor, a quarter of all; it determines the registers of each thread."""

PASSES = "device"
"""The LLVM passes that device functions need: memory that only they see becomes registers."""


@contextmanager
def by_grid(
    module: ModuleBuilder, name: str, parameters: Sequence[Attribute | Param], parts: int, threads: int, passes: str
) -> Generator[tuple[Builder, list[Value], Value]]:
    """
    An entry of PTX. If one thread runs a part, the grid has a thread for each part, in blocks of `BLOCK`; if several
    threads do, each block is a part.
    """
    size = threads if threads > 1 else BLOCK
    bounds = {"nvvm.maxntid": str(size), "nvvm.minctasm": str(RESIDENT // size)}
    with define_function(module, name, parameters, passes=passes or PASSES, launch=bounds) as (b, arguments):
        block = b.index(register(b, "ctaid"))
        if threads > 1:
            yield b, arguments, block
            return
        part = block * BLOCK + b.index(register(b, "tid"))
        with b.when(part < parts):
            yield b, arguments, part


@contextmanager
def by_emulated_grid(
    module: ModuleBuilder, name: str, parameters: Sequence[Attribute | Param], parts: int, threads: int, passes: str
) -> Generator[tuple[Builder, list[Value], Value]]:
    """
    The same for a processor that runs blocks one after the other: the last arguments are the number of the first block,
    the number of blocks, and the step from one to the next, an i64 each.
    """
    with define_function(module, name, [*parameters, i64, i64, i64], passes=passes) as (b, arguments):
        *given, first, count, step = arguments
        with b.loop(0, b.index(count), role=BLOCKS) as turn:
            block = turn * b.index(step) + b.index(first)
            if threads > 1:
                yield b, given, block
                return
            with b.loop(0, BLOCK) as thread:
                part = block * BLOCK + thread
                with b.when(part < parts):
                    yield b, given, part


def register(b: Builder, name: str) -> Value:
    """The number of the thread in its block (`tid`), or of the block in its grid (`ctaid`), an i32."""
    return b.intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}.x", [], i32)
