"""
Compare `from_jax` with JAX over the operators of `jax.lax`: cases, tolerances and random arguments of JAX's own tests.

The cases are JAX's: `lax_test_util.lax_ops`, a table of elementwise operators, with shapes that its tests give them,
and `test_harnesses`, one to a thousand cases for each primitive; both are part of the package `jax`. `lax_cases` adds
what these leave out. Run it by

    python tests/support/lax_sweep.py [--only NAME …] [--each 24] [--all]

It prints a line for each case that fails, and a table: passed, refused (in one line that names the reason), wrong
(another result than `jax.jit` on a CPU) and crashed (any other exception).
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import os
import random
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from jax._src import test_util as jtu
from jax._src.internal_test_util import lax_test_util, test_harnesses

import glow_mlir
from glow_mlir.errors import GlowError, UnsupportedError

OUTCOMES = ("passed", "refused", "wrong", "crashed")
SKIPPED = frozenset(
    "device_put stop_gradient svd eig eigh qr approx_top_k tridiagonal_solve custom_linear_solve".split()
)
"""Primitives that are no operators of `lax`, need a library of linear algebra, or TPUs."""
COMPUTED_IN_SUMS = frozenset(
    "dot preferred,conv preferred,conv patches,conv local,reduce monoid,reduce named".split(",")
)
COMPUTED_IN_SUMS |= frozenset(
    "dot_general conv_general_dilated reduce_sum reduce_prod reduce_window_add reduce_window_mul cumsum cumprod "
    "cumlogsumexp fft triangular_solve cholesky lu select_and_scatter_add scatter_add scatter_mul integer_pow reduce "
    "reduce_precision random_gamma random_categorical igamma igammac regularized_incomplete_beta lgamma digamma "
    "linalg control_flow conv_transpose betainc pow dot conv reduce_window cumulative random special".split()
)
"""Operators whose tests have wider tolerances than one operation on numbers has."""
WIDE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-11, "complex64": 1e-4, "complex128": 1e-11}
LARGE_FACTORS = {np.float32: 2e-3, np.complex64: 2e-3}
"""The tolerance for Cholesky's factors of matrices of 200 rows, which are not well conditioned."""
ELEMENTWISE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 5e-6, "float64": 1e-13}
ELEMENTWISE |= {"complex64": 5e-6, "complex128": 1e-13}


@dataclasses.dataclass(frozen=True)
class Case:
    """A function of arrays, with the means to make its arguments."""

    group: str
    name: str
    dtype: str
    function: Callable[..., Any]
    arguments: Callable[[np.random.RandomState], Sequence[Any]]
    tolerance: Any = None

    def values(self) -> list[Any]:
        """Arguments, the same in each run."""
        state = np.random.RandomState(zlib.crc32(self.name.encode()))
        return [jax.numpy.asarray(value) if not hasattr(value, "dtype") else value for value in self.arguments(state)]


def of_table() -> Iterator[Case]:
    """The elementwise operators, for each type and shapes that broadcast to one."""
    for record in lax_test_util.lax_ops():
        operator = getattr(jax.lax, record.op)
        for dtype, shapes in itertools.product(record.dtypes, ([(4, 5)] * 3, [(), (), ()], [(3,)] * 3, [(2, 0)] * 3)):
            used = shapes[: record.nargs]
            text = ",".join(jtu.format_shape_dtype_string(shape, dtype) for shape in used)

            def made(state: Any, used: Any = used, dtype: Any = dtype, record: Any = record) -> Sequence[Any]:
                make = record.rng_factory(state)
                return [make(shape, dtype) for shape in used]

            yield Case(record.op, f"{record.op}({text})", np.dtype(dtype).name, operator, made, record.tol)


def of_harnesses() -> Iterator[Case]:
    """The cases of primitives that JAX can compute on CPUs."""
    for harness in test_harnesses.all_harnesses:
        if harness.group_name not in SKIPPED and harness.filter("cpu"):

            def made(state: Any, harness: Any = harness) -> Sequence[Any]:
                return harness.dyn_args_maker(state)

            name = np.dtype(harness.dtype).name if harness.dtype is not None else ""
            function = of_lower(harness.dyn_fun) if harness.group_name == "cholesky" else harness.dyn_fun
            tolerance = LARGE_FACTORS if harness.group_name == "cholesky" else None
            yield Case(harness.group_name, harness.fullname, name, function, made, tolerance)


def all_cases() -> list[Case]:
    """The cases of JAX, and those that it leaves out."""
    from lax_cases import own_cases

    return [*of_table(), *of_harnesses(), *(Case(*given) for given in own_cases())]


