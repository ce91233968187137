"""The CPU backend for another processor, whose code an emulator runs: sessions and suites need not know."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from emulators import Machine, machine_for
from onnx.backend.test import BackendTest
from onnx_suite import functions_of

from glow_mlir import InferenceSession, onnx_backend
from glow_mlir.backends.cpu.backend import CpuBackend
from glow_mlir.dialects.target import Target
from glow_mlir.ir.registry import BACKENDS
from glow_mlir.runtime.artifact import Artifact, Entry
from glow_mlir.runtime.host import llvm_triple
from glow_mlir.runtime.machine_code import MachineCode

NAME = "emulated"


class EmulatedLibrary:
    """Has the functions of an artifact that a machine calls which is not this one; the interface is `Library`'s."""

    def __init__(self, artifact: Artifact, machine: Machine) -> None:
        self._artifact = artifact
        self._machine = machine

    def function(
        self, name: str, arguments: Sequence[type[Any]], result: type[Any] | None = None
    ) -> Callable[..., int]:
        """The entry of that name: it brings what it is bound to there, and back."""
        manifest = self._artifact.manifest
        (entry,) = (entry for entry in (*manifest.entries, *manifest.packing) if entry.name == name)
        sizes = [binding.nbytes for binding in entry.bindings]
        sizes += [8 * len(entry.symbols)] * bool(entry.symbols)
        sizes += [ctypes.sizeof(ctypes.c_int32)] * entry.cancellable  # The word that ends a call.

        def call(constants: int, pointers: Sequence[int], activations: int, parallel: int) -> int:
            bound = [_memory(pointer, size) for pointer, size in zip(pointers, sizes, strict=True)]
            called = self._machine.call(self._artifact, entry, bound)
            for array, data in zip(bound, called.bound, strict=True):
                array[...] = np.frombuffer(data, np.uint8)
            return called.status

        return call

    def address(self, name: str) -> int:
        """There is no code here."""
        raise KeyError(name)


def _memory(address: int, size: int) -> np.ndarray:
    """Bytes of this process."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) if size else np.zeros(0, np.uint8)


class EmulatedBackend(CpuBackend):
    """Compiles for `machine`, which is the host where no target is named. Nobody knows it but `emulating`."""

    name = NAME
    machine: ClassVar[str] = "neon"

    def host(self) -> Target:
        return self.targets()[self.machine]

    def lacks(self, target: Target) -> str:
        return ""

    def load(self, artifact: Artifact, threads: int) -> MachineCode:
        library = EmulatedLibrary(artifact, machine_for(self.machine))
        manifest = artifact.manifest
        entries, packing = _as_here(manifest.entries), _as_here(manifest.packing)
        # What the code requires of a compiler's library is linked to it.
        here = replace(manifest, entries=entries, packing=packing, requirements=())
        return MachineCode(replace(artifact, manifest=here), 1, {n: library for n in range(len(artifact.code))})


def _as_here(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Entries as if this machine could run them."""
    return tuple(replace(entry, triple=llvm_triple(), features=(), threads=1) for entry in entries)


def emulating(patch: pytest.MonkeyPatch, target: str) -> None:
    """Let there be the backend, for a target; skips the test where nothing runs code for that."""
    machine_for(target)
    patch.setattr(EmulatedBackend, "machine", target)
    patch.setitem(BACKENDS.all(), NAME, EmulatedBackend)


class OnTarget(onnx_backend.GlowBackend):
    """The backend of `glow_mlir.onnx_backend` for `EmulatedBackend.machine`."""

    @classmethod
    def prepare(cls, model: Any, device: str | None = "CPU", **kwargs: Any) -> onnx_backend.GlowBackendRep:
        return onnx_backend.GlowBackendRep(InferenceSession(model, backend=NAME, cache=False, **kwargs))


@cache
def suite_on_targets() -> Mapping[str, Callable[[None], None]]:
    """The tests of ONNX's suite by category and name, for the machine that `EmulatedBackend.machine` says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Some expectations overflow on purpose.
        return functions_of(BackendTest(OnTarget, __name__))
