"""How many cores this process may compute on: those that it may run on, and no more than its container has time for."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

Quota = Callable[[Path], float]
"""Says how many cores' time the group of a folder has."""

SYSTEM = Path("/")
"""The root of the file system."""


def usable_cores(system: Path = SYSTEM) -> int:
    """
    How many cores this process may compute on at once, 1 at least.

    A control group of Linux may allow less time than the cores have (`cpu.max`, or `cpu.cfs_quota_us` of the first
    version): threads beyond that only wait until the period is over. A part of a core counts as one.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _quotas(system))]))


def _quotas(system: Path) -> Iterator[float]:
    """How many cores' time the control groups allow that this process is in, as far as they say."""
    with suppress(OSError, ValueError):
        for line in (system / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield from _in_groups(system / "sys/fs/cgroup", path, _of_second_version)
            elif "cpu" in controllers.split(","):
                yield from _in_groups(system / "sys/fs/cgroup/cpu", path, _of_first_version)


def _in_groups(root: Path, path: str, quota: Quota) -> Iterator[float]:
    """The quotas of a group and of those around it; in a container, the root may be the group itself."""
    folder = root / path.lstrip("/")
    while ".." not in folder.parts:  # Groups outside of what a container sees are not to be read.
        with suppress(OSError, ValueError):
            if (found := quota(folder)) > 0:
                yield found
        if folder == root or root not in folder.parents:
            return
        folder = folder.parent


def _of_second_version(folder: Path) -> float:
    """The quota of a group; raises `ValueError` where it is `max`."""
    time, period = (folder / "cpu.max").read_text().split()
    return int(time) / int(period)


def _of_first_version(folder: Path) -> float:
    """The quota of a group; negative where there is none."""
    time, period = (int((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    return time / period
