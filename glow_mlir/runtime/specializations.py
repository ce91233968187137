"""Executables for given sizes and values of inputs: select one for a call, and decide which to keep."""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from glow_mlir.runtime.repeated_calls import BoundCall, CallsByValues
from glow_mlir.runtime.signature import Argument, Signature, rank_label
from glow_mlir.runtime.specialization import Compile, Loaded, Making, Specialization
from glow_mlir.runtime.state import RANDOM, State
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
    Limits on the number of specializations that a session keeps, and on their total bytes.

    The last used is always kept. If a general executable serves all sizes, sizes get a specialization after `threshold`
    calls; after 16 times as many if the limit is reached, and again 16 times as many after each eviction. Unbounded
    loops may use `memory` bytes for their results and state, by default a quarter of the machine's memory. Raises
    `OptionError` for an invalid limit.
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
        """The byte limit of kept executables, excluding the last used."""
        return self.memory or KEPT_BYTES

    @property
    def loop_bytes(self) -> int:
        """The byte limit of activations and outputs of unbounded loops."""
        return self.memory or usable_memory() // 4


KEPT_BYTES = 2 << 30
"""The default byte limit of kept executables."""

OTHER_BOUNDS = "create a session with other bounds"
"""The hint for a size out of bounds."""

_MAX_SHAPES = 1024
"""The number of input shapes whose assumptions are cached."""

InputShapes = tuple[tuple[str, tuple[int, ...]], ...]
"""The names and shapes of all inputs, in order."""

Served = TypeVar("Served")


