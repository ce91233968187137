"""What the cores reach at best, right now: products on registers alone, in a loop that we compile."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, bf16, i8, i32
from xdsl.ir import Attribute
from xdsl.utils.test_value import create_ssa_value

from contest.machine import on_cores, stay_on
from glow_mlir.backends.cpu.targets import host_target
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, i64, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.kernels.products.dot_products import DotProduct, dot_product
from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import compile_text
from glow_mlir.codegen.scf_to_llvm import flattened
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.loader import Library

SPARE_REGISTERS = 4
"""Registers that hold no sums. The others are more than latency times units, which is 10 to 12."""

ALIGNMENT = 64
"""Bytes of the widest vector."""

SECONDS = 4e-3
"""About how long one probe takes: long enough to meet who else runs on the core, short beside what is measured."""


PRECISIONS: Mapping[str, tuple[Attribute, Attribute, Attribute]] = {
    "f32": (f32, f32, f32),
    "bf16": (bf16, bf16, f32),
    "int8": (IntegerType(8, Signedness.UNSIGNED), i8, i32),
}
"""What is multiplied → the types of left and right elements, and of their sums."""


def dot_product_of(precision: str, target: Target) -> DotProduct:
    """How a machine multiplies elements of a precision."""
    left, right, sums = PRECISIONS[precision]
    operands = [create_ssa_value(TensorType(element, [1, 1])) for element in (left, right)]
    found = dot_product(operands[0], operands[1], target)
    assert found.accumulators == sums
    return found


def _chains(target: Target) -> int:
    """How many sums go on side by side."""
    return max(1, target.vector_registers - SPARE_REGISTERS)


def _loop(target: Target, dot: DotProduct) -> Library:
    """The code of a function that takes a place for one vector and a count of turns."""
    module = ModuleBuilder(target)
    lanes = target.vector_width(dot.accumulators)

    def sums(b: Builder, arguments: list[Value]) -> None:
        out, count = arguments
        start = out.load(vector(dot.accumulators, lanes) if lanes > 1 else dot.accumulators)
        left, right = dot.spread(b, dot.read(b, out), lanes), dot.columns(b, out, lanes)
        with b.loop(0, count, 1, carried=[b.as_value(index, start.type) for index in range(_chains(target))]) as loop:
            loop.set(*(dot.multiply_add(b, left, right, value) for value in loop.values))
        total = loop.results[0]
        for value in loop.results[1:]:
            total = total + value
        out.store(total)

    with define_function(module, "peak", [ptr, i64]) as (b, arguments):
        sums(b, arguments)
    return Library(compile_text(emit_module(flattened(module.module)), target))


class Probe:
    """
    The peak of some cores in products of a precision, and how near to it they are at a moment.

    `best` is the most that any probe saw, the sum over the cores, in operations a second (a multiply-add is two).
    """

    def __init__(self, cores: Sequence[int], precision: str = "f32") -> None:
        target = host_target()
        dot = dot_product_of(precision, target)
        self._call: Callable[..., None] = _loop(target, dot).function("peak", [ctypes.c_void_p, ctypes.c_int64], None)
        self._products = target.vector_width(f32) * dot.group * _chains(target)
        self._buffer = np.ones(2 * ALIGNMENT, np.uint8)
        self._place = self._buffer.ctypes.data + -self._buffer.ctypes.data % ALIGNMENT
        self._cores = list(cores)
        self._turns = 100_000
        self.best = 0.0
        self._turns = int(SECONDS * self.measure() / (2 * self._products * len(self._cores)))
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
        self._buffer.fill(0)
        begin = time.perf_counter()
        self._call(self._place, self._turns)
        return 2 * self._products * self._turns / (time.perf_counter() - begin)
