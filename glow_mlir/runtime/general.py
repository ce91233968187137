"""Code for a range of sizes chosen automatically: the range, and the calls that the code serves."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Mapping

from glow_mlir.errors import CancelledError, CompilerBugError, GlowError, TimeLimitError
from glow_mlir.runtime.assumptions import Assumptions
from glow_mlir.runtime.specialization import Compile, Loaded, Specialization
from glow_mlir.support.activity import say, warn
from glow_mlir.support.symbols import Dimension

LARGER = 4
"""The maximum growth of a dimension relative to the first call."""

ALWAYS = 64
"""The largest size of a dimension."""

MORE_MEMORY = 8
"""The maximum memory of code for a range, relative to code for fixed sizes, which fuses more."""

TRIES = 2
"""The number of times that a range is shrunk because of its memory."""

MAX_COUNTED = 1024
"""The number of sizes whose calls are counted at the same time."""

RARER = 16
"""The factor for the threshold of frequent calls, if other code has to be evicted, or after each eviction."""

MAX_RANGES = 16
"""The number of ranges that a session compiles for, one after the other."""


def power_of_two(size: int) -> int:
    """The smallest power of two that is at least a size."""
    return 1 << max(size - 1, 0).bit_length()


def largest_sizes(sizes: Mapping[str, int], growth: float) -> dict[str, int]:
    """
    The largest size of each dimension, a power of two, that memory allows.

    `growth` limits the number of elements relative to `sizes`: the dimension that grows most is reduced until the limit
    holds, or until each dimension is only as large as needed.
    """
    most = {label: max(ALWAYS, power_of_two(LARGER * size)) for label, size in sizes.items()}
    while growth_of(sizes, most) > growth:
        shrinking = [label for label, size in sizes.items() if most[label] > power_of_two(size)]
        if not shrinking:
            break
        most[max(shrinking, key=lambda label: most[label] / max(sizes[label], 1))] //= 2
    return most


def growth_of(sizes: Mapping[str, int], most: Mapping[str, int]) -> float:
    """The number of elements for the largest sizes, relative to other sizes."""
    return math.prod(most[label] / max(size, 1) for label, size in sizes.items())


class Range:
    """The sizes of a call, and candidate ranges around them."""

    def __init__(self, wanted: Assumptions, seen: Mapping[str, tuple[int, int]], activations: int, memory: int) -> None:
        """
        `seen` has the smallest and the largest sizes so far of dimensions that may be open. `activations` are the bytes
        of the code for `wanted`; they are assumed to grow with the sizes, and the range is limited to `memory` bytes of
        them.
        """
        self._wanted = wanted
        self._seen = dict(seen)
        self._sizes = {label: size for label, size in numbers_in(wanted).items() if label in seen}
        self._growth = memory / max(activations, 1) / MORE_MEMORY
        self._memory = memory

    def shrink(self, activations: int) -> bool:
        """Whether code with this many bytes of activations is too large; if so, the range shrinks."""
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
        """The dimensions that may be open."""
        return list(self._sizes)

    def opened(self, labels: list[str], is_narrow: bool = False) -> Assumptions:
        """The assumptions in which the given dimensions are open."""
        most = self._most()
        bounds = {label: (self._least(label, is_narrow), most[label]) for label in labels}
        sizes = ((label, bounds.get(label, size)) for label, size in self._wanted.sizes)
        return Assumptions(tuple(sizes), self._wanted.values)

    def _least(self, label: str, is_narrow: bool) -> int:
        least, _ = self._seen[label]
        return (1 << least.bit_length()) // 2 if is_narrow else min(least, 1)


def numbers_in(assumptions: Assumptions) -> dict[str, int]:
    """The sizes that are numbers."""
    return {label: size for label, size in assumptions.sizes if isinstance(size, int)}


def widest(planned: Range, compile_: Compile) -> tuple[Assumptions, Loaded] | None:
    """
    The code for the range with the most open dimensions that compiles; `None` if none does.

    Ranges begin at the smallest possible size; if images would be smaller than their windows, at the smallest size so
    far. If not all dimensions can be open, they are opened one by one.
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
    """The code for a range of these dimensions that fits into memory; `None` if it cannot be compiled."""
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
    """Whether a compilation was cancelled, other than by its time limit."""
    return isinstance(error, CancelledError) and not isinstance(error, TimeLimitError)


