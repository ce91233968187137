"""Executables for some sizes and values of a model's inputs: which of them serves a call, and which are kept."""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from glow_mlir.errors import (
    CancelledError,
    GlowError,
    InputError,
    InputValuesError,
    OptionError,
    OutOfMemoryError,
)
from glow_mlir.runtime.assumptions import Assumptions, InputValue, following
from glow_mlir.runtime.background_compilation import start
from glow_mlir.runtime.device_array import OutputTarget, Tensor, on_host
from glow_mlir.runtime.executable import MAIN, DirectCall, EntryPoint, Executable, Shapes
from glow_mlir.runtime.general import GeneralCode, holds, is_end, power_of_two, widest
from glow_mlir.runtime.loop_capacities import LoopCapacities
from glow_mlir.runtime.signature import Argument, Signature, rank_label
from glow_mlir.runtime.specialization import Compile, Loaded, Making, Specialization
from glow_mlir.runtime.state import State
from glow_mlir.support.activity import say, warn
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.cancellation import held
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.forks import reset_in_forks
from glow_mlir.support.machine_memory import usable_memory
from glow_mlir.support.symbols import Dimension


@dataclass(frozen=True)
class SpecializationLimits:
    """
    How many specializations a session keeps in memory, and how many bytes they take at most together.

    The one that was used last stays in any case. Where a general executable serves all sizes, `threshold` is the number
    of calls from which on sizes are worth a specialization: 16 times as many where as many are kept as may be, and
    each time that they were given up. Loops that nothing bounds collect results and state of as many bytes as `memory`
    says; where it says nothing, of a quarter of the machine's. Raises `OptionError` for what is no limit.
    """

    number: int = 32
    memory: int | None = None
    threshold: int = 16

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if (whole_number(limit) or 0) < 1 and not (name == "memory" and limit is None):
                raise OptionError(f"{name}={limit!r} is not a limit", hint="a whole number from 1 on")

    @property
    def kept_bytes(self) -> int:
        """The bytes of executables that are kept, but for the one used last."""
        return self.memory or KEPT_BYTES

    @property
    def loop_bytes(self) -> int:
        """The bytes of activations and outputs that loops without a bound may take."""
        return self.memory or usable_memory() // 4


KEPT_BYTES = 2 << 30
"""The default limit of executables that are kept, in bytes."""

OTHER_BOUNDS = "create a session with other bounds"
"""What to do where a size is outside of bounds."""

_MAX_SHAPES = 1024
"""Shapes of inputs of which it is kept what they want."""

Served = TypeVar("Served")


