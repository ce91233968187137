"""
Files of StableHLO: text in any form, bytecode, and programs of `jax.export`.

Text is recognized by operations of `stablehlo` or `chlo`, or by what JAX notes at modules; a `.mlir` file may have
other dialects.
"""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from glow_mlir.errors import GlowError, ModelError, ParseFailure
from glow_mlir.frontends.stablehlo.bytecode import text_of
from glow_mlir.ir.context import new_context
from glow_mlir.ir.dense_text import resolve_resources
from glow_mlir.ir.text import decoded, parse_module
from glow_mlir.support.file_kinds import BYTECODE
from glow_mlir.support.flatbuffer import Flatbuffer

_PROGRAM = 13
"""The field of the first table of a file of `jax.export` that is the program."""


def exported_program(data: bytes) -> bytes | None:
    """The bytecode in a file of `jax.export`; `None` for other content."""
    if data.find(BYTECODE) < 0:
        return None
    try:
        program = Flatbuffer(memoryview(data), "").root().array(_PROGRAM, "u1").tobytes()
    except GlowError:
        return None
    return program if program.startswith(BYTECODE) else None


def read_stablehlo(source: Path | str | bytes) -> ModuleOp:
    """
    Read and verify a program from a file (a path), or from the content of one (`bytes`).

    Constants that the text has as resources become dense attributes. Raises `ParseFailure` with the position for
    malformed text, `ModelError` for damaged bytecode and for what is no program of StableHLO, and `OptionError` for
    bytecode where jaxlib is not installed.
    """
    file = "<stablehlo>" if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else _content(Path(source))
    if data.startswith(BYTECODE):
        text = text_of(data, file)
    elif b"\0" in data[:64]:
        program = exported_program(data)
        if program is None:
            raise ModelError(
                "is no program of StableHLO, and no file of jax.export",
                file=file,
                hint="jax.export.export(jax.jit(f))(x).serialize() makes one",
            )
        text = text_of(program, file)
    else:
        text = decoded(data, file)
    context = new_context()
    module = parse_module(text, context, file)
    resolve_resources(module, context)
    return module


def _content(path: Path) -> bytes:
    """The bytes of a file; raises `ParseFailure` if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParseFailure(f"cannot be read: {error.strerror}", file=str(path)) from error
