"""Cases of operators that move, choose and sum up elements: see `operator_variants`."""

from __future__ import annotations

import itertools

import numpy as np
from breadth import combinations
from execute import sample
from operator_variants import EVERYTHING, FLOATS, NUMBERS, Cases, Families, case

from glow_mlir.dialects.glow_high.embedding import BOUNDS
from glow_mlir.dialects.glow_high.ngrams import CRITERIA

ELEMENTS = Families()


def indices(*shape: int, bound: int = 5, dtype: str = "i8", seed: int = 3) -> np.ndarray:
    """Random indices in [-`bound`, `bound`)."""
    return np.random.default_rng(seed).integers(-bound, bound, size=shape).astype(dtype)


@ELEMENTS.add()
def transposes() -> Cases:
    """All element types, all permutations, sizes around those of blocks, and more than a block."""
    permutations = {(33, 70): (1, 0), (2, 3, 17): (0, 2, 1), (2, 17, 19, 3): (0, 3, 1, 2)}
    for dtype, (shape, permutation) in combinations(EVERYTHING, permutations.items()):
        yield case("transpose", sample(shape, dtype), permutation=permutation)
    for permutation in itertools.permutations(range(3)):
        yield case("transpose", sample((9, 10, 35)), permutation=permutation)
    for size in range(1, 12):
        yield case("transpose", sample((size, 19)), permutation=(1, 0))


@ELEMENTS.add()
def transposes_in_several_blocks() -> Cases:
    for shape in ((1030, 37), (133, 1024), (131, 512), (140, 256), (64, 2048)):
        yield case("transpose", sample(shape), permutation=(1, 0))
        yield case("transpose", sample((2, *shape), "i1"), permutation=(0, 2, 1))


@ELEMENTS.add()
def concatenations() -> Cases:
    for dtype in EVERYTHING:
        yield case("concat", [sample((2, 3, 5), dtype), sample((2, 1, 5), dtype, 1)], axis=1)
    for axis in (0, 1, 2, -1):
        yield case("concat", [sample((2, 3, 21), seed=seed) for seed in range(3)], axis=axis)


@ELEMENTS.add()
def slices() -> Cases:
    yield case("slice", sample((9, 40)), starts=(1, 2), ends=(8, 39))
    yield case("slice", sample((9, 40)), starts=(8, 39), ends=(-1, -1), steps=(-2, -1))
    yield case("slice", sample((9, 40), "u1"), starts=(0, 0), ends=(9, 40), steps=(2, 3))
    yield case("slice", sample((4, 5)), starts=(1, 1), ends=(1, 3))


@ELEMENTS.add()
def pads() -> Cases:
    for dtype in ("f4", "f2", "u1", "?"):
        for value in (None, np.array(3).astype(dtype)):
            yield case("pad", sample((3, 4, 17), dtype), value, pads=(1, 0, 3, 2, 1, 0))
    for mode in ("edge", "reflect", "wrap"):
        yield case("pad", sample((3, 4, 17)), pads=(1, 0, 3, 2, 1, 0), mode=mode)
        yield case("pad", sample((3,)), pads=(7, 5), mode=mode)
        yield case("pad", sample((1, 9, 9, 5), "i8"), pads=(0, 1, 2, 0, 0, 2, 1, 0), mode=mode)
        yield case("pad", sample((1, 2)), pads=(2, 0, 1, 3), mode=mode)


@ELEMENTS.add()
def repetitions() -> Cases:
    for given, shape in (((3, 1), (2, 3, 40)), ((1, 40), (2, 3, 40)), ((), (2, 3)), ((1,), (1,))):
        yield case("expand", sample(given), shape=shape)
    yield case("tile", sample((3, 5)), repeats=(2, 3))
    yield case("tile", sample((3, 5), "?"), repeats=(1, 4))
    yield case("tile", sample((3, 5)), repeats=(0, 4))