def holds(general: Assumptions, wanted: Assumptions) -> bool:
    """Whether code for a range serves these sizes."""
    known = dict(general.sizes)
    # Dimensions given by expressions of others have no size of their own there.
    pairs = ((known[label], size) for label, size in wanted.sizes if label in known)
    return general.values == wanted.values and all(_within(bounds, size) for bounds, size in pairs)


def _within(bounds: Dimension, size: Dimension) -> bool:
    if isinstance(bounds, int) or isinstance(size, tuple):
        return bounds == size
    least, most = bounds
    return least <= size and (most is None or size <= most)


class Often:
    """
    Counts calls by assumptions: `threshold` calls are frequent.

    The threshold is multiplied by `RARER` if something has to be evicted for the code, and after each eviction of the
    same code. So the set of kept code becomes stable even if calls come with more sizes than can be kept.
    """

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._calls: OrderedDict[Assumptions, int] = OrderedDict()
        self._given_up: OrderedDict[Assumptions, int] = OrderedDict()
        """Assumptions → number of evictions."""
        self.pending = set[Assumptions]()
        """Assumptions whose compilation is running or has failed."""

    def count(self, wanted: Assumptions, is_full: bool = False) -> bool:
        """
        Count a call; return whether its assumptions have just become frequent, which makes them pending.

        `is_full` means that something has to be evicted.
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
        """Restart the count of assumptions whose code was not compiled."""
        self.pending.discard(wanted)

    def give_up(self, wanted: Assumptions) -> None:
        """Record the eviction of an executable."""
        self._given_up[wanted] = self._given_up.pop(wanted, 0) + 1
        if len(self._given_up) > MAX_COUNTED:
            self._given_up.popitem(last=False)


class GeneralCode:
    """Code for a range of sizes, once it exists, and the decision when to compile it."""

    def __init__(self, threshold: int, memory: int, fixed: Collection[str]) -> None:
        """
        `threshold` calls are frequent; the activations of code for a range are limited to about `memory` bytes.
        Dimensions in `fixed`, such as ranks, have one size in a range.
        """
        self.found: Specialization | None = None
        self.often = Often(threshold)
        self.withdrawn = set[Assumptions]()
        """Sizes in the range on which the executable has failed."""
        self._range = Assumptions()
        self._memory = memory
        self._fixed = fixed
        self._seen: dict[str, tuple[int, int]] = {}
        """Dimension → the smallest and the largest size that code was compiled for, including ranges."""
        self._closed = set[frozenset[tuple[str, int]]]()
        """Sizes that calls have used once, of dimensions that are not open, except those of the range."""
        self._is_planned = False
        self._left = MAX_RANGES

    def forget_pending(self) -> None:
        """Drop pending compilations in a child process, which does not inherit the compiling thread."""
        self.often.pending.clear()
        self._is_planned = False

    def unplan(self) -> None:
        """Drop a plan; another call may renew it."""
        self._is_planned = False
        self._left += 1

    def serves(self, wanted: Assumptions) -> bool:
        """Whether the code serves a call with these assumptions."""
        return self.found is not None and wanted not in self.withdrawn and holds(self._range, wanted)

    def planned(self, wanted: Assumptions, activations: int) -> Range | None:
        """
        The range to compile for, after code with that many bytes of activations was compiled for a call.

        `None` if a range is being compiled or cannot be, and if a dimension that is not open has a new size, because
        all calls may bring new sizes of it.
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
        """Whether a dimension that is not open in the present range has a new size."""
        fixed = numbers_in(self._range).items()
        closed = frozenset((label, numbers[label]) for label, _ in fixed if label in numbers)
        if self.found is None or closed <= fixed:
            return False
        is_known = closed in self._closed
        self._closed.add(closed)
        return not is_known

    def take(self, found: Specialization, assumptions: Assumptions) -> None:
        """Use the planned executable for calls from now on."""
        self.found, self._range, self._is_planned = found, assumptions, False
        for label, bounds in assumptions.sizes:
            if isinstance(bounds, tuple) and bounds[1] is not None and label in self._seen:
                least, most = self._seen[label]
                self._seen[label] = least, max(most, bounds[1])
        self.withdrawn.clear()
