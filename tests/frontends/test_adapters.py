"""Adapters add what merged weights have, in every family's order of rows; others are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter_files import random_pairs, write_gguf_adapter, write_peft
from gguf_files import llama_metadata, llama_tensors, write_gguf

import glow_mlir
from glow_mlir.errors import GlowError
from glow_mlir.frontends.decoders.adapters import Adapter
from glow_mlir.frontends.decoders.models import DecoderModel, open_model

SIZES = {"embedding_length": 256, "feed_forward_length": 256}
"""The sizes of the decoder of `llama_tensors`."""


def logits(model: DecoderModel, adapters: list[Adapter], tokens: np.ndarray, chosen: list[int]) -> list[np.ndarray]:
    """The logits of a sequence of the same tokens for each number of an adapter, all in one call."""
    count, width = len(chosen), len(tokens)
    forms: dict[str, Any] = {"rows": 64, "outputs": 64, "sequences": count, "cache": "float32", "left_bits": 0}
    program: Any = model.program(pages=4 * count, page=8, adapters=adapters, **forms)
    session = glow_mlir.InferenceSession(program, dimensions=program.dimensions, backend="interpreter")
    feeds = {
        "tokens": np.tile(tokens, count),
        "positions": np.tile(np.arange(width), count),
        "sequences": np.repeat(np.arange(count), width),
        "table": np.arange(4 * count).reshape(count, 4),
        "last": np.arange(count * width),
    }
    if adapters:
        feeds["adapters"] = np.repeat(chosen, width)
    found: Any = session.run(None, {name: np.ascontiguousarray(value, np.int64) for name, value in feeds.items()})[0]
    return np.split(found, count)


MODULES = {
    "llama": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.down_proj"),
    "phi3": ("self_attn.qkv_proj", "mlp.gate_up_proj"),
    "gpt2": ("attn.c_attn", "mlp.c_proj"),
}


@pytest.mark.extra
@pytest.mark.parametrize("in_gguf", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_adapters_are_merged_weights(name: str, in_gguf: bool, tmp_path: Path) -> None:
    for package in ("transformers", "gguf"):
        pytest.importorskip(package)
    import torch
    from transformers_decoders import decoder_of, logits_of, write_decoder

    decoder, tokens = decoder_of(name), np.random.default_rng(1).integers(0, 96, 11)
    if in_gguf:
        model = open_model(write_decoder(tmp_path / "model.gguf", decoder, name))
    else:
        decoder.save_pretrained(tmp_path / "model")
        model = open_model(tmp_path / "model")
    modules = {own: part for own, part in decoder.named_modules() if own.endswith(MODULES[name])}
    is_turned = name == "gpt2"
    shapes = {own: tuple(part.weight.shape)[:: -1 if is_turned else 1] for own, part in modules.items()}
    first, second = random_pairs(shapes), random_pairs(dict([*shapes.items()][1:]), seed=1, rank=2)
    adapters = [Adapter.open(write_peft(tmp_path / "first", first))]
    adapters.append(Adapter.open(write_peft(tmp_path / "second", second, use_rslora=True)))
    wanted = [logits_of(decoder, tokens)]
    for pairs, factor in ((first, 6 / 3), (second, 6 / 2**0.5)):
        with torch.no_grad():
            for sign in (1, -1):
                for own, (down, up) in pairs.items():
                    added = torch.tensor(up @ down) * factor * sign
                    modules[own].weight.add_(added.T if is_turned else added)
                if sign == 1:
                    wanted.append(logits_of(decoder, tokens))
    found = logits(model, adapters, tokens, [0, 1, 2, 1])
    for own, other in zip(found, [*wanted, wanted[1]], strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=2e-5 * float(np.abs(other).max()))
    assert np.abs(wanted[1] - wanted[0]).max() > 0.1


def test_gguf_adapters_have_the_order_of_gguf_files(tmp_path: Path) -> None:
    metadata, tensors = llama_metadata(**SIZES), dict(llama_tensors("F32"))
    shapes: dict[str, tuple[int, int]] = {}
    for name in ("blk.0.attn_q", "blk.1.attn_k", "blk.1.ffn_up"):
        rows, depth = tensors[f"{name}.weight"][1]
        shapes[name] = rows, depth
    pairs = random_pairs(shapes)
    adapter = Adapter.open(write_gguf_adapter(tmp_path / "adapter.gguf", pairs))
    tokens = np.random.default_rng(1).integers(0, 96, 11)
    base = write_gguf(tmp_path / "base.gguf", metadata, tensors)
    for name, (down, up) in pairs.items():
        kind, shape, data = tensors[f"{name}.weight"]
        merged = np.frombuffer(data, np.float32).reshape(shape) + 2 * up @ down
        tensors[f"{name}.weight"] = kind, shape, merged.astype(np.float32).tobytes()
    merged_model = open_model(write_gguf(tmp_path / "merged.gguf", metadata, tensors))
    (wanted,), (plain,) = (logits(open_model(path), [], tokens, [0]) for path in (merged_model.path, base))
    none, adapted = logits(open_model(base), [adapter], tokens, [0, 1])
    np.testing.assert_array_equal(none, plain)
    np.testing.assert_allclose(adapted, wanted, rtol=0, atol=1e-5 * float(np.abs(wanted).max()))


NAME = "model.layers.0.self_attn.o_proj"
RIGHT = {NAME: (256, 256)}


@pytest.mark.parametrize(
    ("shapes", "config", "words"),
    [
        ({NAME: (256, 255)}, {}, r"for a matrix of the shape \[256, 255\], not \[256, 256\]"),
        ({"model.layers.7.self_attn.o_proj": (256, 256)}, {}, "the decoder has no such product"),
        ({"lm_head": (96, 64)}, {}, "the decoder has no such product"),
        (RIGHT, {"peft_type": "IA3"}, "adapters with peft_type 'IA3' are not supported"),
        (RIGHT, {"use_dora": True}, "use_dora True"),
        (RIGHT, {"modules_to_save": ["lm_head"]}, "modules_to_save"),
        (RIGHT, {"init_lora_weights": "pissa_niter_4"}, "init_lora_weights 'pissa_niter_4'"),
        (RIGHT, {"layer_replication": [[0, 2], [1, 2]]}, "layer_replication"),
        (RIGHT, {"alora_invocation_tokens": [5]}, "alora_invocation_tokens"),
        (RIGHT, {"use_something_new": True}, "use_something_new True"),
        (RIGHT, {"lora_alpha": "6"}, "is '6', and no number"),
        (RIGHT, {"lora_alpha": 10**400}, "and no number"),
        (RIGHT, {"alpha_pattern": {"(a+)+": 1}}, "alpha_pattern has more than names"),
        ({}, {}, "there are no matrices"),
    ],
)
def test_other_adapters_are_refused(
    shapes: dict[str, tuple[int, int]], config: dict[str, Any], words: str, tmp_path: Path
) -> None:
    model = open_model(write_gguf(tmp_path / "model.gguf", llama_metadata(**SIZES), llama_tensors("F32")))
    folder = write_peft(tmp_path / "adapter", random_pairs(shapes), **config)
    with pytest.raises(GlowError, match=words) as error:
        logits(model, [Adapter.open(folder)], np.arange(3), [1])
    assert "\n" not in str(error.value)


def test_files_that_are_no_adapters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GlowError, match="no such file"):
        Adapter.open(tmp_path / "nothing")
    with pytest.raises(GlowError, match="no adapter of the type lora"):
        Adapter.open(write_gguf(tmp_path / "model.gguf", llama_metadata(**SIZES), llama_tensors("F32")))


SMALL = {"blk.0.attn_output": (256, 256)}


@pytest.mark.parametrize("alpha", [0.0, None])
def test_gguf_adapters_without_alpha_are_not_scaled(alpha: float | None, tmp_path: Path) -> None:
    pairs = random_pairs(SMALL)
    adapter = Adapter.open(write_gguf_adapter(tmp_path / "adapter.gguf", pairs, alpha))
    np.testing.assert_array_equal(adapter.pairs["blk.0.attn_output.weight"].up, pairs["blk.0.attn_output"][1])


def test_adapters_of_other_decoders_are_refused(tmp_path: Path) -> None:
    model = open_model(write_gguf(tmp_path / "model.gguf", llama_metadata(**SIZES), llama_tensors("F32")))
    entries: list[tuple[dict[str, Any], str]] = [
        ({"general.architecture": "qwen2"}, "is for decoders of the architecture 'qwen2'"),
        ({"adapter.alora.invocation_tokens": (9, (4, [1]))}, "invocation tokens"),
    ]
    for entry, words in entries:
        path = write_gguf_adapter(tmp_path / "adapter.gguf", random_pairs(SMALL), **entry)
        with pytest.raises(GlowError, match=words):
            logits(model, [Adapter.open(path)], np.arange(3), [1])
    pairs = random_pairs(RIGHT)
    pairs[NAME][1][3, 1] = np.inf
    with pytest.raises(GlowError, match="not finite"):
        Adapter.open(write_peft(tmp_path / "infinite", pairs))
