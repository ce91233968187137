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


# GGUF, by the rules of llama.cpp's `conversion/bert.py`.

POOLINGS = {"mean": 1, "cls": 2, "last": 3, "rank": 4}

ENTRIES = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "hidden_dim": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "layer_norm_eps": "attention.layer_norm_epsilon",
}
"""Attribute of a configuration → entry of the metadata."""


def write_encoder(path: Path, model: Any, pooling: str) -> Path:
    """Write an encoder as a GGUF file of f32."""
    gguf: Any = import_module("gguf")
    config, state = model.config, {_short(name): tensor.numpy() for name, tensor in model.state_dict().items()}
    offset = config.pad_token_id + 1 if "Roberta" in type(model).__name__ else 0
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_context_length(config.max_position_embeddings - offset)
    for attribute, entry in ENTRIES.items():
        value = getattr(config, attribute, None)
        if value is not None:
            add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
            add(f"bert.{entry}", value)
    if not hasattr(config, "layer_norm_eps"):
        writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType(POOLINGS[pooling]))
    writer.add_token_type_count(getattr(config, "type_vocab_size", 1))
    _add_vocabulary(writer)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config.num_hidden_layers)
    for name, array in state.items():
        own = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if own is not None:
            array = array[offset:] if name == "embeddings.position_embeddings.weight" else array
            writer.add_tensor(own, np.ascontiguousarray(array, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _short(name: str) -> str:
    """The name of a tensor without what stands before a network with a head, as the converter has it."""
    for prefix in ("bert.", "roberta.", "distilbert."):
        name = name.removeprefix(prefix)
    if name in ("classifier.weight", "classifier.bias"):
        return name.replace("classifier.", "classifier.out_proj.")
    return name.replace("pre_classifier.", "classifier.dense.")


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