class Specializations(Executable):
    """
    A model that is compiled when it is called: for the sizes of inputs, and for the values of those that fix shapes.

    This decides which executable serves a call. `making` compiles one for assumptions, among which are the values of
    inputs with `names`, and of those that it turns out to need. A call that nothing serves waits for that. Where
    something may be made beside the calls, that is an executable for a range of sizes when there is one for the first
    of them; of what it serves, only sizes that come often are compiled, also beside the calls. `known` is the range of
    one that an earlier session has made, which serves at once where it is stored. Dimensions with `bounds` stay open in
    all of them; those without a largest size are open up to the largest that came so far, rounded up to a power of two.
    Several threads may call at once; what several need is made once. Executables used longest ago are given up where
    there are more than the limits allow; calls that run keep theirs.
    """

    def __init__(
        self,
        signature: Signature,
        names: Sequence[str],
        making: Making,
        limits: SpecializationLimits,
        bounds: Mapping[str, tuple[int, int | None]] | None = None,
        known: Assumptions | None = None,
    ) -> None:
        super().__init__([MAIN], State([]))
        self._bounds = dict(bounds or {})
        self._planned: dict[str, int] = {}
        """Dimension that grows → the largest size that is compiled for."""
        self._following = following(set(signature.free).difference(self._bounds), self._bounds)
        self._by_shapes: dict[Hashable, Assumptions] = {}
        """Shapes of inputs → what a call wants that brings them, where that follows from them alone."""
        self._capacities = LoopCapacities(limits.loop_bytes)
        self._grows = any(most is None for _, most in self._bounds.values())
        self.signature = signature
        self.limits = limits
        self._names = tuple(names)
        self._source = making
        self._known: OrderedDict[Assumptions, Specialization] = OrderedDict()
        self._removals = 0
        """How many executables were given up."""
        self._latest: Specialization | None = None
        self._stored_range = None if making.background is None else known
        ranks = {rank_label(argument.name) for argument in signature.inputs}
        self._general = GeneralCode(limits.threshold, limits.kept_bytes, ranks)
        self._begin = time.perf_counter()
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Take new locks, in a child process in which nobody holds those of before."""
        self._looking = threading.Lock()
        self._turn = threading.Lock()
        self._due: list[Callable[[], None]] = []
        """What is to begin beside the calls, behind that which shows it."""
        self._general.forget_pending()

    @property
    def value_names(self) -> tuple[str, ...]:
        """The inputs whose values fix shapes, as far as it is known."""
        return self._names

    def kept(self) -> list[Specialization]:
        """Those that are kept, the one used last at the end."""
        with self._looking:
            found = list(self._known.values())
            if (general := self._general.found) is not None:
                found.insert(len(found) if general is self._latest else 0, general)
            return found

    @property
    def memory(self) -> dict[object, int]:
        return _together(self.kept())

    @property
    def current(self) -> Executable:
        if self._latest is None:
            hint = "bind dimensions, or run the model first"
            raise OptionError("the model is compiled on its first call, for the sizes of its inputs", hint=hint)
        return self._latest.executable

    def load(self, name: str) -> EntryPoint:
        return _Entry(name, self)

    def entry_point(self, inputs: Mapping[str, np.ndarray]) -> EntryPoint:
        """
        What serves a call with those inputs, whose types and shapes fit the signature.

        Raises `InputError` where inputs do not agree on a free dimension, and `GlowError` where no executable can be
        made for them.
        """
        return self._serving(inputs)[1].entry

    def serve(self, inputs: Mapping[str, Tensor], call: Callable[[Specialization], Served]) -> Served:
        """
        What `call` makes of what serves a call with those inputs; raises as `entry_point`, and as it.

        Where code for a range of sizes fails, code for these sizes runs. Where a loop exceeds its capacity, code with a
        larger one runs, and where that takes too much memory for a call that needs less, code with a smaller one.
        """
        has_grown = False
        while True:
            wanted, found = self._serving(inputs, has_grown)
            try:
                return call(found)
            except CancelledError:
                raise
            except GlowError as error:
                if (loop := self._capacities.failed_loop(error)) is not None:
                    with self._looking:
                        self._capacities.grow(loop, error, wanted)
                    has_grown = True
                elif found.is_range:
                    self._general.withdrawn.add(wanted)
                elif not self._has_shrunk(error, wanted) or has_grown:
                    raise
            finally:
                self._begin_due()

    def _has_shrunk(self, error: GlowError, wanted: Assumptions) -> bool:
        """Whether loops have smaller capacities than what ran out of memory."""
        if not isinstance(error, OutOfMemoryError):
            return False
        with self._looking:
            return self._capacities.shrink(wanted, error)

    def direct(self, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> DirectCall | None:
        """A call of what is compiled for inputs of those shapes alone, as long as that is kept; `None` without such."""
        wanted = self._by_shapes.get(shapes)
        found = None if wanted is None else self._known.get(wanted)
        if wanted is None or found is None or found.is_range:
            return None
        found.direct = found.entry.direct(tuple(shape for _, shape in shapes))
        if found.direct is None:
            return None
        reference = weakref.ref(found)  # Who remembers the call keeps nothing that is given up.
        removals = self._removals

        def call(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
            with self._looking:
                kept = reference()
                if self._removals != removals or kept is None or kept.direct is None:
                    return None
                if self._latest is not kept:
                    self._known.move_to_end(wanted)
                    self._latest = kept
                kept.calls += 1
            return kept.direct(arrays)

        return call

    def _serving(self, inputs: Mapping[str, Tensor], has_grown: bool = False) -> tuple[Assumptions, Specialization]:
        """What a call wants, and what serves it; `has_grown` says that the call needs the capacities of its loops."""
        while True:
            names = self._names
            wanted = self._wanted(inputs, names)
            with self._looking:
                if (found := self._found(wanted)) is not None:
                    found.calls += 1
                    self._latest = found
                    return wanted, found
            try:
                self._make(wanted, names)
            except OutOfMemoryError as error:
                if not self._has_shrunk(error, wanted) or has_grown:
                    raise

    def _wanted(self, inputs: Mapping[str, Tensor], names: Sequence[str]) -> Assumptions:
        """What a call with those inputs wants, where those with `names` fix shapes."""
        shapes = (
            None
            if names or self._grows or self._capacities
            else tuple([(name, value.shape) for name, value in inputs.items()])
        )
        if shapes is not None and (known := self._by_shapes.get(shapes)) is not None:
            return known
        sizes = tuple(self._open_sizes(self.signature.sizes(inputs)).items())
        wanted = Assumptions(sizes, tuple(InputValue.of(name, on_host(inputs[name])) for name in names))
        if self._capacities:
            with self._looking:
                wanted = self._capacities.with_capacities(wanted)
        if shapes is not None:
            if len(self._by_shapes) >= _MAX_SHAPES:
                self._by_shapes.clear()
            self._by_shapes[shapes] = wanted
        return wanted

    def _found(self, wanted: Assumptions) -> Specialization | None:
        """What serves a call by now."""
        if (found := self._known.get(wanted)) is not None:
            self._known.move_to_end(wanted)
            return found
        if not self._general.serves(wanted):
            return None
        often = self._general.often
        is_full = len(self._known) + len(often.pending) >= self.limits.number
        if self._source.background is not None and often.count(wanted, is_full):
            make, forget = partial(_compiled, self._source.background, wanted), partial(often.forget, wanted)
            self._due.append(partial(self._in_background, make, _take_special, forget))
        return self._general.found

    def _begin_due(self) -> None:
        """Begin beside the calls what they have shown to be worth it."""
        if not self._due:
            return
        with self._looking:
            due, self._due = self._due, []
        for begin in due:
            begin()

    def _in_background(
        self,
        make: Callable[[], Served],
        take: Callable[[Specializations, Served, float], None],
        forget: Callable[[], None],
    ) -> None:
        """
        Make something beside the calls, and take it between two of them, as long as somebody has this.

        Where too much waits to be made, `forget` that it was to be: later calls ask for it again.
        """
        owner = weakref.ref(self)

        def work() -> None:
            begin = time.perf_counter()
            made = make()
            if (found := owner()) is not None:
                take(found, made, begin)

        # A call that comes before what begins at once is there waits for it, but not for what is made for others.
        if not start(work, lambda: owner() is not None, self._turn):
            forget()

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
            return max(self._planned.get(label, 1), power_of_two(size))

    def _make(self, wanted: Assumptions, names: tuple[str, ...]) -> None:
        """Make the executable for assumptions, or learn that more of them are needed, unless somebody else just did."""
        begin = time.perf_counter()
        with held(self._turn):
            with self._looking:
                is_stale = names != self._names or not self._capacities.hold(wanted)
                if is_stale or wanted in self._known or self._general.serves(wanted):
                    return
            if self._is_stored(wanted, begin):
                return
            say(f"compiling for {wanted}" if wanted != Assumptions() else "compiling")
            try:
                loaded = self._source.compile(wanted)
            except InputValuesError as error:
                self._learn(error)
                return
            with self._looking:
                if not self._capacities.accept(wanted, loaded.executable):
                    return
            self.take(wanted, loaded, begin, time.perf_counter() - begin)
            with self._looking:
                self._plan_general(wanted, loaded.executable.activation_bytes)

    def _is_stored(self, wanted: Assumptions, begin: float) -> bool:
        """Whether an earlier session has left something that serves from now on, for these sizes or for a range."""
        known = self._stored_range
        if known is None or not holds(known, wanted):
            return False
        if (loaded := self._source.stored(wanted)) is not None:
            self.take(wanted, loaded, begin, time.perf_counter() - begin)
            return True
        self._stored_range = None  # It is here, or gone.
        if (loaded := self._source.stored(known)) is None:
            return False
        self.take_general(known, loaded, begin, time.perf_counter() - begin)
        return True

    def take(self, wanted: Assumptions, loaded: Loaded, begin: float, waited: float | None = None) -> None:
        """Let an executable serve calls from now on, for which one has `waited` so many seconds, or none."""
        made = self._specialization(wanted, loaded, begin, waited)
        with self._looking:
            self._outgrow(wanted)
            self._known[wanted] = made
            self._general.often.pending.discard(wanted)
            self._trim()

    def take_general(self, range_: Assumptions, loaded: Loaded, begin: float, waited: float | None = None) -> None:
        """Let an executable serve calls from now on whose sizes are in its range; as `take`."""
        made = self._specialization(range_, loaded, begin, waited)
        made.is_range = True
        with self._looking:
            self._general.take(made, range_)

    def tell_range(self, range_: Assumptions) -> None:
        """Let later sessions know for which range there is code."""
        self._source.opened(range_)

    def _specialization(
        self, assumptions: Assumptions, loaded: Loaded, begin: float, waited: float | None
    ) -> Specialization:
        return Specialization(
            sizes=dict(assumptions.sizes),
            values=assumptions.arrays(),
            executable=loaded.executable,
            entry=loaded.executable.entry(),
            compile_seconds=loaded.seconds,
            seconds=waited or 0.0,
            begin=begin - self._begin,
            is_background=waited is None,
        )

    def _plan_general(self, wanted: Assumptions, activations: int) -> None:
        """Have an executable made for a range with these sizes, if there may be one, behind the call that has them."""
        if self._source.background is None or self._names or self._capacities:
            return
        if (planned := self._general.planned(wanted, activations)) is not None:
            make = partial(widest, planned, self._source.background)
            self._due.append(partial(self._in_background, make, _take_general, self._general.unplan))

    def _outgrow(self, assumptions: Assumptions) -> None:
        """Plan for the largest sizes of assumptions, and give up what no call asks for any more."""
        own = self._capacities.without(assumptions)
        grown = ((label, size[1]) for label, size in own.sizes if isinstance(size, tuple))
        most = {label: size for label, size in grown if size is not None}
        self._planned |= most
        for other in list(self._known):
            sizes = self._capacities.without(other)
            is_smaller = any(isinstance(size, tuple) and size[1] != most.get(label) for label, size in sizes.sizes)
            if is_smaller or (sizes == own and other != assumptions):
                del self._known[other]
                self._removals += 1

    def _learn(self, error: InputValuesError) -> None:
        """Take further inputs among those whose values fix shapes, and give loops that nothing bounds a capacity."""
        wanted = {*self._names, *error.inputs}
        loops = [loop for loop in error.trip_capacities if loop not in self._capacities]
        if wanted == set(self._names) and not loops:
            raise error
        with self._looking:
            self._capacities.add(loops)
        self._names = tuple(argument.name for argument in self.signature.inputs if argument.name in wanted)
        self._source.learned(self._names)

    def _trim(self) -> None:
        """Give up what was used longest ago, as far as the limits ask for it."""
        while len(self._known) > 1 and (
            len(self._known) > self.limits.number or self._bytes() > self.limits.kept_bytes
        ):
            given_up, _ = self._known.popitem(last=False)
            self._general.often.give_up(given_up)
            self._removals += 1

    def _bytes(self) -> int:
        """The bytes of those that are kept, shared parts once."""
        return sum(_together(self._known.values()).values())


def _compiled(compile_: Compile, wanted: Assumptions) -> tuple[Assumptions, Loaded] | None:
    """What is made beside the calls for assumptions; `None` behind a warning where that is a mistake of the user's."""
    try:
        return wanted, compile_(wanted)
    except GlowError as error:
        if is_end(error):
            raise
        warn(error)  # It stays pending: it would fail again.
        return None


