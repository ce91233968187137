"""Decoders from checkpoints and GGUF files have the logits of transformers, in chunks and for several sequences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoder_calls import FORMS, Caller, drawn
from gguf_files import QUANTIZED, llama_metadata, llama_tensors, write_gguf
from small_encoders import write_encoder

import glow_mlir
from glow_mlir.backends.interface import get_backend
from glow_mlir.driver.compiler import Compilation
from glow_mlir.driver.pipelines import ALLOCATED, collapsing
from glow_mlir.errors import ModelError, OptionError, UnsupportedError
from glow_mlir.frontends.decoders.families import FAMILIES
from glow_mlir.frontends.decoders.models import DecoderModel, open_model
from glow_mlir.generation.pooling import Pooling
from glow_mlir.ir import statistics


def check_like_transformers(decoder: Any, model: DecoderModel, backend: str = "interpreter") -> None:
    """Prompt, steps and chunks; then two sequences in one call, of which one is truncated and goes on."""
    from transformers_decoders import logits_of

    first, second, other = drawn(23), drawn(9, seed=2), drawn(6, seed=3)
    wanted = logits_of(decoder, first)
    tolerance: dict[str, Any] = {"rtol": 0, "atol": 1e-5 * float(np.abs(wanted).max())}
    caller = Caller(model, backend)
    np.testing.assert_allclose(caller.chunks(first, 9, 1, 1, 7, 5), wanted, **tolerance)
    # The first sequence keeps 12 tokens.
    tokens = np.concatenate([second, other])
    positions = np.concatenate([np.arange(9), np.arange(12, 18)])
    found = caller.call(tokens, positions, np.repeat([1, 0], [9, 6]))
    np.testing.assert_allclose(found[:9], logits_of(decoder, second), **tolerance)
    np.testing.assert_allclose(found[9:], logits_of(decoder, np.concatenate([first[:12], other]))[12:], **tolerance)


CASES = (
    "llama", "llama, biases", "llama, linear", "llama, yarn", "mistral", "mixtral", "qwen2", "qwen2, windows", "qwen3",
    "qwen3moe", "gemma2", "gemma3", "phi3", "phi3, long", "gpt2", "smollm3", "olmo2", "granite",
)  # fmt: skip
"""Cases of `transformers_decoders`."""

IN_GGUF = tuple(name for name in CASES if name not in ("qwen2, windows",))
"""Those that GGUF files can describe."""


@pytest.mark.extra
@pytest.mark.parametrize("name", CASES)
def test_checkpoints_have_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from transformers_decoders import decoder_of

    decoder = decoder_of(name)
    decoder.save_pretrained(tmp_path)
    check_like_transformers(decoder, open_model(tmp_path, 100 if "long" in name else None))


@pytest.mark.extra
@pytest.mark.parametrize("name", IN_GGUF)
def test_gguf_files_have_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    for package in ("transformers", "gguf"):
        pytest.importorskip(package)
    from transformers_decoders import decoder_of, write_decoder

    decoder = decoder_of(name)
    path = write_decoder(tmp_path / "model.gguf", decoder, name)
    check_like_transformers(decoder, open_model(path, 100 if "long" in name else None))


@pytest.mark.extra
@pytest.mark.parametrize("name", ["llama", "gemma3", "mixtral"])
def test_machine_code_has_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from transformers_decoders import decoder_of

    decoder = decoder_of(name)
    decoder.save_pretrained(tmp_path)
    check_like_transformers(decoder, open_model(tmp_path), "cpu")


def test_all_families_are_tested() -> None:
    assert {family.name for family in FAMILIES} == {name.split(",")[0] for name in CASES}


# Without other packages


def rotated(heads: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rotate pairs of neighbours, as GGUF files of llama have them."""
    size = heads.shape[-1]
    frequencies: np.ndarray = np.exp(-np.log(10000) / size * np.arange(0, size, 2))
    angles = positions[:, None, None] * frequencies
    even, odd = heads[..., ::2], heads[..., 1::2]
    parts = even * np.cos(angles) - odd * np.sin(angles), odd * np.cos(angles) + even * np.sin(angles)
    return np.stack(parts, axis=-1).reshape(heads.shape)


