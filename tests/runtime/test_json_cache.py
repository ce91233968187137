"""Small JSON files on disk: what comes back, and what is not trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glow_mlir.runtime.json_cache import JsonCache


def test_answers_come_back(tmp_path: Path) -> None:
    JsonCache("subject", tmp_path).store("one", {"chosen": "a", "times": [1, 2]})
    again = JsonCache("subject", tmp_path)
    assert again.load("one") == {"chosen": "a", "times": [1, 2]}
    assert again.load("other") is None
    assert JsonCache("another", tmp_path).load("one") is None


def test_later_answer_takes_the_place(tmp_path: Path) -> None:
    answers = JsonCache("subject", tmp_path)
    answers.store("one", {"chosen": "a"})
    answers.store("one", {"chosen": "b"})
    assert answers.load("one") == {"chosen": "b"}
    assert [path.name for path in answers.directory.iterdir()] == ["one.json"]


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '"text"', "\x00\xff", "[" * 100_000])
def test_damaged_answer_is_none(tmp_path: Path, text: str) -> None:
    answers = JsonCache("subject", tmp_path)
    answers.store("one", {"chosen": "a"})
    (answers.directory / "one.json").write_text(text)
    assert answers.load("one") is None
    answers.store("one", {"chosen": "b"})
    assert answers.load("one") == {"chosen": "b"}


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners")
def test_folder_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    answers = JsonCache("subject", tmp_path)
    answers.store("one", {"chosen": "a"})
    answers.directory.chmod(0o777)
    assert answers.load("one") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners")
def test_folder_that_others_may_write_is_not_written(tmp_path: Path) -> None:
    answers = JsonCache("subject", tmp_path)
    answers.directory.mkdir()
    answers.directory.chmod(0o777)
    answers.store("one", {"chosen": "a"})
    assert not list(answers.directory.iterdir())


def test_answers_used_longest_ago_go_first(tmp_path: Path) -> None:
    answers = JsonCache("subject", tmp_path, limit=2)
    (tmp_path / "other.json").write_text("{}")
    for age, key in enumerate(["three", "two", "one"]):
        answers.store(key, {})
        os.utime(answers.directory / f"{key}.json", (1000 + age, 1000 + age))
    assert sorted(path.stem for path in answers.directory.iterdir()) == ["one", "two"]
    assert answers.load("two") == {}
    answers.store("four", {})
    assert sorted(path.stem for path in answers.directory.iterdir()) == ["four", "two"]
    assert (tmp_path / "other.json").exists()


def test_what_dead_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    answers = JsonCache("subject", tmp_path, limit=1)
    answers.store("one", {})
    old, new, foreign = (answers.directory / name for name in (".partial-old", ".partial-new", "notes.txt"))
    for path in (old, new, foreign):
        path.write_text("")
    for path in (old, foreign):
        os.utime(path, (0, 0))
    answers.store("one", {})
    assert not old.exists()
    assert new.exists()
    assert foreign.exists()


def test_answer_of_a_folder_that_cannot_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of its last use is lost, not the answer."""

    def refused(path: str, **_: object) -> None:
        raise PermissionError(path)

    answers = JsonCache("subject", tmp_path)
    answers.store("one", {"chosen": "a"})
    monkeypatch.setattr(os, "utime", refused)
    assert answers.load("one") == {"chosen": "a"}


def test_no_folder_no_answer(tmp_path: Path) -> None:
    """A file in the place of the folder: nothing is kept, and nothing fails."""
    (tmp_path / "taken").write_text("")
    answers = JsonCache("subject", tmp_path / "taken")
    answers.store("one", {"chosen": "a"})
    assert answers.load("one") is None
