"""Vectors and scores of texts are those of transformers, from checkpoints and GGUF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glow_mlir.errors import InputError, ModelError, OptionError, UnsupportedError
from glow_mlir.frontends.decoders.families import ENCODERS
from glow_mlir.generation.embedder import Embedder, makes_vectors
from glow_mlir.generation.pooling import REDUCERS
from glow_mlir.options.generation import POOLINGS

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

TEXTS = ["the cat sat on a cat", "dog", "abc dab " * 9, "w1 w7 cat the w3"]

CASES = ("bert", "bert, tanh", "roberta", "roberta, xlm", "distilbert", "nomic-bert", "modernbert", "gemma-embedding")
IN_GGUF = tuple(name for name in CASES if name != "bert, tanh")
RANKING = (*(name for name in CASES if name != "gemma-embedding"), "modernbert, mean")

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


@pytest.mark.parametrize("name", ["roberta", "distilbert", "modernbert, mean"])
def test_scores_of_gguf_files_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    from transformers_encoders import encoder_of, rows_of, tokenizer_of, write_encoder

    model = encoder_of(name, "ForSequenceClassification", num_labels=1)
    embedder = Embedder(write_encoder(tmp_path / "model.gguf", model, "rank"), **FORMS)
    pairs = [tokenizer_of("bert").encode("the cat", text) for text in TEXTS]
    logits = np.concatenate([rows_of(model, pair.ids) for pair in pairs])
    check(embedder.rank("the cat", TEXTS), 1 / (1 + np.exp(-logits)))


def test_scores_of_a_head_without_its_pooler_are_refused(tmp_path: Path) -> None:
    """As llama.cpp's converter writes BERT with a head."""
    from transformers_encoders import encoder_of, write_encoder

    model = encoder_of("bert", "ForSequenceClassification", num_labels=1)
    with pytest.raises(ModelError, match="one matrix of two"):
        Embedder(write_encoder(tmp_path / "model.gguf", model, "rank"), **FORMS)


IDENTITY = {"activation_fn": "torch.nn.modules.linear.Identity"}


@pytest.mark.parametrize(
    ("entries", "declared"),
    [
        ({"sentence_transformers": IDENTITY}, None),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, None),
        ({}, {"model_type": "CrossEncoder", "prompts": {}, **IDENTITY}),
    ],
)
def test_scores_are_the_results_if_the_folder_says_so(
    entries: dict[str, Any], declared: dict[str, Any] | None, tmp_path: Path
) -> None:
    """As versions of sentence-transformers write it; the newest ones list the network as the only module."""
    from transformers_encoders import encoder_of, rows_of, save, tokenizer_of, write_json

    model, tokenizer = encoder_of("bert", "ForSequenceClassification", num_labels=1), tokenizer_of("bert")
    for name, value in entries.items():
        setattr(model.config, name, value)
    folder = save(tmp_path, model, tokenizer)
    if declared is not None:
        write_json(folder / "config_sentence_transformers.json", declared)
        write_json(folder / "modules.json", [{"path": "", "type": "sentence_transformers.base.modules.Transformer"}])
        write_json(folder / "tokenizer_config.json", {"model_max_length": 64})
    embedder = Embedder(folder, **FORMS)
    pair = tokenizer.encode("the cat", TEXTS[0])
    check(embedder.rank("the cat", TEXTS[:1]), rows_of(model, pair.ids, pair.type_ids))
    assert embedder.context == (72 if declared is None else 64)


def test_scores_by_other_functions_are_refused(tmp_path: Path) -> None:
    from transformers_encoders import encoder_of, save, tokenizer_of

    model = encoder_of("bert", "ForSequenceClassification", num_labels=1)
    model.config.sentence_transformers = {"activation_fn": "torch.nn.modules.activation.Tanh"}
    with pytest.raises(UnsupportedError, match="function 'Tanh'"):
        Embedder(save(tmp_path, model, tokenizer_of("bert")), **FORMS)


def test_a_decoder_that_answers_yes_or_no_ranks(tmp_path: Path) -> None:
    """As Qwen3-Reranker does, whose file has the rows of the head for both answers, and a template."""
    from small_generators import small_ranker

    ranker = small_ranker(tmp_path, **FORMS)
    scores = ranker.rank("hello", ["he", "lo<|im_end|>", "hello" * 90], truncate=True)
    assert ((scores > 0) & (scores < 1)).all()
    tokens = ranker.pair_of("hello", "lo<|im_end|>").tokens.tolist()
    assert tokens.count(ranker.tokenizer.id("<|im_end|>")) == 1
    assert ranker.tokenizer.decode(tokens, special=True) == "<|im_start|>hello: lo<|im_end|><|im_end|>"
    (row,) = Embedder(tmp_path / "plain.gguf", **FORMS).embed([tokens], normalize=False)
    yes, no = np.frombuffer((tmp_path / "head").read_bytes(), np.float32).reshape(2, -1) @ row
    np.testing.assert_allclose(scores[1], 1 / (1 + np.exp(no - yes)), rtol=1e-5)


