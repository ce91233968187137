"""Ends of turns: named by a text, by a file, or by a template."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_generators import small_generator

from glow_mlir.frontends.decoders.models import DecoderModel
from glow_mlir.generation.template import ChatTemplate
from glow_mlir.generation.text_files import tokenizer_of
from glow_mlir.generation.tokenizer import Tokenizer
from glow_mlir.generation.turn_ends import ends_among, ends_of_template

pytestmark = pytest.mark.extra
pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")

MARKS = ("<s>", "</s>", "<a>", "<b>", "<|user|>", "<|return|>", "<|call|>", "<|end|>", "<|custom|>")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A tokenizer.json of letters and control tokens."""
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE({letter: number for number, letter in enumerate("abcq")}, []))
    tokenizer.add_special_tokens(list(MARKS))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_texts_name_ends_whatever_the_file_says() -> None:
    ids = {"a": 0, "<|eot_id|>": 1, "<end_of_turn>": 2, "<|im_end|>": 3, "<|end|>": 4}
    assert ends_among(ids) == {1, 2, 3, 4}
    assert ends_among(ids | {"<|return|>": 5, "<|call|>": 6}) == {1, 2, 3, 5, 6}


def test_every_file_of_a_folder_names_ends(path: Path) -> None:
    names = {name: number + 4 for number, name in enumerate(MARKS)}
    files = {
        "config.json": {"text_config": {"eos_token_id": [names["<a>"]]}, "eos_token_id": names["<b>"]},
        "generation_config.json": {"eos_token_id": [names["<|custom|>"], 10**6]},
        "tokenizer_config.json": {"eos_token": {"content": "<|user|>"}},
    }
    for name, content in files.items():
        path.with_name(name).write_text(json.dumps(content), encoding="utf-8")
    model: DecoderModel = None  # pyright: ignore
    tokenizer = tokenizer_of(model, path)
    found = {tokenizer.token(number) for number in tokenizer.ends}
    assert found == {"<a>", "<b>", "<|custom|>", "<|user|>", "</s>", "<|return|>", "<|call|>"}


@pytest.mark.parametrize(
    ("template", "end"),
    [
        ("{% for m in messages %}<a>{{ m.content }}<|custom|>\n{% endfor %}", "<|custom|>"),
        ("{% for m in messages %}{{ m.content | trim }} \n</s><s>{% endfor %}", "</s>"),
        ("{% for m in messages %}{% if m.role == 'user' %}<|user|>{% endif %}{{ m.content }}{% endfor %}", "<|user|>"),
        ("{% for m in messages %}{{ m.content }}{% if loop.last %}<b>{% else %}<a>{% endif %}{% endfor %}", "<b>"),
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", None),
        ("{% for m in messages if m.role == 'user' %}{{ m.content }}<a>{% endfor %}", None),
        ("{{ raise_exception('never') }}", None),
    ],
)
def test_a_template_shows_what_ends_an_answer(template: str, end: str | None, path: Path) -> None:
    tokenizer = Tokenizer.of_file(path)
    found = ends_of_template(ChatTemplate(template, tokenizer.named), tokenizer)
    assert {tokenizer.token(number) for number in found} == ({end} if end else set())


def test_a_generator_ends_turns_as_its_template_does(tmp_path: Path) -> None:
    template = "{% for m in messages %}<|im_start|>{{ m.content }}<|begin|>{% endfor %}"
    generator = small_generator(tmp_path, template=template)
    assert generator.tokenizer.id("<|begin|>") in generator.tokenizer.ends
