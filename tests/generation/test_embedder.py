"""Vectors and scores of texts are those of transformers, from checkpoints and GGUF files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glow_mlir.errors import GlowError, InputError, ModelError, OptionError, UnsupportedError
from glow_mlir.frontends.decoders.families import ENCODERS
from glow_mlir.generation.embedder import Embedder, makes_vectors
from glow_mlir.generation.pooling import REDUCERS
from glow_mlir.options.generation import POOLINGS

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

TEXTS = ["the cat sat on a cat", "dog", "abc dab " * 9, "w1 w7 cat the w3"]

CASES = ("bert", "bert, tanh", "roberta", "roberta, xlm", "distilbert", "nomic-bert", "modernbert", "gemma-embedding")
IN_GGUF = tuple(name for name in CASES if name != "bert, tanh")
RANKING = tuple(name for name in CASES if name != "gemma-embedding")

FORMS: dict[str, Any] = {"threads": 1, "backend": "interpreter"}


@pytest.fixture(autouse=True)
def _packages() -> None:
    for package in ("transformers", "tokenizers", "gguf"):
        pytest.importorskip(package)


def pooled(model: Any, tokenizer: Any, texts: list[str], kind: str) -> np.ndarray:
    """The normalized vectors of texts by transformers."""
    from transformers_encoders import rows_of

    found = np.stack([REDUCERS[kind](rows_of(model, tokenizer.encode(text).ids)) for text in texts])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def check(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("name", CASES)
def test_checkpoints_have_the_vectors_of_transformers(name: str, tmp_path: Path) -> None:
    from transformers_encoders import encoder_of, save, tokenizer_of

    model, tokenizer = encoder_of(name), tokenizer_of(name)
    embedder = Embedder(save(tmp_path, model, tokenizer), **FORMS)
    check(embedder.embed(TEXTS), pooled(model, tokenizer, TEXTS, "mean"))


@pytest.mark.parametrize("name", IN_GGUF)
def test_gguf_files_have_the_vectors_of_transformers(name: str, tmp_path: Path) -> None:
    from transformers_encoders import encoder_of, tokenizer_of, write_encoder

    model = encoder_of(name)
    embedder = Embedder(write_encoder(tmp_path / "model.gguf", model, "cls"), **FORMS)
    check(embedder.embed(TEXTS), pooled(model, tokenizer_of("bert"), TEXTS, "cls"))


@pytest.mark.parametrize("name", RANKING)
def test_scores_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    from transformers_encoders import encoder_of, rows_of, save, tokenizer_of

    model, tokenizer = encoder_of(name, "ForSequenceClassification", num_labels=1), tokenizer_of(name)
    embedder = Embedder(save(tmp_path, model, tokenizer), **FORMS)
    pairs = [tokenizer.encode("the cat", text) for text in TEXTS]
    logits = np.concatenate([rows_of(model, pair.ids, pair.type_ids) for pair in pairs])
    check(embedder.rank("the cat", TEXTS), 1 / (1 + np.exp(-logits)))
    with pytest.raises(OptionError, match="use rank"):
        embedder.embed(TEXTS)


def test_scores_of_gguf_files_are_those_of_transformers(tmp_path: Path) -> None:
    from transformers_encoders import encoder_of, rows_of, tokenizer_of, write_encoder

    model = encoder_of("roberta", "ForSequenceClassification", num_labels=1)
    embedder = Embedder(write_encoder(tmp_path / "model.gguf", model, "rank"), **FORMS)
    pairs = [tokenizer_of("bert").encode("the cat", text) for text in TEXTS]
    logits = np.concatenate([rows_of(model, pair.ids) for pair in pairs])
    check(embedder.rank("the cat", TEXTS), 1 / (1 + np.exp(-logits)))


def test_all_families_are_tested() -> None:
    assert {family.name for family in ENCODERS} == {name.split(",")[0] for name in CASES}
    assert tuple(REDUCERS) == POOLINGS
