"""Load an object file into this process, and find the addresses of its functions."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast


@functools.cache
def llvm_of_host() -> Any:
    """`llvmlite.binding`, initialized for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _close(engine: Any, file: Any, context: Any, data: bytes) -> None:
    """Free a library: first the engine, because it uses the rest."""
    engine.close()
    file.close()
    context.close()


class Functions(Protocol):
    """A provider of functions by name, such as `Library`."""

    def function(
        self, name: str, arguments: Sequence[type[Any]], result: type[Any] | None = None
    ) -> Callable[..., Any]:
        """A function that can be called from Python with these ctypes."""
        ...

    def address(self, name: str) -> int:
        """The address of a function of this process."""
        ...


class Library:
    """
    Machine code in memory, alive as long as this object or a function from it.

    The object must define every symbol it uses: nothing is resolved in the process.
    """

    def __init__(self, data: bytes) -> None:
        llvm = llvm_of_host()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
        context = llvm.create_context()
        # This memory manager keeps code and constants together. Otherwise they may be further apart than code can reach
        # (2 GiB on x86) in a process with many mappings, and LLVM would abort.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly("", context), machine, use_lmm=True)
        file = llvm.ObjectFileRef.from_data(data)
        # Objects referenced only by a library would be closed in any order if it is part of a garbage cycle. MCJIT
        # reads the bytes when it links, so they stay with the engine.
        weakref.finalize(self, _close, self._engine, file, context, data).atexit = False
        self._engine.add_object_file(file)
        self._engine.finalize_object()
        self._addresses: dict[str, int] = {}

    def address(self, name: str) -> int:
        """
        Return the address of a function; raises `KeyError` if the object does not define it.

        LLVM is asked only once: in a child of `os.fork`, its lock may be held forever by a thread of the parent.
        """
        if name not in self._addresses:
            address = cast("int", self._engine.get_function_address(name))
            if not address:
                raise KeyError(name)
            self._addresses[name] = address
        return self._addresses[name]

    def function(
        self, name: str, arguments: Sequence[type[Any]], result: type[Any] | None = None
    ) -> Callable[..., Any]:
        """
        Return a function that can be called from Python with these ctypes.

        Pass arrays as `array.ctypes.data` for a `ctypes.c_void_p`; the global lock is released during the call. Raises
        `KeyError` if the object does not define `name`.
        """
        call = ctypes.CFUNCTYPE(result, *arguments)(self.address(name))
        # The code has to outlive the function that jumps to it.
        setattr(call, "library", self)
        return call
