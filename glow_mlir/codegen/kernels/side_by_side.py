"""How many lines kernels take side by side, which hide each other's latencies, and when a line is taken alone."""

from __future__ import annotations

import math
from typing import NamedTuple

from xdsl.ir import Attribute

from glow_mlir.codegen.access import lanes_for
from glow_mlir.codegen.builder.nests import numbers
from glow_mlir.codegen.costs import kernel_costs
from glow_mlir.codegen.lines import Lines
from glow_mlir.dialects.element_types import byte_width
from glow_mlir.dialects.target import Target
from glow_mlir.support.symbols import are_numbers, numbers_in


class Alone(NamedTuple):
    """From how many elements on a line is taken alone: where all lines and results are near, and where not."""

    near: int
    far: int
    near_bytes: int


def softmax_alone(target: Target) -> Alone:
    """
    Measured on Zen 5 with AVX-512: four lines side by side take 0.8 to 1.05 of the time of one up to 224 elements, and
    1.03 to 1.3 of it from 256 on; where the caches do not hold them, 1.05 to 1.4 from 128 on, and 1.2 to 2 from 256 on.
    On Zen 3 with AVX2 they take 0.96 to 1.02 of it in the caches, and 1.05 to 1.1 beyond.
    """
    return Alone(near=256, far=128, near_bytes=target.l3_bytes // 2)


def normalization_alone(target: Target) -> Alone:
    """
    Measured in the same way: on Zen 5 four lines take 1.0 to 1.25 of the time of one from 64 elements on, and 1.05 to
    1.5 beyond the caches. On Zen 3, which looks ahead less far, 0.87 to 0.94 of it from 64 to 768 elements in the
    second cache, and 1.17 to 1.21 beyond that from 256 elements on; 0.85 at 96.
    """
    if target.vector_bits >= 512:
        return Alone(near=64, far=64, near_bytes=target.l3_bytes // 2)
    return Alone(near=1024, far=256, near_bytes=target.l2_bytes)


def side_by_side(lines: Lines, element: Attribute, target: Target, alone: Alone) -> int:
    """How many lines of elements of a type are taken side by side."""
    vectors = kernel_costs(target).independent_vectors
    count = 1
    if lanes_for(target, element, (0,)) > 1 and not stands_alone(lines, element, alone):
        # A line is read in several passes, and is to stay in the cache together with its result.
        length = math.prod(numbers_in(lines.along))
        room = target.l1_bytes // 2 // max(1, 2 * length * byte_width(element))
        count = lines.side_by_side(min(vectors, 1 << max(room.bit_length() - 1, 0)))
    return count


def stands_alone(lines: Lines, element: Attribute, alone: Alone) -> bool:
    """
    Whether a line is so long that others beside it hide no latency.

    Alone, it is read and written in one stream each, which counts where memory is beyond the caches.
    """
    if lines.across or not are_numbers(lines.along):
        return False
    length = math.prod(numbers(lines.along))
    outer = math.prod(numbers_in(lines.outer))
    is_far = 2 * outer * length * byte_width(element) > alone.near_bytes
    return length >= (alone.far if is_far else alone.near)