class Specializations(Executable):
    """
    A model that is compiled when it is called: for the sizes of inputs, and for values of inputs that determine shapes.

    This class selects the executable for a call. `making` compiles one for assumptions, which include the values of the
    inputs `names`, and of others found to be needed. A call waits for compilation if nothing serves it. If background
    compilation is possible, an executable for a range of sizes is compiled after the first one for fixed sizes; within
    the range, only frequent sizes get their own code, also in the background. `known` is the range of an earlier
    session, whose executable serves at once if it is stored. Dimensions with `bounds` stay open in all executables;
    those without an upper bound are open up to the largest size so far, rounded up to a power of two. Several threads
    may call at once; an executable that several need is made once. The least recently used executables beyond the
    limits are evicted; running calls keep theirs.
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
        """Open dimension → the largest size that code is compiled for; replaced when it changes."""
        self._following = following(set(signature.free).difference(self._bounds), self._bounds)
        self._by_shapes: dict[InputShapes, Assumptions] = {}
        """Input shapes → the assumptions of a call, if shapes and `_planned` alone determine them."""
        self._capacities = LoopCapacities(limits.loop_bytes)
        self._grows = any(most is None for _, most in self._bounds.values())
        self.signature = signature
        self.limits = limits
        self._names = tuple(names)
        self._source = making
        self._known: OrderedDict[Assumptions, Specialization] = OrderedDict()
        self._removals = 0
        """The number of evicted executables."""
        self._latest: Specialization | None = None
        self._stored_range = None if making.background is None else known
        ranks = {rank_label(argument.name) for argument in signature.inputs}
        self._general = GeneralCode(limits.threshold, limits.kept_bytes, ranks)
        self._begin = time.perf_counter()
        self.reset_after_fork()
        reset_in_forks(self)

    def reset_after_fork(self) -> None:
        """Take new locks in a child process, because the old ones may be held."""
        self._looking = threading.Lock()
        self._turn = threading.Lock()
        self._due: list[Callable[[], None]] = []
        """Background work to start after the current call."""
        self._general.forget_pending()

    @property
    def value_names(self) -> tuple[str, ...]:
        """The inputs whose values determine shapes, as far as known."""
        return self._names

    def kept(self) -> list[Specialization]:
        """The kept specializations, the last used at the end."""
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
        The entry for a call with these inputs, whose types and shapes fit the signature.

        Raises `InputError` if inputs disagree on a free dimension, and `GlowError` if no executable can be made.
        """
        return self._serving(inputs)[1].entry

    def serve(self, inputs: Mapping[str, Tensor], call: Callable[[Specialization], Served]) -> Served:
        """
        Return the result of `call` on the specialization for these inputs; raises the errors of `entry_point` and
        `call`.

        If code for a range fails, code for these sizes runs. If a loop exceeds its capacity, code with a larger one
        runs; if that needs too much memory for a call that needs less, code with a smaller one runs.
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
        """Whether the capacities of loops are now smaller than those of the code that ran out of memory."""
        if not isinstance(error, OutOfMemoryError):
            return False
        with self._looking:
            return self._capacities.shrink(wanted, error)

    def direct(self, shapes: InputShapes) -> DirectCall | None:
        """
        A direct call of the code for these input shapes, valid while it is kept; `None` if there is none.

        Where values of inputs determine shapes, it selects the code by these values.
        """
        if self._names:
            return None if self._capacities else CallsByValues(self, self._names, [name for name, _ in shapes])
        return self.direct_for(self._by_shapes.get(shapes), shapes)

    def direct_for(self, wanted: Assumptions | None, shapes: InputShapes) -> DirectCall | None:
        """A direct call of the code for these assumptions and shapes, valid while it is kept; `None` if none is."""
        sizes = tuple(shape for _, shape in shapes)
        order = [name for name, _ in shapes]
        taken: list[int] = []
        """The positions of the inputs of the code, which may lack those whose values are known."""

        def is_direct(found: Specialization) -> bool:
            taken[:] = [order.index(argument.name) for argument in found.entry.inputs]
            if (prepared := found.entry.direct(tuple(sizes[position] for position in taken))) is not None:
                found.keep_direct(sizes, prepared)
            return prepared is not None

        if (leased := self._leased(wanted, is_direct)) is None:
            return None
        takes_all = taken == [*range(len(order))]

        def call(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
            if (kept := leased()) is None or (direct := kept.direct.get(sizes)) is None:
                return None
            return direct(arrays if takes_all else [arrays[position] for position in taken])

        return call

    def lease(
        self, shapes: InputShapes, is_ready: Callable[[Specialization], bool]
    ) -> Callable[[], Specialization | None] | None:
        """
        Return a function for repeated calls with these input shapes: it counts a call and returns the code for it
        without a search, or `None` once that is no longer valid.

        `None` if there is no such code, shapes alone do not determine it, it is for a range, or it is not `is_ready`.
        """
        return self._leased(self._by_shapes.get(shapes), is_ready)

    def _leased(
        self, wanted: Assumptions | None, is_ready: Callable[[Specialization], bool]
    ) -> Callable[[], Specialization | None] | None:
        """As `lease`, for assumptions."""
        found = None if wanted is None else self._known.get(wanted)
        if wanted is None or found is None or found.is_range or not is_ready(found):
            return None
        reference = weakref.ref(found)  # A remembered call must not keep evicted code alive.
        removals = self._removals

        def leased() -> Specialization | None:
            kept = reference()
            if kept is not None and self._latest is kept and self._removals == removals:
                kept.calls += 1  # Without the lock: an estimate of what is called often.
                return kept
            with self._looking:
                if self._removals != removals or kept is None:
                    return None
                if self._latest is not kept:
                    self._known.move_to_end(wanted)
                    self._latest = kept
                kept.calls += 1
                return kept

        return leased

    def wanted(self, inputs: Mapping[str, Tensor]) -> Assumptions:
        """The assumptions of a call with these inputs."""
        return self._wanted(inputs, self._names)

    def _serving(self, inputs: Mapping[str, Tensor], has_grown: bool = False) -> tuple[Assumptions, Specialization]:
        """
        The assumptions of a call, and a specialization for them; `has_grown` means that it needs its loops' capacities.
        """
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
        """The assumptions of a call with these inputs; the values of the inputs `names` determine shapes."""
        shapes = None if names or self._capacities else tuple([(name, value.shape) for name, value in inputs.items()])
        planned = self._planned
        if shapes is not None and (known := self._by_shapes.get(shapes)) is not None:
            return known
        sizes = tuple(self._open_sizes(self.signature.sizes(inputs)).items())
        wanted = Assumptions(sizes, tuple(InputValue.of(name, on_host(inputs[name])) for name in names))
        if self._capacities:
            with self._looking:
                wanted = self._capacities.with_capacities(wanted)
        if shapes is not None:
            with self._looking:
                if len(self._by_shapes) >= _MAX_SHAPES:
                    self._by_shapes.clear()
                if planned is self._planned:
                    self._by_shapes[shapes] = wanted
        return wanted

    def _found(self, wanted: Assumptions) -> Specialization | None:
        """The present specialization for a call."""
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
        """Start the due background compilations."""
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
        Make something in the background, and use it for calls, as long as this object is referenced.

        If too many tasks wait, `forget` the request: later calls will repeat it.
        """
        owner = weakref.ref(self)

        def work() -> None:
            begin = time.perf_counter()
            made = make()
            if (found := owner()) is not None:
                take(found, made, begin)

        # A call before a started background compilation is done waits for it, but not for compilations of other
        # sessions.
        if not start(work, lambda: owner() is not None, self._turn):
            forget()

    def _open_sizes(self, sizes: Mapping[str, int]) -> dict[str, Dimension]:
        """The values assumed for dimensions that have bounds or grow; raises `InputError` for a size out of bounds."""
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
        """The largest size to compile a dimension for, when a call brings a size."""
        with self._looking:
            return max(self._planned.get(label, 1), power_of_two(size))

    def _make(self, wanted: Assumptions, names: tuple[str, ...]) -> None:
        """Make the executable for assumptions, or learn that more are needed, unless another thread just did."""
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
        """
        Whether an earlier session stored code for these sizes or for a range that contains them; it serves from now on.
        """
        known = self._stored_range
        if known is None or not holds(known, wanted):
            return False
        if (loaded := self._source.stored(wanted)) is not None:
            self.take(wanted, loaded, begin, time.perf_counter() - begin)
            return True
        self._stored_range = None  # It is loaded, or gone.
        if (loaded := self._source.stored(known)) is None:
            return False
        self.take_general(known, loaded, begin, time.perf_counter() - begin)
        return True

    def take(self, wanted: Assumptions, loaded: Loaded, begin: float, waited: float | None = None) -> None:
        """Use an executable for calls from now on; a call has `waited` that many seconds for it, or none."""
        made = self._specialization(wanted, loaded, begin, waited)
        with self._looking:
            self._outgrow(wanted)
            self._known[wanted] = made
            self._general.often.pending.discard(wanted)
            self._trim()

    def take_general(self, range_: Assumptions, loaded: Loaded, begin: float, waited: float | None = None) -> None:
        """Use an executable for calls in its range from now on; as `take`."""
        made = self._specialization(range_, loaded, begin, waited)
        made.is_range = True
        with self._looking:
            self._general.take(made, range_)

    def tell_range(self, range_: Assumptions) -> None:
        """Store for later sessions the range that code exists for."""
        self._source.opened(range_)

    def _specialization(
        self, assumptions: Assumptions, loaded: Loaded, begin: float, waited: float | None
    ) -> Specialization:
        if names := [name for name in loaded.executable.state.names if not name.startswith(RANDOM)]:
            # Code for other sizes would have other state.
            reason = f"the model has state, such as '{names[0]}', and dimensions without a largest size"
            raise OptionError(reason, hint="give each dimension a size or bounds, by 'dimensions'")
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
        """Plan a range that contains these sizes, if possible, to be compiled after the current call."""
        if self._source.background is None or self._names or self._capacities:
            return
        if (planned := self._general.planned(wanted, activations)) is not None:
            make = partial(widest, planned, self._source.background)
            self._due.append(partial(self._in_background, make, _take_general, self._general.unplan))

    def _outgrow(self, assumptions: Assumptions) -> None:
        """Plan for the largest sizes in assumptions, and evict code that calls no longer need."""
        own = self._capacities.without(assumptions)
        grown = ((label, size[1]) for label, size in own.sizes if isinstance(size, tuple))
        most = {label: size for label, size in grown if size is not None}
        if most != {label: self._planned.get(label) for label in most}:
            self._planned = {**self._planned, **most}
            self._by_shapes.clear()
        for other in list(self._known):
            sizes = self._capacities.without(other)
            is_smaller = any(isinstance(size, tuple) and size[1] != most.get(label) for label, size in sizes.sizes)
            if is_smaller or (sizes == own and other != assumptions):
                del self._known[other]
                self._removals += 1

    def _learn(self, error: InputValuesError) -> None:
        """Add inputs to those whose values determine shapes, and give unbounded loops a capacity."""
        wanted = {*self._names, *error.inputs}
        loops = [loop for loop in error.trip_capacities if loop not in self._capacities]
        if wanted == set(self._names) and not loops:
            raise error
        with self._looking:
            self._capacities.add(loops)
        self._names = tuple(argument.name for argument in self.signature.inputs if argument.name in wanted)
        self._source.learned(self._names)

    def _trim(self) -> None:
        """Evict the least recently used executables beyond the limits."""
        while len(self._known) > 1 and (
            len(self._known) > self.limits.number or self._bytes() > self.limits.kept_bytes
        ):
            given_up, _ = self._known.popitem(last=False)
            self._general.often.give_up(given_up)
            self._removals += 1

    def _bytes(self) -> int:
        """The bytes of kept executables, counting shared parts once."""
        return sum(_together(self._known.values()).values())


