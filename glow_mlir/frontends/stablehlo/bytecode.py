"""
Bytecode of StableHLO as text, by jaxlib in a process with limits.

`.mlirbc` files and the programs in files of `jax.export` are bytecode of MLIR, mostly of the portable dialect VHLO.
Only OpenXLA's own libraries know that, and jaxlib has them. A damaged file may end the process that reads it, or make
it take all memory; so that is another one.
"""

from __future__ import annotations

import os
import resource
import socket
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from glow_mlir.errors import ModelError, OutOfMemoryError
from glow_mlir.support.child_process import Children, NoProcessError, read_parts, write_parts
from glow_mlir.support.logged_process import LoggedProcess
from glow_mlir.support.optional_packages import imported

SECONDS = 4
"""The time of the processor that reading may take, in seconds, beside that for the size of the program."""

RATE = 5_000_000
"""The bytes of a program that take no more than a second."""

CAPACITY = 1 << 30
"""The memory that reading may take, in bytes, beside that for the program."""

FACTOR = 16
"""The memory that reading may take, for each byte of a program."""

_VHLO = b'"vhlo.'
"""What the text of portable bytecode has that is not made to StableHLO."""

_WHAT = "bytecode of StableHLO is read by jaxlib"


def text_of(data: bytes, file: str) -> str:
    """
    The text of a module of bytecode, in the generic form with locations.

    Raises `OptionError` where jaxlib is not installed, `ModelError` for what it cannot read, and `OutOfMemoryError`.
    """
    imported("jaxlib", "jax", _WHAT)
    try:
        with _CHILDREN.asked() as child:
            return child.ask(data, file)
    except NoProcessError as error:
        raise ModelError(f"no process can be started that reads bytecode: {error}", file=file) from error


class _ReadingProcess(LoggedProcess):
    """A process that reads bytecode."""

    def ask(self, data: bytes, file: str) -> str:
        """Send bytecode and wait for its text."""
        answer = self.exchange((data,), 2)
        if len(answer) < 2:
            reason = f"cannot be read: jaxlib ended with {self.close(patience=1.0)}"
            raise ModelError(reason, file=file, hint="check that the download is complete")
        failure, text = answer
        if failure == b"memory":
            raise OutOfMemoryError("there is too little memory to read it", file=file)
        if failure:
            reason = failure.decode(errors="replace")
            raise ModelError(f"cannot be read: {reason}", file=file, hint="jaxlib may be older than the program")
        return text.decode()


_CHILDREN = Children(partial(_ReadingProcess, f"{__name__}:serve"))


def serve(channel: socket.socket) -> None:
    """Read bytecode from the socket, and answer with a reason for failure, or nothing, and the text."""
    reader = _Reader()
    while parts := read_parts(channel, 1):
        _limit(len(parts[0]))
        try:
            failure, text = b"", reader.text(parts[0])
        except MemoryError:
            failure, text = b"memory", b""
        except Exception as error:
            failure, text = _reason(error).encode(), b""
        write_parts(channel, failure, text)


def _limit(size: int) -> None:
    """Limit what this process may take beside what it has taken."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + SECONDS + size // RATE
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + CAPACITY + FACTOR * size, most))


def _reason(error: Exception) -> str:
    """The first line in which jaxlib says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("error:")] or lines or [type(error).__name__]
    return telling[0].removeprefix("error:").strip()


class _Reader:
    """jaxlib's readers of bytecode."""

    def __init__(self) -> None:
        self._ir: Any = imported("jaxlib.mlir.ir", "jax", _WHAT)
        self._stablehlo: Any = imported("jaxlib.mlir.dialects.stablehlo", "jax", _WHAT)
        self._context = new_mlir_context()

    def text(self, data: bytes) -> bytes:
        """The text of bytecode, of VHLO or of StableHLO."""
        with self._context:
            try:
                return self._printed(self._stablehlo.deserialize_portable_artifact(self._context, data))
            except Exception:
                text = self._printed(self._ir.Module.parse(data))
                if _VHLO in text:  # It is portable bytecode, and the first reader has the reason.
                    raise
                return text

    def _printed(self, module: Any) -> bytes:
        operation = module if hasattr(module, "get_asm") else module.operation
        return operation.get_asm(print_generic_op_form=True, enable_debug_info=True).encode()


def new_mlir_context() -> Any:
    """A context of jaxlib with the dialects of JAX's programs; raises `OptionError` where jaxlib is not installed."""
    ir: Any = imported("jaxlib.mlir.ir", "jax", _WHAT)
    context = ir.Context()
    with suppress(ImportError):  # Older ones register MLIR's own dialects with each context.
        registry = ir.DialectRegistry()
        import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
        context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in ("stablehlo", "chlo", "sdy"):
        imported(f"jaxlib.mlir.dialects.{dialect}", "jax", _WHAT).register_dialect(context)
    return context
