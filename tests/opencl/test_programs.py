"""What functions of the `llvm` dialect compute as OpenCL C, on a device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import DTypeLike
from opencl_devices import opencl_device
from xdsl.dialects.builtin import IntegerType

from glow_mlir.backends.cpu.targets import PRESETS
from glow_mlir.backends.opencl.library import opencl
from glow_mlir.backends.opencl.programs import BuiltProgram
from glow_mlir.codegen.builder.builder import Builder
from glow_mlir.codegen.builder.functions import define_function
from glow_mlir.codegen.builder.modules import ModuleBuilder
from glow_mlir.codegen.builder.types import f32, i1, i32, i64, ptr, vector
from glow_mlir.codegen.builder.value import Value
from glow_mlir.codegen.opencl_c.printer import print_program
from glow_mlir.support.kernel_names import kernel_name

pytestmark = pytest.mark.extra

A = np.array([1, np.nan, -3, np.inf, 0, 7, -2], np.float32)
B = np.array([2, 1, -3, 4, -0.0, 5, np.nan], np.float32)

LANES = (1, 2, 3, 4, 5, 7)
"""How many lanes vectors have: some are of pieces of one lane."""


def computed(
    build: Callable[[Builder, Value, Value], Value],
    lanes: int,
    given: tuple[np.ndarray, np.ndarray] = (A, B),
    kind: DTypeLike = np.int32,
) -> np.ndarray:
    """What a function makes of vectors of two arrays, a number for each lane."""
    module = ModuleBuilder(PRESETS["avx2"])
    with define_function(module, "kernel", [ptr, ptr, ptr, i64]) as (b, (out, a, c, _)):
        out.store(build(b, *(place.load(vector(f32, lanes)) for place in (a, c))), align=1)
        b.give_back()
    device, cl = opencl_device(), opencl()
    program = BuiltProgram(device.context, device.handle, print_program(module.module, ["kernel"]).encode())
    kernel = cl.Kernel(program.program, kernel_name("kernel"))
    arrays = np.zeros(lanes, kind), *(array[:lanes] for array in given)
    buffers = [device.allocate(array.nbytes) for array in arrays]
    for number, (buffer, array) in enumerate(zip(buffers, arrays, strict=True)):
        device.upload(buffer, np.ascontiguousarray(array)).wait()
        kernel.set_arg(2 * number, buffer.memory)
        kernel.set_arg(2 * number + 1, np.uint64(0))
    cl.enqueue_nd_range_kernel(device.queue, kernel, (1,), (1,)).wait()
    device.download(buffers[0], arrays[0]).wait()
    return arrays[0]


COMPARISONS = {
    "oeq": A == B,
    "ogt": A > B,
    "one": (A < B) | (A > B),
    "une": A != B,
    "ult": ~(A >= B),
    "uge": ~(A < B),
    "ueq": ~((A < B) | (A > B)),
    "ord": ~(np.isnan(A) | np.isnan(B)),
    "uno": np.isnan(A) | np.isnan(B),
}


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("predicate", COMPARISONS)
def test_comparisons_of_floats(predicate: str, lanes: int) -> None:
    def build(b: Builder, x: Value, y: Value) -> Value:
        return b.select(b.compare(predicate, x, y), b.constant(1, vector(i32, lanes)), 0)

    np.testing.assert_array_equal(computed(build, lanes), COMPARISONS[predicate][:lanes])


@pytest.mark.parametrize("lanes", LANES)
def test_truth_values_of_any_lanes(lanes: int) -> None:
    wanted = (A > B)[:lanes]

    def inverted(b: Builder, x: Value, y: Value) -> Value:
        is_not = b.compare("ogt", x, y) ^ b.constant(True, vector(i1, lanes))
        return b.select(is_not, b.constant(1, vector(i32, lanes)), 0)

    def of_integers(b: Builder, x: Value, y: Value) -> Value:
        found = b.cast(b.compare("ogt", x, y), i32)
        return b.cast(found > 0, i32) + b.select(found.ne(0) ^ (found.eq(0)), b.constant(2, found.type), 0)

    np.testing.assert_array_equal(computed(inverted, lanes), ~wanted)
    np.testing.assert_array_equal(computed(lambda b, x, y: b.cast(b.compare("ogt", x, y), i32), lanes), wanted)
    floats = computed(lambda b, x, y: b.cast(b.compare("ogt", x, y), f32), lanes).view(np.float32)
    np.testing.assert_array_equal(floats, wanted)
    np.testing.assert_array_equal(computed(of_integers, lanes), wanted + 2)


EXTREMES = np.array(
    [np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 2.0**63, -1e30, 300.7, -300.7, -1.5, 0.0, 1e30], np.float32
)


@pytest.mark.parametrize("lanes", [1, 3, 4, 8])
@pytest.mark.parametrize("name", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_floats_are_cut_to_the_range_of_integers(name: str, lanes: int) -> None:
    kind = np.dtype(name)
    limits, element = np.iinfo(kind), IntegerType(8 * kind.itemsize)

    def build(b: Builder, x: Value, _: Value) -> Value:
        return b.to_int_saturating(x, element, signed=kind.kind == "i")

    wanted = [0 if np.isnan(x) else min(max(int(np.clip(x, -1e38, 1e38)), limits.min), limits.max) for x in EXTREMES]
    for first in range(0, len(EXTREMES) - lanes + 1, lanes):
        found = computed(build, lanes, (EXTREMES[first:], EXTREMES), kind)
        np.testing.assert_array_equal(found, np.array(wanted[first : first + lanes], kind))


def test_a_loop_goes_on_by_a_number_that_it_carries() -> None:
    def swapped(yes: Value, no: Value, trips: Value) -> list[Value]:
        return [no, yes, trips + 1]

    def first(yes: Value, no: Value, trips: Value) -> Value:
        return yes

    def build(b: Builder, x: Value, y: Value) -> Value:
        return b.repeat([x < y, x > y, b.constant(0, i32)], swapped, first)[2]

    np.testing.assert_array_equal(computed(build, 1), [1])
