"""Small encoders of transformers with random weights, saved as checkpoints and, by llama.cpp's rules, as GGUF files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (*"abcdefgh", *(f"##{letter}" for letter in "abcdefgh"), "cat", "dog", "the", "sat", "on", "a mat")

VOCABULARY = [*SPECIAL, *WORDS, *(f"w{number}" for number in range(96 - len(SPECIAL) - len(WORDS)))]
"""Tokens of WordPiece, of which some are no words."""

SIZES: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 72,
    "pad_token_id": 0,
}

_TOKENS = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")

CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "bert": ("Bert", {}),
    "bert, tanh": ("Bert", {"hidden_act": "gelu_new", "type_vocab_size": 3}),
    "roberta": ("Roberta", {"pad_token_id": 1, "type_vocab_size": 1}),
    "roberta, xlm": ("XLMRoberta", {"pad_token_id": 1, "type_vocab_size": 1}),
    "distilbert": (
        "DistilBert",
        {"dim": 64, "hidden_dim": 96, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 72},
    ),
    "nomic-bert": ("NomicBert", {}),
    "modernbert": ("ModernBert", {"num_hidden_layers": 5, "local_attention": 8, **dict.fromkeys(_TOKENS, 0)}),
    "modernbert, mean": (
        "ModernBert",
        {"local_attention": 8, "classifier_pooling": "mean", **dict.fromkeys(_TOKENS, 0)},
    ),
    "gemma-embedding": (
        "Gemma3Text",
        {
            "num_hidden_layers": 7,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "sliding_window": 8,
            "query_pre_attn_scalar": 16,
            "use_bidirectional_attention": True,
        },
    ),
}
"""Name of a case, which begins with that of its family → prefix of classes of transformers, and its sizes."""


def encoder_of(name: str, head: str = "Model", **differences: Any) -> Any:
    """An encoder with random weights, which are large enough for attention to differ from a mean."""
    kind, own = CASES[name]
    config = getattr(transformers, f"{kind}Config")(**{**SIZES, **own, **differences})
    torch.manual_seed(0)
    model: Any = getattr(transformers, f"{kind}{head}")(config).float().eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            is_norm = parameter.ndim == 1 and "bias" not in parameter_name and "Gemma" not in kind
            parameter.copy_(torch.randn_like(parameter) * (0.2 if parameter.ndim > 1 else 0.3) + float(is_norm))
    return model


def tokenizer_of(name: str) -> Any:
    """A tokenizer of words, with the special tokens of the case around a text and a pair."""
    models, processors = import_module("tokenizers.models"), import_module("tokenizers.processors")
    ids = {token: number for number, token in enumerate(VOCABULARY)}
    found = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    found.normalizer = import_module("tokenizers.normalizers").BertNormalizer(lowercase=True)
    found.pre_tokenizer = import_module("tokenizers.pre_tokenizers").BertPreTokenizer()
    kind = "RobertaProcessing" if name.startswith("roberta") else "BertProcessing"
    options = {"trim_offsets": False, "add_prefix_space": False} if name.startswith("roberta") else {}
    found.post_processor = getattr(processors, kind)(("[SEP]", 3), ("[CLS]", 2), **options)
    found.add_special_tokens([tokenizers.AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return found


def save(folder: Path, model: Any, tokenizer: Any, modules: Sequence[str] = (), **pooling: Any) -> Path:
    """Save a checkpoint with its tokenizer, and modules of sentence-transformers behind the network."""
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    if modules:
        paths = ["", *(f"{number + 1}_{name}" for number, name in enumerate(modules))]
        write_json(
            folder / "modules.json",
            [
                {"idx": number, "path": path, "type": f"sentence_transformers.models.{path[2:] or 'Transformer'}"}
                for number, path in enumerate(paths)
            ],
        )
        (folder / "1_Pooling").mkdir()
        write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 64, **pooling})
    return folder


def write_json(path: Path, value: Any) -> None:
    """Write a file of JSON."""
    path.write_text(json.dumps(value), encoding="utf-8")


def rows_of(model: Any, ids: Sequence[int], types: Sequence[int] = ()) -> np.ndarray:
    """The last hidden rows of a text, or the results of the head."""
    more = {"token_type_ids": torch.tensor([types])} if types and "DistilBert" not in type(model).__name__ else {}
    with torch.no_grad():
        found = model(torch.tensor([ids]), **more)
    return (found.logits if "logits" in found else found.last_hidden_state)[0].numpy()


# GGUF, by the rules of llama.cpp's converter.

ARCHITECTURES = {"NomicBert": "nomic-bert", "ModernBert": "modern-bert", "Gemma3Text": "gemma-embedding"}
"""Prefix of classes → architecture, where it is not `bert`."""

POOLINGS = {"mean": 1, "cls": 2, "last": 3, "rank": 4}

ENTRIES = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "hidden_dim": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "layer_norm_eps": "attention.layer_norm_epsilon",
    "norm_eps": "attention.layer_norm_epsilon",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
}
"""Attribute of a configuration → entry of the metadata."""


def write_encoder(path: Path, model: Any, pooling: str) -> Path:
    """Write an encoder as a GGUF file of f32."""
    gguf: Any = import_module("gguf")
    config, kind = model.config, type(model).__name__.removesuffix("Model").removesuffix("ForSequenceClassification")
    architecture = ARCHITECTURES.get(kind, "bert")
    writer = gguf.GGUFWriter(path, architecture)
    offset = config.pad_token_id + 1 if "Roberta" in kind else 0
    for key, value in _metadata(config, offset).items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"{architecture}.{key}", value)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType(POOLINGS[pooling]))
    writer.add_token_type_count(getattr(config, "type_vocab_size", 1))
    _add_vocabulary(writer)
    number = next(item for item, own in gguf.MODEL_ARCH_NAMES.items() if own == architecture)
    names = gguf.get_tensor_name_map(number, config.num_hidden_layers)
    for short, array in _tensors(kind, model).items():
        own = names.get_name(short, try_suffixes=(".weight", ".bias"))
        if own is not None:
            begin = offset if short == "embeddings.position_embeddings.weight" else 0
            added = 1 if kind == "Gemma3Text" and short.endswith("norm.weight") else 0
            writer.add_tensor(own, np.ascontiguousarray(array[begin:] + added, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _metadata(config: Any, offset: int) -> dict[str, Any]:
    """The entries below the architecture."""
    found: dict[str, Any] = {"attention.layer_norm_epsilon": 1e-12}
    found |= {entry: value for name, entry in ENTRIES.items() if (value := getattr(config, name, None)) is not None}
    found["context_length"] = config.max_position_embeddings - offset
    if (window := config.to_dict().get("sliding_window", getattr(config, "local_attention", None))) is not None:
        found["attention.sliding_window"] = window
    numbers: Any = getattr(config, "rope_parameters", None) or {}
    if (base := numbers.get("full_attention", numbers).get("rope_theta")) is not None:
        found["rope.freq_base"] = float(base)
    return found


RENAMED = {
    "classifier.weight": "classifier.out_proj.weight",
    "classifier.bias": "classifier.out_proj.bias",
    "pre_classifier.weight": "classifier.dense.weight",
    "pre_classifier.bias": "classifier.dense.bias",
}
"""What the converter writes under other names."""

PREFIXES = ("bert.", "roberta.", "distilbert.", "model.")

NOMIC = {
    "layers.": "encoder.layers.",
    "self_attn.Wqkv": "attn.Wqkv",
    "self_attn.o_proj": "attn.out_proj",
    "post_attention_layernorm": "norm1",
    "post_mlp_layernorm": "norm2",
    "mlp.up_proj": "mlp.fc11",
    "mlp.gate_proj": "mlp.fc12",
    "mlp.down_proj": "mlp.fc2",
}
"""Parts of transformers' names in nomic-bert → those that the converter knows."""