def of_lower(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with 0 in the upper triangle of its result, which is undefined in Cholesky's factor."""
    return lambda *arguments: jax.numpy.tril(function(*arguments))


def sampled(cases: Iterable[Case], count: int) -> list[Case]:
    """At most about `count` cases of each group: as many of each element type, evenly from the list."""
    types: dict[str, dict[str, list[Case]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for case in cases:
        types[case.group][case.dtype].append(case)
    found: list[Case] = []
    for parts in types.values():
        share = max(1, -(-count // len(parts)))
        for part in parts.values():
            step = max(1.0, len(part) / share)
            found += [part[int(at * step)] for at in range(min(share, len(part)))]
    return found


# ---- One case, or several in one program


def outcomes(cases: Sequence[Case]) -> list[tuple[str, str]]:
    """The outcome of each case and why; the cases are one program if that compiles."""
    values, functions, kept, found = [], [], [], {}
    for case in cases:
        try:
            arguments = case.values()
            expected = jax.jit(case.function)(*arguments)
        except Exception as error:
            found[id(case)] = ("skipped", f"JAX: {type(error).__name__}: {str(error)[:100]}")
            continue
        values.append((arguments, expected))
        functions.append(case.function)
        kept.append(case)
    try:
        results = compiled(functions, [arguments for arguments, _ in values])
    except Exception as error:
        if len(kept) > 1:
            for case in kept:
                found[id(case)] = outcomes([case])[0]
        elif kept:
            found[id(kept[0])] = failure(error)
    else:
        for case, result, (_, expected) in zip(kept, results, values, strict=True):
            found[id(case)] = difference(case, result, expected)
    return [found[id(case)] for case in cases]


def compiled(functions: Sequence[Callable[..., Any]], arguments: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The results of functions, compiled as one program."""

    def together(*groups: Sequence[Any]) -> Sequence[Any]:
        return tuple(function(*group) for function, group in zip(functions, groups, strict=True))

    return glow_mlir.from_jax(together, *arguments, threads=1)(*arguments) if functions else ()


def failure(error: Exception) -> tuple[str, str]:
    """What an exception is."""
    if isinstance(error, UnsupportedError):
        return "refused", " ".join(str(error).split())[:200]
    if os.environ.get("SWEEP_TRACEBACK"):
        traceback.print_exception(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    kind = "" if isinstance(error, GlowError) else f"{os.path.basename(where.filename)}:{where.lineno} "
    return "crashed", f"{kind}{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def difference(case: Case, found: Any, expected: Any) -> tuple[str, str]:
    """Whether two trees of arrays are equal within the tolerances of tests."""
    ours, theirs = jax.tree.leaves(found), jax.tree.leaves(expected)
    for one, other in zip(ours, theirs, strict=True):
        if jax.dtypes.issubdtype(other.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return "wrong", f"{one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
        one, other = np.asarray(one), np.asarray(other)
        tolerance = tolerance_of(case, other.dtype)
        if not tolerance or one.dtype.kind in "biu":
            differs = (one != other) & ~((one != one) & (other != other))
        else:
            wide = np.complex128 if one.dtype.kind == "c" else np.float64
            one, other = one.astype(wide), other.astype(wide)
            differs = ~np.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        if differs.any():
            at = tuple(map(int, np.argwhere(differs)[0]))
            return "wrong", f"{int(differs.sum())} of {differs.size}, at {at} {one[at]}, not {other[at]}"
    return "passed", ""


def tolerance_of(case: Case, dtype: np.dtype[Any]) -> float:
    """The tolerance for results of a type: that of the test, or of such operators."""
    if case.tolerance is not None and not isinstance(case.tolerance, dict):
        return case.tolerance
    own = {np.dtype(key).name: value for key, value in (case.tolerance or {}).items()}
    usual = (WIDE if case.group in COMPUTED_IN_SUMS else ELEMENTWISE).get(dtype.name, 0)
    return max(own.get(dtype.name, 0), usual)


def batches(cases: Sequence[Case], size: int) -> Iterator[list[Case]]:
    """Cases of one group, `size` at a time."""
    for _, group in itertools.groupby(sorted(cases, key=lambda case: case.group), lambda case: case.group):
        own = list(group)
        yield from (own[at : at + size] for at in range(0, len(own), size))


def table(counts: dict[str, collections.Counter[str]]) -> str:
    """The totals of operators as a table."""
    rows = [f"{'operator':34}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES)]
    total: collections.Counter[str] = collections.Counter()
    for name, counter in sorted(counts.items()):
        rows.append(f"{name:34}" + "".join(f"{counter[outcome]:9}" for outcome in OUTCOMES))
        total.update(counter)
    share = total["passed"] / max(1, sum(total[outcome] for outcome in OUTCOMES))
    rows.append(f"{'all':34}" + "".join(f"{total[outcome]:9}" for outcome in OUTCOMES) + f"  {share:.1%} passed")
    return "\n".join(rows)


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description="Compare from_jax with JAX over the operators of jax.lax.")
    parser.add_argument("--only", nargs="*", default=(), help="groups of cases, or parts of the names of cases")
    parser.add_argument("--each", type=int, default=24, help="cases of each operator (default: 24)")
    parser.add_argument("--all", action="store_true", help="all cases")
    parser.add_argument("--batch", type=int, default=8, help="cases in one program (default: 8)")
    parser.add_argument("--part", default="0/1", help="run one of so many parts, such as 0/2")
    parser.add_argument("--reverse", action="store_true", help="begin with what is last otherwise")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    cases = all_cases()
    if options.only:
        cases = [case for case in cases if any(word == case.group or word in case.name for word in options.only)]
    cases = sampled(cases, 10**9 if options.all else options.each)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    part, parts = map(int, options.part.split("/"))
    order = [*batches(cases, options.batch)]
    random.Random(0).shuffle(order)
    if options.reverse:
        order.reverse()
    for number, batch in enumerate(order):
        if number % parts != part:
            continue
        start = time.process_time()
        print(f"{number} of {len(order)}: {batch[0].group}", file=sys.stderr, flush=True)
        for case, (outcome, reason) in zip(batch, outcomes(batch), strict=True):
            counts[case.group][outcome] += 1
            if outcome != "passed":
                print(f"{outcome} {case.name}: {reason}", flush=True)
        if (taken := time.process_time() - start) > 60:
            print(f"slow {batch[0].group}: {taken:.0f} s", file=sys.stderr)
    print(table(counts))


if __name__ == "__main__":
    main()
