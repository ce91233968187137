"""What was measured of a machine, as far as passes ask for it; a backend says it of each of its targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import ClassVar, TypeVar

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Range
from glow_mlir.support.dataclass import dataclass

MAX_COST = 1 << 47
"""No cost is larger: sums and products of a few fit into 64 bits where they are compared with bytes."""

_RANGE = Range(1, MAX_COST)


@dataclass(frozen=True)
class Costs:
    """
    Costs of operations, in additions of the same vectors, and the sizes from which on something is worth it.

    Raises `OptionError` for one below 1 or above `MAX_COST`, and for one of `POWERS` that is no power of two.
    """

    POWERS: ClassVar[Collection[str]] = ()
    """Names of those that are powers of two."""

    operations_per_byte: int
    """Additions that take as long as one byte of traffic."""
    function_operations: int
    """Additions that a function of `math` is worth."""
    division_operations: int
    """Additions that a division or square root of floats is worth."""
    integer_division_operations: int
    """Additions that a division of integers, or the remainder of any, is worth."""
    limit_operations: int
    """Additions that limiting a float on one side is worth, behind a product."""
    part_operations: int
    """The least work of a part of an instruction, in additions, that several threads share."""
    parts_per_thread: int
    """How many parts each thread gets: where one of them is held up, the others do what is left."""
    least_tap_filters: int
    """Filters whose products outweigh that the image is copied for each tap."""
    least_tap_channels: int
    """Channels of which the algorithms for images make use."""
    most_taps: int
    """Taps for which the copies of images are less than what is saved."""
    most_phases: int
    """Phases of a transposed convolution that are convolutions of their own at most, where all have as many taps."""
    most_uneven_phases: int
    """The same where some have fewer taps, and one convolution for all would multiply by zeros."""
    depth_codes: int
    """Neighbouring codes that one instruction multiplies for a single sum: fewer cost as much."""
    copied_code_operations: int
    """Such instructions that copying a code to another place is worth."""
    channel_lanes: int
    """Channels that are computed at once, about: as many cost no more than one."""
    pooled_pixels: int
    """Pixels of a row of a pool from which on vectors of them take less time than transposes, and those of channels."""
    clipped_pooled_pixels: int
    """The same where windows reach beyond the ends of rows, and are computed one by one there."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            _RANGE.check(f"costs.{name}", value)
            if name in self.POWERS and value.bit_count() > 1:
                raise OptionError(f"costs.{name}={value} is no power of two")


SomeCosts = TypeVar("SomeCosts", bound=Costs)


def with_costs(costs: SomeCosts, changes: Sequence[tuple[str, int]]) -> SomeCosts:
    """Costs with other values for some; raises `OptionError` for one that there is not."""
    names = [field.name for field in dataclasses.fields(costs)]
    for name, _ in changes:
        if name not in names:
            raise OptionError(f"there is no cost '{name}'", hint=f"there are {', '.join(names)}")
    return dataclasses.replace(costs, **dict(changes))
