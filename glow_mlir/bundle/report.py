"""The memory use of a bundle: flash, RAM, stack, and the lifetime of each buffer, as text, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from glow_mlir.bundle.layout import BundleLayout
from glow_mlir.pictures.memory import Buffer, Memory
from glow_mlir.pictures.page import Page, Shown
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.short_names import short_names

WORTH_SAYING = 0.1
"""The share of flash from which on the text suggests savings."""

_MAX_BUFFERS = 12
"""The number of buffers of each entry in the text."""


@dataclass(frozen=True)
class MemoryReport:
    """The memory of a bundle in bytes: read-only, writable, and the buffers of each entry."""

    name: str
    target: str
    code: int
    constants: int
    mutables: int
    activations: int
    stack: int
    entries: Mapping[str, Memory]
    expanded: int = 0
    """The growth of constants by packed forms that save instructions."""

    @staticmethod
    def of(layout: BundleLayout, code: int, stack: int, memories: Mapping[str, Memory], expanded: int) -> MemoryReport:
        """The report on a laid-out bundle, from the size of its code and the arena of each entry."""
        target = layout.target
        return MemoryReport(
            layout.name,
            f"{target.triple} {target.cpu}".strip(),
            code,
            layout.constants,
            layout.mutables,
            layout.activations,
            stack,
            memories,
            expanded,
        )

    @property
    def flash(self) -> int:
        """The read-only memory."""
        return self.code + self.constants

    @property
    def ram(self) -> int:
        """The writable memory."""
        return self.mutables + self.activations + self.stack

    def data(self) -> dict[str, Any]:
        """The report as JSON data."""
        entries = {
            name: {
                "activations": memory.size,
                "lower_bound": memory.bound,
                "peak_instruction": memory.peak,
                "buffers": [_buffer_data(buffer) for buffer in memory.buffers],
                "instructions": [asdict(step) for step in memory.steps],
            }
            for name, memory in self.entries.items()
        }
        return {
            "name": self.name,
            "target": self.target,
            "flash": {
                "total": self.flash,
                "code": self.code,
                "constants": self.constants,
                "constants_expanded": self.expanded,
            },
            "ram": {
                "total": self.ram,
                "activations": self.activations,
                "mutables": self.mutables,
                "stack_bound": self.stack,
            },
            "entries": entries,
        }

    def json(self) -> str:
        """The report as JSON."""
        return json.dumps(self.data(), indent=1) + "\n"

    def html(self) -> str:
        """A page with the numbers, and the arena of the largest entry over time."""
        largest = max(self.entries.values(), key=lambda memory: memory.size, default=None)
        return Page(f"{self.name}: flash {self.flash:,}, RAM {self.ram:,} bytes", [Shown(memory=largest)]).html()

    def text(self) -> str:
        """The report as text."""
        lines = [
            f"{self.name} for {self.target}, in bytes",
            f"flash {self.flash:>12,}   code {self.code:,}, constants {self.constants:,}",
            f"RAM   {self.ram:>12,}   activations {self.activations:,}, inputs, outputs and state {self.mutables:,}, "
            f"stack at most {self.stack:,}",
        ]
        if self.expanded > self.flash * WORTH_SAYING:
            lines.append(f"--optimize size saves {self.expanded:,} of flash: filters are larger in forms for few steps")
        for name, memory in self.entries.items():
            lines += ["", f"{name}: activations {memory.size:,}, no arena is smaller than {memory.bound:,}"]
            lines += _buffer_lines(memory)
        return "\n".join(lines) + "\n"


def _buffer_lines(memory: Memory) -> list[str]:
    """The largest buffers of an entry, with their offsets and lifetimes."""
    largest = sorted(memory.buffers, key=lambda buffer: -buffer.size)
    short = short_names(name for buffer in memory.buffers for name in buffer.origins)
    lines = [f"  {'offset':>10} {'bytes':>10}  instructions  buffer"]
    for buffer in largest[:_MAX_BUFFERS]:
        life = f"{buffer.begin}..{max(buffer.begin, buffer.end - 1)}"
        lines.append(f"  {buffer.offset:>10,} {buffer.size:>10,}  {life:12}  {_described(buffer, short)}")
    if len(largest) > _MAX_BUFFERS:
        lines.append(f"  and {len(largest) - _MAX_BUFFERS} smaller ones")
    return lines


def _described(buffer: Buffer, short: Mapping[str, str]) -> str:
    """A description of a buffer: its writer, its shape, and short names of its nodes."""
    nodes = f" of {', '.join(short[name] for name in buffer.origins)}" if buffer.origins else ""
    return f"{buffer.kind} {buffer.shape}{nodes}"


def _buffer_data(buffer: Buffer) -> dict[str, Any]:
    """A buffer as JSON data; its lifetime is the half-open range of instructions from `begin` to `end`."""
    return {
        "name": buffer.name,
        "kind": buffer.kind,
        "nodes": buffer.origins,
        "shape": buffer.shape,
        "offset": buffer.offset,
        "bytes": buffer.size,
        "begin": buffer.begin,
        "end": buffer.end,
    }
