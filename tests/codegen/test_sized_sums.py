"""Tiles with code for their sizes: what neighbouring rows have in common is read once."""

from __future__ import annotations

from typing import Any

import pytest
from assembly import assembly_of
from execute import Case, check_all, sample
from machines import target_named

from glow_mlir.codegen.builder.types import f32
from glow_mlir.codegen.kernels.products.dot_products import MULTIPLY_ADDS_F32
from glow_mlir.codegen.kernels.products.sized_sums import SumSizes
from glow_mlir.codegen.kernels.products.tiles import tile_for
from glow_mlir.dialects.glow_high.convolution import ConvOp
from glow_mlir.dialects.glow_high.linear import MatMulOp

TARGET = "scalar,costs.independent_accumulators=1,costs.unrolled_groups=2,costs.sized_depth=1024"
"""One instruction at a time, and loops of four dot groups."""


def conv(image: tuple[int, ...], filters: int, kernel: tuple[int, ...], **properties: Any) -> Case:
    """A convolution of an image of [size…, channels] with constant filters and a bias."""
    channels = image[-1] // properties.get("group", 1)
    operands = sample((2, *image)), sample((filters, *kernel, channels), seed=1), sample((filters,), seed=2)
    return Case(ConvOp, *operands, constants=(1, 2), **properties)


def test_convolutions_and_products() -> None:
    """Runs of whole steps and with a rest, taps that rows share in part or not at all, panels that are not full."""
    check_all(
        [
            conv((7, 10, 1), 6, (3, 3)),
            conv((6, 9, 5), 8, (3, 3), pads=[1, 1, 1, 1]),
            conv((7, 11, 3), 5, (3, 3), strides=[2, 2]),
            conv((4, 13, 2), 4, (2, 3), dilations=[1, 2], strides=[1, 3]),
            conv((20, 6), 9, (5,)),
            conv((3, 4, 9, 4), 4, (2, 2, 3), group=2),
            Case(MatMulOp, sample((7, 6)), sample((6, 9), seed=1), sample((9,), seed=2), constants=(1, 2)),
        ],
        TARGET,
    )


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7"])
def test_a_tile_reads_what_its_rows_share_once(target: str) -> None:
    """Of three channels, six pixels in a line with three taps have eight; there are four weights for each tap."""
    found = assembly_of(conv((3, 8, 1), 4, (3, 3)), target)
    tile = found[found.index("6x4") :]
    tile = tile[tile.index(":") : tile.index(".Lfunc_end")]
    assert tile.count("vfma.f32") in (72, 216)
    loads = tile.count("vldr") / tile.count("vfma.f32") * 72
    assert 20 <= loads <= 24


def test_there_is_code_for_few_products_alone() -> None:
    target = target_named("cortex-m4")
    tile = tile_for(target, f32)

    def sizes(taps: int, run: int, name: str = "cortex-m4") -> SumSizes | None:
        return SumSizes.of(MULTIPLY_ADDS_F32, tile, target_named(name), [(3, 90)], (taps, run), run, (run, 4))

    assert sizes(3, 100) == SumSizes(((3, 90),), 3, 100, 100, 100, 4)
    assert sizes(3, 200) is None
    assert sizes(1, 200) is None
    assert sizes(3, 100, "cortex-m4,optimize=size") is None
