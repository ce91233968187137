"""
The policy and the memory limits of functions, on any machine.

A field added here is an option of the pass `assign-target`, a field of `--target NAME,FIELD=VALUE` and of the text of
targets, a part of the keys of artifacts, and a row of docs/options.md. With a `flag`, tools have it too, and
sessions have it as a keyword.
"""

from __future__ import annotations

from glow_mlir.options.declaration import Flag, Options, Range, Words, option
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import NUMBER_OF_THREADS

MAX_BYTES = 1 << 47
"""The upper bound of tensors and buffers: all that a process can address; sums of a few are far below 2^63."""

MAX_THREADS = 1 << 16
"""The maximum number of threads for the work of an inference, on any backend."""

THREADS = "number of threads"
"""The noun for numbers of threads in errors."""

_BYTES = Range(0, MAX_BYTES)


@dataclass(frozen=True)
class Policy(Options):
    """The policy of a function, on any machine."""

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
        "strict: each step rounds where the model does, and sums are plain (docs/floating-point.md)",
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
        "goal of code: few executed instructions, or little code, constants and memory",
        domain=Words(("speed", "size")),
        flag=Flag("--optimize", default_text="speed"),
    )


@dataclass(frozen=True)
class Limits(Options):
    """The memory limits of a function; 0 is no limit."""

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
        "bytes that machine code and constants may take",
        domain=_BYTES,
        flag=Flag("--flash-limit", "BYTES", also="with 256K or 1M for short"),
    )
