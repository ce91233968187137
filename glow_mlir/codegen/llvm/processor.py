"""LLVM's answer about a processor, from a separate process, because LLVM ends its process for an impossible one."""

from __future__ import annotations

import functools
import re

from glow_mlir.codegen.llvm.foreign import ForeignEmissionError, emitted
from glow_mlir.codegen.llvm.machines import Machine
from glow_mlir.support.dataclass import dataclass

_QUESTION = "define float @f(float %x) { %y = fadd float %x, %x ret float %y }"
"""A module that is compiled for each processor."""

_POINTER = re.compile(r"(?:^|-)p:(\d+)")
"""The size of a pointer in a data layout."""

_DEFAULT_POINTER = 64
"""Bits of a pointer if the layout does not give them."""


@dataclass(frozen=True)
class Answer:
    """Why LLVM cannot compile for a processor, in one line; or an empty text and the bits of its pointers."""

    refusal: str
    pointer_bits: int = 0


@functools.cache
def ask(triple: str, cpu: str, features: str) -> Answer:
    """Ask LLVM about a processor; the first request takes 0.2 seconds."""
    # LLVM ignores unknown features with a warning, and may then fail because they are missing.
    try:
        answer = emitted(Machine(triple, cpu, features), _QUESTION, "data_layout")
    except ForeignEmissionError as error:
        return Answer(_first_line(error.messages) or str(error))
    size = _POINTER.search(answer.data.decode())
    warning = _first_line(answer.messages)
    return Answer(warning) if warning else Answer("", int(size[1]) if size else _DEFAULT_POINTER)


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")
