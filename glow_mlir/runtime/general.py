"""Code for a range of sizes that nobody has said: which range that is, and which calls the code serves."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Mapping

from glow_mlir.errors import CancelledError, CompilerBugError, GlowError, TimeLimitError
from glow_mlir.runtime.assumptions import Assumptions, following
from glow_mlir.runtime.specialization import Compile, Loaded, Specialization
from glow_mlir.support.activity import say, warn
from glow_mlir.support.symbols import Dimension

LARGER = 4
"""How many times as large as in the first call a dimension may become."""

ALWAYS = 64
"""How large each dimension may become."""

MORE_MEMORY = 8
"""The maximum memory of code for a range, as a multiple of that of code for fixed sizes, which fuses more."""

TRIES = 2
"""How often the largest sizes of a range become smaller for the memory that it takes."""

MAX_COUNTED = 1024
"""Sizes whose calls are counted at once."""

RARER = 16
"""How many times as many calls are often where code for other sizes has to be given up, or was given up before."""

MAX_RANGES = 16
"""For how many ranges a session has code made, one after the other."""


def power_of_two(size: int) -> int:
    """The least power of two that holds a size."""
    return 1 << max(size - 1, 0).bit_length()


def largest_sizes(sizes: Mapping[str, int], growth: float) -> dict[str, int]:
    """
    The largest size of each dimension, a power of two, for all that memory holds.

    `growth` says how many times as many elements as for `sizes` there may be: the dimension that grows the most grows
    less until they are no more, or each only holds its size.
    """
    most = {label: max(ALWAYS, power_of_two(LARGER * size)) for label, size in sizes.items()}
    while growth_of(sizes, most) > growth:
        shrinking = [label for label, size in sizes.items() if most[label] > power_of_two(size)]
        if not shrinking:
            break
        most[max(shrinking, key=lambda label: most[label] / max(sizes[label], 1))] //= 2
    return most


def growth_of(sizes: Mapping[str, int], most: Mapping[str, int]) -> float:
    """How many times as many elements there are for the largest sizes as for others."""
    return math.prod(most[label] / max(size, 1) for label, size in sizes.items())


class Range:
    """The sizes of a call, and the ranges around them for which a model may be compiled."""

    def __init__(self, wanted: Assumptions, seen: Mapping[str, tuple[int, int]], activations: int, memory: int) -> None:
        """
        `seen` has the smallest sizes that have come of what may be open, and the largest, of which the range has as
        many as memory holds. `activations` are the bytes of what is compiled for `wanted`, of which the range takes no
        more than `memory`, if they grow as the sizes do.
        """
        self._wanted = wanted
        self._seen = dict(seen)
        self._sizes = {label: size for label, size in numbers_in(wanted).items() if label in seen}
        self._growth = memory / max(activations, 1) / MORE_MEMORY
        self._memory = memory

    def shrink(self, activations: int) -> bool:
        """Whether code with so many bytes of activations takes too much: the range has fewer sizes from then on."""
        if activations <= 2 * self._memory:
            return False
        self._growth = growth_of(self._sizes, self._most()) * self._memory / activations
        self._seen = {label: (least, 0) for label, (least, _) in self._seen.items()}
        return True

    def _most(self) -> dict[str, int]:
        """The largest sizes."""
        most = largest_sizes(self._sizes, self._growth)
        return {label: max(size, self._seen[label][1]) for label, size in most.items()}

    @property
    def labels(self) -> list[str]:
        """The dimensions that may be left open: those that do not say their sizes by others."""
        return [label for label in self._sizes if not following({label}, self._sizes.keys() - {label})]

    def opened(self, labels: list[str], is_narrow: bool = False) -> Assumptions:
        """The assumptions that leave some dimensions open."""
        most = self._most()
        derived = following(self._sizes.keys() - set(labels), labels)
        bounds = {label: (self._least(label, is_narrow), most[label]) for label in labels}
        sizes = ((label, bounds.get(label, size)) for label, size in self._wanted.sizes if label not in derived)
        return Assumptions(tuple(sizes), self._wanted.values)

    def _least(self, label: str, is_narrow: bool) -> int:
        least, _ = self._seen[label]
        return (1 << least.bit_length()) // 2 if is_narrow else min(least, 1)


def numbers_in(assumptions: Assumptions) -> dict[str, int]:
    """The sizes that are numbers."""
    return {label: size for label, size in assumptions.sizes if isinstance(size, int)}


def widest(planned: Range, compile_: Compile) -> tuple[Assumptions, Loaded] | None:
    """
    What is compiled for the range with the most open dimensions that can be; `None` where none can.

    These begin at the least size that there may be, or where images hold their windows at those that have come. Where
    not all can be open, one after the other is opened that can.
    """
    labels = planned.labels
    if (found := _tried(planned, labels, False, compile_) or _tried(planned, labels, True, compile_)) is not None:
        return found
    opened: list[str] = []
    for label in labels if len(labels) > 1 else ():
        if (wider := _tried(planned, [*opened, label], True, compile_)) is not None:
            found = wider
            opened.append(label)
    return found


def _tried(planned: Range, labels: list[str], is_narrow: bool, compile_: Compile) -> tuple[Assumptions, Loaded] | None:
    """The executable for a range of these dimensions that fits into memory; `None` if compilation is refused."""
    wanted = planned.opened(labels, is_narrow)
    for _ in range(TRIES):
        say(f"compiling for {wanted}")
        try:
            loaded = compile_(wanted)
        except GlowError as error:
            if isinstance(error, CancelledError):
                raise
            say(f"not for {wanted}: {error}")
            if isinstance(error, CompilerBugError):
                warn(error)
            return None
        if not planned.shrink(loaded.executable.activation_bytes):
            return wanted, loaded
        before, wanted = wanted, planned.opened(labels, is_narrow)
        if wanted == before:
            break
    return None


def is_end(error: GlowError) -> bool:
    """Whether a compilation was told to end, and did not take too long."""
    return isinstance(error, CancelledError) and not isinstance(error, TimeLimitError)


def holds(general: Assumptions, wanted: Assumptions) -> bool:
    """Whether the executable for a range serves these sizes."""
    known = dict(general.sizes)
    # Dimensions that say their sizes by others have none of their own there.
    pairs = ((known[label], size) for label, size in wanted.sizes if label in known)
    return general.values == wanted.values and all(_within(bounds, size) for bounds, size in pairs)


def _within(bounds: Dimension, size: Dimension) -> bool:
    if isinstance(bounds, int) or isinstance(size, tuple):
        return bounds == size
    least, most = bounds
    return least <= size and (most is None or size <= most)


class Often:
    """
    How often what was wanted came: `threshold` calls are often.

    They are `RARER` times as many where something has to be given up for it, and each time that it was given up itself:
    so it settles what is kept where calls come with more sizes than that.
    """

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._calls: OrderedDict[Assumptions, int] = OrderedDict()
        self._given_up: OrderedDict[Assumptions, int] = OrderedDict()
        """How often things were given up."""
        self.pending = set[Assumptions]()
        """Assumptions that are being compiled, or whose compilation has failed."""

    def count(self, wanted: Assumptions, is_full: bool = False) -> bool:
        """
        Count a call; whether it is the one with which they have become often, so that they are pending.

        `is_full` says that something has to be given up for it.
        """
        if wanted in self.pending:
            return False
        calls = self._calls.pop(wanted, 0) + 1
        if calls >= self._threshold * RARER ** (self._given_up.get(wanted, 0) + is_full):
            self.pending.add(wanted)
            return True
        self._calls[wanted] = calls
        if len(self._calls) > MAX_COUNTED:
            self._calls.popitem(last=False)
        return False

    def forget(self, wanted: Assumptions) -> None:
        """It is not compiled: its calls are counted from the beginning."""
        self.pending.discard(wanted)

    def give_up(self, wanted: Assumptions) -> None:
        """Forget an executable that was evicted."""
        self._given_up[wanted] = self._given_up.pop(wanted, 0) + 1
        if len(self._given_up) > MAX_COUNTED:
            self._given_up.popitem(last=False)


class GeneralCode:
    """Code for a range of sizes, once there is any, and when it is worth more or less of it."""

    def __init__(self, threshold: int, memory: int, fixed: Collection[str]) -> None:
        """
        `threshold` calls are often; code for a range takes at most about `memory` bytes of activations. What is `fixed`
        has one size in a range, as ranks have.
        """
        self.found: Specialization | None = None
        self.often = Often(threshold)
        self.withdrawn = set[Assumptions]()
        """Sizes in the range that the executable does not serve, because it has failed on them."""
        self._range = Assumptions()
        self._memory = memory
        self._fixed = fixed
        self._seen: dict[str, tuple[int, int]] = {}
        """Dimension → the smallest size that something was compiled for, and the largest, ranges among it."""
        self._closed = set[frozenset[tuple[str, int]]]()
        """Sizes of dimensions that are not open, except those of the range, that calls have brought once."""
        self._is_planned = False
        self._left = MAX_RANGES

    def forget_pending(self) -> None:
        """What is being compiled never comes, in a child process in which nobody is at it."""
        self.often.pending.clear()
        self._is_planned = False

    def unplan(self) -> None:
        """Drop a plan: another call may make it again."""
        self._is_planned = False
        self._left += 1

    def serves(self, wanted: Assumptions) -> bool:
        """Whether it serves a call that wants that."""
        return self.found is not None and wanted not in self.withdrawn and holds(self._range, wanted)

    def planned(self, wanted: Assumptions, activations: int) -> Range | None:
        """
        The range to compile for where something was compiled for a call, with so many bytes of activations.

        `None` where one is being compiled or cannot be, and where other dimensions than the open ones have a size for
        the first time: all calls may come with one of its own.
        """
        numbers = numbers_in(wanted)
        for label, size in ((label, size) for label, size in numbers.items() if label not in self._fixed):
            least, most = self._seen.get(label, (size, size))
            self._seen[label] = min(least, size), max(most, size)
        if (
            self._is_planned
            or not self._left
            or not self._seen
            or wanted in self.withdrawn
            or self._brings_new(numbers)
        ):
            return None
        self._is_planned = True
        self._left -= 1
        return Range(wanted, self._seen, activations, self._memory // 2)

    def _brings_new(self, numbers: Mapping[str, int]) -> bool:
        """Whether a dimension that is not open in the range that there is has a size for the first time."""
        fixed = numbers_in(self._range).items()
        closed = frozenset((label, numbers[label]) for label, _ in fixed if label in numbers)
        if self.found is None or closed <= fixed:
            return False
        is_known = closed in self._closed
        self._closed.add(closed)
        return not is_known

    def take(self, found: Specialization, assumptions: Assumptions) -> None:
        """Serve calls with the planned executable from now on."""
        self.found, self._range, self._is_planned = found, assumptions, False
        for label, bounds in assumptions.sizes:
            if isinstance(bounds, tuple) and bounds[1] is not None and label in self._seen:
                least, most = self._seen[label]
                self._seen[label] = least, max(most, bounds[1])
        self.withdrawn.clear()
