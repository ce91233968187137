"""The cache of artifacts: what it removes, what it refuses, and what an artifact depends on."""

from __future__ import annotations

import errno
import mmap
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glow_mlir.runtime import identity
from glow_mlir.runtime.artifact import Artifact, Entry, Manifest
from glow_mlir.runtime.cache import ArtifactCache, cache_key, shared_memory
from glow_mlir.runtime.identity import file_identity
from glow_mlir.runtime.sources import stamp_of

KEY, OTHER = cache_key("one"), cache_key("other")


def artifact(size: int = 100) -> Artifact:
    manifest = Manifest((Entry("main", (), 0, 0, "host"),), size)
    return Artifact((b"code",), np.arange(size, dtype=np.uint8), manifest)


def test_artifact_comes_back(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    cache.store(KEY, artifact())
    found = cache.load(KEY)
    assert found is not None
    assert found.code == (b"code",)
    assert found.constants.tolist() == list(range(100))
    assert cache.load(OTHER) is None


def test_artifact_without_constants_comes_back(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    cache.store(KEY, artifact(0))
    assert cache.load(KEY) is not None


def test_constants_made_in_a_draft_are_not_written_again(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    with cache.draft() as draft:
        reserve = draft.reserve(100)
        assert not reserve.any()
        reserve[:] = range(100)
        assert draft.folder is not None
        assert (draft.folder.path / "constants.bin").read_bytes() == bytes(range(100))
        cache.store(KEY, replace(artifact(), constants=reserve), draft)
    found = cache.load(KEY)
    assert found is not None
    assert found.constants.tolist() == list(range(100))
    assert [folder.name for folder in cache.directory.iterdir()] == [KEY]


def test_draft_that_is_not_stored_is_removed(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    with cache.draft() as draft:
        draft.reserve(100)
        assert draft.folder is not None
        assert list(cache.directory.iterdir()) == [draft.folder.path]
    assert not list(cache.directory.iterdir())


@pytest.mark.parametrize("full", [False, True])
def test_draft_without_a_place_has_room_in_memory(tmp_path: Path, full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    cache = ArtifactCache(tmp_path if full else tmp_path / "file")

    def no_space(*_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_space)
    with cache.draft() as draft:
        reserve = draft.reserve(100)
        reserve[:] = range(100)
        cache.store(KEY, replace(artifact(), constants=reserve), draft)
        assert draft.reserve(0).size == 0
    assert (cache.load(KEY) is not None) == full


def test_foreign_folders_stay(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, limit=0)
    foreign = [tmp_path / "holiday", tmp_path / OTHER, cache.directory / "photos", cache.directory / OTHER]
    for folder in foreign:
        folder.mkdir(parents=True)
        (folder / "picture.jpg").write_bytes(b"1234")
    (cache.directory / cache_key("link")).symlink_to(tmp_path / "holiday")
    cache.store(KEY, artifact())
    assert not (cache.directory / KEY).exists(), "nothing fits a limit of 0"
    assert all((folder / "picture.jpg").exists() for folder in foreign)


def test_artifact_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, limit=100_000)
    cache.store(KEY, artifact(60_000))
    os.utime(cache.directory / KEY, (1, 1))
    cache.store(OTHER, artifact(60_000))
    assert cache.load(KEY) is None
    assert cache.load(OTHER) is not None


def test_half_written_artifacts_go_when_they_are_old(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    young, old = cache.directory / ".partial-young", cache.directory / ".partial-old"
    young.mkdir(parents=True)
    old.mkdir()
    past = time.time() - 7200
    os.utime(old, (past, past))
    cache.store(KEY, artifact())
    assert young.exists()
    assert not old.exists()


def test_trimming_a_cache_that_is_not_there_does_nothing(tmp_path: Path) -> None:
    ArtifactCache(tmp_path / "missing").trim()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("code.0.o", b"c0de"),
        ("constants.bin", bytes(100)),
        ("constants.bin", b""),
        ("manifest.json", b"{}"),
        ("manifest.json", b"[" * 100_000),
    ],
)
def test_damaged_artifact_is_removed(tmp_path: Path, name: str, content: bytes) -> None:
    cache = ArtifactCache(tmp_path)
    cache.store(KEY, artifact())
    (cache.directory / KEY / name).write_bytes(content)
    assert cache.load(KEY) is None
    assert not (cache.directory / KEY).exists()


def test_manifest_with_another_entry_is_damaged(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    cache.store(KEY, artifact())
    path = cache.directory / KEY / "manifest.json"
    path.write_text(path.read_text().replace('"activations": 0', '"activations": 1'))
    assert cache.load(KEY) is None


@pytest.mark.parametrize("name", ["manifest.json", "code.0.o", "constants.bin"])
def test_artifact_that_cannot_be_opened_now_stays(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with too many open files must not empty the cache."""
    cache = ArtifactCache(tmp_path)
    cache.store(KEY, artifact())
    opened: Any = os.open

    def refused(file: Any, *arguments: Any, **options: Any) -> Any:
        if Path(file).name == name:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opened(file, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        assert cache.load(KEY) is None
    assert cache.load(KEY) is not None


def test_files_of_equal_size_and_time_differ(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.bin").write_bytes(name.encode())
        os.utime(tmp_path / name / "w.bin", ns=(5, 5))
    contents = ArtifactCache(tmp_path / "cache").contents
    assert contents.digest(tmp_path / "a" / "w.bin") != contents.digest(tmp_path / "b" / "w.bin")


def test_file_that_is_written_again_within_a_tick_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its size nor its times tell that it changed, so its content has to."""
    path, contents = tmp_path / "w.bin", ArtifactCache(tmp_path / "cache").contents
    path.write_bytes(b"a")
    now = file_identity(path)
    monkeypatch.setattr(identity, "file_identity", {path: now}.__getitem__)
    before = contents.digest(path)
    assert contents.digest(path) == before
    path.write_bytes(b"b")
    assert contents.digest(path) != before


def test_stamp_follows_the_sources_and_linked_folders(tmp_path: Path) -> None:
    package, linked = tmp_path / "package", tmp_path / "linked"
    package.mkdir()
    linked.mkdir()
    (package / "linked").symlink_to(linked)
    (package / "a.py").write_text("1")
    stamps = [stamp_of(package)]
    (linked / "b.py").write_text("1")
    stamps.append(stamp_of(package))
    os.utime(linked / "b.py", ns=(5, 5))
    stamps.append(stamp_of(package))
    assert len(set(stamps)) == 3
    (package / "notes.txt").write_text("no source")
    assert stamp_of(package) == stamps[-1]


def flags_of(address: int) -> list[str]:
    """What the system says of the mapping that an address is in: its flags, of two letters each."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError(f"no mapping has the address {address:#x}")


@pytest.mark.skipif(
    not hasattr(mmap, "MADV_HUGEPAGE") or not Path("/sys/kernel/mm/transparent_hugepage").is_dir(),
    reason="the system has no huge pages that it is asked for",
)
def test_huge_pages_are_asked_for(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    cache.store(KEY, artifact(4 << 20))
    found = cache.load(KEY)
    assert found is not None
    new = shared_memory(4 << 20)
    for constants in (found.constants, new):
        assert "hg" in flags_of(constants.ctypes.data)


def test_constants_are_read_again_only_if_their_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", -1)
    cache = ArtifactCache(tmp_path)
    cache.store(KEY, artifact())
    path = cache.directory / KEY / "constants.bin"
    assert cache.load(KEY) is not None
    with monkeypatch.context() as patch:
        patch.setattr(identity, "checksum_of", lambda _: "not asked")
        assert cache.load(KEY) is not None
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    assert cache.load(KEY) is None
