"""
The families of decoders and encoders, as a table of differences from Llama.

A family has the name of its architecture in GGUF files and its `model_type` in `config.json`. Tensors go by the names
of GGUF files; a checkpoint's names differ by family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from glow_mlir.errors import UnsupportedError
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes by which families choose forms of their own."""

    width: int
    heads: int
    head_size: int
    layers: int


def _by_head(sizes: Sizes) -> float:
    return sizes.head_size**-0.5


def _gemma_scale(largest: int) -> Callable[[Sizes], float]:
    """Gemma's largest decoder, known by its number of layers, scales by the width of a head of the whole row."""

    def scale(sizes: Sizes) -> float:
        return (sizes.width / sizes.heads) ** -0.5 if sizes.layers == largest else _by_head(sizes)

    return scale


@dataclass(frozen=True)
class Family:
    """How a family differs from Llama."""

    name: str
    architecture: str
    """The name of the architecture in GGUF files."""
    model_types: tuple[str, ...]
    """The names in `config.json`."""
    forms: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of `DecoderConfig`."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name of a tensor → its name in checkpoints, where it differs from Llama's; of several, `|` is between them."""
    has_adjacent_pairs: bool = False
    """Whether GGUF files have rows of queries and keys in an order in which the elements of a pair are adjacent."""
    has_turned_matrices: bool = False
    """Whether checkpoints have the matrices of layers transposed."""
    scale: Callable[[Sizes], float] = _by_head
    """The factor of scores where the file has none."""
    embedding_scale: Callable[[Sizes], float] = lambda sizes: 1.0
    checkpoint_norm_offset: float = 0.0
    """A number that is added to the weights of norms in checkpoints; GGUF files have the sums."""
    base: float = 10000.0
    """The base of the rotation where the file has none."""
    local_base: float = 0.0
    """The base of the rotation in layers with windows, if it is another."""
    is_rotated: bool = True
    period: int = 1
    """The period in which layers differ, by default."""
    windowed: Callable[[int, int], bool] = lambda layer, period: True
    """Whether a layer sees a window only, where the file has one and no list of layers."""
    unrotated: Callable[[int, int], bool] = lambda layer, period: False
    """Whether a layer has no rotation, where the file has no list of layers."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Entries that files may leave out: name in `config.json` → value."""
    scores_mean: bool = False
    """Whether a head for scores takes the mean of a text's rows in GGUF files that do not say otherwise."""
    is_padding_first: bool = False
    """Whether the table of positions in checkpoints begins behind the row of the padding token."""
    part: str = ""
    """`encoder` or `decoder`, where a checkpoint has both."""
    entries: Mapping[str, str] = field(default_factory=dict[str, str])
    """Entry of `config.json` → the name that this family has for it."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The matrices of a head for scores, in their order."""
        return ("cls", "cls.output") if "cls" in self.names else ("cls.output",)


def _all_but_last(layer: int, period: int) -> bool:
    return (layer + 1) % period != 0


def _last(layer: int, period: int) -> bool:
    return (layer + 1) % period == 0


LLAMA_NAMES: Mapping[str, str] = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.{expert}.gate_proj",
    "ffn_up_exps": "mlp.experts.{expert}.up_proj",
    "ffn_down_exps": "mlp.experts.{expert}.down_proj",
    "cls.output": "score",
}
"""Name of a tensor → its name in checkpoints of Llama; those of layers stand behind `LAYER_PREFIX`."""

LAYER_PREFIX = "model.layers.{layer}."