@ELEMENTS.add()
def gathers() -> Cases:
    for dtype, (axis, bound) in combinations(("f4", "f2", "u1", "i8", "?"), enumerate((5, 6, 17))):
        x = sample((5, 6, 17), dtype)
        yield case("gather", x, indices(2, 3, bound=bound), axis=axis)
        yield case("gather", x, indices(dtype="i4", bound=bound), axis=axis)
        yield case("gather_elements", x, indices(4, 5, 6, bound=bound), axis=axis)
        yield case("gather_nd", x, indices(3, 2))
        yield case("gather_nd", x, indices(4, 3, dtype="i4"))
        yield case("gather_nd", x, indices(5, 3, 1), batch_dims=1)
    yield case("gather", sample((5, 6)), np.array([-5, 4, -1, 0], np.int64), axis=0)


@ELEMENTS.add()
def scatters() -> Cases:
    """All reductions, in all element types."""
    for reduction, dtype in combinations(("none", "add", "mul", "max", "min"), (*FLOATS, "i4", "u1")):
        updates = sample((4, 5), dtype)
        for axis in (0, 1):
            yield case(
                "scatter_elements", sample((5, 6), dtype), indices(4, 5), updates, axis=axis, reduction=reduction
            )
        rows = sample((5, 6, 7), dtype), indices(4, 1), sample((4, 6, 7), dtype)
        elements = sample((5, 6), dtype), indices(4, 3, 2), sample((4, 3), dtype)
        yield case("scatter_nd", *rows, reduction=reduction)
        yield case("scatter_nd", *elements, reduction=reduction)
    yield case("scatter_nd", sample((5, 6), "?"), indices(4, 2), sample((4,), "?"))


@ELEMENTS.add()
def dynamic_slices() -> Cases:
    """Starts inside, before and behind the input, along each axis, in all element types."""
    for dtype, axis in itertools.product((*FLOATS, "i4", "u1", "?"), (0, 1, -1)):
        x = sample((5, 6, 7), dtype)
        for count, start in ((1, 3), (3, 0), (3, 2), (2, 99), (4, -(1 << 62)), (5, 1), (0, 2)):
            yield case("dynamic_slice", x, np.array(start), axis=axis, size=count)
            update = np.take(sample((5, 6, 7), dtype, seed=1), range(count), axis)
            yield case("dynamic_update_slice", x, update, np.full((1, 1), max(start, -9), np.int32), axis=axis)


@ELEMENTS.add()
def reversed_sequences() -> Cases:
    x = sample((4, 5, 16))
    for batch, time in ((0, 1), (1, 0), (2, 0), (0, 2)):
        yield case("reverse_sequence", x, indices(x.shape[batch], bound=9), batch_axis=batch, time_axis=time)


@ELEMENTS.add()
def selections() -> Cases:
    """Numbers that are zero, missing or equal, and results without elements."""
    generator = np.random.default_rng(0)
    x = np.where(generator.random((3, 4, 5)) < 0.5, 0, sample((3, 4, 5))).astype(np.float32)
    x[0, 0, 0] = np.nan
    for array in (*(x.astype(dtype) for dtype in FLOATS), (x > 1).astype("i1"), x > 0, np.zeros((0, 3), np.float32)):
        yield case("non_zero", array)
    spoiled = sample((6, 1))
    spoiled[[1, 4]] = np.nan
    spoiled[2] = spoiled[0]
    for is_sorted in (True, False):
        for dtype, (rows, columns) in itertools.product(("f4", "i4", "u1", "?", "f2"), ((17, 1), (9, 2))):
            array = generator.integers(0, 5 if columns == 1 else 2, (rows, columns)).astype(dtype)
            yield case("unique", array, sorted=is_sorted)
        for dtype in ("f8", "i8", "i1"):
            yield case("unique", sample((300, 1), dtype).repeat(2, axis=0), sorted=is_sorted)
        for array in (spoiled, np.zeros((0, 1), np.int64), np.zeros((1, 1), np.int64)):
            yield case("unique", array, sorted=is_sorted)


