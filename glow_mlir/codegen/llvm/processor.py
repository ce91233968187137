"""What LLVM says of a processor, asked in a process of its own: of one that cannot be, LLVM ends the process."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from dataclasses import dataclass

_QUESTION = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
triple, cpu, features = sys.argv[1:]
try:
    target = llvm.Target.from_triple(triple)
except RuntimeError as error:
    sys.exit(str(error))
machine = target.create_target_machine(cpu=cpu, features=features, reloc="pic", codemodel="small")
module = llvm.parse_assembly("define float @f(float %x) { %y = fadd float %x, %x ret float %y }")
module.triple = triple
module.data_layout = str(machine.target_data)
machine.emit_object(module)
print(machine.target_data)
"""
"""A program that compiles a function for a triple, cpu and features, and prints the layout of data."""

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
    """What LLVM says of a processor; it takes a tenth of a second."""
    asked = subprocess.run(
        [sys.executable, "-c", _QUESTION, triple, cpu, features], capture_output=True, text=True, check=False
    )
    # What LLVM does not know it leaves out with a warning: then it may give up, for what is missing.
    lines = asked.stderr.strip().splitlines()
    if asked.returncode or lines:
        return Answer(lines[0] if lines else f"it ends with the code {asked.returncode}")
    size = _POINTER.search(asked.stdout)
    return Answer("", int(size[1]) if size else _DEFAULT_POINTER)
