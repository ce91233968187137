"""Small decoders of transformers with random weights, saved as checkpoints and, by llama.cpp's rules, as GGUF files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import transformers

VOCABULARY = 96

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}

TOKENS = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}


def rope(kind: str, **numbers: Any) -> dict[str, Any]:
    """The entry of a rotation."""
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **numbers}}


_LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
_LONG = {
    "partial_rotary_factor": 0.75,
    "short_factor": [1 + index / 10 for index in range(6)],
    "long_factor": [2.0 + index for index in range(6)],
}

CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "llama": ("Llama", rope("llama3", **_LLAMA3)),
    "llama, biases": ("Llama", {"attention_bias": True, "mlp_bias": True, "head_dim": 24, "tie_word_embeddings": True}),
    "llama, linear": ("Llama", rope("linear", factor=4.0)),
    "llama, yarn": ("Llama", rope("yarn", factor=4.0, original_max_position_embeddings=64)),
    "mistral": ("Mistral", {"sliding_window": 5, "head_dim": 16}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "qwen2": ("Qwen2", {}),
    "qwen2, windows": ("Qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "qwen3moe": (
        "Qwen3Moe",
        {
            "head_dim": 16,
            "num_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "norm_topk_prob": True,
        },
    ),
    "gemma2": ("Gemma2", {"head_dim": 16, "sliding_window": 4, "query_pre_attn_scalar": 16}),
    "gemma3": (
        "Gemma3Text",
        {"num_hidden_layers": 7, "head_dim": 16, "sliding_window": 4, "query_pre_attn_scalar": 16},
    ),
    "phi3": ("Phi3", {"sliding_window": 6, **TOKENS}),
    "phi3, long": ("Phi3", {"original_max_position_embeddings": 128, **TOKENS, **rope("longrope", **_LONG)}),
    "gpt2": ("GPT2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 256, **TOKENS}),
    "smollm3": ("SmolLM3", {"num_hidden_layers": 5, **TOKENS}),
    "olmo2": ("Olmo2", TOKENS),
    "granite": (
        "Granite",
        {"embedding_multiplier": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.5, "logits_scaling": 2.0},
    ),
}
"""Name of a case, which begins with that of its family → class of transformers, and what differs from `SIZES`."""


def decoder_of(name: str) -> Any:
    """A decoder with random weights, which are large enough for attention to differ from a mean."""
    kind, differences = CASES[name]
    sizes = {"vocab_size": VOCABULARY} if kind == "GPT2" else SIZES
    config = getattr(transformers, f"{kind}Config")(**{**sizes, **differences})
    torch.manual_seed(0)
    model: Any = cast("Any", transformers.AutoModelForCausalLM).from_config(config).float().eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            is_norm = parameter.ndim == 1 and "bias" not in parameter_name and "Gemma" not in kind
            parameter.copy_(torch.randn_like(parameter) * (0.2 if parameter.ndim > 1 else 0.3) + float(is_norm))
    return model


def logits_of(model: Any, tokens: np.ndarray) -> np.ndarray:
    """The logits of each position."""
    with torch.no_grad():
        return model(torch.tensor(tokens)[None]).logits[0].numpy()


# GGUF, by the rules of llama.cpp's `convert_hf_to_gguf.py`.

ARCHITECTURES = {
    "Llama": "llama", "Mistral": "llama", "Mixtral": "llama", "Qwen2": "qwen2", "Qwen3": "qwen3",
    "Qwen3Moe": "qwen3moe", "Gemma2": "gemma2", "Gemma3Text": "gemma3", "Phi3": "phi3", "GPT2": "gpt2",
    "SmolLM3": "smollm3", "Olmo2": "olmo2", "Granite": "granite",
}  # fmt: skip

PERMUTED = ("Llama", "Mistral", "Mixtral", "SmolLM3", "Granite")
"""Kinds whose rows of queries and keys are stored in an order in which pairs are adjacent."""

ENTRIES = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "layer_norm_epsilon": "attention.layer_norm_epsilon",
    "sliding_window": "attention.sliding_window",
    "num_experts": "expert_count",
    "num_local_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "embedding_multiplier": "embedding_scale",
    "attention_multiplier": "attention.scale",
    "residual_multiplier": "residual_scale",
    "logits_scaling": "logit_scale",
}
"""Attribute of a configuration → entry of the metadata."""


def write_decoder(path: Path, model: Any, name: str) -> Path:
    """Write a decoder as a GGUF file of f32."""
    gguf: Any = import_module("gguf")
    kind, config = CASES[name][0], model.config
    architecture = ARCHITECTURES[kind]
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in _metadata(kind, config).items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        (writer.add_string if isinstance(value, str) else add)(f"{architecture}.{key}", value)
    number = next(item for item, own in gguf.MODEL_ARCH_NAMES.items() if own == architecture)
    names = gguf.get_tensor_name_map(number, config.num_hidden_layers)
    for key, array in _tensors(kind, model).items():
        own = names.get_name(key, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(own or key, np.ascontiguousarray(array, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _metadata(kind: str, config: Any) -> dict[str, Any]:
    """The entries below the architecture."""
    found: dict[str, Any] = {}
    for attribute, entry in ENTRIES.items():
        value = getattr(config, attribute, None)
        if value is not None:
            found[entry] = value
    if kind == "GPT2":
        found["feed_forward_length"] = 4 * config.hidden_size
        return found
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    found |= {"attention.key_length": size, "attention.value_length": size}
    numbers = config.rope_parameters
    numbers = numbers.get("full_attention", numbers)
    found["rope.dimension_count"] = int(size * numbers.get("partial_rotary_factor", 1.0))
    found["rope.freq_base"] = float(numbers["rope_theta"])
    scalings = {"linear": "linear", "yarn": "yarn", "longrope": "longrope"}
    if (scaling := scalings.get(numbers["rope_type"])) is not None:
        found["rope.scaling.type"] = scaling
        if "factor" in numbers:
            found["rope.scaling.factor"] = float(numbers["factor"])
        if (original := numbers.get("original_max_position_embeddings")) is not None:
            found["rope.scaling.original_context_length"] = original
    return found


def _tensors(kind: str, model: Any) -> dict[str, np.ndarray]:
    """The tensors by transformers' names, in the forms in which the file has them."""
    config = model.config
    found: dict[str, np.ndarray] = {}
    for name, tensor in model.state_dict().items():
        array = _stored(kind, config, name, tensor.numpy())
        if name.endswith("experts.gate_up_proj"):
            stem = name.removesuffix("gate_up_proj")
            found[f"{stem}gate_proj.weight"], found[f"{stem}up_proj.weight"] = np.split(array, 2, axis=1)
        elif name.endswith("experts.down_proj"):
            found[f"{name}.weight"] = array
        elif name != "lm_head.weight" or not config.tie_word_embeddings:
            found[name] = array
    return found | _factors(model)


def _stored(kind: str, config: Any, name: str, array: np.ndarray) -> np.ndarray:
    """A tensor in the form in which the file has it."""
    if kind in PERMUTED and ("q_proj" in name or "k_proj" in name):
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        return array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)
    if kind.startswith("Gemma") and name.endswith("norm.weight"):
        return array + 1
    return array.T if kind == "GPT2" and array.ndim == 2 and ".h." in name else array


def _factors(model: Any) -> dict[str, np.ndarray]:
    """The factors of frequencies."""
    numbers: dict[str, Any] = getattr(model.config, "rope_parameters", None) or {}
    found: dict[str, np.ndarray] = {}
    if numbers.get("rope_type") == "llama3":
        plain = 10000.0 ** -(np.arange(0, 16, 2, dtype=np.float32) / 16)
        found["rope_freqs.weight"] = plain / model.model.rotary_emb.inv_freq.numpy()
    for word in ("long", "short"):
        if f"{word}_factor" in numbers:
            found[f"rope_factors_{word}.weight"] = np.array(numbers[f"{word}_factor"], np.float32)
    return found