@ELEMENTS.add()
def boxes() -> Cases:
    """Scores that are equal, infinite or missing, and any number of boxes."""
    generator = np.random.default_rng(0)
    corners = generator.uniform(0, 4, (2, 37, 4)).astype(np.float32)
    scores = generator.random((2, 3, 37)).round(1).astype(np.float32)
    scores[0, 0, :5], scores[0, 1] = -np.inf, np.nan
    share = np.array([0.3], np.float32)
    chosen = corners, scores, np.array([5]), share, share
    yield case("non_max_suppression", *chosen, limit=20, center_point_box=True)
    yield case("non_max_suppression", corners, scores, np.array(50), None, None, limit=37)
    yield case("non_max_suppression", corners, scores, np.array(-1), None, None, limit=37)
    yield case("non_max_suppression", corners, scores, limit=3)
    many = generator.uniform(0, 9, (1, 400, 4)).astype(np.float32)
    yield case("non_max_suppression", many, sample((1, 2, 400)), np.array([90]), share, limit=100)


@ELEMENTS.add(3e-3)
def sums_of_rows() -> Cases:
    """Weights or none, bounds of all kinds, rows of codes with scales and offsets beside them or behind."""
    chosen, lengths, weights = np.random.default_rng(0).integers(0, 9, 14), np.array([3, 0, 5, 2], "i4"), sample((14,))
    rows = np.random.default_rng(1).integers(0, 256, (9, 70)).astype(np.uint8)
    scales, offsets = np.abs(sample((9,))), sample((9,))
    fused = np.concatenate([rows, np.stack([scales, offsets], 1).astype("<f4").view(np.uint8)], 1)
    for dtype in FLOATS:
        for weighed in (None, weights.astype(dtype)):
            yield case("sparse_lengths_sum", sample((9, 70), dtype), chosen, lengths, weighed)
    for kind in BOUNDS[1:]:
        yield case("sparse_lengths_sum", sample((9, 5)), chosen, np.array([0, 3, 3, 9]), weights, bounds=kind)
    yield case("sparse_lengths_sum", rows, chosen, lengths, weights, scales, offsets)
    yield case("sparse_lengths_sum", rows, chosen, lengths, None, scales, offsets)
    yield case("sparse_lengths_sum", fused, chosen, lengths, weights, fused=True)
    yield case("sparse_lengths_sum", sample((9, 5)), chosen, np.zeros(0, np.int32))


@ELEMENTS.add()
def counts_of_ngrams() -> Cases:
    x = np.random.default_rng(0).integers(0, 5, (3, 12))
    grams = [
        np.array([[1, 5], [3, 0]]),
        np.array([[0, 1, 1], [1, 4, 2], [2, 2, 3], [3, 0, 4]]),
        np.array([[1, 1, 2, 6], [1, 2, 2, 7]]),
    ]
    for mode in CRITERIA:
        yield case("tf_idf_vectorizer", x, sample((9,)), grams, size=9, max_skip_count=2, mode=mode)
    yield case("tf_idf_vectorizer", x[0].astype("i4"), None, grams, size=9, mode="IDF")


@ELEMENTS.add()
def reductions() -> Cases:
    """Any axes, all element types, truth values, numbers that are missing, and means of many small integers."""
    axes_of = {(3, 37): (1,), (3, 5, 7): (1,), (130,): (0,), (2, 3, 4, 5): (1, 3), (2, 1): (), (2, 3): (0, 1)}
    shapes = [*axes_of.items(), ((3, 5, 37), (0, 1)), ((3, 5, 37), (0, 2)), ((3, 0, 2), (1,)), ((5, 150), (1,))]
    kinds = "sum", "mean", "prod", "max", "min"
    for kind, (shape, axes) in combinations(kinds, shapes):
        yield case(f"reduce_{kind}", sample(shape), axes=axes, keepdims=len(axes) != 1)
    for kind, dtype in combinations(kinds, NUMBERS):
        yield case(f"reduce_{kind}", sample((3, 19), dtype), axes=(1,))
        yield case(f"reduce_{kind}", sample((19, 20), dtype), axes=(0,))
    x = sample((4, 50))
    x[1, 33] = np.nan
    for kind in ("max", "min"):
        yield case(f"reduce_{kind}", sample((5, 19), "?"), axes=(1,))
        yield case(f"reduce_{kind}", x, axes=(1,))
        yield case(f"reduce_{kind}", np.ascontiguousarray(x.T), axes=(0,))
    yield case("reduce_mean", np.full((2, 300), 1, np.int8), axes=(1,))


