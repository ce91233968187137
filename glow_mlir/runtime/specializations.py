"""Executables for some sizes and values of a model's inputs: which of them serves a call, and which are kept."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import field
from weakref import WeakSet

import numpy as np

from glow_mlir.errors import GlowError, InputError, InputValuesError, OptionError
from glow_mlir.runtime.executable import MAIN, EntryPoint, Executable
from glow_mlir.runtime.signature import Argument, Signature, sizes_in
from glow_mlir.runtime.state import State
from glow_mlir.support.activity import say, warn
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.cancellation import Cancellation, cancelled_by, held
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.support.symbols import Dimension, told_by


@dataclass(frozen=True)
class InputValue:
    """The value of an input: name, element type, shape, and the bytes of its elements in C order."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    content: bytes

    @staticmethod
    def of(name: str, array: np.ndarray) -> InputValue:
        """The value that an array is."""
        return InputValue(name, array.dtype.name, array.shape, array.tobytes())

    def array(self) -> np.ndarray:
        """The value as an array, to read only."""
        return np.frombuffer(self.content, named_dtype(self.dtype)).reshape(self.shape)


@dataclass(frozen=True)
class Assumptions:
    """What an executable takes for granted: sizes of free dimensions, and values of inputs that fix shapes."""

    sizes: tuple[tuple[str, Dimension], ...] = ()
    values: tuple[InputValue, ...] = ()

    def arrays(self) -> dict[str, np.ndarray]:
        """The values by the names of their inputs."""
        return {value.name: value.array() for value in self.values}

    def __str__(self) -> str:
        """They in words, as `N=2, shape=[3, 4]`."""
        values = ((value.name, value.array().tolist()) for value in self.values)
        sizes = ((name, f"{size[0]}..{size[1]}" if isinstance(size, tuple) else size) for name, size in self.sizes)
        return ", ".join(f"{name}={known}" for name, known in (*sizes, *values))


@dataclass(frozen=True)
class SpecializationLimits:
    """
    How many specializations a session keeps in memory, and how many bytes they take at most together.

    The one that was used last stays in any case. Where a general executable serves all sizes, `threshold` is the number
    of calls from which on sizes are worth a specialization. Raises `OptionError` for what is no limit.
    """

    number: int = 32
    memory: int = 2 << 30
    threshold: int = 16

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if (whole_number(limit) or 0) < 1:
                raise OptionError(f"{name}={limit!r} is no limit", hint="a whole number from 1 on")


