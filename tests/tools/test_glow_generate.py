"""`glow-generate`: texts continued and messages answered, as its users type them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from small_generators import write_model

from glow_mlir.generation.generator import Generator
from glow_mlir.tools.glow_generate import main

pytestmark = pytest.mark.extra

PROMPT = ("--prompt", "hello", "--max-tokens", "9", "--ignore-end")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("tokenizers", "jinja2"):
        pytest.importorskip(package)
    return write_model(tmp_path_factory.mktemp("small") / "small.gguf")


@pytest.fixture(scope="module")
def generator(model: Path) -> Generator:
    return Generator(model, parallel=1)


def printed(capsys: pytest.CaptureFixture[str], model: Path, *arguments: str) -> str:
    """What a successful run prints."""
    assert main([str(model), *arguments]) == 0
    return capsys.readouterr().out


def test_a_prompt_is_continued(model: Path, generator: Generator, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = generator.generate("hello", max_tokens=9, temperature=0, ignore_end=True).text
    assert printed(capsys, model, *PROMPT) == f"hello{wanted}\n"
    drawn = generator.generate("hello", max_tokens=9, temperature=2.0, seed=4, ignore_end=True).text
    assert printed(capsys, model, *PROMPT, "--temperature", "2", "--seed", "4") == f"hello{drawn}\n"


def test_lines_of_stdin_are_a_chat(
    model: Path, generator: Generator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n\nhe\n"))
    messages: list[Any] = [{"role": "system", "content": "ll"}]
    wanted = ""
    for line in ("hello", "he"):
        messages.append({"role": "user", "content": line})
        answer = generator.generate(messages, max_tokens=5, temperature=0).text
        messages.append({"role": "assistant", "content": answer})
        wanted += f"{answer}\n"
    assert printed(capsys, model, "--system", "ll", "--max-tokens", "5") == wanted


def test_a_prompt_from_stdin(
    model: Path, generator: Generator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello"))
    wanted = generator.generate("hello", max_tokens=9, temperature=0, ignore_end=True).text
    assert printed(capsys, model, "--prompt-file", "-", *PROMPT[2:]) == f"hello{wanted}\n"


@pytest.mark.parametrize("option", ["--json-schema", "--json-schema-file"])
def test_an_answer_fits_a_schema(model: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str) -> None:
    pytest.importorskip("llguidance")
    schema = json.dumps({"enum": ["yes", "no"]})
    (tmp_path / "schema.json").write_text(schema)
    given = schema if option == "--json-schema" else str(tmp_path / "schema.json")
    assert json.loads(printed(capsys, model, "--chat", "hello", option, given)) in ("yes", "no")


def test_timings_are_told_apart_from_the_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model), *PROMPT, "--timings"]) == 0
    said = capsys.readouterr()
    assert "tokens of the prompt in" in said.err
    assert "tokens of the prompt" not in said.out


WRONG: dict[str, tuple[list[str], str]] = {
    "two prompts": (["--prompt", "a", "--chat", "b"], "--prompt and --chat exclude each other"),
    "a system without a chat": (["--prompt", "a", "--system", "b"], "--system is for chats"),
    "two schemas": (["--chat", "a", "--json-schema", "{}", "--json-schema-file", "b"], "exclude each other"),
    "no schema": (["--chat", "a", "--json-schema", "{"], "the schema is no JSON"),
    "no file": (["--prompt-file", "nowhere.txt"], "nowhere.txt"),
    "a hot temperature": (["--prompt", "a", "--temperature", "-1"], "temperature cannot be -1"),
    "too many tokens": (["--prompt", "a", "--max-tokens", "9999"], "more than the context of 256"),
    "a context": (["--prompt", "a", "--context", "9999"], "the context cannot be 9999"),
}
"""Case → options, and a part of the line that is said."""


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_told_in_a_line(
    case: str, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, reason = WRONG[case]
    assert main([str(model), *arguments]) == 1
    said = capsys.readouterr()
    assert reason in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("data", [b"", b"GGUF", b"text"])
def test_what_is_no_model_is_told_in_a_line(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    assert main([str(path), "--prompt", "a"]) == 1
    said = capsys.readouterr()
    assert str(path) in said.err
    assert said.err.count("\n") == 1
