"""Vectors do not depend on the texts beside them, threads or how they wait; wrong texts and files are refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_encoders import CONTEXT, write_encoder
from small_generators import small_generator, write_model

from glow_mlir.errors import GlowError, InputError, OptionError, UnsupportedError
from glow_mlir.frontends.decoders.models import open_model
from glow_mlir.generation.embedder import Embedder, makes_vectors
from glow_mlir.generation.generator import Generator
from glow_mlir.generation.packed_texts import PackedForm, PackedText, PackedTexts
from glow_mlir.generation.pooling import MODULES, Pooling

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _packages() -> None:
    pytest.importorskip("tokenizers")


def texts(count: int, seed: int = 0) -> list[list[int]]:
    """Token ids of random texts."""
    rng = np.random.default_rng(seed)
    return [rng.integers(5, 16, rng.integers(1, CONTEXT + 1)).tolist() for _ in range(count)]


@pytest.mark.parametrize("kind", ["F32", "Q8_0"])
def test_bits_depend_on_the_text_alone(kind: str, tmp_path: Path) -> None:
    path, given = write_encoder(tmp_path / "model.gguf", kind), texts(60)
    embedders = [Embedder(path, threads=threads) for threads in (1, 2)]
    alone = np.stack([embedders[0].embed(text) for text in given])
    for embedder in embedders:
        np.testing.assert_array_equal(embedder.embed(given), alone)
        np.testing.assert_array_equal(embedder.embed(given[::-1]), alone[::-1])


def test_threads_share_calls(tmp_path: Path) -> None:
    embedder, given = Embedder(write_encoder(tmp_path / "model.gguf"), threads=1), texts(40)
    wanted, found = embedder.embed(given), dict[int, np.ndarray]()

    def work(number: int) -> None:
        found[number] = embedder.embed(given[number * 5 : number * 5 + 5])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    np.testing.assert_array_equal(np.concatenate([found[number] for number in range(8)]), wanted)


@pytest.mark.parametrize("is_causal", [True, False])
def test_calls_have_each_token_once(is_causal: bool) -> None:
    """Whatever fails and however long texts are, no page is lost, and none has two owners."""
    calls, free = list[int](), 0

    def call(inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        assert len(inputs["tokens"]) <= form.rows
        assert len(np.unique(inputs["table"][inputs["table"] >= 0])) > 0
        calls.append(len(inputs["tokens"]))
        if inputs["tokens"].max() == 99:
            raise InputError("fails")
        return inputs["tokens"][inputs["last"], None].astype(np.float32)

    form = PackedForm(700, 4, "all", is_causal, frozenset(("tokens", "table", "last")))
    packed = PackedTexts(call, form)
    rng = np.random.default_rng(0)
    given = [PackedText(rng.integers(0, 90, rng.integers(1, 701)).tolist()) for _ in range(30)]
    packed.compute(given)
    for text in given:
        np.testing.assert_array_equal(np.concatenate(text.rows)[:, 0], text.tokens)
    assert sum(calls) == sum(len(text.tokens) for text in given)
    with pytest.raises(InputError, match="fails"):
        packed.compute([PackedText([99] * 600), PackedText([1])])
    free = len(packed._free)
    assert free == form.pages
    assert not packed._waiting


def test_a_generator_embeds(tmp_path: Path) -> None:
    generator = small_generator(tmp_path)
    found = generator.embed(["hello", "he"], dimensions=7)
    assert found.shape == (2, 7)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    embedder = Embedder(tmp_path / "small.gguf", threads=1)
    np.testing.assert_array_equal(embedder.embed(["hello", "he"], dimensions=7), found)


def test_what_makes_vectors(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "encoder.gguf")
    assert makes_vectors(encoder)
    assert makes_vectors(write_encoder(tmp_path / "ranker.gguf", labels=1))
    assert not makes_vectors(write_model(tmp_path / "decoder.gguf"))
    assert Pooling.of_model(open_model(encoder), encoder).kind == "mean"
    with pytest.raises(OptionError, match="continues no text"):
        Generator(encoder)


def test_wrong_texts_and_options_are_refused(tmp_path: Path) -> None:
    path = write_encoder(tmp_path / "model.gguf")
    embedder = Embedder(path, threads=1, pooling="max", context=9)
    assert embedder.embed([]).shape == (0, embedder.dimensions)
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ([[5] * 10], {}), ([[500]], {}), ([[-1]], {}), ([[1.5]], {}), ([[True]], {}), ([[]], {}),
        ("a", {"dimensions": 0}), ("a", {"dimensions": 99}), ("a", {"prompt": "query"}),
    ]  # fmt: skip
    for given, options in wrong:
        with pytest.raises(InputError):
            embedder.embed(given, **options)
    assert embedder.embed([[5] * 10], truncate=True).shape == (1, embedder.dimensions)
    refused: list[dict[str, Any]] = [{"pooling": "sum"}, {"context": 1}, {"context": 99}, {"activations": "int4"}]
    for options in refused:
        with pytest.raises(OptionError):
            Embedder(path, **options)
    with pytest.raises(OptionError, match="use embed"):
        embedder.rank("a", ["b"])
    with pytest.raises(UnsupportedError, match="2 classes"):
        Embedder(write_encoder(tmp_path / "classes.gguf", labels=2), threads=1).rank("a", ["b"])


POOLING = {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}
NETWORK = {"type": "sentence_transformers.models.Transformer", "path": ""}

DAMAGED: dict[str, tuple[Any, Any, str]] = {
    "no list": ({}, {}, "no list of modules"),
    "no type": ([{"path": ""}], {}, "a module without type"),
    "outside": ([NETWORK, {**POOLING, "path": "../1_Pooling"}], {}, "not in its folder"),
    "another module": ([NETWORK, {"type": "x.LSTM", "path": ""}], {}, "the module 'LSTM' is not supported"),
    "no pooling": ([NETWORK], {}, "has no pooling"),
    "another pooling": ([NETWORK, POOLING], {"pooling_mode_weightedmean_tokens": True}, "'weightedmean'"),
    "two poolings": ([NETWORK, POOLING], {"pooling_mode": ["mean", "max"]}, "'mean + max' is not supported"),
    "no prompt": ([NETWORK, POOLING], {"pooling_mode": "mean", "include_prompt": False}, "without the tokens"),
    "no object": ([NETWORK, POOLING], [], "has no object at its top"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_folders_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    modules, pooling, words = DAMAGED[name]
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / MODULES).write_text(json.dumps(modules), encoding="utf-8")
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
    from glow_mlir.generation.pooling import of_folder

    with pytest.raises(GlowError) as caught:
        of_folder(tmp_path)
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