def _compiled(compile_: Compile, wanted: Assumptions) -> tuple[Assumptions, Loaded] | None:
    """The result of a background compilation for assumptions; `None`, with a warning, for user errors."""
    try:
        return wanted, compile_(wanted)
    except GlowError as error:
        if is_end(error):
            raise
        warn(error)  # It stays pending, because it would fail again.
        return None


def _take_special(owner: Specializations, found: tuple[Assumptions, Loaded] | None, begin: float) -> None:
    """Use an executable made in the background for calls."""
    if found is not None:
        owner.take(*found, begin)


def _take_general(owner: Specializations, found: tuple[Assumptions, Loaded] | None, begin: float) -> None:
    """Use an executable for a range made in the background; if there is none, stop planning ranges."""
    if found is not None:
        owner.take_general(*found, begin)
        owner.tell_range(found[0])


def _together(items: Iterable[Specialization]) -> dict[object, int]:
    """The memory of specializations, counting shared parts once."""
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
        return BoundCall(self._model, inputs, outputs)

    def bound_on(
        self, inputs: Mapping[str, Tensor], targets: Mapping[str, OutputTarget]
    ) -> Callable[[], dict[str, Tensor]]:
        return lambda: self._model.serve(inputs, lambda found: found.run_on(inputs, targets))

    def _call(self, inputs: Mapping[str, np.ndarray], state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self._model.serve(inputs, lambda found: found.run(inputs))
