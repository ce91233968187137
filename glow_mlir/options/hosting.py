"""How a host serves a network: the queue of requests, their batches, and the workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from glow_mlir.errors import OptionError
from glow_mlir.options.declaration import Flag, Options, Range, Words, declared, option
from glow_mlir.support.arguments import seconds
from glow_mlir.support.dataclass import dataclass
from glow_mlir.support.option_types import SECONDS, WORDS_BY_NAMES, check_kinds

MANY = 1 << 20

THREADS, PROCESSES, RAY = "threads", "processes", "ray"
"""The kinds of replicas."""


@dataclass(frozen=True, eq=False, repr=False)
class HostingOptions(Options):
    """The queue of a network, and the workers that compute its requests."""

    GROUP = "hosting"

    queue: int = option(
        100,
        "capacity of the queue; further requests are refused",
        domain=Range(0, MANY),
        flag=Flag("--queue", "N"),
    )
    batch: int = option(
        1,
        "largest batch of a call, in samples along the first axis of all inputs",
        domain=Range(1, MANY),
        flag=Flag("--batch", "N"),
    )
    delay: float = option(
        0.0,
        "seconds that a request waits to fill a batch while a worker is free",
        kind=SECONDS,
        flag=Flag("--delay", "SECONDS"),
    )
    replicas: int = option(
        1,
        "sessions of the model, each with devices and state of its own",
        domain=Range(1, 1 << 10),
        flag=Flag("--replicas", "N"),
    )
    stages: int = option(
        1,
        "pipeline stages of the model, each with a worker of its own",
        domain=Range(1, 1 << 10),
        flag=Flag("--stages", "N"),
    )
    calls: int = option(
        0,
        "calls of a replica at once; 0 stands for as many as cores for its threads, or three on devices with queues",
        domain=Range(0, 1 << 10),
        flag=Flag("--calls", "N"),
    )
    workers: str = option(
        THREADS,
        "kind of replicas: threads of this process, a process that is replaced when it ends, or an actor of Ray on a "
        "machine of its cluster",
        domain=Words((THREADS, PROCESSES, RAY)),
        flag=Flag("--workers", default_text=THREADS),
    )
    sequences: int = option(
        1000,
        "concurrent sequences of requests, each with its own state",
        domain=Range(1, MANY),
        flag=Flag("--sequences", "N"),
    )
    state: Mapping[str, str] = option(
        dict[str, str],
        "outputs, each with the input that it becomes in the next step of a sequence",
        kind=WORDS_BY_NAMES,
    )
    call_limit: float = option(
        0.0,
        "call timeout in seconds, after which the worker is replaced; 0 for none",
        kind=SECONDS,
        flag=Flag("--call-limit", "SECONDS"),
    )

    @classmethod
    def from_keywords(cls, keywords: Mapping[str, Any]) -> Self:
        """The options from keywords; raises `OptionError` for wrong types, and for options that make no sense."""
        known = declared(cls)
        check_kinds({name: known[name].kind for name in keywords}, keywords)
        for name in ("delay", "call_limit"):
            if name in keywords and seconds(keywords[name]) is None:
                raise OptionError(f"{name}={keywords[name]!r} is invalid", hint="a number of seconds")
        found = cls(**keywords)
        found.check()
        return found

    def check(self) -> None:
        """Raise `OptionError` for options that contradict one another."""
        if self.delay and self.batch == 1:
            raise OptionError("delay has no effect with batch=1", hint="raise batch, or set delay=0")
        if self.stages > 1 and self.batch > 1:
            raise OptionError("stages have fixed sizes and cannot batch requests", hint="batch=1, or stages=1")