def reference(weights: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """The logits of a small llama in f64: 4 heads of queries, 2 of keys, norms with weights of 1."""

    def normed(rows: np.ndarray) -> np.ndarray:
        return rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + 1e-5)

    count, rows = len(tokens), weights["token_embd"][tokens]
    seen = np.tril(np.ones((count, count), bool))
    for layer in range(2):
        own = {name.removeprefix(f"blk.{layer}."): array for name, array in weights.items()}
        read = normed(rows)
        query, key, value = (
            (read @ own[f"attn_{letter}"].T).reshape(count, heads, -1)
            for letter, heads in (("q", 4), ("k", 2), ("v", 2))
        )
        query, key = (rotated(item, np.arange(count)) for item in (query, key))
        key, value = (np.repeat(item, 2, axis=1) for item in (key, value))
        scores = np.einsum("ihd,jhd->hij", query, key) / np.sqrt(query.shape[-1])
        scores = np.where(seen, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        rows = rows + np.einsum("hij,jhd->ihd", shares, value).reshape(count, -1) @ own["attn_output"].T
        read = normed(rows)
        gate = read @ own["ffn_gate"].T
        rows = rows + (gate / (1 + np.exp(-gate)) * (read @ own["ffn_up"].T)) @ own["ffn_down"].T
    return normed(rows) @ weights["token_embd"].T


def small_llama(path: Path, kind: str, layers: int = 2) -> DecoderModel:
    """A GGUF file of a small llama with random weights of a type."""
    metadata = llama_metadata(embedding_length=256, feed_forward_length=256, block_count=layers)
    return open_model(write_gguf(path / "model.gguf", metadata, llama_tensors(kind, layers)))


@pytest.mark.parametrize("left_bits", [0, 15])
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", *QUANTIZED])
def test_quantized_weights_have_the_logits_of_their_numbers(kind: str, left_bits: int, tmp_path: Path) -> None:
    model = small_llama(tmp_path, kind)
    source: Any = model.source
    weights = {name.removesuffix(".weight"): item.array().astype(np.float64) for name, item in source.tensors.items()}
    tokens = drawn(11)
    wanted = reference(weights, tokens)
    found = Caller(model, left_bits=left_bits).chunks(tokens, 6, 5)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=(1e-3 if left_bits else 1e-5) * np.abs(wanted).max())


@pytest.mark.parametrize("kind", ["Q4_1", "Q4_K", "Q6_K"])
def test_machine_code_of_quantized_weights(kind: str, tmp_path: Path) -> None:
    model, tokens = small_llama(tmp_path, kind), drawn(11)
    wanted = Caller(model, cache="float16").chunks(tokens, 6, 5)
    found = Caller(model, "cpu", cache="float16").chunks(tokens, 6, 5)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("left_bits", [0, 15])
def test_bits_do_not_depend_on_chunks_neighbours_or_threads(left_bits: int, tmp_path: Path) -> None:
    model, rng = small_llama(tmp_path, "Q4_1"), np.random.default_rng(0)
    callers = [Caller(model, "cpu", threads, left_bits=left_bits) for threads in (1, 2)]
    tokens = np.stack([drawn(24), drawn(24, seed=2)])
    numbers = np.arange(24)
    wanted = np.stack([callers[0].call(tokens[number], numbers, number) for number in range(2)])
    for turn in range(6):
        at = [0, 0]
        while at != [24, 24]:
            counts = [min(int(rng.choice([0, 1, 3, 7, 14])), 24 - begin) for begin in at]
            sequences = np.repeat([0, 1], counts)
            positions = np.concatenate(
                [np.arange(begin, begin + count) for begin, count in zip(at, counts, strict=True)]
            )
            at = [begin + count for begin, count in zip(at, counts, strict=True)]
            if not len(positions):
                continue
            order = rng.permutation(len(positions))
            sequences, positions = sequences[order], positions[order]
            found = callers[turn % 2].call(tokens[sequences, positions], positions, sequences)
            np.testing.assert_array_equal(found, wanted[sequences, positions])