def _tensors(kind: str, model: Any) -> dict[str, np.ndarray]:
    """The tensors by the names that the converter knows."""
    found = {_short(name): tensor.numpy() for name, tensor in model.state_dict().items()}
    if kind != "NomicBert":
        return found
    for layer in range(model.config.num_hidden_layers):
        parts = [found.pop(f"layers.{layer}.self_attn.{letter}_proj.weight") for letter in "qkv"]
        found[f"layers.{layer}.self_attn.Wqkv.weight"] = np.concatenate(parts)
    for old, new in NOMIC.items():
        found = {name.replace(old, new): array for name, array in found.items()}
    return found


def _short(name: str) -> str:
    """The name of a tensor as the converter looks it up: without what stands before a network with a head."""
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return RENAMED.get(name, name)


def _add_vocabulary(writer: Any) -> None:
    """Write the vocabulary, in which words begin with `▁` and pieces of words with nothing."""
    spelled = [
        token if token in SPECIAL else token[2:] if token.startswith("##") else f"▁{token}" for token in VOCABULARY
    ]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(spelled)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in VOCABULARY])
    for name in ("bos", "sep", "pad", "mask", "unk"):
        token = {"bos": "[CLS]"}.get(name, f"[{name.upper()}]")
        getattr(writer, f"add_{name}_token_id")(VOCABULARY.index(token))
    writer.add_add_eos_token(True)
