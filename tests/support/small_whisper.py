"""A Whisper for tests: small, with random weights, and a vocabulary of bytes, control tokens and times."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from glow_mlir.generation.pieces import GPT2_BYTES

LANGUAGES = ("en", "de", "fr")
SECONDS = 2
"""The length of a window."""

POSITIONS = 50 * SECONDS
CONTROLS = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    *(f"<|{name}|>" for name in LANGUAGES),
    "<|translate|>",
    "<|transcribe|>",
    "<|notimestamps|>",
)
TIMES = [f"<|{step / 50:.2f}|>" for step in range(POSITIONS + 1)]
TOKENS = [*sorted(GPT2_BYTES, key=GPT2_BYTES.__getitem__), *CONTROLS, *TIMES]
IDS = {token: number for number, token in enumerate(TOKENS)}
END = IDS["<|endoftext|>"]


def sound(number: int, seconds: float) -> np.ndarray:
    """A sound of some tones and noise, different for each number."""
    rng = np.random.default_rng(number)
    times = np.arange(int(16000 * seconds)) / 16000
    tones = sum(np.sin(2 * np.pi * rng.uniform(100, 4000) * times**1.5) for _ in range(3))
    return (0.1 * tones + 0.03 * rng.normal(size=times.size)).astype(np.float32)


def settings() -> dict[str, Any]:
    """The entries of `generation_config.json`."""
    return {
        "bos_token_id": END,
        "eos_token_id": END,
        "pad_token_id": END,
        "decoder_start_token_id": IDS["<|startoftranscript|>"],
        "is_multilingual": True,
        "lang_to_id": {f"<|{name}|>": IDS[f"<|{name}|>"] for name in LANGUAGES},
        "task_to_id": {name: IDS[f"<|{name}|>"] for name in ("transcribe", "translate")},
        "no_timestamps_token_id": IDS["<|notimestamps|>"],
        "max_initial_timestamp_index": POSITIONS // 2,
        "suppress_tokens": [3, 9, 77, *(IDS[token] for token in CONTROLS[1:])],
        "begin_suppress_tokens": [32, END],
        "max_length": 48,
    }


def write_whisper(folder: Path, **changes: Any) -> Any:
    """Write the model to a folder; returns that of transformers."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    sizes = {f"{part}_{name}": 2 for part in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    tokens = {name: settings()[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    config = WhisperConfig(
        vocab_size=len(TOKENS),
        d_model=32,
        encoder_ffn_dim=48,
        decoder_ffn_dim=64,
        max_target_positions=64,
        decoder_start_token_id=IDS["<|startoftranscript|>"],
        **{"max_source_positions": POSITIONS, **sizes, **tokens, **changes},
    )
    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 1:
                weight.add_(torch.randn_like(weight) * 0.1)
            elif name != "model.encoder.embed_positions.weight":
                # Tokens differ by position more than by the token before, so that texts do not repeat one.
                width = 2.0 if "embed_positions" in name else 0.5 if "embed" in name else 1.5 / weight[0].numel() ** 0.5
                weight.normal_(0, width)
        # Some texts end soon.
        model.model.decoder.embed_tokens.weight[END] *= 6
    model.generation_config = GenerationConfig(**settings())
    model.save_pretrained(folder)
    tokenizer = Tokenizer(models.BPE({token: IDS[token] for token in TOKENS[:256]}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in CONTROLS])
    tokenizer.add_tokens([AddedToken(token) for token in TIMES])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "preprocessor_config.json").write_text(json.dumps({"feature_size": config.num_mel_bins}))
    return model


def export_whisper(model: Any, source: Path, folder: Path) -> None:
    """Write the graphs of encoder and decoder to a folder, as optimum does, with the other files of `source`."""
    import torch
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = model.model.encoder

        def forward(self, input_features: Any) -> Any:
            return self.encoder(input_features).last_hidden_state

    class Decoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, input_ids: Any, encoder_hidden_states: Any) -> Any:
            given = {"decoder_input_ids": input_ids, "encoder_outputs": (encoder_hidden_states,)}
            caches = EncoderDecoderCache(DynamicCache(), DynamicCache())
            return self.inner(**given, past_key_values=caches, use_cache=True).logits

    folder.mkdir(parents=True, exist_ok=True)
    model.set_attn_implementation("eager")
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        shutil.copy(source / name, folder / name)
    features = torch.zeros(1, model.config.num_mel_bins, 2 * POSITIONS)
    rows, tokens = torch.zeros(1, POSITIONS, model.config.d_model), torch.tensor([[1, 2, 3]])
    graphs = {
        "encoder_model.onnx": (Encoder(), (features,), ["input_features"], {}),
        "decoder_model.onnx": (Decoder(), (tokens, rows), ["input_ids", "encoder_hidden_states"], {1: "length"}),
    }
    for name, (network, given, inputs, axes) in graphs.items():
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            form: dict[str, Any] = {"input_names": inputs, "dynamic_axes": {inputs[0]: axes} if axes else {}}
            torch.onnx.export(network, given, str(folder / name), **form, opset_version=17, dynamo=False)
