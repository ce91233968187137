"""Execution of machine code: buffers, calls of entries, and their statuses."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct

import numpy as np

from glow_mlir.errors import CHANGES_SHARED_ROWS, ExecutionError, InputError, OptionError, OutOfMemoryError, failed_call
from glow_mlir.runtime.aligned_memory import aligned, maker_of
from glow_mlir.runtime.artifact import CANCELLED, WRONG_VECTORS, Artifact, Binding, Entry
from glow_mlir.runtime.device_array import check_target_shape, on_target
from glow_mlir.runtime.direct_outputs import SizedOutput
from glow_mlir.runtime.executable import DirectCall, EntryPoint, Executable, Shapes
from glow_mlir.runtime.host import lacks
from glow_mlir.runtime.layouts import Buffers, CallSizes, Sizing, grown, is_dense, is_laid_out, made, result, unshared
from glow_mlir.runtime.loader import Functions, Library
from glow_mlir.runtime.packed_state import PackedState
from glow_mlir.runtime.pool import look_up, workers
from glow_mlir.runtime.state import Initial, State
from glow_mlir.support.array_addresses import address_of, addresses_of
from glow_mlir.support.cancellation import Cancellation, current_cancellation, held
from glow_mlir.support.dtypes import named_dtype
from glow_mlir.support.watchdog import Interruptible

NOWHERE: Mapping[str, np.ndarray] = {}
"""No targets of outputs: each output is a new array."""

Pointers = ctypes.Array[ctypes.c_void_p] | bytes | int
"""An array of addresses, or its own address."""

_NEVER = ctypes.c_int32(0)
"""The cancellation word of calls that cannot be cancelled."""

_ENTRY = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def small_pages(size: int, dtype: type[np.uint8]) -> np.ndarray:
    """
    An array of zeros in pages of the smallest size, which use memory only once they are written.

    Numpy requests huge pages: sparse writes to a buffer for large sizes would occupy all of it.
    """
    try:
        mapping = mmap.mmap(-1, size)
    except OSError as error:
        raise MemoryError(str(error)) from error
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # Not all kernels support this.
            mapping.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(mapping, dtype)


class MachineEntry(EntryPoint):
    """
    A function of machine code.

    Each calling thread has its own activations. Only one call at a time may use the worker threads, if `threads` allows
    any; other calls compute alone.
    """

    def __init__(
        self,
        entry: Entry,
        library: Functions,
        constants: np.ndarray,
        state: State,
        packed: Mapping[str, PackedState],
        threads: int,
    ) -> None:
        super().__init__(entry.name, entry.bindings, state)
        self.entry = entry
        self._has_loops = entry.has_loops
        self._packed = packed
        self.use_constants(constants)
        self._library = library
        self._function = library.function(entry.name, _ENTRY, ctypes.c_int32)
        self._threads = min(threads, entry.threads)
        if self._threads > 1:
            look_up(library)
        self._invoke = self._alone if self._threads == 1 else self._shared
        self._local = threading.local()
        self._buffers = Buffers()
        # A call that fails in shared memory is made again, but state changes once.
        may_repeat = any(failure.reason == CHANGES_SHARED_ROWS for failure in entry.failures)
        self._shares = not (may_repeat and entry.writes)
        self._sizing = Sizing(entry.bindings, entry.symbols)
        self.behind = [ctypes.addressof(_NEVER)] * entry.cancellable + [0] * entry.observed
        """The last arguments of calls that nothing cancels or observes, if all sizes are numbers."""
        self._pointers_at = ctypes.c_void_p * (len(entry.bindings) + len(self.behind))
        count = len(entry.steps) + 1
        self._cycles = np.zeros(count + 2 * len(entry.steps) * entry.threads, np.int64)
        self.stamps = self._cycles[:count]
        """With `profile`: the cycle counter before each instruction of the last call, and after the last one."""
        self.spans = self._cycles[count:].reshape(len(entry.steps), entry.threads, 2)
        """With `profile`: the counter at each thread's first begin and last end of a task of each instruction."""

    def bound(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> Callable[[], dict[str, np.ndarray]]:
        for binding in self.bindings:
            if binding.role == "output" and binding.name in outputs:
                _check_output(binding, outputs[binding.name])
        if not all(map(_is_element_aligned, outputs.values())) or self._overlap(inputs, outputs):
            return super().bound(inputs, outputs)  # Results need other memory.
        moves = self._state.moves  # Read first: states that move from here on are seen by the call.
        kept = self._bound_in_place(inputs, outputs)
        if kept is None:
            return partial(self._call_into, inputs, outputs)
        count = len(kept) + self.entry.cancellable + self.entry.observed
        pointers = (ctypes.c_void_p * count)(*map(address_of, kept))
        if self.entry.cancellable:
            call = partial(self._call_cancellable, pointers, len(kept), kept, dict(outputs))
        else:
            call = partial(self._call_in_place, ctypes.addressof(pointers), (pointers, kept), dict(outputs))
        if not self._has_state:
            return call
        return partial(self._call_with_state, call, moves, partial(self._call_into, inputs, outputs))

    def _overlap(self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> bool:
        """Whether an output shares memory with another output, or with an input that it cannot replace in its place."""
        replaced = {binding.name: binding.in_place_of for binding in self.bindings if binding.in_place_of}
        arrays = [*outputs.items(), *inputs.items()]
        return any(
            np.may_share_memory(one, other)
            and not (at >= len(outputs) and second in replaced.get(first, ()) and _is_same_memory(one, other))
            for number, (first, one) in enumerate(arrays[: len(outputs)])
            for at, (second, other) in enumerate(arrays[number + 1 :], number + 1)
        )

    def _bound_in_place(
        self, inputs: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
    ) -> list[np.ndarray] | None:
        """
        The arrays of a call in the order of the bindings, followed by the values of symbols; `None` unless these inputs
        and outputs, and plain state, are all that code reads and writes, in its layout.
        """
        given = {("input", name): array for name, array in inputs.items()}
        given |= {("output", name): array for name, array in outputs.items()}
        given |= {("state", name): array for name, array in self._state.arrays.items()}
        arrays = [given.get((binding.role, binding.name)) for binding in self.bindings]
        kept = [array for array in arrays if array is not None]
        if self.entry.profile or len(kept) < len(arrays):
            return None
        sizes = self._sizing.of(inputs)
        if not sizes.is_complete:
            return None
        for binding, array in zip(self.bindings, kept, strict=True):
            if binding.role == "output" and binding.sizes:
                check_target_shape(binding.name, array.shape, sizes.output_shapes[binding.name].shape)
            if binding.sizes and not is_laid_out(array, binding):
                return None
        return [*kept, np.array(sizes.numbers, np.int64)] if self.entry.symbols else kept

    @property
    def address(self) -> int:
        """The address of the function."""
        return self._library.address(self.name)

    @property
    def takes_pointers(self) -> bool:
        """
        Whether code may call the function on the addresses of inputs, then outputs, then `behind`, and nothing else.

        It then has no state, no loops to interrupt, no worker threads, only sizes that are numbers, and cannot fail.
        """
        entry, roles = self.entry, [binding.role for binding in self.bindings]
        count = roles.count("input")
        is_plain = roles == ["input"] * count + ["output"] * (len(roles) - count)
        is_watched = entry.profile or entry.observed or (entry.cancellable and self._has_loops)
        return is_plain and not is_watched and not entry.symbols and not entry.failures and self._threads == 1

    def direct(self, shapes: Shapes) -> DirectCall | None:
        entry, bindings = self.entry, self.bindings
        roles = [binding.role for binding in bindings]
        count = roles.count("input")
        is_cancellable = entry.cancellable
        is_watched = entry.profile or entry.observed or (is_cancellable and self._has_loops)
        is_plain = roles == ["input"] * count + ["output"] * (len(roles) - count)
        if is_watched or not is_plain or (sizes := self._direct_sizes(shapes)) is None:
            return None
        if not sizes.is_complete or not all(found.is_dense for found in sizes.output_shapes.values()):
            return self._direct_sized(sizes)
        outputs = bindings[count:]
        output_shapes = [sizes.output_shapes[b.name].shape if b.sizes else b.shape for b in outputs]
        numbers = [(ctypes.c_int64 * len(sizes.numbers))(*sizes.numbers)][: len(sizes.numbers)]
        names = [binding.name for binding in outputs]
        makers = list(map(maker_of, output_shapes, (binding.numpy_dtype for binding in outputs)))
        # `_kept` owns the memory behind the addresses.
        behind = [ctypes.addressof(item) for item in (*numbers, *[_NEVER] * is_cancellable)]
        pointers = Struct(f"{len(bindings) + len(behind)}P").pack  # Bytes take less time to make than arrays of ctypes.
        constants, invoke = self.constants_address, self._invoke

        def call(arrays: Sequence[np.ndarray], _kept: object = numbers) -> dict[str, np.ndarray] | None:
            if constants != self.constants_address or (is_cancellable and current_cancellation() is not None):
                return None
            try:
                results = [make() for make in makers]
            except MemoryError:
                return None  # The caller reports which output it is.
            if status := invoke(pointers(*addresses_of([*arrays, *results]), *behind)):
                raise _error_of(entry, status)
            return {names[0]: results[0]} if len(results) == 1 else dict(zip(names, results, strict=True))

        return call

    def _direct_sized(self, sizes: CallSizes) -> DirectCall:
        """As `direct`, for a call that computes sizes, or whose outputs have the layout of larger ones."""
        entry = self.entry
        outputs = {
            binding.name: SizedOutput(binding, sizes.output_shapes.get(binding.name), entry.symbols, self._buffers)
            for binding in self.bindings
            if binding.role == "output"
        }
        is_cancellable = entry.cancellable
        behind = [ctypes.addressof(_NEVER)] * is_cancellable
        pointers = ctypes.c_void_p * (len(self.bindings) + 1 + len(behind))
        numbers_of, before = ctypes.c_int64 * len(sizes.numbers), sizes.numbers
        constants, invoke = self.constants_address, self._invoke

        def call(arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray] | None:
            if constants != self.constants_address or (is_cancellable and current_cancellation() is not None):
                return None
            written = [output.memory() for output in outputs.values()]
            numbers = numbers_of(*before)
            if status := invoke(pointers(*addresses_of([*arrays, *written]), ctypes.addressof(numbers), *behind)):
                raise _error_of(entry, status)
            pairs = zip(outputs.items(), written, strict=True)
            return {name: output.taken(array, numbers) for (name, output), array in pairs}

        return call

    def _direct_sizes(self, shapes: Shapes) -> CallSizes | None:
        """The sizes for C-contiguous inputs of these shapes; `None` if inputs or outputs need another layout."""
        inputs = [binding for binding in self.bindings if binding.role == "input"]
        pairs = list(zip(inputs, shapes, strict=True))
        if any(shape != binding.shape for binding, shape in pairs if not binding.sizes):
            return None
        if any(binding.extends for binding in self.bindings):
            return None
        if not all(is_dense(shape, binding) for binding, shape in pairs):
            return None
        return self._sizing.of_shapes([shape for binding, shape in pairs if binding.sizes])

    def _call_into(self, inputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Call the function; write the outputs in `targets` there."""
        with held(self._state.turn) if self._has_state else contextlib.nullcontext():
            found = self._call(inputs, self._state.arrays, targets)
        for name, target in targets.items():
            if found[name] is not target:  # Its size or layout was unknown before the call.
                on_target(name, found[name], target)
        return {**found, **targets}

    def _call_in_place(self, pointers: int, alive: object, outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Call the function on `pointers`; `alive` keeps their memory alive."""
        self._perform(pointers)
        return outputs

    def _call_cancellable(
        self, pointers: ctypes.Array[ctypes.c_void_p], position: int, alive: object, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """`_call_in_place` on a copy of `pointers`, with the address of this call's cancellation word at `position`."""
        self._perform_until(type(pointers).from_buffer_copy(pointers), position)
        return outputs

    def _call_with_state(
        self,
        call: Callable[[], dict[str, np.ndarray]],
        moves: int,
        otherwise: Callable[[], dict[str, np.ndarray]],
    ) -> dict[str, np.ndarray]:
        """A prepared `call` in its turn, as long as states have moved that often; else the other call."""
        entry, state = self.entry, self._state
        with held(state.turn):
            if state.moves == moves:
                if entry.writes:
                    state.change(entry.writes)
                return call()
        return otherwise()

    def _call(
        self,
        inputs: Mapping[str, np.ndarray],
        state: dict[str, np.ndarray],
        targets: Mapping[str, np.ndarray] = NOWHERE,
    ) -> dict[str, np.ndarray]:
        sizes = self._sizing.of(inputs)
        bindings = [binding for binding in self.bindings if binding.role == "output"]
        outputs = {b.name: self._output(b, sizes, inputs, targets.get(b.name)) for b in bindings}
        own = [binding for binding in bindings if outputs[binding.name] is not targets.get(binding.name)]
        try:
            found = self._call_on(inputs, state, outputs, sizes)
        except ExecutionError as error:
            if error.reason != CHANGES_SHARED_ROWS:
                raise
            outputs |= {binding.name: unshared(binding, outputs[binding.name], inputs) for binding in own}
            found = self._call_on(inputs, state, outputs, sizes)
        for binding in own:
            grown(binding, found[binding.name])
        return found

    def _call_on(
        self,
        inputs: Mapping[str, np.ndarray],
        state: dict[str, np.ndarray],
        outputs: dict[str, np.ndarray],
        sizes: CallSizes,
    ) -> dict[str, np.ndarray]:
        """Call the function on memory for the outputs, of these sizes or larger, and return the outputs."""
        bound: list[np.ndarray] = []
        for binding in self.bindings:
            if binding.role == "output":
                bound.append(outputs[binding.name])
            elif binding.role == "packed":
                bound.append(self._packed[binding.name].current(self._state))
            elif binding.role == "input":
                given = inputs[binding.name]
                bound.append(self._buffers.input(binding, given) if binding.sizes else given)
            else:
                bound.append(state[binding.name])
        if self.entry.writes:
            self._state.change(self.entry.writes)
        if not self.entry.symbols:
            self.call(bound)
            return outputs
        numbers = np.array(sizes.numbers, np.int64)
        self.call([*bound, numbers])
        found = sizes.output_shapes if sizes.is_complete else self._sizing.output_shapes(numbers.tolist())
        sized = (binding for binding in self.bindings if binding.name in found)
        return outputs | {b.name: result(b, outputs[b.name], found[b.name]) for b in sized}

    def _output(
        self, binding: Binding, sizes: CallSizes, inputs: Mapping[str, np.ndarray], target: np.ndarray | None
    ) -> np.ndarray:
        """The memory that the function writes an output to: its target if that has the layout of the code."""
        if not binding.sizes:
            return made(binding, binding.shape) if target is None else target
        found = sizes.output_shapes[binding.name]
        if target is not None and sizes.is_complete and found.is_dense and target.shape == found.shape:
            return target
        return self._buffers.output(binding, found, inputs, self._shares)

    def use_constants(self, constants: np.ndarray) -> None:
        """Use the constants in this array, which is aligned to 64 bytes."""
        self.constants = constants
        self.constants_address = constants.ctypes.data
        """The address of the constants that calls use."""

    def call(self, bound: Sequence[np.ndarray]) -> None:
        """
        Call the function on arrays in the order of the bindings, followed by the values of symbols, if there are any.

        Raises `ExecutionError` if the function fails.
        """
        if self.entry.profile:
            self.spans[:] = 0  # Threads without a task leave zeros.
        arrays = (*bound, self._cycles) if self.entry.profile else bound
        # If the code supports an observer, its address is the last argument: null.
        count = len(arrays) + self.entry.cancellable + self.entry.observed
        pointers = (ctypes.c_void_p * count)(*map(address_of, arrays))
        if self.entry.cancellable:
            self._perform_until(pointers, len(arrays))
        else:
            self._perform(pointers)

    def call_at(self, addresses: Sequence[int]) -> None:
        """
        Call the function on memory at these addresses, in the order of the bindings; all sizes must be numbers.

        The caller keeps the memory alive, and holds the turn of the state. Raises `ExecutionError` if the function
        fails.
        """
        if self.entry.cancellable and (self._has_loops or current_cancellation() is not None):
            count = len(addresses) + 1 + self.entry.observed
            self._perform_until((ctypes.c_void_p * count)(*addresses), len(addresses))
        elif status := self._invoke(self._pointers_at(*addresses, *self.behind)):
            raise _error_of(self.entry, status)

    def packed_address(self, binding: Binding) -> int:
        """The address of the present packed state; requires the turn of the state."""
        return self._packed[binding.name].current(self._state).ctypes.data

    def _perform_until(self, pointers: ctypes.Array[ctypes.c_void_p], position: int) -> None:
        """Call the function on addresses; put the address of the cancellation word at `position`."""
        cancellation = current_cancellation() or Cancellation()
        pointers[position] = cancellation.address
        with Interruptible(cancellation) if self._has_loops else contextlib.nullcontext():
            self._perform(pointers, cancellation)

    def _perform(self, pointers: Pointers, cancellation: Cancellation | None = None) -> None:
        """Call the function on the addresses of arrays; raises `ExecutionError` if it fails."""
        status = self._invoke(pointers)
        if status == CANCELLED and cancellation is not None:
            cancellation.check()
        if status:
            raise _error_of(self.entry, status)

    def _alone(self, pointers: Pointers) -> int:
        """Call the function on the addresses of arrays in this thread; return its status."""
        return self._function(self.constants_address, pointers, self._activations_address(), None)

    def _shared(self, pointers: Pointers) -> int:
        """As `_alone`, with the worker threads if no other call uses them."""
        with workers(self._library, self._threads) as parallel:
            return self._function(self.constants_address, pointers, self._activations_address(), parallel)

    def _activations(self) -> np.ndarray:
        """Allocate activations; raises `OutOfMemoryError`."""
        size = self.entry.activations
        try:
            return aligned(size, small_pages if self.entry.symbols else np.empty)
        except MemoryError as error:
            hint = "'glow-run --dump-html' shows what they hold"
            raise OutOfMemoryError(f"there is too little memory for {size} bytes of activations", hint=hint) from error

    def _activations_address(self) -> int:
        """The address of this thread's activations, cached because numpy is slow to return it."""
        try:
            return self._local.address
        except AttributeError:
            self._local.activations = self._activations()
            self._local.address = self._local.activations.ctypes.data
            return self._local.address


class MachineCode(Executable):
    """
    A loaded artifact of machine code. An entry is linked when it is first used.

    Up to `threads` threads share an inference. `libraries` has the libraries that are already linked, by the numbers of
    their object files.
    """

    def __init__(self, artifact: Artifact, threads: int = 1, libraries: Mapping[int, Functions] | None = None) -> None:
        manifest = artifact.manifest
        if manifest.requirements:
            reason = f"the code has unresolved functions: {', '.join(manifest.requirements)}"
            raise OptionError(reason, hint="compile a bundle and link them")
        super().__init__([entry.name for entry in manifest.entries], State(initial_state(artifact)))
        self.manifest = manifest
        self.constants = artifact.constants
        self._shared = artifact.shared
        self.code_bytes = sum(map(len, artifact.code))
        """Size of the object files."""
        self._packing = {_packed_binding(entry).name: entry for entry in manifest.packing}
        """Name of packed state → the entry that computes it."""
        self._packed = {
            name: PackedState(_sources(entry), partial(self.pack, name)) for name, entry in self._packing.items()
        }
        self._code = artifact.code
        self._threads = threads
        self._libraries: dict[int, Functions] = dict(libraries or {})
        self._loaded: dict[str, MachineEntry] = {}
        self._loading = threading.Lock()

    @property
    def memory(self) -> dict[object, int]:
        shared: dict[object, int] = {pages: pages.nbytes for pages in self._shared}
        own = self.constants.nbytes - sum(pages.nbytes for pages in self._shared)
        return {**shared, self: self.code_bytes + own + self.activation_bytes}

    @property
    def activation_bytes(self) -> int:
        return max((entry.activations for entry in self.manifest.entries), default=0)

    def load(self, name: str) -> MachineEntry:
        with self._loading:
            if name not in self._loaded:
                entries = (*self.manifest.entries, *self.manifest.packing)
                (entry,) = (entry for entry in entries if entry.name == name)
                _check_machine(entry)
                if entry.code not in self._libraries:
                    self._libraries[entry.code] = Library(self._code[entry.code])
                library = self._libraries[entry.code]
                self._loaded[name] = MachineEntry(
                    entry, library, self.constants, self.state, self._packed, self._threads
                )
            return self._loaded[name]

    def pack(self, name: str, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """The packed state of a name, computed from plain state; aligned to 64 bytes, as its code expects."""
        entry = self._packing[name]
        packed = _aligned_array(_packed_binding(entry))
        bound = [packed if binding.role == "packed" else state[binding.name] for binding in entry.bindings]
        self.load(entry.name).call(bound)
        return packed


def _error_of(entry: Entry, status: int) -> ExecutionError:
    """The error for a nonzero status."""
    if status == WRONG_VECTORS:
        reason = f"the code of @{entry.name} requires another vector length than this processor has"
        return ExecutionError(reason, hint=f"it is for {entry.machine or entry.target}")
    if not 0 < status <= len(entry.failures):
        return ExecutionError(f"@{entry.name} returned the status {status}")
    failure = entry.failures[status - 1]
    return failed_call(failure.reason, failure.location)


def load(artifact: Artifact, threads: int) -> MachineCode:
    """The machine code of an artifact; a call may use up to `threads` threads."""
    return MachineCode(artifact, threads)


def _check_machine(entry: Entry) -> None:
    """Raise `OptionError` for an entry whose code this machine cannot run, because it would crash this process."""
    if missing := lacks(entry.triple, entry.features):
        reason = f"this machine cannot run code for the target of @{entry.name}: it lacks {missing}"
        raise OptionError(reason, hint="compile the function for this machine")


def initial_state(artifact: Artifact) -> list[Initial]:
    """The states of an artifact, with the initial values stored after its constants."""
    found: list[Initial] = []
    for value in artifact.manifest.state:
        size = int(np.prod(value.shape, dtype=np.int64)) * named_dtype(value.dtype).itemsize
        content = artifact.constants[value.offset : value.offset + size] if value.offset >= 0 else None
        found.append(Initial(value.name, value.dtype, value.shape, content))
    return found


def _packed_binding(entry: Entry) -> Binding:
    """The packed state computed by an entry."""
    return next(binding for binding in entry.bindings if binding.role == "packed")


def _sources(entry: Entry) -> list[str]:
    """The names of the states packed by an entry."""
    return [binding.name for binding in entry.bindings if binding.role == "state"]


def _aligned_array(binding: Binding) -> np.ndarray:
    """Allocate packed state; raises `OutOfMemoryError`."""
    try:
        return aligned(binding.nbytes).view(named_dtype(binding.dtype)).reshape(binding.shape)
    except MemoryError as error:
        reason = f"there is too little memory for '{binding.name}', the packed state"
        raise OutOfMemoryError(reason) from error


def _check_output(binding: Binding, array: np.ndarray) -> None:
    """Raise `InputError` for memory that does not fit an output."""
    if array.dtype == binding.numpy_dtype and (binding.sizes or array.shape == binding.shape):
        return
    wanted, given = f"{binding.dtype}{list(binding.shape)}", f"{array.dtype.name}{list(array.shape)}"
    raise InputError(f"output '{binding.name}' is {wanted}, but its buffer is {given}", hint="bind other memory")


def _is_same_memory(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have the same elements in the same memory."""
    return (one.ctypes.data, one.shape, one.strides) == (other.ctypes.data, other.shape, other.strides)


def _is_element_aligned(array: np.ndarray) -> bool:
    """Whether the elements of an array are aligned as machine code expects."""
    return array.flags.aligned
