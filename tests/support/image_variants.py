"""Cases of operators on images: see `operator_variants`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from breadth import combinations
from execute import Case, sample
from operator_variants import FLOATS, Cases, Families, case

from glow_mlir.dialects.glow_high.resize import COORDINATES
from glow_mlir.dialects.glow_high.resize import MODES as RESIZE_MODES
from glow_mlir.dialects.glow_high.sampling import MODES, PADDINGS, POOLINGS
from glow_mlir.dialects.windows import Window

IMAGES = Families()

WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "line": ((9,), {"kernel_shape": (3,), "pads": (1, 2)}),
    "uneven": ((8, 9), {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 1, 1)}),
    "ceil": ((8, 9), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1), "ceil_mode": True}),
    "dilated": ((12, 13), {"kernel_shape": (3, 2), "dilations": (2, 3), "pads": (2, 1, 2, 1)}),
    "dilated_ceil": (
        (12, 13),
        {"kernel_shape": (3, 2), "dilations": (2, 3), "strides": (3, 3), "pads": (1, 1, 1, 1), "ceil_mode": True},
    ),
    "volume": ((4, 5, 6), {"kernel_shape": (2, 2, 3), "strides": (2, 1, 2)}),
}


@IMAGES.add()
def pools() -> Cases:
    """Windows of all kinds, few channels and many."""
    variants: list[tuple[str, dict[str, Any]]] = [(f"{kind}_pool", {}) for kind in ("max", "avg", "lp")]
    variants.append(("avg_pool", {"count_include_pad": True}))
    for (operator, variant), (spatial, window) in combinations(variants, WINDOWS.values()):
        for channels in (3, 24):
            yield case(operator, sample((2, *spatial, channels)), **window, **variant)
    spatial, window = WINDOWS["ceil"]
    for operator in ("max_pool", "avg_pool"):
        yield case(operator, sample((2, 3, *spatial)), layout="channels_first", **window)
    square: dict[str, Any] = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    for dtype in ("f8", "f2", "u1", "i1", "i8"):
        yield case("max_pool", sample((1, 6, 6, 37), dtype), **square)
    for p in (1, 3, 5):
        yield case("lp_pool", sample((1, 6, 6, 5)), p=p, **square)
    yield case("avg_pool", sample((1, 6, 6, 100)), **square)
    spoiled = sample((1, 4, 4, 20))
    spoiled[0, 1, 1, :7] = np.nan
    yield case("max_pool", spoiled, kernel_shape=(2, 2))


@IMAGES.add()
def pools_of_rows() -> Cases:
    """Pixels of one channel side by side; the last window of a row may end where the input does."""
    window: dict[str, Any] = {"kernel_shape": (2, 3), "pads": (0, 2, 1, 1)}
    for operator in ("max_pool", "avg_pool"):
        for width in (2, 5, 40):
            yield case(operator, sample((2, 3, 4, width)), layout="channels_first", **window)
            yield case(operator, sample((2, 4, width, 1)), **window)
        yield case(operator, sample((2, 96, 1)), kernel_shape=(5,), pads=(2, 2))
    second: dict[str, Any] = {"kernel_shape": (2, 3), "strides": (1, 2), "layout": "channels_first"}
    for operator, dtype in (("max_pool", "f4"), ("max_pool", "u1"), ("avg_pool", "f2"), ("lp_pool", "f8")):
        for width, before in ((5, 3), (70, 0), (70, 1), (131, 2)):
            yield case(operator, sample((1, 2, 3, width), dtype), pads=(0, before, 1, width % 2), **second)


@IMAGES.add()
def positions_of_maxima() -> Cases:
    window: dict[str, Any] = {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 1, 1, 0)}
    spoiled = sample((1, 6, 6, 3))
    spoiled[0, 2:4, 2] = np.nan
    ties = [np.round(sample((2, 7, 5, 19), dtype)) for dtype in FLOATS]
    integers = [sample((2, 7, 5, 19), dtype) for dtype in ("i1", "u1")]
    for x in (*ties, *integers, spoiled, np.full((1, 4, 4, 3), -np.inf, np.float32)):
        yield case("max_pool_with_indices", x, **window)
    turned: dict[str, Any] = {"layout": "channels_first", "column_major": True}
    for properties in ({"by_channel": True}, {"by_channel": True, **turned}):
        yield case("max_pool_with_indices", sample((2, 7, 5, 19)), **properties, **window)
    yield case("max_pool_with_indices", sample((2, 3, 7, 5)), dilations=(2, 1), ceil_mode=True, **turned, **window)


@IMAGES.add(3e-3)
def images_of_windows() -> Cases:
    def columns(window: Window, image: tuple[int, ...], dtype: str) -> Case:
        count = 2 * math.prod(window.kernel)
        lists: dict[str, Any] = {"strides": window.strides, "pads": window.pads, "dilations": window.dilations}
        x = sample((2, count, math.prod(window.outputs(image))), dtype)
        return case("col2im", x, image_shape=image, block_shape=window.kernel, **lists)

    dense = Window((3, 2), (1, 1), (1, 0, 0, 1), (1, 1))
    windows = dense, Window((3, 2), (2, 3), (0, 1, 1, 1), (1, 1)), Window((3, 2), (1, 1), (0, 0, 0, 0), (2, 2))
    for window, dtype in itertools.product(windows, ("f4", "i4")):
        yield columns(window, (8, 19), dtype)
    yield columns(Window((2, 2, 2), (2, 2, 2), (0,) * 6, (1, 1, 1)), (4, 4, 4), "f4")
    yield columns(dense, (4, 5), "f8")
    yield columns(dense, (8, 19), "f2")


@IMAGES.add()
def resizes() -> Cases:
    """All modes and rules, all element types, whole factors along vectors, and forms that are lowered."""
    rules = [rule for rule in COORDINATES if rule != "tf_crop_and_resize"]
    for mode, rule in combinations(RESIZE_MODES, rules):
        for before, after in (
            ((1, 5, 6, 19), (1, 10, 12, 19)),
            ((1, 3, 5, 6), (1, 3, 7, 13)),
            ((2, 9), (2, 4)),
            ((1, 3, 4, 5, 4), (1, 3, 5, 8, 7)),
        ):
            yield case("resize", sample(before), shape=after, mode=mode, coordinates=rule)
    for dtype in ("f8", "f2", "u1", "i8", "?"):
        yield case("resize", sample((1, 5, 6, 19), dtype), shape=(1, 10, 18, 19))
        yield case("resize", sample((1, 3, 6, 19), dtype), shape=(1, 3, 7, 9))
    yield case("resize", sample((1, 5, 6, 3), "f8"), shape=(1, 9, 9, 3), mode="cubic")
    yield case("resize", sample((1, 3, 9, 9)), shape=(1, 3, 4, 4), mode="linear", antialias=True)
    cropped: dict[str, Any] = {"coordinates": "tf_crop_and_resize", "roi": (0.0, 0.0, 0.2, 0.2, 1.0, 1.0, 0.8, 1.3)}
    yield case("resize", sample((1, 3, 6, 9)), shape=(1, 3, 7, 9), mode="linear", **cropped)
    yield case("resize", sample((1, 3, 6, 9)), shape=(1, 3, 6, 9))
    yield case("resize", sample((1, 5, 6, 40)), shape=(1, 9, 11, 40), mode="linear")
    for factor, width in itertools.product((2, 3, 8, 9), (1, 5, 35)):
        yield case("resize", sample((1, 2, 3, width)), shape=(1, 2, 6, width * factor))
        yield case("resize", sample((2, width), "i1"), shape=(2, width * factor))


@IMAGES.add()
def grid_samples() -> Cases:
    """All modes; any number of axes; points outside of the image, also beside infinities."""

    def grid(*shape: int, dtype: str = "f4") -> np.ndarray:
        return np.random.default_rng(1).uniform(-1.6, 1.6, shape).astype(dtype)

    for mode, padding, aligned in itertools.product(MODES, PADDINGS, (False, True)):
        given = sample((2, 4, 6, 19)), grid(2, 5, 7, 2)
        yield case("grid_sample", *given, mode=mode, padding=padding, align_corners=aligned)
    yield case("grid_sample", sample((2, 9, 3)), grid(2, 17, 1), padding="border")
    yield case("grid_sample", sample((2, 4, 6, 3, 5)), grid(2, 3, 3, 4, 3))
    yield case("grid_sample", sample((2, 1, 1, 3)), grid(2, 3, 3, 2), padding="reflection", align_corners=True)
    yield case("grid_sample", sample((2, 4, 6, 1), "f2"), grid(2, 5, 7, 2, dtype="f2"))
    yield case("grid_sample", sample((2, 4, 6, 1), "f8"), grid(2, 5, 7, 2, dtype="f4"), mode="cubic")
    yield case("grid_sample", sample((2, 4, 6, 3), "i8"), grid(2, 5, 7, 2), mode="nearest")
    yield case("grid_sample", sample((2, 4, 6, 3), "?"), grid(2, 5, 7, 2), mode="nearest", padding="reflection")
    outside = np.array([[[[5, 5], [np.nan, 0], [1e30, -1e30], [0, 0]]]], np.float32)
    yield case("grid_sample", np.full((1, 2, 2, 3), np.inf, np.float32), outside)


REGIONS = np.array(
    [[0, 0, 9, 9], [3, 2, 11, 6], [-3, -3, 2, 2], [5, 5, 4, 4], [2, 2, 2.5, 2.5], [30, 30, 40, 40]], np.float32
)
"""Some are beyond the image, one is turned over, and one is smaller than an element."""
NUMBERS_OF_IMAGES = np.array([0, 1, 1, 0, 1, 0])


@IMAGES.add()
def aligned_regions() -> Cases:
    common: dict[str, Any] = {"output_shape": (3, 2), "spatial_scale": 0.75}
    for mode, (ratio, half) in itertools.product(POOLINGS, ((0, False), (0, True), (2, True))):
        given = sample((2, 8, 10, 19)), REGIONS, NUMBERS_OF_IMAGES
        yield case("roi_align", *given, mode=mode, sampling_ratio=ratio, half_pixel=half, **common)
    yield case("roi_align", sample((2, 8, 10, 3), "f8"), REGIONS.astype("f8"), NUMBERS_OF_IMAGES.astype("i4"), **common)


@IMAGES.add(4e-3)
def aligned_regions_of_half_floats() -> Cases:
    yield case("roi_align", sample((2, 8, 10, 3), "f2"), REGIONS.astype("f2"), NUMBERS_OF_IMAGES, output_shape=(3, 2))


@IMAGES.add()
def pooled_regions() -> Cases:
    odd = np.array([[0.5, 1.5, 2.49999, 3.5], [-9, -9, -7, -7], [-1e9, -1e9, 1e9, 1e9], [np.nan, 1, np.inf, 5]], "f4")
    regions = np.concatenate([REGIONS, odd])
    regions = np.concatenate([np.resize(NUMBERS_OF_IMAGES, len(regions))[:, None], regions], axis=1).astype("f4")
    for shape, scale in (((3, 2), 0.75), ((1, 1), 1.0), ((9, 11), 1.0)):
        yield case("roi_pool", sample((2, 8, 10, 19)), regions, output_shape=shape, spatial_scale=scale)
    yield case("roi_pool", sample((2, 8, 10, 3), "f8"), regions.astype("f8"), output_shape=(2, 2))
    yield case("roi_pool", sample((2, 8, 10, 3), "f2"), regions[:6].astype("f2"), output_shape=(3, 2))


@IMAGES.add(2e-5)
def deformed_convolutions() -> Cases:
    x, offset, mask = sample((2, 8, 5, 8)), sample((2, 4, 5, 2 * 6 * 2)), np.abs(sample((2, 4, 5, 2 * 6)))
    window: dict[str, Any] = {"strides": (2, 1), "pads": (1, 0, 1, 1), "offset_group": 2}
    yield case("deform_columns", x, offset, mask, kernel_shape=(3, 2), **window)
    yield case("deform_conv", x, sample((12, 3, 2, 8)), offset, sample((12,)), None, **window)
    yield case("deform_conv", x, sample((12, 3, 2, 2)), offset, sample((12,)), mask, group=4, **window)
    yield case("deform_conv", sample((2, 9, 4)), sample((5, 3, 4)), sample((2, 7, 3)), dilations=(1,))
    yield case("deform_conv", sample((1, 3, 3, 2), "f8"), sample((4, 2, 2, 2), "f8"), sample((1, 2, 2, 8), "f8"))