def test_a_folder_of_sentence_transformers(tmp_path: Path) -> None:
    from safetensors.numpy import save_file
    from transformers_encoders import encoder_of, rows_of, save, tokenizer_of, write_json

    model, tokenizer = encoder_of("bert"), tokenizer_of("bert")
    folder = save(
        tmp_path, model, tokenizer, ("Pooling", "Dense"), pooling_mode_cls_token=True, pooling_mode_mean_tokens=False
    )
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 20, "do_lower_case": False})
    prompts = {"prompts": {"query": "dog ", "document": ""}, "default_prompt_name": None}
    write_json(folder / "config_sentence_transformers.json", prompts)
    (folder / "2_Dense").mkdir()
    write_json(folder / "2_Dense" / "config.json", {"activation_function": "torch.nn.modules.activation.Tanh"})
    weight, bias = drawn(24, 64), drawn(24)
    save_file({"linear.weight": weight, "linear.bias": bias}, folder / "2_Dense" / "model.safetensors")
    embedder = Embedder(folder, **FORMS)
    assert (embedder.dimensions, embedder.context, makes_vectors(folder)) == (24, 20, True)
    rows = np.stack([rows_of(model, tokenizer.encode(f"dog {text}").ids)[0] for text in TEXTS[:2]])
    wanted = np.tanh(rows @ weight.T + bias)
    check(embedder.embed(TEXTS[:2], prompt="query"), wanted)
    check(
        embedder.embed(TEXTS[1], prompt="query", normalize=True, dimensions=5),
        wanted[1, :5] / np.linalg.norm(wanted[1, :5]),
    )
    with pytest.raises(InputError, match="tokens, and the context 20"):
        embedder.embed(TEXTS)
    ids = tokenizer.encode(TEXTS[2]).ids
    check(embedder.embed(TEXTS[2], truncate=True), np.tanh(rows_of(model, [*ids[:19], 3])[0] @ weight.T + bias))
    with pytest.raises(InputError, match="no prompt 'other'"):
        embedder.embed(TEXTS, prompt="other")


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_settings_of_a_tokenizer_say_how_texts_are_cut(side: str, tmp_path: Path) -> None:
    """As newer versions of sentence-transformers write the longest text; old ones have other names of the file."""
    from transformers_encoders import encoder_of, rows_of, save, tokenizer_of, write_json

    model, tokenizer = encoder_of("bert"), tokenizer_of("bert")
    tokenizer.normalizer = None
    folder = save(tmp_path, model, tokenizer, ("Pooling",), pooling_mode_mean_tokens=True)
    write_json(folder / "tokenizer_config.json", {"model_max_length": 7, "truncation_side": side})
    write_json(folder / "sentence_roberta_config.json", {"max_seq_length": None, "do_lower_case": True})
    embedder = Embedder(folder, **FORMS)
    assert embedder.context == 7
    ids = tokenizer.encode("the cat sat on dog w1 w7").ids
    left = ids[1:-1][:5] if side == "right" else ids[1:-1][-5:]
    wanted = rows_of(model, [ids[0], *left, ids[-1]]).mean(axis=0)
    check(embedder.embed("The CAT sat on dog w1 w7", truncate=True), wanted)


def drawn(*shape: int) -> np.ndarray:
    """Random numbers of f32."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_old_checkpoints_have_the_vectors_of_new_ones(tmp_path: Path) -> None:
    """Names of tensors as TensorFlow had them, positions, and padding of texts, in a folder below `modules.json`."""
    from safetensors.numpy import load_file, save_file
    from transformers_encoders import encoder_of, save, tokenizer_of, write_json

    model, tokenizer = encoder_of("bert"), tokenizer_of("bert")
    wanted = Embedder(save(tmp_path / "new", model, tokenizer), **FORMS).embed(TEXTS)
    tokenizer.enable_padding(length=30, pad_token="[PAD]")
    tokenizer.enable_truncation(max_length=5)
    folder = save(tmp_path / "0_Transformer", model, tokenizer)
    changed = {
        "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for name, array in load_file(folder / "model.safetensors").items()
    }
    changed["embeddings.position_ids"] = np.arange(72)[None]
    save_file(changed, folder / "model.safetensors")
    paths = {"0_Transformer": "models.Transformer", "1_Pooling": "models.Pooling", "2_Normalize": "models.Normalize"}
    write_json(tmp_path / "modules.json", [{"path": path, "type": kind} for path, kind in paths.items()])
    (tmp_path / "1_Pooling").mkdir()
    write_json(tmp_path / "1_Pooling" / "config.json", {"pooling_mode": "mean"})
    np.testing.assert_array_equal(Embedder(tmp_path, **FORMS).embed(TEXTS), wanted)


@pytest.mark.parametrize("kind", ["last", "mean"])
def test_decoders_have_the_vectors_of_transformers(kind: str, tmp_path: Path) -> None:
    """Also for a text that takes several calls."""
    from transformers_decoders import decoder_of
    from transformers_encoders import rows_of, save, tokenizer_of

    model, tokenizer = decoder_of("qwen3").model, tokenizer_of("bert")
    embedder = Embedder(save(tmp_path, model, tokenizer), pooling=kind, **FORMS)
    tokens = [*([*range(5, 90)] * 3)[:200], 3]
    texts = [tokens, [7, 3], tokens[:100]]
    wanted = np.stack([REDUCERS[kind](rows_of(model, ids)) for ids in texts])
    check(embedder.embed(texts, normalize=False), wanted)


def test_all_families_are_tested() -> None:
    assert {family.name for family in ENCODERS} == {name.split(",")[0] for name in CASES}
    assert tuple(REDUCERS) == POOLINGS
