"""The CPU time of processes and their descendants, from Linux's /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from glow_mlir.errors import OptionError

PROC = Path("/proc")

PARENT, USER, SYSTEM = 1, 11, 12
"""Positions of fields in /proc/PID/stat after the program name."""

COARSE = 2
"""The tolerance, in ticks, between a process's time and the sum of its threads, if no thread has ended."""


def _stat(pid: int) -> list[str]:
    """The fields of a process's stat after its name; empty if the process has ended."""
    try:
        # The name may contain brackets and spaces.
        return (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def with_children(pids: Iterable[int]) -> set[int]:
    """The processes and all their descendants; raises `OptionError` for a missing process."""
    if not PROC.is_dir():
        raise OptionError("there is no /proc to read the CPU time of processes from")
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
    The CPU time of a process, including all its threads.

    The scheduler counts nanoseconds for live threads only; the process counts hundredths of a second for all threads,
    including ended ones.
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
    """The CPU time of each process and its descendants; raises `OptionError` for a missing process."""
    return {pid: _cpu_seconds(pid) for pid in with_children(pids)}


def spent(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """The CPU time between two measurements; processes that ended in between count as zero."""
    return sum(max(0.0, seconds - before.get(pid, 0.0)) for pid, seconds in after.items())
