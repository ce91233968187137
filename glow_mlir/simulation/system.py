"""What serves requests: replicas of a model, each some stages on devices, behind one queue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from glow_mlir.errors import OptionError
from glow_mlir.simulation.service import Law, check_law
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Hop:
    """A stage of the replica that comes before, by its number, and the seconds until the next knows what it gave."""

    stage: int
    seconds: float = 0.0
    per_row: float = 0.0


@dataclass(frozen=True)
class Stage:
    """
    What one device does for a call of a replica.

    It begins when what it is `after` is done and has come over. It takes a `share` of the rows of the call, rounded up:
    less than all of them where devices split a batch.
    """

    name: str
    device: str
    law: Law
    after: tuple[Hop, ...] = ()
    share: float = 1.0


Replica = tuple[Stage, ...]
"""One copy of a model. A stage is after earlier ones only, so that there is no cycle."""


def chain(stages: Sequence[Stage], hop: float = 0.0) -> Replica:
    """Stages one after the other, with the seconds from one to the next: a pipeline, where calls are in flight."""
    return tuple(replace(stage, after=(Hop(number - 1, hop),) if number else ()) for number, stage in enumerate(stages))


@dataclass(frozen=True)
class Batching:
    """
    How requests become calls: as many as have `size` rows in all, as soon as there are so many.

    Fewer are taken once the oldest has waited for `delay` seconds; without a delay what waits when a replica is free.
    A request of more rows is a call of its own.
    """

    size: int = 1
    delay: float = 0.0


@dataclass(frozen=True)
class System:
    """
    Replicas behind a queue.

    Each request takes `overhead` seconds of one of the `cores` of the host before it is in the queue, which has
    `queue` requests at most, or as many as come. A call goes to the replica with fewest calls in flight, of these to
    the one that was used longest ago; no replica has more than `depth`. A device does what it is given in this order,
    one call at a time, or as many as `calls` says of its name.
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
        """The names of all devices, in the order in which replicas have them."""
        return list(dict.fromkeys(stage.device for replica in self.replicas for stage in replica))

    def check(self) -> None:
        """Raise `OptionError` where this makes no sense."""
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
    """A system with each replica `count` times, each time on devices of its own, as `gpu.0` and `gpu.1`."""
    if count == 1:
        return system
    replicas = [
        tuple(replace(stage, device=f"{stage.device}.{number}") for stage in replica)
        for number in range(count)
        for replica in system.replicas
    ]
    calls = {f"{name}.{number}": most for number in range(count) for name, most in system.calls.items()}
    return replace(system, replicas=tuple(replicas), calls=calls)
