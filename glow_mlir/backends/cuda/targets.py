"""The named graphics processors of the CUDA backend, in a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from glow_mlir.backends.cuda.loader import EMULATED_TRIPLE, NAME
from glow_mlir.dialects.target import Target
from glow_mlir.options.policy import Policy

TRIPLE = "nvptx64-nvidia-cuda"

THREADS = 1024
"""The number of threads that instructions are partitioned for; a launch has many tasks for each."""

_ANY = Target(
    NAME,
    triple=TRIPLE,
    vector_bits=128,  # What one access reads.
    vector_registers=16,  # Of 255 registers of 32 bits, those for which half of the warps are at hand.
    line_bytes=128,
    l1_bytes=128 << 10,
    l2_bytes=4 << 20,
    policy=Policy(threads=THREADS),
)


class Generation(NamedTuple):
    """A generation: its description, and its properties for kernels."""

    about: str
    target: Target
    shared_bytes: int
    """The shared memory available to a block by default."""


GENERATIONS: Mapping[str, Generation] = {
    "sm_75": Generation("Turing", replace(_ANY, cpu="sm_75", features="+ptx65"), 48 << 10),
    "sm_80": Generation("Ampere", replace(_ANY, cpu="sm_80", features="+ptx70", l2_bytes=40 << 20), 48 << 10),
    "sm_90": Generation("Hopper", replace(_ANY, cpu="sm_90", features="+ptx78", l2_bytes=50 << 20), 48 << 10),
    "sm_100": Generation("Blackwell", replace(_ANY, cpu="sm_100", features="+ptx86", l2_bytes=126 << 20), 48 << 10),
}
"""Name → generation. Code for a generation also runs on later ones."""

EMULATED = "emulated-"
"""Prefix of the names of emulated devices."""

PRESETS: Mapping[str, Target] = {
    **{name: generation.target for name, generation in GENERATIONS.items()},
    **{f"{EMULATED}{name}": replace(item.target, triple=EMULATED_TRIPLE) for name, item in GENERATIONS.items()},
}
"""Name → target of passes and kernels."""
