"""What the cores reach at best, right now: multiply-adds on registers alone, in a loop that we compile."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence

import numpy as np

from contest.machine import on_cores, stay_on
from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, i64, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.loader import Library

CHAINS = 12
"""Sums that go on side by side: more than latency times units (5 · 2), fewer than registers (16)."""

SECONDS = 4e-3
"""About how long one probe takes: long enough to meet who else runs on the core, short beside what is measured."""


def _loop(target: Target) -> Library:
    """The code of a function that takes a place for one vector and a count of turns."""
    module = ModuleBuilder(target)
    lanes = target.vector_width(f32)

    def sums(b: Builder, arguments: list[Value]) -> None:
        out, count = arguments
        start = out.load(vector(f32, lanes) if lanes > 1 else f32)
        factor = start * 0.5
        with b.loop(0, count, 1, carried=[start + float(index) for index in range(CHAINS)]) as loop:
            loop.set(*(b.fma(value, factor, start) for value in loop.values))
        total = loop.results[0]
        for value in loop.results[1:]:
            total = total + value
        out.store(total)

    with define_function(module, "peak", [ptr, i64]) as (b, arguments):
        sums(b, arguments)
    return Library(compile_text(emit_module(module.module), target))


class Probe:
    """
    The peak of some cores, and how near to it they are at a moment.

    `best` is the most that any probe saw, the sum over the cores, in operations a second (a multiply-add is two).
    """

    def __init__(self, cores: Sequence[int]) -> None:
        target = host_target()
        self._call: Callable[..., None] = _loop(target).function("peak", [ctypes.c_void_p, ctypes.c_int64], None)
        self._lanes = target.vector_width(f32)
        self._place = np.ones(self._lanes, np.float32)
        self._cores = list(cores)
        self._turns = 100_000
        self.best = 0.0
        self._turns = int(SECONDS * self.measure() / (2 * CHAINS * self._lanes * len(self._cores)))
        for _ in range(30):
            self.measure()

    def measure(self) -> float:
        """Probe each core for some milliseconds; return the sum."""
        with on_cores(self._cores):
            rate = sum(self._rate(core) for core in self._cores)
        self.best = max(self.best, rate)
        return rate

    def _rate(self, core: int) -> float:
        stay_on([core])
        self._place.fill(1.0)
        begin = time.perf_counter()
        self._call(self._place.ctypes.data, self._turns)
        return 2 * CHAINS * self._lanes * self._turns / (time.perf_counter() - begin)
