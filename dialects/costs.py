"""Costs measured on a machine, which passes use for decisions; a backend provides them for each of its targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import ClassVar, TypeVar

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Range
from glow_mlir.support.dataclass import dataclass

MAX_COST = 1 << 47
"""The largest cost: sums and products of a few costs, compared with bytes, then fit into 64 bits."""

_RANGE = Range(1, MAX_COST)


@dataclass(frozen=True)
class Costs:
    """
    Costs of operations, in additions of the same vectors, and the sizes above which an optimization pays off.

    Raises `OptionError` for one below 1 or above `MAX_COST`, and for one of `POWERS` that is no power of two.
    """

    POWERS: ClassVar[Collection[str]] = ()
    """Names of the costs that have to be powers of two."""

    operations_per_byte: int
    """Additions that take as long as one byte of traffic."""
    function_operations: int
    """Additions that cost as much as a function of `math`."""
    division_operations: int
    """Additions that cost as much as a division or square root of floats."""
    integer_division_operations: int
    """Additions that cost as much as a division of integers, or a remainder of any type."""
    limit_operations: int
    """Additions that cost as much as limiting a float on one side after a product."""
    part_operations: int
    """The minimum work of a task, in additions, where an instruction is partitioned into tasks for several threads."""
    parts_per_thread: int
    """Tasks per thread from which on threads are busy alike: with fewer, kernels cut along another axis."""
    max_parts_per_thread: int
    """The maximum number of tasks per thread; a thread takes many of them at once at first, and few in the end."""
    least_tap_filters: int
    """The minimum number of filters whose products outweigh copying the image for each tap."""
    least_tap_channels: int
    """The minimum number of channels that the algorithms for images can exploit."""
    most_taps: int
    """The maximum number of taps for which copying images costs less than it saves."""
    tap_product_channels: int
    """
    The maximum number of channels of images for which the gradient of a filter is a product for each of several taps.
    """
    most_phases: int
    """The maximum number of phases of a transposed convolution that become convolutions, if all have as many taps."""
    most_uneven_phases: int
    """The same where some phases have fewer taps, so that one convolution for all would multiply by zeros."""
    depth_codes: int
    """The size of a dot group: neighbouring quantized values that one instruction multiplies for one accumulator."""
    copied_code_operations: int
    """Such instructions that cost as much as copying a quantized value."""
    channel_lanes: int
    """The approximate number of channels computed at once, at the cost of one."""
    pooled_pixels: int
    """Pixels in a row of a pool above which vectors of pixels are faster than transposes and vectors of channels."""
    clipped_pooled_pixels: int
    """The same where windows at the ends of rows reach beyond them and are computed one by one."""
    plane_channels: int
    """
    The maximum number of channels for which an image is read plane by plane; with more, a transpose costs less than the
    short runs.
    """
    pooled_channels: int
    """Channels from which vectors of channels are faster than vectors of pixels in long rows of all channels."""
    larger_operations: int
    """Additions that cost as much as the larger one of two floats, of which one may be NaN, in rows of pixels."""
    pool_operations: int
    """Elements of a window that cost as much as writing a result of a pool and reading it again."""
    dequantizing_rows: int
    """Rows of a product from which reading weights that were dequantized once is faster than reading narrow ones."""
    shifting_rows: int
    """Rows of a product of bytes from which a signed copy of an unsigned right operand made at run time pays."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            _RANGE.check(f"costs.{name}", value)
            if name in self.POWERS and value.bit_count() > 1:
                raise OptionError(f"costs.{name}={value} is no power of two")


SomeCosts = TypeVar("SomeCosts", bound=Costs)


def with_costs(costs: SomeCosts, changes: Sequence[tuple[str, int]]) -> SomeCosts:
    """The costs with some values changed; raises `OptionError` for an unknown cost."""
    names = [field.name for field in dataclasses.fields(costs)]
    for name, _ in changes:
        if name not in names:
            raise OptionError(f"there is no cost '{name}'", hint=f"there are {', '.join(names)}")
    return dataclasses.replace(costs, **dict(changes))
