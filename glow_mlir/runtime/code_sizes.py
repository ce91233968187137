"""The memory of machine code, in bytes and as text, for statistics, comparisons and session pages."""

from __future__ import annotations

from collections.abc import Mapping

from glow_mlir.runtime.machine_code import MachineCode, MachineEntry

SIZE_WORDS: Mapping[str, str] = {
    "code_bytes": "machine code",
    "constant_bytes": "constants",
    "arena_bytes": "arena",
}
"""Size → its name in texts."""


def code_sizes(code: MachineCode, entry: MachineEntry) -> dict[str, int]:
    """Bytes of the code and constants shared by all entries, and of the activations of one entry, by name."""
    return {
        "code_bytes": code.code_bytes,
        "constant_bytes": code.manifest.constants,
        "arena_bytes": entry.entry.activations,
    }


def sizes_in_words(code: MachineCode, entry: MachineEntry) -> dict[str, int]:
    """`code_sizes` under their names in texts."""
    return {SIZE_WORDS[name]: size for name, size in code_sizes(code, entry).items()}
