"""Shared memory of clients: what is registered, read and written, and what is not."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glow_mlir.errors import InputError
from glow_mlir.serving.shared_memory import Regions, RegionSlice, most_regions
from glow_mlir.serving.steps import COPIED, finished


@pytest.fixture
def regions(tmp_path: Path) -> Iterator[Regions]:
    """Regions of a folder that has `memory` of 64 bytes."""
    (tmp_path / "memory").write_bytes(bytes(range(64)))
    found = Regions(str(tmp_path))
    yield found
    found.unregister()


def slice_in(regions: Regions, size: int) -> RegionSlice:
    """The first bytes of the region `r`."""
    found = regions.region_slice({"shared_memory_region": "r", "shared_memory_byte_size": size})
    assert found is not None
    return found


def test_a_region(regions: Regions, tmp_path: Path) -> None:
    regions.register("r", "/memory", 16, 32)
    assert regions.status("r") == regions.status() == [{"name": "r", "key": "/memory", "offset": 16, "byte_size": 32}]
    said = {"shared_memory_region": "r", "shared_memory_offset": 4, "shared_memory_byte_size": 8}
    region_slice = regions.region_slice(said)
    assert region_slice is not None
    assert (region_slice.region.name, region_slice.offset, region_slice.size) == ("r", 4, 8)
    assert bytes(finished(regions.read(region_slice))) == bytes(range(20, 28))
    finished(regions.write(region_slice, "y", np.array([[7, 8]], np.uint16).T))
    assert (tmp_path / "memory").read_bytes()[16:26] == bytes([16, 17, 18, 19, 7, 0, 8, 0, 24, 25])
    regions.unregister("r")
    regions.unregister("r")
    assert not regions.status()
    with pytest.raises(InputError):
        regions.status("r")


def test_descriptors_are_closed(regions: Regions) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(8):
        regions.register(f"r{number}", "memory", 0, 64)
    for key in ("memory", "../memory", "nothing"):
        with pytest.raises(InputError):
            regions.register("more", key, 60, 64)
    assert len(os.listdir("/proc/self/fd")) == before + 8
    regions.unregister()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/",
        "..",
        ".",
        "/..",
        "../secret",
        "/a/b",
        "a\0b",
        "/link",
        "/pipe",
        "/folder",
        "/glow-weights",
        "/no",
        7,
        None,
    ],
)
def test_what_is_no_memory(regions: Regions, tmp_path: Path, key: object) -> None:
    (tmp_path.parent / "secret").write_bytes(bytes(64))
    (tmp_path / "link").symlink_to(tmp_path / "memory")
    (tmp_path / "folder").mkdir()
    (tmp_path / "glow-weights").write_bytes(bytes(64))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError):
        regions.register("r", key, 0, 8)


@pytest.mark.parametrize(
    ("offset", "size"),
    [(0, 65), (64, 1), (-1, 8), (0, 0), (0, -8), (1 << 62, 1 << 62), (0, 1 << 64), (0.0, 8), (True, 8), (0, None)],
)
def test_sizes_that_are_not_there(regions: Regions, offset: object, size: object) -> None:
    with pytest.raises(InputError):
        regions.register("r", "memory", offset, size)


def test_a_name_that_is_taken(regions: Regions) -> None:
    regions.register("r", "memory", 0, 64)
    with pytest.raises(InputError, match="already registered"):
        regions.register("r", "memory", 0, 64)


@pytest.mark.parametrize(
    "said",
    [
        {"shared_memory_byte_size": 65},
        {"shared_memory_byte_size": -1},
        {"shared_memory_byte_size": "8"},
        {},
        {"shared_memory_byte_size": 8, "shared_memory_offset": 60},
        {"shared_memory_byte_size": 8, "shared_memory_offset": 1 << 63},
        {"shared_memory_byte_size": 8, "shared_memory_region": "s"},
        {"shared_memory_byte_size": 8, "shared_memory_region": ["r"]},
    ],
)
def test_places_that_are_not_there(regions: Regions, said: dict[str, object]) -> None:
    regions.register("r", "memory", 0, 64)
    with pytest.raises(InputError):
        regions.region_slice({"shared_memory_region": "r", **said})


def test_an_output_that_does_not_fit(regions: Regions) -> None:
    regions.register("r", "memory", 0, 64)
    with pytest.raises(InputError, match="takes 16 bytes"):
        finished(regions.write(slice_in(regions, 8), "y", np.zeros(4, np.float32)))


def test_memory_that_a_client_cuts_short(regions: Regions, tmp_path: Path) -> None:
    regions.register("r", "memory", 0, 64)
    region_slice = slice_in(regions, 64)
    os.truncate(tmp_path / "memory", 10)
    with pytest.raises(InputError, match="smaller"):
        finished(regions.read(region_slice))
    with pytest.raises(InputError, match="smaller"):
        finished(regions.write(region_slice, "y", np.zeros(16, np.float32)))
    assert (tmp_path / "memory").stat().st_size == 10


@pytest.mark.parametrize("is_written", [False, True])
def test_a_region_that_is_unregistered_while_it_is_used(regions: Regions, tmp_path: Path, is_written: bool) -> None:
    """Its descriptor stays open: the next file would have its number."""
    size = 3 * COPIED
    for name, content in (("own", b"a"), ("other", b"b")):
        (tmp_path / name).write_bytes(content * size)
    before = len(os.listdir("/proc/self/fd"))
    regions.register("r", "own", 0, size)
    region_slice = slice_in(regions, size)
    steps = (
        regions.write(region_slice, "y", np.full(size, ord("c"), np.uint8))
        if is_written
        else regions.read(region_slice)
    )
    next(steps)
    regions.unregister("r")
    regions.register("r", "other", 0, size)
    found: Any = finished(steps)
    assert is_written or bytes(found) == b"a" * size
    assert (tmp_path / "own").read_bytes() == (b"c" if is_written else b"a") * size
    assert (tmp_path / "other").read_bytes() == b"b" * size
    for later in (regions.read(region_slice), regions.write(region_slice, "y", np.zeros(1, np.uint8))):
        with pytest.raises(InputError, match="no shared memory 'r' is registered"):
            next(later)  # The name is that of another region by now.
    regions.unregister()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_read_that_is_given_up_closes_its_file(regions: Regions, tmp_path: Path) -> None:
    (tmp_path / "own").write_bytes(bytes(2 * COPIED))
    before = len(os.listdir("/proc/self/fd"))
    regions.register("r", "own", 0, 2 * COPIED)
    steps = regions.read(slice_in(regions, 2 * COPIED))
    next(steps)
    regions.unregister()
    assert len(os.listdir("/proc/self/fd")) == before + 1
    steps.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(("files", "most"), [(16, 8), (1024, 512), (1 << 20, 1024), (resource.RLIM_INFINITY, 1024)])
def test_regions_leave_files_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, most: int) -> None:
    def limit(_: int) -> tuple[int, int]:
        return files, files

    monkeypatch.setattr(resource, "getrlimit", limit)
    assert most_regions() == most
    if most > 8:
        return
    (tmp_path / "memory").write_bytes(bytes(64))
    regions = Regions(str(tmp_path))
    for number in range(most):
        regions.register(f"r{number}", "memory", 0, 64)
    with pytest.raises(InputError, match="the server already has 8 regions of shared memory"):
        regions.register("more", "memory", 0, 64)
    regions.unregister("r0")
    regions.register("more", "memory", 0, 64)
    regions.unregister()
