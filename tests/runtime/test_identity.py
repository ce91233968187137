"""The index of contents: when a file is read again."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from glow_mlir.runtime import identity
from glow_mlir.runtime.identity import ContentIndex


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is hashed, in order; files count as settled at once."""
    hashed: list[str] = []
    digest = hashlib.file_digest

    def counted(file: object, name: str) -> object:
        hashed.append(str(getattr(file, "name")))
        return digest(file, name)  # pyright: ignore

    monkeypatch.setattr(hashlib, "file_digest", counted)
    monkeypatch.setattr(identity, "SETTLED_NS", -1)
    return hashed


def test_file_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    path, index = tmp_path / "m.onnx", ContentIndex(tmp_path / "index")
    path.write_bytes(b"one")
    expected = hashlib.sha256(b"one").hexdigest()
    assert [index.digest(path), ContentIndex(tmp_path / "index").digest(path)] == [expected] * 2
    assert len(reads) == 1


def test_file_that_changed_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    path, index = tmp_path / "m.onnx", ContentIndex(tmp_path / "index")
    for content in (b"one", b"two"):
        path.write_bytes(content)
        os.utime(path, ns=(len(reads), 5 + len(reads)))
        assert index.digest(path) == hashlib.sha256(content).hexdigest()
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(b"two")
    assert index.digest(copy) == index.digest(path)
    assert len(reads) == 3


def test_file_that_changed_a_moment_ago_is_not_trusted(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", 3600 * 10**9)
    path, index = tmp_path / "m.onnx", ContentIndex(tmp_path / "index")
    path.write_bytes(b"one")
    assert index.digest(path) == index.digest(path)
    assert len(reads) == 2
    assert not index.directory.exists()


def test_file_that_may_change_while_it_is_read_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change within the tick of the clock in which reading began shows in no time, however long reading takes."""
    path, index = tmp_path / "m.onnx", ContentIndex(tmp_path / "index")
    path.write_bytes(b"one")
    known = identity.file_identity(path)
    clock = max(known[3:]) + 1
    digest = hashlib.file_digest

    def slow(file: Any, name: str) -> Any:
        nonlocal clock
        found = digest(file, name)
        path.write_bytes(b"two")
        clock += 10 * identity.SETTLED_NS
        return found

    monkeypatch.setattr(hashlib, "file_digest", slow)
    monkeypatch.setattr(identity.time, "time_ns", lambda: clock)
    monkeypatch.setattr(identity, "file_identity", {path: known}.__getitem__)
    assert index.digest(path) == hashlib.sha256(b"one").hexdigest()
    assert index.digest(path) == hashlib.sha256(b"two").hexdigest()


@pytest.mark.parametrize("step", ["fdopen", "replace"])
def test_full_disk_leaves_no_part_of_an_entry(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path, index = tmp_path / "m.onnx", ContentIndex(tmp_path / "index")
    path.write_bytes(b"one")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, step, full)
    assert index.digest(path) == hashlib.sha256(b"one").hexdigest()
    assert not list(index.directory.iterdir())


@pytest.mark.parametrize("damage", [b"", b'{"digest": "' + b"zz" * 32 + b'"}', b'{"digest": 1}', b"[]", b"\xff" * 64])
def test_damaged_entry_is_replaced(tmp_path: Path, reads: list[str], damage: bytes) -> None:
    path, index = tmp_path / "m.onnx", ContentIndex(tmp_path / "index")
    path.write_bytes(b"one")
    expected = index.digest(path)
    (entry,) = index.directory.iterdir()
    entry.write_bytes(damage)
    assert index.digest(path) == index.digest(path) == expected
    assert len(reads) == 2


def test_folder_that_others_may_write_to_is_ignored(tmp_path: Path, reads: list[str]) -> None:
    path, index = tmp_path / "m.onnx", ContentIndex(tmp_path / "index")
    path.write_bytes(b"one")
    index.digest(path)
    index.directory.chmod(0o777)
    index.digest(path)
    assert len(reads) == 2


def test_oldest_entries_go(tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "MAX_ENTRIES", 2)
    index = ContentIndex(tmp_path / "index")
    for number in range(4):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(bytes([number]))
        index.digest(path)
    assert len(list(index.directory.iterdir())) == 2
    assert len(reads) == 4