def _take_special(owner: Specializations, found: tuple[Assumptions, Loaded] | None, begin: float) -> None:
    """Let what was made beside the calls serve them."""
    if found is not None:
        owner.take(*found, begin)


def _take_general(owner: Specializations, found: tuple[Assumptions, Loaded] | None, begin: float) -> None:
    """Let what was made beside the calls for a range serve them; where there is none, no other is planned any more."""
    if found is not None:
        owner.take_general(*found, begin)
        owner.tell_range(found[0])


def _together(items: Iterable[Specialization]) -> dict[object, int]:
    """The memory of some specializations, each part once."""
    found: dict[object, int] = {}
    for item in items:
        found |= item.executable.memory
    return found


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

    def direct(self, shapes: Shapes) -> DirectCall | None:
        return self._model.direct(tuple(zip((argument.name for argument in self.inputs), shapes, strict=True)))

    def bound(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Callable[[], dict[str, np.ndarray]]:
        # Values of inputs that fix shapes may change from call to call.
        return lambda: self._model.serve(inputs, lambda found: found.entry.bound(found.fitting(inputs), outputs)())

    def bound_on(
        self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]
    ) -> Callable[[], dict[str, Tensor]]:
        return lambda: self._model.serve(inputs, lambda found: found.run_on(inputs, targets))

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self._model.serve(inputs, lambda found: found.run(inputs))
