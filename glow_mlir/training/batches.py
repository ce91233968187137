"""Batches of samples, in an order determined only by the seed and the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from typing import NamedTuple, Protocol

import numpy as np

from glow_mlir.errors import InputError, OptionError
from glow_mlir.support.dataclass import dataclass

TARGETS = "targets"
"""The input for the expected outputs of samples."""


def targets_name(output: str, losses: Sized) -> str:
    """The input for the targets of an output: `targets`, prefixed by the output's name if several have `losses`."""
    return TARGETS if len(losses) == 1 else f"{output}.{TARGETS}"


Arrays = dict[str, np.ndarray]


class Samples(Sized, Protocol):
    """A collection of samples, such as arrays, some of which can be taken at a time."""

    def take(self, positions: np.ndarray) -> Arrays:
        """The inputs of a step with the samples at the given positions, in that order."""
        ...


@dataclass(frozen=True)
class ArraySamples:
    """Samples in arrays by input name, including `targets`; the first axis counts samples."""

    arrays: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        counts = {name: len(array) if array.ndim else 0 for name, array in self.arrays.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{count} for {name}" for name, count in counts.items())
            raise InputError(f"there are different numbers of samples: {listed}")

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.arrays else 0

    def take(self, positions: np.ndarray) -> Arrays:
        """The samples at the given positions, in new arrays."""
        return {name: array[positions] for name, array in self.arrays.items()}


class Padded(NamedTuple):
    """A batch whose first `own` samples are real; the others are copies of the last one."""

    inputs: Arrays
    own: int


@dataclass(frozen=True)
class Batches:
    """
    Batches of `size` samples.

    Each training epoch has its own order, determined by `seed` and the epoch number. Samples that do not fill a last
    batch are left out of the epoch; other epochs include them. Without a seed, samples keep their order.
    """

    samples: Samples
    size: int
    seed: int | None = 0

    def __post_init__(self) -> None:
        if self.seed is not None and not 0 <= self.seed < 1 << 64:
            raise OptionError(f"there is no seed {self.seed}", hint="seeds are whole numbers from 0 on, of 64 bits")
        if self.size < 1 or self.per_epoch == 0:
            reason = f"there are {len(self.samples)} samples, and a batch has {self.size}"
            raise InputError(reason, hint="take a smaller batch")

    @property
    def per_epoch(self) -> int:
        """The whole batches of an epoch."""
        return len(self.samples) // self.size

    def order(self, epoch: int) -> np.ndarray:
        """The positions of the samples in an epoch, counted from 0; the same with any version of numpy."""
        if self.seed is None:
            return np.arange(len(self.samples))
        generator = np.random.Philox(key=np.array([self.seed, epoch], np.uint64))
        return np.argsort(generator.random_raw(len(self.samples)), kind="stable")

    def epoch(self, number: int, begin: int = 0) -> Iterator[Arrays]:
        """The batches of an epoch from `begin` on; both numbers count from 0."""
        order = self.order(number)
        for batch in range(begin, self.per_epoch):
            yield self.samples.take(order[batch * self.size : (batch + 1) * self.size])


def padded(samples: Samples, size: int) -> Iterator[Padded]:
    """All samples in order, in batches of a size; the last batch is filled with copies of its last sample."""
    total = len(samples)
    for begin in range(0, total, size):
        positions = np.minimum(np.arange(begin, begin + size), total - 1)
        yield Padded(samples.take(positions), min(size, total - begin))
