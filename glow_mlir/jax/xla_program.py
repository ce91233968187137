"""
Compiled programs as custom calls of XLA: `jax.jit`'s own dispatch takes their arguments and makes their results.

Python handles neither array by array, which takes most of the time of a small program.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

import jax
import numpy as np

from glow_mlir.api.onnxruntime.devices import CPU
from glow_mlir.jax.lowering import Lowered, is_key
from glow_mlir.jax.results import WIDE
from glow_mlir.runtime.aligned_memory import ALIGNMENT
from glow_mlir.runtime.artifact import Binding
from glow_mlir.runtime.cache import cache_key
from glow_mlir.runtime.executable import EntryPoint
from glow_mlir.runtime.file_cache import FileCache
from glow_mlir.runtime.host import host_name
from glow_mlir.runtime.loader import Library
from glow_mlir.runtime.machine_code import MachineEntry
from glow_mlir.runtime.sources import source_stamp
from glow_mlir.runtime.xla_call_layout import HANDLER
from glow_mlir.runtime.xla_calls import CallRecord

MAX_COPIED = 1 << 18
"""The maximum number of bytes of an array of numpy that XLA may copy; the program takes larger ones in place."""

MAX_HANDLERS = 8
"""The number of stored handlers, of 2 kB; the least recently used are removed first."""

_FORMAT = 1

_DIGEST = hashlib.sha256().digest_size
"""The bytes of the digest at the start of a file."""

REFUSALS = (TypeError, ValueError, OverflowError, RuntimeError)
"""What JAX raises for arguments that a compiled program does not take."""

_WAITED_FOR: set[CallRecord] = set()
"""Records of programs that are gone, whose last calls XLA still makes."""


class XlaProgram:
    """A compiled program that XLA calls on arrays of the types that it is compiled for."""

    def __init__(self, entry: MachineEntry, lowered: Lowered, replacing: Mapping[str, int]) -> None:
        """`entry` computes the program; `replacing` are outputs that take the memory of a donated leaf."""
        numbers = {binding.name: number for number, binding in enumerate(_of_role(entry, "output"))}
        self._entry = entry
        self._lowered = lowered
        self._record = CallRecord(entry)
        weakref.finalize(self, _release, self._record).atexit = False
        self._call = jax.ffi.ffi_call(
            _target(),
            [jax.ShapeDtypeStruct(info.shape, info.dtype) for info in lowered.result_types],
            input_output_aliases={number: numbers[name] for name, number in replacing.items()},
        )
        self._looks = bool(lowered.donated) or any(_bytes(info) > MAX_COPIED for info in lowered.types)
        """Whether calls look at each leaf, because some are given up, or are taken in place."""
        self._compiled = self._of_leaves(replacing) if self._looks else self._of_trees()

    def _of_leaves(self, replacing: Mapping[str, int]) -> Any:
        """The program that takes the leaves of the arguments and gives those of the results."""
        call, address = self._call, np.int64(self._record.address)

        def called(*leaves: Any) -> Any:
            return call(*leaves, record=address)

        jitted = jax.jit(called, donate_argnums=tuple(replacing.values()), keep_unused=True)
        return jitted.lower(*self._lowered.types).compile()

    def _of_trees(self) -> Any:
        """The program that takes the arguments and gives the results as they are."""
        call, address, lowered = self._call, np.int64(self._record.address), self._lowered

        def called(*positional: Any, **named: Any) -> Any:
            results = call(*jax.tree.leaves((positional, named)), record=address)
            return jax.tree.unflatten(lowered.results, results)

        positional, named = jax.tree.unflatten(lowered.arguments, lowered.types)
        return jax.jit(called, keep_unused=True).lower(*positional, **named).compile()

    def __call__(self, positional: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any] | None:
        """
        The results, in a tuple; `None` for arguments that XLA does not take as they are.

        Arrays that a call gives up are deleted.
        """
        record = self._record
        if record.constants_address != self._entry.constants_address:
            record.renew()
        try:
            results = self._called_on_leaves(positional, named) if self._looks else self._compiled(*positional, **named)
        except REFUSALS:
            return None
        record.begin()
        return (results,)

    def _called_on_leaves(self, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The results; raises `TypeError` for other trees than that of the program, and for what XLA would copy."""
        lowered = self._lowered
        leaves, tree = cast("tuple[list[Any], Any]", jax.tree.flatten((positional, named)))
        if tree != lowered.arguments or (np.ndarray in set(map(type, leaves)) and any(map(_is_copied, leaves))):
            raise TypeError
        results = self._compiled(*leaves)
        for number in lowered.donated:
            if isinstance(leaves[number], jax.Array):
                leaves[number].delete()
        return jax.tree.unflatten(lowered.results, results)