@ELEMENTS.add(1e-6)
def long_sums() -> Cases:
    """They are added up in blocks, and lose about one rounding in all, of numbers of one sign."""
    for shape, axes in (((16384, 5), (0,)), ((16385, 32), (0,)), ((3, 100003), (1,)), ((700, 3, 24), (0, 2))):
        for kind in ("sum", "mean"):
            yield case(f"reduce_{kind}", np.abs(sample(shape)), axes=axes)


@ELEMENTS.add()
def positions() -> Cases:
    special = sample((4, 33))
    special[1, [5, 9]], special[2], special[3] = np.nan, -np.inf, np.inf
    arrays = special, sample((3, 37), "i4"), sample((9, 20), "u1"), sample((5, 6), "f8")
    for x, kind, last in combinations(arrays, ("arg_max", "arg_min"), (False, True)):
        yield case(kind, x, axis=1, select_last_index=last)
        yield case(kind, np.ascontiguousarray(x.T), axis=0, select_last_index=last, keepdims=False)


@ELEMENTS.add()
def short_lines() -> Cases:
    """Many short lines and operands that all of them share, of which there may be one for each image."""
    for length, dtype in combinations((3, 7, 5, 11), ("f4", "f2", "f8", "u1", "i8")):
        x, row = sample((301, length), dtype), sample((length,), dtype, 1)
        yield case("add", x, row)
        yield case("greater", row, x)
        yield case("max", sample((2, 270, length), dtype), sample((2, 1, length), dtype, 1))
    for length in (3, 4, 7):
        yield case("pow", np.abs(sample((517, length))), sample((length,), seed=1))


