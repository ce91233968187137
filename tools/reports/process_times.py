"""The CPU time of processes and of all that they started, as Linux counts it in /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from glow_mlir.errors import OptionError

PROC = Path("/proc")

PARENT, USER, SYSTEM = 1, 11, 12
"""Where numbers stand in /proc/PID/stat behind the name of the program."""

COARSE = 2
"""By how many ticks of a process its threads may differ from it, where none of them has ended."""


def _stat(pid: int) -> list[str]:
    """What there is to say of a process behind its name; nothing where it has ended."""
    try:
        # The name may have brackets and spaces.
        return (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def with_children(pids: Iterable[int]) -> set[int]:
    """Those processes, and all that they and theirs started; raises `OptionError` for one that is not there."""
    if not PROC.is_dir():
        raise OptionError("there is no /proc, which has the CPU time of processes")
    parents = {
        int(item.name): stat for item in PROC.iterdir() if item.name.isdigit() if (stat := _stat(int(item.name)))
    }
    children: dict[int, list[int]] = {}
    for pid, stat in parents.items():
        children.setdefault(int(stat[PARENT]), []).append(pid)
    found: set[int] = set()
    left = list(pids)
    for pid in left:
        if pid not in parents:
            raise OptionError(f"there is no process {pid}", hint="--pid takes the number of a server that runs here")
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left += children.get(pid, [])
    return found


def _cpu_seconds(pid: int) -> float:
    """
    The CPU time of a process, of all its threads.

    The scheduler counts nanoseconds of threads that there are, the process hundredths of a second of all that there
    were.
    """
    stat = _stat(pid)
    if not stat:
        return 0.0
    tick = 1 / os.sysconf("SC_CLK_TCK")
    coarse = (int(stat[USER]) + int(stat[SYSTEM])) * tick
    fine = 0
    try:
        for thread in (PROC / str(pid) / "task").iterdir():
            fine += int((thread / "schedstat").read_text("ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return coarse
    return fine / 1e9 if fine / 1e9 > coarse - COARSE * tick else coarse


def cpu_seconds(pids: Iterable[int]) -> dict[int, float]:
    """The CPU time of each process and of each that they started; raises `OptionError` for one that is not there."""
    return {pid: _cpu_seconds(pid) for pid in with_children(pids)}


def spent(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """The CPU time between two times; of processes that ended in between there is none."""
    return sum(max(0.0, seconds - before.get(pid, 0.0)) for pid, seconds in after.items())
