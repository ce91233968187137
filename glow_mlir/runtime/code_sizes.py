"""The memory of machine code, in bytes and words, as statistics, comparisons and session pages show it."""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.runtime.machine_code import MachineCode, MachineEntry

SIZE_WORDS: Mapping[str, str] = {
    "code_bytes": "machine code",
    "constant_bytes": "constants",
    "arena_bytes": "arena",
}
"""Size → what people call it."""


def code_sizes(code: MachineCode, entry: MachineEntry) -> dict[str, int]:
    """Bytes of the code and constants that all entries share, and of the activations of one, by name."""
    return {
        "code_bytes": code.code_bytes,
        "constant_bytes": code.manifest.constants,
        "arena_bytes": entry.entry.activations,
    }


def sizes_in_words(code: MachineCode, entry: MachineEntry) -> dict[str, int]:
    """`code_sizes`, by what people call them."""
    return {SIZE_WORDS[name]: size for name, size in code_sizes(code, entry).items()}