def test_hidden_rows_are_those_in_front_of_the_head(tmp_path: Path) -> None:
    model, tokens = small_llama(tmp_path, "F32"), drawn(7)
    hidden = Caller(model, result="hidden").chunks(tokens, 7)
    source: Any = model.source
    logits = hidden @ source.tensors["token_embd.weight"].array().T
    np.testing.assert_allclose(logits, Caller(model).chunks(tokens, 7), rtol=0, atol=1e-5 * np.abs(logits).max())


def test_equal_layers_with_caches_are_compiled_once(tmp_path: Path) -> None:
    model, tokens = small_llama(tmp_path, "Q4_0", layers=8), drawn(11)
    program: Any = model.program(**FORMS)
    with statistics.counting() as counts:
        pipeline = collapsing(get_backend("cpu").pipeline("avx2"))
        Compilation(program.module(program.dimensions), "cpu", pipeline=pipeline).run(ALLOCATED.name)
    assert counts["layers copied"] >= 3
    found, whole = (Caller(model, "cpu", disable=disable).chunks(tokens, 6, 5) for disable in ([], ["collapse-layers"]))
    np.testing.assert_array_equal(found, whole)


def test_padding_changes_no_other_row(tmp_path: Path) -> None:
    caller, tokens = Caller(small_llama(tmp_path, "Q8_0")), drawn(6)
    wanted = caller.chunks(tokens, 6)
    padded = Caller(small_llama(tmp_path, "Q8_0"))
    found = padded.call(np.append(tokens, [0, 0]), np.array([0, 1, 2, 3, 4, 5, -1, -1]))
    np.testing.assert_array_equal(found[:6], wanted)


def changed(tmp_path: Path, **changes: Any) -> Path:
    """A file with entries of the metadata replaced or, for `None`, left out, as are the tensors that are named."""
    tensors = {name: item for name, item in llama_tensors("Q8_0").items() if name not in changes}
    metadata = llama_metadata(embedding_length=256, feed_forward_length=256)
    metadata |= {name: value for name, value in changes.items() if not name.endswith("weight")}
    kept = {name: value for name, value in metadata.items() if value is not None}
    return write_gguf(tmp_path / "model.gguf", kept, tensors)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another family": ({"general.architecture": "mamba"}, "decoders of the family 'mamba' are not supported"),
    "no family": ({"general.architecture": None}, "'general.architecture': the entry is missing"),
    "no width": ({"llama.embedding_length": None}, "'llama.embedding_length': the entry is missing"),
    "endless layers": ({"llama.block_count": 1 << 30}, "'llama.block_count': the size must be from 1 to 1024"),
    "a width of text": ({"llama.embedding_length": "wide"}, "must be from 1 to 16777216, not 'wide'"),
    "heads that do not fit": ({"llama.attention.head_count": 7}, "256 elements do not make 7 heads"),
    "keys that are not shared": ({"llama.attention.head_count_kv": 3}, "4 heads do not share 3"),
    "no table": ({"token_embd.weight": None}, "'token_embd.weight': the tensor is missing"),
    "no norm": ({"blk.1.ffn_norm.weight": None}, "'blk.1.ffn_norm': the tensor is missing"),
    "no matrix": ({"blk.0.attn_k.weight": None}, "'blk.0.attn_k': the tensor is missing"),
    "an endless number": ({"llama.attention.layer_norm_rms_epsilon": (12, 1e300)}, "the entry must be a number"),
    "a cap below 0": ({"llama.attn_logit_softcapping": -1.0}, "the entry must be a number"),
    "an odd rotation": ({"llama.rope.dimension_count": 3}, "a rotation of 3 elements is not supported"),
    "a base of 0": ({"llama.rope.freq_base": 0.0}, "give no frequencies"),
    "a scaling without logarithm": (
        {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.original_context_length": 0},
        "give no frequencies",
    ),
    "another shape": ({"llama.feed_forward_length": 128}, "the matrix has the shape [256, 256], not [128, 256]"),
}


