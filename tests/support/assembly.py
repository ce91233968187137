"""What tests look for in assembly: the innermost loops of functions, their arithmetic and their stack accesses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from candidates import candidates_of, instructions_of, stacked
from execute import Case
from machines import target_named

from glow_mlir.codegen.llvm.emit import emit_module
from glow_mlir.codegen.llvm.objects import assembly_text
from glow_mlir.constants.storage import Storage
from glow_mlir.driver.compiler import Compilation

_LABEL = re.compile(r"^([.\w]+):")
_FUNCTION = re.compile(r"\.type\s+([^,]+),[@%]function")
_SECTION = re.compile(r"\.text$|\.section\s+(\.text[^,\s]*)")
_COLD = ".text.unlikely"
"""Where LLVM puts functions that are `cold`: `ModuleBuilder.function` says so of what is rarely called."""
_JUMP = re.compile(r"^(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\s(?:.*[,\s])?(\.L\w+)$")
_X86_ARITHMETIC = re.compile(r"^v?(?:fn?m(?:add|sub)\w*|add|sub|mul|div|min|max|sqrt)[sp][sdh]\b")
_ARM_ARITHMETIC = re.compile(r"^f(?:mla|mls|n?madd|n?msub|add|sub|n?mul|div|min|max|minnm|maxnm|sqrt)\b")
_REGISTERS = re.compile(r"%([xyz]mm)\d|\b(?:([vq])\d+|([sdh])\d+\b)")
_BITS = {"xmm": 128, "ymm": 256, "zmm": 512, "v": 128, "q": 128, "d": 64, "s": 32, "h": 16}


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its instructions, without labels."""

    function: str
    lines: tuple[str, ...]
    frame: tuple[str, ...]
    """How addresses on the stack are written."""
    cold: bool = False
    """Whether its function is rarely called."""

    @cached_property
    def arithmetic(self) -> list[str]:
        """The instructions that calculate with floats."""
        return [line for line in self.lines if _X86_ARITHMETIC.match(line) or _ARM_ARITHMETIC.match(line)]

    @property
    def scalar(self) -> list[str]:
        """The calculations with one float only."""
        return [line for line in self.arithmetic if re.match(r"^v?\w+s[sdh]\b", line) or not _widths(line, "vxyz")]

    @property
    def bits(self) -> int:
        """The width of the widest registers that are calculated with; 0 without packed arithmetic."""
        packed = [line for line in self.arithmetic if line not in self.scalar]
        return max((max(_widths(line, "vxyz"), default=0) for line in packed), default=0)

    @property
    def spills(self) -> list[str]:
        """The instructions that access fixed places of the stack; arrays, which have an index, are none."""
        return [line for line in self.lines if any(place in line for place in self.frame)]


def _widths(line: str, kinds: str) -> list[int]:
    names = (next(name for name in match if name) for match in _REGISTERS.findall(line))
    return [_BITS[name] for name in names if name[0] in kinds]


def innermost_loops(text: str) -> Iterator[Loop]:
    """The innermost loops of all functions of a module's assembly: what lies between a label and a jump back to it."""
    for name, lines, cold in _functions(text):
        labels = {match[1]: index for index, line in enumerate(lines) if (match := _LABEL.match(line))}
        jumps = ((index, _JUMP.match(line)) for index, line in enumerate(lines))
        back = [(labels[jump[1]], index) for index, jump in jumps if jump and labels.get(jump[1], index) < index]
        ends = {start: max(end for first, end in back if first == start) for start, _ in back}
        frame = ("(%rsp)", "[sp", *(["(%rbp)"] if "movq\t%rsp, %rbp" in lines else []))
        for start, end in ends.items():
            if not any(start < other and ends[other] <= end for other in ends):
                inside = tuple(line for line in lines[start : end + 1] if not _LABEL.match(line))
                yield Loop(name, inside, frame, cold)


def _functions(text: str) -> Iterator[tuple[str, list[str], bool]]:
    name, lines, cold, section = "", list[str](), False, ""
    for raw in text.splitlines():
        line = raw.split("#")[0].strip() if "%" in raw else raw.strip()
        if placed := _SECTION.match(line):
            section = placed[1] or ""
        if found := _FUNCTION.match(line):
            if name:
                yield name, lines, cold
            name, lines, cold = found[1], [], section.startswith(_COLD)
        elif line and (not line.startswith(".") or _LABEL.match(line)):
            lines.append(line)
    if name:
        yield name, lines, cold


def assembly_of(case: Case, target: str, kernel: str = "", **tiles: int) -> str:
    """
    The assembly of an operator for a target.

    With `kernel`, its instruction is executed by the first candidate of this kernel that has these tiles.
    """
    module = stacked(case, target=target)
    if kernel:
        op = next(op for op in instructions_of(module) if op.name == f"glow_low.{case.operator.name.split('.')[1]}")
        found = candidates_of(op, module, target)
        chosen = next(way for way in found if way.kernel.name == kernel and tiles.items() <= way.tiles.items())
        chosen.write(op, Storage(module), target_named(target))
    Compilation(module, target=target).run()
    return assembly_text(emit_module(module), target_named(target))
