"""Answers on disk: what comes back, and what is not trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glow_mlir.runtime.answers import Answers


def test_answers_come_back(tmp_path: Path) -> None:
    Answers("subject", tmp_path).store("one", {"chosen": "a", "times": [1, 2]})
    again = Answers("subject", tmp_path)
    assert again.load("one") == {"chosen": "a", "times": [1, 2]}
    assert again.load("other") is None
    assert Answers("another", tmp_path).load("one") is None


def test_later_answer_takes_the_place(tmp_path: Path) -> None:
    answers = Answers("subject", tmp_path)
    answers.store("one", {"chosen": "a"})
    answers.store("one", {"chosen": "b"})
    assert answers.load("one") == {"chosen": "b"}
    assert [path.name for path in answers.directory.iterdir()] == ["one.json"]


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '"text"', "\x00\xff"])
def test_damaged_answer_is_none(tmp_path: Path, text: str) -> None:
    answers = Answers("subject", tmp_path)
    answers.store("one", {"chosen": "a"})
    (answers.directory / "one.json").write_text(text)
    assert answers.load("one") is None
    answers.store("one", {"chosen": "b"})
    assert answers.load("one") == {"chosen": "b"}


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the system has no owners")
def test_folder_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    answers = Answers("subject", tmp_path)
    answers.store("one", {"chosen": "a"})
    answers.directory.chmod(0o777)
    assert answers.load("one") is None


def test_no_folder_no_answer(tmp_path: Path) -> None:
    """A file in the place of the folder: nothing is kept, and nothing fails."""
    (tmp_path / "taken").write_text("")
    answers = Answers("subject", tmp_path / "taken")
    answers.store("one", {"chosen": "a"})
    assert answers.load("one") is None
