"""Run a module cut into parts in every way that may not matter: alone, in odd orders, by threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
from execute import Program, compile_module
from xdsl.dialects.builtin import ModuleOp

from glow_mlir.backends.interface import costs_of
from glow_mlir.codegen.costs import KernelCosts, kernel_costs
from glow_mlir.codegen.kernels import tiled
from glow_mlir.codegen.kernels.expressions import generic
from glow_mlir.codegen.selection import partitions
from glow_mlir.dialects.costs import Costs
from glow_mlir.dialects.target import Target
from glow_mlir.runtime.pool import Pool
from glow_mlir.runtime.pool_layout import COUNT_BITS

_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

Results = dict[str, np.ndarray]


@contextmanager
def however_small() -> Generator[None]:
    """Cut instructions into parts that it would not pay to cut."""

    def cheap(target: Target) -> Costs:
        return replace(costs_of(target), part_operations=1)

    def cheap_for_kernels(target: Target) -> KernelCosts:
        return replace(kernel_costs(target), part_operations=1)

    with (
        mock.patch.object(partitions, "costs_of", cheap),
        mock.patch.object(tiled, "kernel_costs", cheap_for_kernels),
        mock.patch.object(generic, "kernel_costs", cheap_for_kernels),
    ):
        yield


def backwards(count: int) -> list[range]:
    """Parts alone, from the last to the first."""
    return [range(part, part + 1) for part in reversed(range(count))]


def in_runs(count: int) -> list[range]:
    """Parts together in one call: one, two, three, and so on, the last runs first."""
    starts = [start for start in (number * (number + 1) // 2 for number in range(count)) if start < count]
    return [range(start, min(end, count)) for start, end in reversed([*zip(starts, [*starts[1:], count], strict=True)])]


def by_hand(
    program: Program, threads: int, inputs: Mapping[str, np.ndarray], order: Callable[[int], Sequence[range]]
) -> tuple[Results, int]:
    """The results when runs of parts are called in an order, each by another worker; and how many parts there were."""
    ran = 0

    def run(_: int, task: int, data: int, count: int) -> None:
        nonlocal ran
        ran += count
        for number, parts in enumerate(order(count)):
            _TASK(task)(data, parts.start | (len(parts) - 1) << COUNT_BITS, number % threads)

    callback: Callable[..., None] = _RUN(run)
    parallel = (ctypes.c_void_p * 2)(ctypes.cast(callback, ctypes.c_void_p).value, None)
    return program.run(inputs, parallel), ran


def _difference(found: np.ndarray, wanted: np.ndarray) -> str:
    """How many elements of two arrays differ in any bit, and the first of them."""
    pairs = [
        (place, found[place], wanted[place])
        for place in np.ndindex(wanted.shape)
        if found[place].tobytes() != wanted[place].tobytes()
    ]
    place, one, other = pairs[0]
    return f"{len(pairs)} elements differ, the first at {place}: {one!r} instead of {other!r}"


def check_parts(
    module: ModuleOp, inputs: Mapping[str, np.ndarray], threads: Sequence[int] = (2, 3, 7), target: str = "host"
) -> int:
    """
    Fail where results of a module differ in any bit when it is cut for several threads.

    Returns how many parts there were in all, so that a test can see that something was cut.
    """
    expected = compile_module(module.clone(), target).run(inputs)
    total = 0
    for count in threads:
        with however_small():
            # Passes that run for one thread are the same; those that cut are verified for the first number.
            verify = count == threads[0]
            program = compile_module(module.clone(), target, count, verify_each=verify)
        found = {"alone": program.run(inputs)}
        found["backwards"], ran = by_hand(program, count, inputs, backwards)
        found["in runs"], _ = by_hand(program, count, inputs, in_runs)
        if ran:
            pool = Pool(program.library, count)
            with pool.lease() as parallel:
                found["threads"] = program.run(inputs, parallel)
            pool.stop()
        total += ran
        for how, results in found.items():
            for name, wanted in expected.items():
                # Equal numbers may differ: zeros by their sign, and what is not a number.
                same = results[name].tobytes() == wanted.tobytes()
                assert same, f"{name} with {count} threads, {how}: {_difference(results[name], wanted)}"
    return total