@dataclass
class Loaded:
    """An executable, and the seconds that each stage of its compilation took; none where it came from the cache."""

    executable: Executable
    seconds: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Specialization:
    """An executable for some sizes and values, and what it costs and saves."""

    sizes: Mapping[str, Dimension]
    """Free dimension → its size, or the bounds of one that grows."""
    values: Mapping[str, np.ndarray]
    """Input that fixes shapes → its value."""
    executable: Executable
    entry: EntryPoint
    compile_seconds: Mapping[str, float]
    """Seconds that each stage of its compilation took; none where it came from the cache."""
    seconds: float
    """How long the call waited that needed it first."""
    calls: int = 0
    """How many calls it served."""

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, and activations of one thread, what it shares with others among them."""
        return sum(self.executable.memory.values())


OTHER_BOUNDS = "begin a session with other bounds"
"""What to do where a size is outside of bounds."""


class Specializations(Executable):
    """
    A model that is compiled when it is called: for the sizes of inputs, and for the values of those that fix shapes.

    This decides which executable serves a call. `compile_` makes one for assumptions, or raises `InputValuesError` for
    inputs whose values it needs, which `learned` is told: from then on they are among the assumptions. A call that
    nothing serves waits for that, unless there is a `general` executable for all sizes: then only sizes that come often
    are compiled, in a thread beside the calls. Dimensions with `bounds` stay open in all of them; those without a
    largest size are open up to the largest that came so far, rounded up to a power of two. Several threads may call at
    once; what several need is made once. Executables used longest ago are given up where there are more than the limits
    allow; calls that run keep theirs.
    """

    def __init__(
        self,
        signature: Signature,
        names: Sequence[str],
        compile_: Callable[[Assumptions], Loaded],
        learned: Callable[[Sequence[str]], None],
        limits: SpecializationLimits,
        general: Executable | None = None,
        bounds: Mapping[str, tuple[int, int | None]] | None = None,
    ) -> None:
        super().__init__([MAIN], State([]))
        self._bounds = dict(bounds or {})
        self._planned: dict[str, int] = {}
        """Dimension that grows → the largest size that is compiled for."""
        self._following = _following(set(signature.free).difference(self._bounds), self._bounds)
        self.signature = signature
        self.limits = limits
        self._names = tuple(names)
        self._compile = compile_
        self._learned = learned
        self._known: OrderedDict[Assumptions, Specialization] = OrderedDict()
        self._latest: Executable | None = None
        self._general = None if general is None else Often(general, limits.threshold)
        self.renew_locks()
        _ALL.add(self)

    def renew_locks(self) -> None:
        """Take new locks, in a child process in which nobody holds those of before."""
        self._looking = threading.Lock()
        self._making = threading.Lock()
        if self._general is not None:
            self._general.pending.clear()

    @property
    def value_names(self) -> tuple[str, ...]:
        """The inputs whose values fix shapes, as far as it is known."""
        return self._names

    def kept(self) -> list[Specialization]:
        """Those that are kept, the one used last at the end."""
        with self._looking:
            return list(self._known.values())

    @property
    def memory(self) -> dict[object, int]:
        return _together(self.kept())

    @property
    def current(self) -> Executable:
        if self._latest is None:
            hint = "give dimensions, or run the model first"
            raise OptionError("the model is compiled when it is called, for the sizes of its inputs", hint=hint)
        return self._latest

    def load(self, name: str) -> EntryPoint:
        return _Entry(name, self)

    def entry_point(self, inputs: Mapping[str, np.ndarray]) -> EntryPoint:
        """
        What serves a call with those inputs, whose types and shapes fit the signature.

        Raises `InputError` where inputs do not agree on a free dimension, and `GlowError` where no executable can be
        made for them.
        """
        sizes = tuple(self._open_sizes(sizes_in(self.signature.inputs, inputs)).items())
        while True:
            names = self._names
            assumptions = Assumptions(sizes, tuple(InputValue.of(name, inputs[name]) for name in names))
            with self._looking:
                if (found := self._known.get(assumptions)) is not None:
                    self._known.move_to_end(assumptions)
                    found.calls += 1
                    self._latest = found.executable
                    return found.entry
            if self._general is None:
                self._make(assumptions, names)
                continue
            with self._looking:
                is_due = self._general.count(assumptions)
                self._latest = self._general.executable
            if is_due:
                self._make_beside(self._general, assumptions, names)
            return self._general.entry

    def _open_sizes(self, sizes: Mapping[str, int]) -> dict[str, Dimension]:
        """
        What dimensions are taken for that have no bounds, or grow; raises `InputError` for one outside of its bounds.
        """
        found: dict[str, Dimension] = {
            label: size for label, size in sizes.items() if label not in self._bounds and label not in self._following
        }
        for label, (least, most) in self._bounds.items():
            size = sizes.get(label, least)
            if size < least or (most is not None and size > most):
                wanted = f"less than {least}" if most is None else f"not in {least} to {most}"
                raise InputError(f"dimension '{label}' is {size}, which is {wanted}", hint=OTHER_BOUNDS)
            if most is None:
                found[label] = (least, self._plan(label, size))
        return found

    def _plan(self, label: str, size: int) -> int:
        """The largest size that a dimension is compiled for, where a call brings one."""
        with self._looking:
            return max(self._planned.get(label, 1), 1 << max(size - 1, 0).bit_length())

    def _make_beside(self, general: Often, assumptions: Assumptions, names: tuple[str, ...]) -> None:
        """Make the executable for assumptions in a thread; a mistake of the user's leaves the general one in place."""

        def make() -> None:
            try:
                with cancelled_by(Cancellation()):  # The call may end before this does.
                    self._make(assumptions, names)
            except GlowError as error:
                warn(error)  # It stays pending: it would fail again.
                return
            with self._looking:
                general.pending.discard(assumptions)

        # Whoever watches the caller is told; and the end of the process waits for it.
        threading.Thread(target=copy_context().run, args=(make,), name="glow-specialization").start()

    def _make(self, assumptions: Assumptions, names: tuple[str, ...]) -> None:
        """Make the executable for assumptions, or learn that more of them are needed, unless somebody else just did."""
        start = time.perf_counter()
        with held(self._making):
            with self._looking:
                if assumptions in self._known or names != self._names:
                    return
            say(f"compiling for {assumptions}" if assumptions != Assumptions() else "compiling")
            try:
                loaded = self._compile(assumptions)
            except InputValuesError as error:
                self._learn(error)
                return
            made = Specialization(
                sizes=dict(assumptions.sizes),
                values=assumptions.arrays(),
                executable=loaded.executable,
                entry=loaded.executable.entry(),
                compile_seconds=loaded.seconds,
                seconds=time.perf_counter() - start,
            )
            with self._looking:
                self._outgrow(assumptions)
                self._known[assumptions] = made
                self._trim()

    def _outgrow(self, assumptions: Assumptions) -> None:
        """Plan for the largest sizes of assumptions, and give up what is for smaller ones: no call asks for it."""
        grown = ((label, size[1]) for label, size in assumptions.sizes if isinstance(size, tuple))
        most = {label: size for label, size in grown if size is not None}
        self._planned |= most
        for other in list(self._known):
            if any(isinstance(size, tuple) and size[1] != most.get(label) for label, size in other.sizes):
                del self._known[other]

    def _learn(self, error: InputValuesError) -> None:
        """Take further inputs among those whose values fix shapes."""
        wanted = {*self._names, *error.inputs}
        if wanted == set(self._names):
            raise error
        self._names = tuple(argument.name for argument in self.signature.inputs if argument.name in wanted)
        self._learned(self._names)

    def _trim(self) -> None:
        """Give up what was used longest ago, as far as the limits ask for it."""
        while len(self._known) > 1 and (len(self._known) > self.limits.number or self._bytes() > self.limits.memory):
            self._known.popitem(last=False)

    def _bytes(self) -> int:
        """The bytes of those that are kept, shared parts once."""
        return sum(_together(self._known.values()).values())