def xla_program(entry: EntryPoint, lowered: Lowered, replacing: Mapping[str, int]) -> XlaProgram | None:
    """
    The program that XLA calls; `None` where it has to be called otherwise: on other backends or devices, with several
    threads, where a call may fail or never end, and for elements that are not in memory as XLA has them.
    """
    if jax.default_backend() != CPU or not isinstance(entry, MachineEntry) or not entry.takes_pointers:
        return None
    inputs, outputs = (_of_role(entry, role) for role in ("input", "output"))
    infos = [*lowered.types, *lowered.result_types]
    if len(inputs) != len(lowered.types) or len(outputs) != len(lowered.result_types):
        return None
    if not all(map(_is_alike, (*inputs, *outputs), infos)) or any(info.weak_type for info in lowered.result_types):
        return None
    try:
        return XlaProgram(entry, lowered, replacing)
    except (*REFUSALS, MemoryError):  # XLA has another interface, or there is no memory for several calls at once.
        return None


def _is_alike(binding: Binding, info: Any) -> bool:
    """Whether the elements of an input or output are in memory as XLA has them, for any option of JAX."""
    dtype = info.dtype
    if is_key(dtype) or dtype.itemsize >= WIDE or binding.numpy_dtype != dtype:
        return False
    return 0 < _bytes(info) == binding.nbytes and binding.shape == info.shape


def _bytes(info: Any) -> int:
    """The bytes of an array of this shape and element type."""
    return math.prod(info.shape) * info.dtype.itemsize


def _is_copied(leaf: Any) -> bool:
    """Whether XLA would copy a large array of numpy."""
    return type(leaf) is np.ndarray and leaf.nbytes > MAX_COPIED and bool(leaf.ctypes.data % ALIGNMENT)


def _of_role(entry: EntryPoint, role: str) -> list[Binding]:
    return [binding for binding in entry.bindings if binding.role == role]


def _release(record: CallRecord) -> None:
    """Let a record go once no call uses it. Other threads, or a collection of garbage within, may do so at once."""
    _WAITED_FOR.add(record)
    for waiting in tuple(_WAITED_FOR):
        if waiting.is_idle:
            _WAITED_FOR.discard(waiting)


@cache
def _target() -> str:
    """The name by which XLA knows the handler of calls."""
    library = Library(_handler())
    function = library.function(HANDLER, (ctypes.c_void_p,), ctypes.c_void_p)
    jax.ffi.register_ffi_target(HANDLER, jax.ffi.pycapsule(function), platform=CPU)
    _LIBRARIES.append(library)
    return HANDLER


def _handler() -> bytes:
    """The object file of the handler, from the cache if it is there: models run without the compiler."""
    files = FileCache(f"xla-handlers-v{_FORMAT}", ".bin", MAX_HANDLERS)
    key = cache_key(source_stamp(), host_name())
    found = files.load(key) or b""
    digest, code = found[:_DIGEST], found[_DIGEST:]
    if digest == hashlib.sha256(code).digest():
        return code
    from glow_mlir.backends.cpu.targets import host_target
    from glow_mlir.codegen.xla_handler import xla_handler

    code = xla_handler(host_target())
    files.store(key, hashlib.sha256(code).digest() + code)
    return code


_LIBRARIES: list[Library] = []
"""Machine code that XLA calls, which lives as long as this process."""