def imported(path: Path) -> None:
    """Open a file and build its module."""
    program = open_model(path).program(pages=4)
    program.module(program.dimensions)


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_do_not_fit_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    changes, words = REFUSED[name]
    path = changed(tmp_path, **changes)
    with pytest.raises((ModelError, UnsupportedError)) as caught:
        imported(path)
    line = str(caught.value)
    assert words in line
    assert "model.gguf" in line
    assert "\n" not in line


def test_pairs_of_a_part_of_a_head_are_those_that_are_rotated(tmp_path: Path) -> None:
    """The others stay in their places: llama.cpp rotates neighbours among the first elements of a head."""
    model = open_model(changed(tmp_path, **{"llama.attention.key_length": 64, "llama.rope.dimension_count": 6}))
    order = model.weights("").row_order("q")
    assert order is not None
    rows = order.reshape(4, 64) - 64 * np.arange(4)[:, None]
    np.testing.assert_array_equal(rows, [[0, 2, 4, 1, 3, 5, *range(6, 64)]] * 4)


CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 96,
    "intermediate_size": 96, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
}  # fmt: skip


def with_entries(**entries: Any) -> tuple[str, bytes]:
    """A description with some entries, and no tensors."""
    return json.dumps({**CONFIG, **entries}), b""


def with_tensor(**entries: Any) -> tuple[str, bytes]:
    """A description, and an empty tensor with some entries."""
    return json.dumps(CONFIG), json.dumps(
        {"w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0], **entries}}
    ).encode()


REFUSED_FOLDERS: dict[str, tuple[str, bytes, str]] = {
    "no JSON": ("{", b"", "config.json: cannot be read: is no JSON"),
    "another family": (json.dumps({**CONFIG, "model_type": "mamba"}), b"", "the family 'mamba' are not supported"),
    "no width": (json.dumps({**CONFIG, "hidden_size": None}), b"", "'hidden_size': the entry must be a size"),
    "another activation": (json.dumps({**CONFIG, "hidden_act": "mish"}), b"", "the activation 'mish' is not supported"),
    "another scaling": (
        json.dumps({**CONFIG, "rope_scaling": {"type": "x"}}),
        b"",
        "of the kind 'x' are not supported",
    ),
    "a scaling of text": (
        *with_entries(rope_scaling={"type": "longrope", "long_factor": "a", "short_factor": "a"}),
        "give no frequencies",
    ),
    "a base of text": (*with_entries(rope_parameters={"rope_theta": "a"}), "'rope_theta': the entry must be a number"),
    "an endless share": (*with_entries(partial_rotary_factor=1 << 40), "the entry must be a share up to 1"),
    "a share of no number": (*with_entries(partial_rotary_factor={}), "the entry must be a number"),
    "a scale of 0": (*with_entries(query_pre_attn_scalar=0), "'query_pre_attn_scalar': the entry must be positive"),
    "a cap below 0": (*with_entries(final_logit_softcapping=-1), "the entry must be a number"),
    "a type that is a list": (*with_tensor(dtype=["F32"]), "tensors of the type ['F32'] are not supported"),
    "an infinite size": (*with_tensor(shape=[float("inf")]), "sizes that are no integers"),
    "offsets of fractions": (*with_tensor(data_offsets=[0.0, 0.0]), "sizes that are no integers"),
    "endless sizes without elements": (*with_tensor(shape=[0, 1 << 62]), "takes bytes 0 to 0 of 0"),
    "many axes": (*with_tensor(shape=[0] * 70), "takes bytes 0 to 0 of 0"),
    "a file cut off": (json.dumps(CONFIG), b"\xff" * 9, "is no file of safetensors, or is cut off"),
    "a tensor outside": (
        json.dumps(CONFIG),
        b'{"w": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}',
        "takes bytes 0 to 36 of 0",
    ),
    "a refused type": (
        json.dumps(CONFIG),
        b'{"w": {"dtype": "I8", "shape": [0], "data_offsets": [0, 0]}}',
        "tensors of the type I8 are not supported",
    ),
}


@pytest.mark.parametrize("name", REFUSED_FOLDERS)
def test_folders_that_do_not_fit_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    config, header, words = REFUSED_FOLDERS[name]
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    size = b"" if header.startswith(b"\xff") else len(header or b"{}").to_bytes(8, "little")
    (tmp_path / "model.safetensors").write_bytes(size + (header or b"{}"))
    with pytest.raises((ModelError, UnsupportedError)) as caught:
        open_model(tmp_path)
    line = str(caught.value)
    assert words in line
    assert str(tmp_path) in line
    assert "\n" not in line


def test_forms_out_of_range_are_refused(tmp_path: Path) -> None:
    model = small_llama(tmp_path, "Q8_0")
    wrong: list[dict[str, Any]] = [{"pages": 0}, {"pages": 4, "rows": 0}, {"pages": 4, "cache": "int3"}]
    for form in wrong:
        with pytest.raises(OptionError):
            model.program(**form)
    with pytest.raises(ModelError, match="no such file"):
        open_model(tmp_path / "missing.gguf")


def test_modules_of_encoders_are_valid(tmp_path: Path) -> None:
    program = open_model(write_encoder(tmp_path / "encoder.gguf")).program(pages=2, result="hidden")
    module = program.module(program.dimensions)
    module.verify()
    assert '"main"' in str(module) or "@main" in str(module)


@pytest.mark.parametrize("key", ["attention.causal", "block_count", "attention.head_count"])
def test_entries_of_other_types_are_refused_by_name(key: str, tmp_path: Path) -> None:
    path = write_encoder(tmp_path / "encoder.gguf", labels=1, **{f"bert.{key}": (9, (4, [1, 2]))})
    with pytest.raises(ModelError, match=rf"bert\.{key}") as caught:
        Pooling.of_model(open_model(path), path)
    assert "\n" not in str(caught.value)


def test_a_table_without_tokens_is_refused(tmp_path: Path) -> None:
    tensors = {**llama_tensors("Q4_0"), "token_embd.weight": ("Q4_0", (0, 256), b"")}
    path = write_gguf(tmp_path / "model.gguf", llama_metadata(embedding_length=256, feed_forward_length=256), tensors)
    with pytest.raises(ModelError, match="token_embd"):
        open_model(path)


def test_heads_of_any_size_that_a_file_claims_take_no_time(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="only of 4096 at most"):
        open_model(changed(tmp_path, **{"llama.attention.key_length": 1 << 24}))


def test_programs_of_other_weights_or_forms_have_other_identities(tmp_path: Path) -> None:
    first = small_llama(tmp_path, "Q8_0")
    known = {
        first.program(pages=4).identity,
        first.program(pages=5).identity,
        first.program(pages=4, left_bits=0).identity,
    }
    assert len(known) == 3
    assert first.program(pages=4).identity in known
    known.add(small_llama(tmp_path, "Q4_0").program(pages=4).identity)
    assert len(known) == 4


def test_dimensions_without_bounds_are_refused(tmp_path: Path) -> None:
    """Code for each size would have keys and values of its own."""
    program: Any = open_model(changed(tmp_path)).program(**FORMS)
    for dimensions in ({}, {**program.dimensions, "rows": (1, None)}):
        session = glow_mlir.InferenceSession(program, dimensions=dimensions, backend="interpreter")
        row = {name: np.zeros(1, np.int64) for name in ("tokens", "positions", "sequences", "last")}
        with pytest.raises(OptionError, match=r"the model has state, such as 'keys\.0'"):
            session.run(None, {**row, "table": np.zeros((1, 1), np.int64)})