@ELEMENTS.add()
def quotients_of_integers() -> Cases:
    """Numbers at the ends of their range, divisors that are zero, one and minus one, and powers of all of them."""
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8"):
        ends = np.iinfo(dtype)
        generator = np.random.default_rng(1)
        x, y = (generator.integers(ends.min, ends.max, 203, dtype, endpoint=True) for _ in range(2))
        near = np.array([0, 1, 2, 3, ends.max, ends.max - 1, ends.min, ends.min + 1, 7, ends.max // 2], dtype)
        x, y = np.concatenate([x, np.repeat(near, len(near))]), np.concatenate([y, np.tile(near, len(near))])
        for operator in ("div", "mod"):
            yield case(operator, x, y)
        yield case("pow", x, np.abs(y % 9).astype(dtype))


@ELEMENTS.add()
def running_totals() -> Cases:
    given = ((3, 9), 1, "f4"), ((9, 19), 0, "i4"), ((2, 3, 4), 1, "f8"), ((5,), 0, "u1")
    for (shape, axis, dtype), kind, exclusive, reverse in combinations(
        given, ("cum_sum", "cum_prod"), (False, True), (False, True)
    ):
        yield case(kind, sample(shape, dtype), axis=axis, exclusive=exclusive, reverse=reverse)


@ELEMENTS.add()
def largest_elements() -> Cases:
    """Few of short and long lines, and most of them: the ways to find them differ."""
    short, long = (
        (((3, 50), 1, 5), ((50, 3), 0, 50), ((2, 9, 4), 1, 1), ((7,), 0, 0)),
        (*(((2, 3000), 1, 20), ((700, 3), 0, 9), ((3, 300), 1, 290), ((1, 2001), -1, 1)),),
    )
    for (shape, axis, k), dtype, largest in combinations((*short, *long), (*FLOATS, "i4", "u1", "i8"), (False, True)):
        yield case("top_k", sample(shape, dtype), k=k, axis=axis, largest=largest)


@ELEMENTS.add()
def largest_of_special_elements() -> Cases:
    """NaN, infinities, zeros of both signs, and elements that are all equal or at the ends of their range."""
    for columns, dtype in combinations((40, 3000), FLOATS):
        special = sample((3, columns), dtype)
        special[:, ::7], special[0, ::14] = np.nan, -np.nan
        special[1, 3], special[1, 5], special[2, :20], special[2, 1] = -np.inf, np.inf, 0, -0.0
        special[2, 20:columns] = special[2, 20]
        for k, largest in itertools.product((17, columns), (False, True)):
            yield case("top_k", special, k=k, axis=1, largest=largest)
    for dtype in ("u1", "i1", "i4", "i8"):
        ends = np.resize(np.array([np.iinfo(dtype).max, np.iinfo(dtype).min], dtype), (2, 1500))
        ends[1] = np.iinfo(dtype).max
        for largest in (False, True):
            yield case("top_k", ends, k=31, axis=1, largest=largest)


@ELEMENTS.add()
def softmaxes() -> Cases:
    """Axes of any length, lines side by side that must not mix, and numbers at the ends of their range."""
    extremes = np.array([[1e30, -1e30, 0], [-np.inf, 0, 1], [np.nan, 0, 1], [-np.inf] * 3, [np.inf, 0, 1]], np.float32)
    beside = sample((8, 21))
    beside[1, 20], beside[2, 3], beside[6] = np.nan, np.inf, -np.inf
    for operator in ("softmax", "log_softmax"):
        shapes = {(3, 1000): 1, (3, 37): -1, (2, 21, 33): 1, (5,): 0, (2, 3, 4, 5): 0}
        for (shape, axis), dtype in combinations(shapes.items(), FLOATS):
            yield case(operator, (5 * sample(shape, dtype)).astype(dtype), axis=axis)
        yield case(operator, np.asarray(0.5, np.float32), axis=0)
        for x in (extremes, beside):
            yield case(operator, x, axis=1)
        for shape in ((4, 37), (2, 6, 100), (8, 1), (12, 16), (4, 2100), (4, 256), (8, 64)):
            yield case(operator, 5 * sample(shape), axis=-1)
    yield case("hardmax", sample((3, 17)), axis=1)
    ties = np.repeat(sample((2, 3, 7)), 5, axis=2)
    ties[0, 1, [20, 30]], ties[1, 2] = np.nan, -np.inf
    for axis, dtype in combinations((0, 1, 2), FLOATS):
        yield case("hardmax", ties.astype(dtype), axis=axis)


@ELEMENTS.add(1e-4)
def normalizations_of_images() -> Cases:
    """Channels that lie first, last and between, alone and in groups."""
    x = sample((3, 6, 5, 4))
    for axis, dtype in combinations((1, 2, 3), ("f4", "f8")):
        scale, offset = sample((x.shape[axis],), dtype), sample((x.shape[axis],), dtype, seed=1)
        yield case("instance_normalization", x.astype(dtype), scale, offset, axis=axis)
        for groups in (1, x.shape[axis]) if axis == 2 else (2,):
            yield case("group_normalization", x.astype(dtype), scale, offset, axis=axis, groups=groups)


@ELEMENTS.add()
def normalizations() -> Cases:
    """Scales that broadcast, and lines that are alone or side by side."""
    for dtype in ("f4", "f8"):
        x, scale = sample((3, 65), dtype), sample((65,), dtype)
        yield case("layer_normalization", x, scale, scale)
        yield case("layer_normalization", x, scale)
    yield case("layer_normalization", sample((2, 3, 5, 7)), sample((5, 7)), sample((7,)), axis=2)
    yield case("layer_normalization", sample((2, 3, 5, 7)), sample((3, 1, 1)), sample((1,)), axis=1)
    yield case("layer_normalization", sample((4, 1)), sample((1,)), sample((4, 1)))
    yield case("rms_normalization", sample((3, 65)), sample((65,)))
    yield case("rms_normalization", sample((2, 3, 40), "f8"), sample((3, 40), "f8"), axis=1)
    for shape in ((4, 37), (2, 6, 100), (8, 1), (12, 16), (4, 2100), (4, 256), (8, 64)):
        yield case("layer_normalization", sample(shape), sample(shape[-1:]), sample((*shape[:-1], 1)))
        yield case("rms_normalization", sample(shape, "f8"), sample(shape[-1:], "f8"))


@ELEMENTS.add(5e-3)
def normalizations_of_half_floats() -> Cases:
    x, scale = sample((3, 65), "f2"), sample((65,), "f2")
    yield case("layer_normalization", x, scale, scale)
    yield case("layer_normalization", x, scale)
