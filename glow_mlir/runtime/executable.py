"""Execution of an artifact: buffers, the entry call, and what it reports."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping

import numpy as np

from glow_mlir.errors import OutOfMemoryError
from glow_mlir.runtime.artifact import Artifact, Binding
from glow_mlir.runtime.loader import Library
from glow_mlir.runtime.pool import look_up, workers
from glow_mlir.support.dtypes import named_dtype

ALIGNMENT = 64
_ENTRY = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def aligned(size: int, make: Callable[..., np.ndarray] = np.empty) -> np.ndarray:
    """`size` bytes that start at a multiple of 64, as `make` makes them: uninitialised by default."""
    raw = make(size + ALIGNMENT, np.uint8)
    begin = -raw.ctypes.data % ALIGNMENT
    return raw[begin : begin + size]


class Executable:
    """
    A loaded artifact.

    Calls may run in several threads at once: each thread has its own activations. One of them at a time may use the
    workers that a call has for its parts, where `threads` says that it may have any; the others compute alone.
    """

    def __init__(self, artifact: Artifact, threads: int = 1) -> None:
        self.manifest = artifact.manifest
        self.use_constants(artifact.constants)
        self.code_bytes = len(artifact.code)
        """Size of the object file."""
        self._library = Library(artifact.code)
        self._entry = self._library.function(self.manifest.entry, _ENTRY, ctypes.c_int32)
        self._threads = min(threads, self.manifest.threads)
        if self._threads > 1:
            look_up(self._library)
        self._local = threading.local()
        self.stamps = np.zeros(len(self.manifest.steps) + 1, np.int64)
        """With `profile`: the cycle counter before each instruction of the last call, and behind the last one."""

    def run(
        self, inputs: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """
        Call the entry and return its outputs by name, in new arrays.

        `inputs` are C-contiguous arrays of the declared type, aligned to their elements as all bindings are
        (docs/ir.md), used in place; `state` arrays are updated in place.
        """
        outputs: dict[str, np.ndarray] = {}
        bound: list[np.ndarray] = []
        for binding in self.manifest.bindings:
            if binding.role == "output":
                outputs[binding.name] = _made(binding)
                bound.append(outputs[binding.name])
            else:
                source = inputs if binding.role == "input" else (state or {})
                bound.append(source[binding.name])
        if self.manifest.profile:
            bound.append(self.stamps)
        self.call(bound)
        return outputs

    def use_constants(self, constants: np.ndarray) -> None:
        """Read the constants from `constants`, which start at a multiple of 64 bytes."""
        self.constants = constants
        self._constants_address = constants.ctypes.data

    def call(self, bound: list[np.ndarray]) -> None:
        """Call the entry on arrays in the order of the bindings."""
        pointers = (ctypes.c_void_p * len(bound))(*(array.ctypes.data for array in bound))
        if self._threads == 1:
            status = self._entry(self._constants_address, pointers, self._activations_address(), None)
        else:
            with workers(self._library, self._threads) as parallel:
                status = self._entry(self._constants_address, pointers, self._activations_address(), parallel)
        if status:
            raise RuntimeError(f"the compiled function returned {status}")

    def _activations(self) -> np.ndarray:
        """New activations; raises `OutOfMemoryError` where there is no room for them."""
        size = self.manifest.activations
        try:
            return aligned(size)
        except MemoryError as error:
            hint = "'glow-run --dump-html' shows what they hold"
            raise OutOfMemoryError(f"there is too little memory for {size} bytes of activations", hint=hint) from error

    def _activations_address(self) -> int:
        """The address of the activations of this thread, which are kept with it: numpy takes long to give it."""
        if not hasattr(self._local, "address"):
            self._local.activations = self._activations()
            self._local.address = self._local.activations.ctypes.data
        return self._local.address


def _made(binding: Binding) -> np.ndarray:
    """A new array for an output; raises `OutOfMemoryError` where there is no room for it."""
    try:
        return np.empty(binding.shape, named_dtype(binding.dtype))
    except MemoryError as error:
        reason = f"there is too little memory for output '{binding.name}', which is {describe(binding)}"
        raise OutOfMemoryError(reason, hint="give the model smaller inputs") from error


def describe(binding: Binding) -> str:
    """A binding's type in words, as `float32[1, 3, 224, 224]`."""
    return f"{binding.dtype}{list(binding.shape)}"
