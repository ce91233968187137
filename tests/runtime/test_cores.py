"""How many cores a process counts: those of its affinity, and no more than a container has time for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from glow_mlir.runtime.cores import usable_cores

SECOND, FIRST = "sys/fs/cgroup", "sys/fs/cgroup/cpu"


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of eight cores."""

    def affinity(_: int) -> set[int]:
        return set(range(8))

    monkeypatch.setattr(os, "sched_getaffinity", affinity, raising=False)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"proc/self/cgroup": "0::/a/b\n"}, 8),
        ({"proc/self/cgroup": "0::/a/b\n", f"{SECOND}/a/b/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/a/b\n", f"{SECOND}/a/b/cpu.max": "200000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/a/b\n", f"{SECOND}/a/b/cpu.max": "50000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/a/b\n", f"{SECOND}/a/b/cpu.max": "1600000 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/a/b\n", f"{SECOND}/a/cpu.max": "250000 100000\n"}, 3),
        ({"proc/self/cgroup": "0::/\n", f"{SECOND}/cpu.max": "400000 100000\n"}, 4),
        ({"proc/self/cgroup": "0::/../other\n", f"{SECOND}/cpu.max": "400000 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/a\n", f"{SECOND}/a/cpu.max": "nonsense\n"}, 8),
        (
            {
                "proc/self/cgroup": "9:memory:/a\n4:cpuacct,cpu:/a\n0::/\n",
                f"{FIRST}/a/cpu.cfs_quota_us": "-1\n",
                f"{FIRST}/a/cpu.cfs_period_us": "100000\n",
                f"{FIRST}/cpu.cfs_quota_us": "150000\n",
                f"{FIRST}/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
    ],
)
def test_cores_are_those_that_groups_have_time_for(tmp_path: Path, files: Mapping[str, str], cores: int) -> None:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert usable_cores(tmp_path) == cores
