"""Tokenizer and template of a model: when they are made, and when their faults are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_generators import small_generator, write_model

from glow_mlir.errors import ModelError
from glow_mlir.frontends.decoders.models import open_model
from glow_mlir.generation import model_texts
from glow_mlir.generation.generator import Generator
from glow_mlir.generation.model_texts import ModelTexts

pytestmark = pytest.mark.extra


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("tokenizers", "jinja2"):
        pytest.importorskip(package)
    monkeypatch.setenv("GLOW_CACHE_DIR", str(tmp_path / "cache"))


def test_a_generator_that_was_made_before_makes_its_tokenizer_when_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = small_generator(tmp_path)
    made: list[object] = []
    real = model_texts.tokenizer_of
    monkeypatch.setattr(model_texts, "tokenizer_of", lambda *given: made.append(given) or real(*given))
    second = Generator(tmp_path / "small.gguf", threads=1, cache="float32")
    assert not made
    assert second.tokens_of("hello") == first.tokens_of("hello")
    assert (second.tokenizer.ends, second.template is None) == (first.tokenizer.ends, first.template is None)
    assert len(made) == 1


def test_faults_are_found_at_once_whatever_was_made_before(tmp_path: Path) -> None:
    path = write_model(tmp_path / "small.gguf")
    whole = ModelTexts(open_model(path), None, None)
    whole.check()
    assert ModelTexts(open_model(path), None, None).is_whole
    assert not ModelTexts(open_model(path), None, "{{ another }}").is_whole
    with pytest.raises(ModelError, match="template"):
        Generator(path, threads=1, template="{% if %}")
    write_model(path, more={"tokenizer.ggml.model": "other"})
    assert not ModelTexts(open_model(path), None, None).is_whole


def test_what_files_beside_a_tokenizer_say_counts(tmp_path: Path) -> None:
    path, given = write_model(tmp_path / "small.gguf"), tmp_path / "given" / "tokenizer.json"
    given.parent.mkdir()
    given.write_text("{}")
    texts = ModelTexts(open_model(path), given, None)
    with pytest.raises(ModelError):
        texts.check()
    assert not ModelTexts(open_model(path), given, None).is_whole