_GEMMA_NAMES = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_AFTER_NAMES = {
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_MIXTRAL_NAMES = {
    "ffn_gate_inp": "block_sparse_moe.gate",
    "ffn_gate_exps": "block_sparse_moe.experts.{expert}.w1",
    "ffn_up_exps": "block_sparse_moe.experts.{expert}.w3",
    "ffn_down_exps": "block_sparse_moe.experts.{expert}.w2",
}
_GPT2_NAMES = {
    "layer": "transformer.h.{layer}.",
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
_GEMMA2_CAPS = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
_GEMMA_FORMS = {"has_norms_after": True, "activation": "gelu_tanh"}


def _gemma(name: str, types: tuple[str, ...], largest: int, **differences: Any) -> Family:
    return Family(
        name,
        name,
        types,
        differences.pop("forms", _GEMMA_FORMS),
        _GEMMA_NAMES,
        scale=_gemma_scale(largest),
        embedding_scale=lambda sizes: math.sqrt(sizes.width),
        checkpoint_norm_offset=1.0,
        windowed=_all_but_last,
        **differences,
    )


FAMILIES: tuple[Family, ...] = (
    Family("llama", "llama", ("llama",), has_adjacent_pairs=True),
    Family("mistral", "mistral", ("mistral",), has_adjacent_pairs=True, defaults={"sliding_window": 4096}),
    Family("mixtral", "mixtral", ("mixtral",), names=_MIXTRAL_NAMES, has_adjacent_pairs=True, base=1e6),
    Family("qwen2", "qwen2", ("qwen2",)),
    Family("qwen3", "qwen3", ("qwen3",)),
    Family("qwen3moe", "qwen3moe", ("qwen3_moe",)),
    _gemma("gemma2", ("gemma2",), 46, period=2, defaults=_GEMMA2_CAPS),
    _gemma("gemma3", ("gemma3_text", "gemma3"), 62, period=6, base=1e6, local_base=1e4),
    Family("phi3", "phi3", ("phi3",), names={"ffn_up": "mlp.gate_up_proj"}),
    Family(
        "gpt2",
        "gpt2",
        ("gpt2",),
        {"norm": "layer", "is_gated": False, "activation": "gelu_tanh", "has_positions": True},
        _GPT2_NAMES,
        has_turned_matrices=True,
        is_rotated=False,
    ),
    Family("smollm3", "smollm3", ("smollm3",), has_adjacent_pairs=True, base=2e6, period=4, unrotated=_last),
    Family("olmo2", "olmo2", ("olmo2",), {"has_norms_before": False, "has_norms_after": True}, _AFTER_NAMES),
    Family("granite", "granite", ("granite",), has_adjacent_pairs=True),
)  # fmt: skip
"""The families of decoders."""


_BERT_NAMES = {
    "layer": "bert.encoder.layer.{layer}.",
    "token_embd": "bert.embeddings.word_embeddings",
    "token_types": "bert.embeddings.token_type_embeddings",
    "position_embd": "bert.embeddings.position_embeddings",
    "token_embd_norm": "bert.embeddings.LayerNorm",
    "attn_q": "attention.self.query",
    "attn_k": "attention.self.key",
    "attn_v": "attention.self.value",
    "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm",
    "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense",
    "layer_output_norm": "output.LayerNorm",
    "cls": "bert.pooler.dense",
    "cls.output": "classifier",
}
_ROBERTA_NAMES = {
    **{name: own.replace("bert.", "roberta.", 1) for name, own in _BERT_NAMES.items()},
    "cls": "classifier.dense",
    "cls.output": "classifier.out_proj",
}
_DISTILBERT_NAMES = {
    "layer": "distilbert.transformer.layer.{layer}.",
    "token_embd": "distilbert.embeddings.word_embeddings",
    "position_embd": "distilbert.embeddings.position_embeddings",
    "token_embd_norm": "distilbert.embeddings.LayerNorm",
    "attn_q": "attention.q_lin",
    "attn_k": "attention.k_lin",
    "attn_v": "attention.v_lin",
    "attn_output": "attention.out_lin",
    "attn_output_norm": "sa_layer_norm",
    "ffn_up": "ffn.lin1",
    "ffn_down": "ffn.lin2",
    "layer_output_norm": "output_layer_norm",
    "cls": "pre_classifier",
    "cls.output": "classifier",
}
_BERT_FORMS = {
    "is_causal": False,
    "norm": "layer",
    "has_norms_before": False,
    "has_norms_around": True,
    "has_embedding_norm": True,
    "has_last_norm": False,
    "is_gated": False,
    "activation": "gelu",
    "has_positions": True,
}
_BERT_DEFAULTS = {"rms_norm_eps": 1e-12, "type_vocab_size": 2}


def _bert(name: str, types: tuple[str, ...], names: Mapping[str, str], **differences: Any) -> Family:
    options: dict[str, Any] = {"forms": _BERT_FORMS, "is_rotated": False, "defaults": _BERT_DEFAULTS, **differences}
    return Family(name, "bert", types, names=names, **options)


_NOMIC_NAMES = {
    "layer": "nomic_bert.layers.{layer}.|nomic_bert.encoder.layers.{layer}.",
    "token_embd": "nomic_bert.embeddings.word_embeddings",
    "token_types": "nomic_bert.embeddings.token_type_embeddings",
    "token_embd_norm": "nomic_bert.embeddings.LayerNorm|nomic_bert.emb_ln",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "attn.Wqkv",
    "attn_output": "self_attn.o_proj|attn.out_proj",
    "attn_output_norm": "post_attention_layernorm|norm1",
    "ffn_gate": "mlp.gate_proj|mlp.fc12",
    "ffn_up": "mlp.up_proj|mlp.fc11",
    "ffn_down": "mlp.down_proj|mlp.fc2",
    "layer_output_norm": "post_mlp_layernorm|norm2",
    "cls": "nomic_bert.pooler.dense",
    "cls.output": "classifier",
}
_MODERNBERT_NAMES = {
    "token_embd": "model.embeddings.tok_embeddings",
    "token_embd_norm": "model.embeddings.norm",
    "output_norm": "model.final_norm",
    "attn_norm": "attn_norm",
    "attn_qkv": "attn.Wqkv",
    "attn_output": "attn.Wo",
    "ffn_norm": "mlp_norm",
    "ffn_up": "mlp.Wi",
    "ffn_down": "mlp.Wo",
    "cls": "head.dense",
    "cls.norm": "head.norm",
    "cls.output": "classifier",
}
_MODERNBERT_FORMS = {
    "is_causal": False,
    "norm": "layer",
    "has_first_norm": False,
    "has_embedding_norm": True,
    "activation": "gelu",
    "head_activation": "gelu",
}


def _all_but_first(layer: int, period: int) -> bool:
    return layer % period != 0


ENCODERS: tuple[Family, ...] = (
    _bert("bert", ("bert",), _BERT_NAMES),
    _bert("roberta", ("roberta", "xlm-roberta", "camembert"), _ROBERTA_NAMES, is_padding_first=True),
    _bert("distilbert", ("distilbert",), _DISTILBERT_NAMES, forms={**_BERT_FORMS, "head_activation": "relu"}),
    Family(
        "nomic-bert",
        "nomic-bert",
        ("nomic_bert",),
        {**_BERT_FORMS, "is_gated": True, "activation": "silu", "has_positions": False},
        _NOMIC_NAMES,
        base=1000.0,
        defaults=_BERT_DEFAULTS,
    ),
    Family(
        "modernbert",
        "modern-bert",
        ("modernbert",),
        _MODERNBERT_FORMS,
        _MODERNBERT_NAMES,
        base=160000.0,
        local_base=10000.0,
        period=3,
        windowed=_all_but_first,
        defaults={"rms_norm_eps": 1e-5, "sliding_window": 128},
        scores_mean=True,
    ),
    _gemma("gemma-embedding", (), 0, period=6, base=1e6, local_base=1e4, forms={**_GEMMA_FORMS, "is_causal": False}),
)
"""The families of encoders; GGUF files have one architecture for several."""


_WHISPER_LAYER_NAMES = {
    "attn_norm": "self_attn_layer_norm",
    "attn_output": "self_attn.out_proj",
    "cross_attn_norm": "encoder_attn_layer_norm",
    "cross_attn_q": "encoder_attn.q_proj",
    "cross_attn_k": "encoder_attn.k_proj",
    "cross_attn_v": "encoder_attn.v_proj",
    "cross_attn_output": "encoder_attn.out_proj",
    "ffn_norm": "final_layer_norm",
    "ffn_up": "fc1",
    "ffn_down": "fc2",
}
_WHISPER_FORMS = {"norm": "layer", "is_gated": False, "activation": "gelu", "has_positions": True}
_WHISPER_DEFAULTS = {"rms_norm_eps": 1e-5}


def _whisper(part: str, positions: str, forms: Mapping[str, Any], entries: Mapping[str, str]) -> Family:
    """Half of Whisper (Radford et al. 2022): an encoder of sound, and a decoder that attends to its rows."""
    names = {
        "layer": f"model.{part}.layers.{{layer}}.",
        "token_embd": f"model.{part}.embed_tokens",
        "position_embd": f"model.{part}.embed_positions",
        "conv1": f"model.{part}.conv1",
        "conv2": f"model.{part}.conv2",
        "output_norm": f"model.{part}.layer_norm",
        "output": "proj_out",
        **_WHISPER_LAYER_NAMES,
    }
    own = {
        "hidden_size": "d_model",
        "num_attention_heads": f"{part}_attention_heads",
        "num_key_value_heads": f"{part}_attention_heads",
        "num_hidden_layers": f"{part}_layers",
        "intermediate_size": f"{part}_ffn_dim",
        "max_position_embeddings": positions,
        **entries,
    }
    return Family(
        f"whisper-{part}",
        "",
        ("whisper",),
        {**_WHISPER_FORMS, **forms},
        names,
        is_rotated=False,
        defaults=_WHISPER_DEFAULTS,
        part=part,
        entries=own,
    )


ENCODER_DECODERS: tuple[Family, ...] = (
    _whisper("encoder", "max_source_positions", {"is_causal": False}, {"features": "num_mel_bins"}),
    _whisper("decoder", "max_target_positions", {}, {"memory": "max_source_positions"}),
)
"""The families of encoders and decoders that are in one checkpoint."""


def family_of(name: str, is_checkpoint: bool, part: str = "") -> Family:
    """
    The family with that architecture or `model_type`; of an encoder and its decoder, the `part` of that name.

    Raises `UnsupportedError` for another.
    """
    alone = (*FAMILIES, *ENCODERS)
    for family in ENCODER_DECODERS if part else alone:
        if name in (family.model_types if is_checkpoint else (family.architecture,)) and family.part == part:
            return family
    if not part and any(name in family.model_types for family in ENCODER_DECODERS):
        hint = "glow_mlir.Transcriber, or glow-generate --audio"
        raise UnsupportedError(f"'{name}' is an encoder with a decoder", hint=hint)
    if part:
        known = ", ".join(dict.fromkeys(kind for family in ENCODER_DECODERS for kind in family.model_types))
        raise UnsupportedError(
            f"encoders with decoders of the family '{name}' are not supported", hint=f"families are {known}"
        )
    known = ", ".join(family.name for family in alone)
    raise UnsupportedError(f"decoders of the family '{name}' are not supported", hint=f"families are {known}")
