"""`glow-generate --embed` and `--rank` print lines of JSON."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_encoders import write_encoder

from glow_mlir.generation.embedder import Embedder
from glow_mlir.tools.glow_generate import main

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def _packages() -> None:
    pytest.importorskip("tokenizers")


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """The objects that the tool prints."""
    assert main([*arguments, "--threads", "1"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_vectors_of_arguments_and_of_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_encoder(tmp_path / "model.gguf")
    monkeypatch.setattr(sys, "stdin", io.StringIO("a dog\nthe mat\n"))
    found = lines(capsys, str(path), "--dimensions", "8", "--embed", "the cat", "-")
    assert [item["text"] for item in found] == ["the cat", "a dog", "the mat"]
    wanted = Embedder(path, threads=1).embed(["the cat", "a dog", "the mat"], dimensions=8)
    np.testing.assert_array_equal(np.array([item["embedding"] for item in found], np.float32), wanted)


def test_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_encoder(tmp_path / "model.gguf", labels=1)
    found = lines(capsys, str(path), "--rank", "query", "the cat", "a dog")
    wanted = Embedder(path, threads=1).rank("query", ["the cat", "a dog"])
    assert [item["text"] for item in found] == ["the cat", "a dog"]
    np.testing.assert_allclose([item["score"] for item in found], wanted)


def test_wrong_options_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write_encoder(tmp_path / "model.gguf"))
    for arguments in (["--rank", "query"], ["--embed", "a", "--chat", "b"], ["--rank", "a", "b"], ["--prompt", "a"]):
        assert main([path, *arguments]) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
