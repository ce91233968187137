"""The system that serves requests: replicas of a model, each with stages on devices, behind one queue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from glow_mlir.errors import OptionError
from glow_mlir.simulation.service import Law, check_law
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Hop:
    """A preceding stage of the replica, by number, and the seconds until its results are available."""

    stage: int
    seconds: float = 0.0
    per_row: float = 0.0


@dataclass(frozen=True)
class Stage:
    """
    The work of one device for a call of a replica.

    It begins when the stages in `after` are done and their results have arrived. It processes a `share` of the rows of
    the call, rounded up; less than 1 if devices split a batch.
    """

    name: str
    device: str
    law: Law
    after: tuple[Hop, ...] = ()
    share: float = 1.0


Replica = tuple[Stage, ...]
"""One copy of a model. Stages depend only on earlier stages, so there are no cycles."""


def chain(stages: Sequence[Stage], hop: float = 0.0) -> Replica:
    """Consecutive stages with the seconds between them: a pipeline with several calls in flight."""
    return tuple(replace(stage, after=(Hop(number - 1, hop),) if number else ()) for number, stage in enumerate(stages))


@dataclass(frozen=True)
class Batching:
    """
    How requests are batched: up to `size` rows in all, as soon as there are enough.

    A smaller batch is started once its oldest request has waited for `delay` seconds, or without a delay when a replica
    is free. A request with more rows is a call of its own.
    """

    size: int = 1
    delay: float = 0.0


@dataclass(frozen=True)
class System:
    """
    Replicas behind a queue.

    Each request takes `overhead` seconds of one of the host's `cores` before it enters the queue, which holds at most
    `queue` requests, or any number. A call goes to the replica with fewest running calls, and of these to the least
    recently used; no replica has more than `depth`. A device processes its work in order, one call at a time, or as
    many as `calls` has for its name.
    """

    replicas: tuple[Replica, ...]
    batching: Batching = Batching()
    depth: int = 1
    queue: int | None = None
    overhead: float = 0.0
    cores: int = 1
    calls: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def devices(self) -> list[str]:
        """The names of all devices, in the order of the replicas."""
        return list(dict.fromkeys(stage.device for replica in self.replicas for stage in replica))

    def check(self) -> None:
        """Raise `OptionError` for an invalid system."""
        if not self.replicas or not all(self.replicas):
            raise OptionError("a replica has no stages", hint="give one stage at least")
        for replica in dict.fromkeys(self.replicas):
            for number, stage in enumerate(replica):
                _check_stage(stage, number)
        counts = {"depth": self.depth, "cores": self.cores, "size of a batch": self.batching.size, **self.calls}
        for name, count in counts.items():
            if count < 1:
                raise OptionError(f"{name} is {count}", hint="it is 1 at least")
        for name in self.calls.keys() - set(self.devices):
            raise OptionError(f"no stage is on device '{name}'", hint=f"there are {', '.join(self.devices)}")
        for name, seconds in (("overhead", self.overhead), ("delay of a batch", self.batching.delay)):
            if not 0 <= seconds < math.inf:
                raise OptionError(f"{name} is {seconds} seconds", hint="seconds are finite, and 0 at least")
        if self.queue is not None and self.queue < 1:
            raise OptionError(f"the queue has room for {self.queue} requests", hint="give 1 at least")


def _check_stage(stage: Stage, number: int) -> None:
    check_law(stage.law, f"stage '{stage.name}'")
    if not 0 < stage.share <= 1:
        raise OptionError(f"stage '{stage.name}' has a share of {stage.share}", hint="of all rows, which are 1")
    for hop in stage.after:
        if not 0 <= hop.stage < number:
            raise OptionError(f"stage '{stage.name}' is not behind what it is after", hint="earlier stages come first")
        if not (0 <= hop.seconds < math.inf and 0 <= hop.per_row < math.inf):
            raise OptionError(f"a hop to stage '{stage.name}' takes {hop.seconds} seconds", hint="0 at least")


def replicated(system: System, count: int) -> System:
    """A system with each replica copied `count` times, each copy on its own devices, such as `gpu.0` and `gpu.1`."""
    if count == 1:
        return system
    replicas = [
        tuple(replace(stage, device=f"{stage.device}.{number}") for stage in replica)
        for number in range(count)
        for replica in system.replicas
    ]
    calls = {f"{name}.{number}": most for number in range(count) for name, most in system.calls.items()}
    return replace(system, replicas=tuple(replicas), calls=calls)