def _following(free: set[str], bounds: Collection[str]) -> frozenset[str]:
    """The labels without bounds that say their sizes by others, of which some have bounds."""

    def is_told(label: str, known: Iterable[str]) -> bool:
        return told_by(label, dict.fromkeys(known, 1)) is not None

    others = ((label, free - {label}) for label in free)
    return frozenset(label for label, rest in others if is_told(label, rest.union(bounds)) and not is_told(label, rest))


def _together(items: Iterable[Specialization]) -> dict[object, int]:
    """The memory of some specializations, each part once."""
    found: dict[object, int] = {}
    for item in items:
        found |= item.executable.memory
    return found


MOST_COUNTED = 1024
"""Sizes whose calls are counted at once."""


class Often:
    """A general executable, and how often it was called for which assumptions: `threshold` calls are often."""

    def __init__(self, executable: Executable, threshold: int) -> None:
        self.executable = executable
        self.entry = executable.entry()
        self._threshold = threshold
        self._calls: OrderedDict[Assumptions, int] = OrderedDict()
        self.pending = set[Assumptions]()
        """What is being compiled, or cannot be."""

    def count(self, assumptions: Assumptions) -> bool:
        """Count a call; whether it is the one with which they have become often, so that they are pending."""
        if assumptions in self.pending:
            return False
        calls = self._calls.pop(assumptions, 0) + 1
        if calls >= self._threshold:
            self.pending.add(assumptions)
            return True
        self._calls[assumptions] = calls
        if len(self._calls) > MOST_COUNTED:
            self._calls.popitem(last=False)
        return False


class _Entry(EntryPoint):
    """The entry of a model that is compiled when it is called."""

    def __init__(self, name: str, model: Specializations) -> None:
        super().__init__(name, (), model.state)
        self._model = model

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return self._model.signature.inputs

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return self._model.signature.outputs

    def bound(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Callable[[], dict[str, np.ndarray]]:
        # Values of inputs that fix shapes may change from call to call.
        return lambda: self._model.entry_point(inputs).bound(inputs, outputs)()

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self._model.entry_point(inputs).run(inputs)


_ALL: WeakSet[Specializations] = WeakSet()


def _forked() -> None:
    """In a child process: another thread of the parent may have had a lock."""
    for item in list(_ALL):
        item.renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
