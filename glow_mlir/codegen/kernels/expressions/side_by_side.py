"""How many lines kernels compute side by side to hide latencies, and when a line is computed alone."""

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
    """The smallest length of a line that is computed alone: `near` if all lines fit `near_bytes`, else `far`."""

    near: int
    far: int
    near_bytes: int


def softmax_alone(target: Target) -> Alone:
    """
    Return the limits for softmax.

    Measured on Zen 5 with AVX-512: four lines side by side take 0.8 to 1.05 of the time of single lines up to 224
    elements, and 1.03 to 1.3 from 256 on; beyond the caches 1.05 to 1.4 from 128 on, and 1.2 to 2 from 256 on. On Zen 3
    with AVX2 they take 0.96 to 1.02 in the caches, and 1.05 to 1.1 beyond.
    """
    return Alone(near=256, far=128, near_bytes=target.l3_bytes // 2)


def normalization_alone(target: Target) -> Alone:
    """
    Return the limits for normalizations.

    Measured in the same way: on Zen 5 four lines take 1.0 to 1.25 of the time of single lines from 64 elements on, and
    1.05 to 1.5 beyond the caches. On Zen 3, with a smaller out-of-order window, they take 0.87 to 0.94 from 64 to 768
    elements in the L2 cache; beyond it 0.85 at 96 elements, and 1.17 to 1.21 from 256 elements on.
    """
    if target.vector_bits >= 512:
        return Alone(near=64, far=64, near_bytes=target.l3_bytes // 2)
    return Alone(near=1024, far=256, near_bytes=target.l2_bytes)


def side_by_side(lines: Lines, element: Attribute, target: Target, alone: Alone) -> int:
    """Return the number of lines of elements of a type that are computed side by side."""
    vectors = kernel_costs(target).independent_vectors
    count = 1
    if lanes_for(target, element, (0,)) > 1 and not stands_alone(lines, element, alone):
        # A line is read in several passes, and should stay in the cache together with its result.
        length = math.prod(numbers_in(lines.along))
        fitting = target.l1_bytes // 2 // max(1, 2 * length * byte_width(element))
        count = lines.side_by_side(min(vectors, 1 << max(fitting.bit_length() - 1, 0)))
    return count


def stands_alone(lines: Lines, element: Attribute, alone: Alone) -> bool:
    """
    Whether a line is so long that further lines side by side hide no latency.

    A single line is read and written as one stream, which matters beyond the caches.
    """
    if lines.across or not are_numbers(lines.along):
        return False
    length = math.prod(numbers(lines.along))
    outer = math.prod(numbers_in(lines.outer))
    is_far = 2 * outer * length * byte_width(element) > alone.near_bytes
    return length >= (alone.far if is_far else alone.near)
