"""The machine: what it is called, and which of its cores a process stays on."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path


def stay_on(cores: Sequence[int]) -> None:
    """Keep this process on these cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def usable_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def rest(limit: float = 0.3) -> None:
    """
    Sleep until the threads of this process do nothing, at most `limit` seconds.

    Pools poll for work after a call, some for tens of milliseconds, and take a core from whoever is timed next.
    """
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(0.005)
        if time.process_time() - before < 0.0005:
            return


@contextmanager
def on_cores(cores: Sequence[int]) -> Generator[None]:
    """Stay on these cores inside; then go back to those of before."""
    before = usable_cores()
    stay_on(cores)
    try:
        yield
    finally:
        stay_on(before)


def usable_core(text: str) -> int:
    """The core of that number; raises `ArgumentTypeError` where this process may not use it."""
    usable = usable_cores()
    if not text.isdecimal() or int(text) not in usable:
        raise argparse.ArgumentTypeError(f"expected a core of {', '.join(map(str, usable))}, got '{text}'")
    return int(text)


def add_core(parser: argparse.ArgumentParser, meaning: str = "the core to run on") -> None:
    """Add `--core`, which is the first one that this process may use if it is not given."""
    least = usable_cores()[0]
    parser.add_argument("--core", type=usable_core, default=least, help=f"{meaning} ({least})")


def cores_from(first: int, threads: int) -> list[int]:
    """
    That many of the cores this process may use, from the given one on.

    Raises `ValueError` where there are fewer, or where the first is not among them.
    """
    usable = usable_cores()
    if threads > len(usable) or first not in usable:
        raise ValueError(f"{threads} threads from core {first} on do not fit onto the cores {usable}")
    begin = usable.index(first)
    return [usable[(begin + index) % len(usable)] for index in range(threads)]


def machine() -> str:
    """The processor, its cores and the memory, in words."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = names[0] if names else platform.machine()
    return f"{processor} ({os.cpu_count()} cores, {memory:.0f} GiB), {platform.system()}"
