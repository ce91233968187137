"""What LLVM says of a processor, asked in a process of its own: of one that cannot be, LLVM ends the process."""

from __future__ import annotations

import functools
import re

from glow_mlir.codegen.llvm.foreign import ForeignEmissionError, emitted
from glow_mlir.codegen.llvm.machines import Machine
from glow_mlir.support.dataclass import dataclass

_QUESTION = "define float @f(float %x) { %y = fadd float %x, %x ret float %y }"
"""A module that each processor is asked to run."""

_POINTER = re.compile(r"(?:^|-)p:(\d+)")
"""The size of a pointer in a layout of data."""

_DEFAULT_POINTER = 64
"""Bits of a pointer where the layout says nothing."""


@dataclass(frozen=True)
class Answer:
    """Why LLVM compiles nothing for a processor, in one line, or nothing and the bits of its pointers."""

    refusal: str
    pointer_bits: int = 0


@functools.cache
def ask(triple: str, cpu: str, features: str) -> Answer:
    """What LLVM says of a processor; the first question takes a fifth of a second."""
    # What LLVM does not know it leaves out with a warning: then it may give up, for what is missing.
    try:
        answer = emitted(Machine(triple, cpu, features), _QUESTION, "data_layout")
    except ForeignEmissionError as error:
        return Answer(_first_line(error.said) or str(error))
    size = _POINTER.search(answer.data.decode())
    warning = _first_line(answer.said)
    return Answer(warning) if warning else Answer("", int(size[1]) if size else _DEFAULT_POINTER)


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")
