"""The number of cores that this process may use: its CPU affinity, limited by its container's CPU quota."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

Quota = Callable[[Path], float]
"""Returns the CPU quota of a control group's folder, in cores."""

SYSTEM = Path("/")
"""The root of the file system."""


def usable_cores(system: Path = SYSTEM) -> int:
    """
    The number of cores that this process may use at once, at least 1.

    A Linux control group may limit CPU time (`cpu.max`, or `cpu.cfs_quota_us` in version 1): additional threads would
    only wait for the end of the period. A fraction of a core counts as a core.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _quotas(system))]))


def _quotas(system: Path) -> Iterator[float]:
    """The CPU quotas, in cores, of the control groups of this process."""
    with suppress(OSError, ValueError):
        for line in (system / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield from _in_groups(system / "sys/fs/cgroup", path, _of_second_version)
            elif "cpu" in controllers.split(","):
                yield from _in_groups(system / "sys/fs/cgroup/cpu", path, _of_first_version)


def _in_groups(root: Path, path: str, quota: Quota) -> Iterator[float]:
    """The quotas of a group and its ancestors; in a container, the root may be the group itself."""
    folder = root / path.lstrip("/")
    while ".." not in folder.parts:  # Groups outside the container are not readable.
        with suppress(OSError, ValueError):
            if (found := quota(folder)) > 0:
                yield found
        if folder == root or root not in folder.parents:
            return
        folder = folder.parent


def _of_second_version(folder: Path) -> float:
    """The quota of a group in version 2; raises `ValueError` for `max`."""
    time, period = (folder / "cpu.max").read_text().split()
    return int(time) / int(period)


def _of_first_version(folder: Path) -> float:
    """The quota of a group in version 1; negative for none."""
    time, period = (int((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    return time / period
