"""
What functions are made for on any machine, and what memory they may take.

A field added here is an option of the pass `assign-target`, a field of `--target NAME,FIELD=VALUE` and of the text of
targets, a part of the keys of artifacts, and a row of docs/options.md. With a `flag` tools have it as well, and
sessions as a keyword.
"""

from __future__ import annotations

from glow_mlir.options.declaration import Flag, Options, Range, Words, option
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import NUMBER_OF_THREADS

MAX_BYTES = 1 << 47
"""No tensor or buffer reaches further: it is all that a process can address, and sums of a few are far from 2^63."""

MAX_THREADS = 1 << 16
"""For how many threads the work of an inference may be cut, on any backend."""

THREADS = "number of threads"
"""What fewer, or more, are none of."""

_BYTES = Range(0, MAX_BYTES)


@dataclass(frozen=True)
class Policy(Options):
    """What a function is made for, on any machine."""

    GROUP = "policy"

    threads: int = option(
        1,
        "threads of an inference",
        domain=Range(1, MAX_THREADS, THREADS),
        kind=NUMBER_OF_THREADS,
        flag=Flag("--threads", "N", also="0 for all cores", default_text="those of the module, else 1"),
    )
    accuracy: str = option(
        "default",
        "strict: each step rounds where the model says it, and sums are plain (docs/floating-point.md)",
        domain=Words(("default", "strict")),
        flag=Flag("--accuracy"),
    )
    requantization: str = option(
        "float",
        "how quantized values are rescaled: by float or by integer multiplication",
        domain=Words(("float", "integer")),
    )
    optimize: str = option(
        "speed",
        "what code is made for: few instructions executed, or little code, constants and memory",
        domain=Words(("speed", "size")),
        flag=Flag("--optimize", default_text="speed"),
    )


@dataclass(frozen=True)
class Limits(Options):
    """What a function may take of memory; 0 is no limit."""

    GROUP = "limit"

    ram_bytes: int = option(
        0,
        "bytes that activations, inputs, outputs and state may take: layers that need more are computed by lines, "
        "several layers together",
        domain=_BYTES,
        flag=Flag("--ram-limit", "BYTES", also="with 256K or 1M for short"),
    )
    flash_bytes: int = option(
        0,
        "bytes that machine code and constants may take, likewise",
        domain=_BYTES,
        flag=Flag("--flash-limit", "BYTES", also="with 256K or 1M for short"),
    )
