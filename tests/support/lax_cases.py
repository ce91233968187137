"""
Cases of operators of `jax.lax` that JAX's tables leave out: those of its `lax_test.py` and `lax_control_flow_test.py`.

A case is its group, its name, its element type, its function, and a function of a random state that draws arguments.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import test_util as jtu
from jax._src.internal_test_util import lax_test_util

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, jnp.bfloat16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]
REAL = FLOATS + INTEGERS
ALL = [*REAL, *COMPLEX, np.bool_]
Given = tuple[str, str, str, Callable[..., Any], Callable[[Any], Sequence[Any]]]


def case(
    group: str, text: str, dtype: Any, function: Callable[..., Any], *shapes: Sequence[int], make: Any = jtu.rand_small
) -> Given:
    """A case whose arguments are random arrays of one type."""

    def arguments(random: Any) -> Sequence[Any]:
        draw = make(random)
        return [draw(tuple(shape), dtype) for shape in shapes]

    name = np.dtype(dtype).name
    sizes = " ".join(str(tuple(shape)) for shape in shapes)
    return group, f"{group} {name} {sizes} {text}".strip(), name, function, arguments


def products() -> Iterator[Given]:
    """Products of matrices, with all ways to contract, for all types, and with preferred types of the result."""
    contractions = [
        ([5], [5], (([0], [0]), ([], []))),
        ([7, 5], [5], (([1], [0]), ([], []))),
        ([5, 3, 2], [5, 2, 4], (([0, 2], [0, 1]), ([], []))),
        ([5, 3, 2], [3, 5, 2, 4], (([0, 2], [1, 2]), ([], []))),
        ([3, 4, 2, 4], [3, 4, 3, 2], (([2], [3]), ([0, 1], [0, 1]))),
        ([3, 3, 2], [2, 3, 4], (([2], [0]), ([0], [1]))),
        ([4, 0], [0, 3], (([1], [0]), ([], []))),
        ([2, 3], [2, 3], (([], []), ([0, 1], [0, 1]))),
    ]
    for (one, other, numbers), dtype in itertools.product(contractions, ALL):
        yield case(
            "dot", str(numbers), dtype, functools.partial(lax.dot_general, dimension_numbers=numbers), one, other
        )
    kinds = [
        (np.float16, np.float32), (np.float16, np.float64), (jnp.bfloat16, np.float32), (jnp.bfloat16, np.float64),
        (np.float32, np.float64), (np.int8, np.int16), (np.int8, np.int32), (np.int8, np.int64), (np.int16, np.int32),
        (np.int16, np.int64), (np.int32, np.int64), (np.complex64, np.complex128), (np.int8, np.float32),
        (np.int8, np.float16), (np.int16, np.float32), (np.int32, np.float32), (np.uint8, np.uint32),
    ]  # fmt: skip
    for (dtype, wanted), one, other in itertools.product(kinds, [(3,), (4, 3)], [(3,), (3, 6)]):
        dot = functools.partial(lax.dot, preferred_element_type=wanted)
        yield case("dot preferred", np.dtype(wanted).name, dtype, dot, one, other)


def convolutions() -> Iterator[Given]:
    """Convolutions with all types, groups, layouts, strides, paddings and dilations; transposed ones; local ones."""
    groups = [(1, 1), (2, 1), (1, 2)]
    layouts = [
        (("NCHW", "OIHW", "NCHW"), (0, 1, 2, 3), (0, 1, 2, 3)),
        (("NHWC", "HWIO", "NHWC"), (0, 2, 3, 1), (2, 3, 1, 0)),
        (("NCHW", "HWIO", "NHWC"), (0, 1, 2, 3), (2, 3, 1, 0)),
    ]
    ways = itertools.product(
        [(1, 1), (2, 1)], [((1, 2), (2, 0)), ((10, 8), (7, 13))], [(1, 1), (1, 2)], [(1, 1), (1, 4)]
    )
    combinations = [*itertools.product(ALL, groups, layouts, ways, [10, 0])]
    for number in range(0, len(combinations), 11):
        dtype, (batches, features), (names, one, other), (strides, padding, holes, dilations), width = combinations[
            number
        ]
        left, right = (2 * batches, 3 * features, 9, width), (3 * features * batches, 3, 4, 5)
        conv = functools.partial(
            lax.conv_general_dilated, window_strides=strides, padding=padding, lhs_dilation=holes,
            rhs_dilation=dilations, dimension_numbers=names, feature_group_count=features, batch_group_count=batches,
        )  # fmt: skip
        text = f"{names} groups {batches} {features} {strides} {padding} {holes} {dilations}"
        shapes = [[shape[axis] for axis in order] for shape, order in ((left, one), (right, other))]
        yield case("conv", text, dtype, conv, *shapes)
    for dtype, (batches, features) in itertools.product(ALL, groups):
        conv = functools.partial(
            lax.conv_general_dilated, window_strides=(), padding=(), dimension_numbers=("NC", "OI", "NC"),
            feature_group_count=features, batch_group_count=batches,
        )  # fmt: skip
        shapes = (2 * batches, 3 * features), (2 * features * batches, 3)
        yield case("conv", f"0D groups {batches} {features}", dtype, conv, *shapes)
    for dtype, strides, padding, dilation in itertools.product(
        [np.float32, np.float64, jnp.bfloat16, np.complex64],
        [(1, 1), (1, 2), (3, 3)],
        ["VALID", "SAME", [(1, 0), (2, 1)], [(5, 4), (0, 0)]],
        [None, (2, 2)],
    ):
        conv = functools.partial(
            lax.conv_transpose, strides=strides, padding=padding, rhs_dilation=dilation,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        yield case("conv_transpose", f"{strides} {padding} {dilation}", dtype, conv, (2, 9, 10, 3), (3, 2, 3, 4))
    for dtype in ALL:
        patches = functools.partial(
            lax.conv_general_dilated_patches, filter_shape=(2, 3), window_strides=(1, 2), padding=[(1, 0), (2, 2)]
        )
        yield case("conv patches", "", dtype, patches, (2, 3, 5, 6))
    for dtype in [*FLOATS, *COMPLEX]:
        local = functools.partial(
            lax.conv_general_dilated_local, window_strides=(1, 1), padding="VALID", filter_shape=(2, 2)
        )
        yield case("conv local", "", dtype, local, (2, 3, 5, 4), (4, 12, 4, 3))
    wider = [(np.float16, np.float32), (jnp.bfloat16, np.float32), (np.int8, np.int32), (np.int8, np.int16)]
    wider += [(np.float32, np.float64), (np.int16, np.int32), (np.complex64, np.complex128)]
    for dtype, wanted in wider:
        conv = functools.partial(lax.conv, window_strides=(1, 1), padding="SAME", preferred_element_type=wanted)
        yield case("conv preferred", np.dtype(wanted).name, dtype, conv, (2, 3, 6, 7), (4, 3, 3, 2))


def moved() -> Iterator[Given]:
    """Operators that move elements, and those that make them."""
    for dtype in ALL:
        yield case("broadcast", "", dtype, lambda x: (lax.broadcast(x, (2, 1)), lax.expand_dims(x, (0, 3))), (2, 3))
        for dims in ([0], [1]):
            spread = functools.partial(lax.broadcast_in_dim, shape=(2, 2), broadcast_dimensions=dims)
            yield case("broadcast", str(dims), dtype, spread, (2,))
        yield case(
            "reshape", "", dtype, lambda x: (lax.reshape(x, (2, 8)), lax.reshape(x, (16,), (1, 0, 2))), (2, 2, 4)
        )
        yield case("transpose", "", dtype, lambda x: lax.transpose(x, (2, 0, 1)), (3, 4, 5))
        yield case("rev", "", dtype, lambda x: lax.rev(x, (0, 2)), (3, 4, 5))
        for widths in ([(1, 2, 1), (0, 1, 0)], [(-1, -2, 1), (1, 2, 2)], [(0, 0, 0), (-1, 3, 2)]):
            pad = functools.partial(lambda x, widths: lax.pad(x, np.array(1, x.dtype), widths), widths=widths)
            yield case("pad", str(widths), dtype, pad, (4, 2))
        yield case("concatenate", "", dtype, lambda x, y: lax.concatenate([x, y, x], 1), (2, 3), (2, 1))
        yield case("split", "", dtype, lambda x: lax.split(x, [1, 4, 2], 1), (2, 7))
        yield case(
            "slice", "", dtype, lambda x: (lax.slice(x, (1, 1), (5, 6), (2, 3)), lax.slice_in_dim(x, 2, 5)), (7, 6)
        )
        yield case("dynamic_slice", "", dtype, lambda x: dynamic(x, jnp.int32(-1), jnp.int32(9)), (5, 4))
        yield case(
            "dynamic_update",
            "",
            dtype,
            lambda x, y: lax.dynamic_update_slice(x, y, (jnp.int8(7), jnp.int8(1))),
            (5, 4),
            (2, 3),
        )
        yield (
            case("clamp", "", dtype, lambda x, y, z: lax.clamp(x, y, z), (), (4, 5), ())
            if dtype != np.bool_ and dtype not in COMPLEX
            else case("select", "", dtype, lambda x, y: lax.select(x == y, x, y), (4, 5), (4, 5))
        )
        yield case("select_n", "", dtype, lambda x, y, z: lax.select_n(jnp.array([2, 0, 1]), x, y, z), (3,), (3,), (3,))
        yield (
            case("iota", "", dtype, functools.partial(iotas, dtype), (1,))
            if dtype != np.bool_
            else case("tie_in", "", dtype, lax.optimization_barrier, (3,))
        )


def ordered() -> Iterator[Given]:
    """Operators that put elements in order, or find the largest."""
    for dtype in REAL:
        yield case(
            "sort",
            "",
            dtype,
            lambda x: (lax.sort(x, dimension=0), lax.sort(x, is_stable=False)),
            (7, 9),
            make=jtu.rand_some_equal,
        )
        yield case(
            "sort",
            "two keys",
            dtype,
            lambda x, y: lax.sort((x, y, x * y), num_keys=2),
            (40,),
            (40,),
            make=jtu.rand_some_equal,
        )
        yield case("top_k", "", dtype, lambda x: lax.top_k(x, 4), (3, 9), make=jtu.rand_some_equal)
        yield case(
            "argmax",
            "",
            dtype,
            lambda x: (lax.argmax(x, 0, np.int32), lax.argmin(x, 1, np.int64)),
            (6, 5),
            make=jtu.rand_some_equal,
        )


def dynamic(x: Any, start: Any, end: Any) -> Any:
    """Slices whose starts do not fit."""
    return (
        lax.dynamic_slice(x, (start, end), (3, 2)),
        lax.dynamic_index_in_dim(x, end, 0),
        x[start],
        x.at[start].set(x[0]),
    )


def iotas(dtype: Any, x: Any) -> Any:
    """Counted elements."""
    return x + lax.iota(dtype, 5)[:1], lax.broadcasted_iota(dtype, (3, 4), 1)


def converted() -> Iterator[Given]:
    """Conversions between all types, also of eight bits, and reinterpreted bits."""
    small = [jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3b11fnuz, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz]
    small += [jnp.int4, jnp.uint4]
    for dtype, wanted in itertools.product([*ALL, *small], [*ALL, *small]):
        if np.dtype(dtype).kind == "c" and np.dtype(wanted).kind != "c":
            continue
        convert = functools.partial(lax.convert_element_type, new_dtype=wanted)
        group = "convert_element_type" if not {dtype, wanted} & set(small) else "convert small"
        yield case(group, np.dtype(wanted).name, dtype, convert, (3, 5))
    for dtype, wanted in itertools.product(REAL, REAL):
        cast = functools.partial(lax.bitcast_convert_type, new_dtype=wanted)
        ratio = np.dtype(wanted).itemsize // np.dtype(dtype).itemsize
        shape = (2, 3, ratio) if ratio > 1 else (2, 3)
        yield case("bitcast", np.dtype(wanted).name, dtype, cast, shape, make=jtu.rand_default)


def folds() -> Iterator[Given]:
    """Folds by all monoids, over axes, windows, and along an axis."""
    for record in lax_test_util.lax_reduce_ops():
        for dtype, (shape, axes) in itertools.product(
            record.dtypes, [([3, 4, 5], (0,)), ([3, 4, 5], (0, 2)), ([2, 0], (1,)), ([4], ())]
        ):
            start = np.array(record.init_val).astype(dtype)
            fold = functools.partial(
                lambda x, op, start, axes: lax.reduce(x, start, op, axes), op=record.op, start=start, axes=axes
            )
            yield case("reduce monoid", f"{record.op.__name__} {axes}", dtype, fold, shape)
    windows = [([4, 6], (2, 1), (1, 2), "VALID"), ([4, 6], (3, 2), (2, 1), "SAME"), ([5], (3,), (1,), [(2, 1)])]
    windows += [([3, 2, 4, 6], (1, 1, 2, 1), (2, 1, 1, 2), "VALID")]
    monoids = [(0, lax.add), (1, lax.mul), (-np.inf, lax.max), (np.inf, lax.min)]
    for (start, op), dtype, (shape, window, strides, padding) in itertools.product(monoids, REAL + COMPLEX, windows):
        if np.isinf(start) and (np.dtype(dtype).kind == "c"):
            continue
        for holes in ([1] * len(shape), [2] * len(shape)):
            fold = functools.partial(
                windowed, op=op, start=start, window=window, strides=strides, padding=padding, holes=holes
            )
            yield case("reduce_window", f"{op.__name__} {window} {strides} {padding} {holes}", dtype, fold, shape)
    cumulative = [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp]
    for op, dtype, axis, reverse in itertools.product(cumulative, REAL + COMPLEX, (0, 2), (False, True)):
        if (op is lax.cumlogsumexp and dtype not in FLOATS) or (op in (lax.cummax, lax.cummin) and dtype in COMPLEX):
            continue
        yield case(
            "cumulative",
            f"{op.__name__} {axis} {reverse}",
            dtype,
            functools.partial(op, axis=axis, reverse=reverse),
            (3, 4, 5),
        )
    for record in lax_test_util.lax_named_reduce_ops():
        for dtype in record.dtypes:
            yield case("reduce named", record.op.__name__, dtype, functools.partial(record.op, axes=(1,)), (3, 5))


def windowed(x: Any, op: Any, start: Any, window: Any, strides: Any, padding: Any, holes: Any) -> Any:
    """A fold over windows from an initial value, which is the least or the largest number of integers."""
    if np.isinf(start) and jnp.issubdtype(x.dtype, np.integer):
        start = jnp.iinfo(x.dtype).max if start > 0 else jnp.iinfo(x.dtype).min
    return lax.reduce_window(x, np.array(start, x.dtype), op, window, strides, padding, None, holes)


def own_cases() -> Iterator[Given]:
    """All cases."""
    from lax_programs import programs

    for family in (products, convolutions, moved, ordered, converted, folds, programs):
        yield from family()
