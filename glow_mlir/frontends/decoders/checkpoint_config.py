"""The description of a decoder from the `config.json` of a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from glow_mlir.errors import ModelError, UnsupportedError
from glow_mlir.frontends.decoders.config import ACTIVATIONS, DecoderConfig, ExpertsConfig, LayerConfig, is_number
from glow_mlir.frontends.decoders.families import Family, Sizes, family_of
from glow_mlir.frontends.decoders.gguf_config import MAX_LAYERS, MAX_SIZE
from glow_mlir.frontends.decoders.rotation import Rotation, Scaling

_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "dim"),
    "num_attention_heads": ("n_head", "n_heads"),
    "num_hidden_layers": ("n_layer", "n_layers"),
    "intermediate_size": ("n_inner", "hidden_dim"),
    "max_position_embeddings": ("n_positions",),
    "rms_norm_eps": ("layer_norm_epsilon", "layer_norm_eps", "norm_eps"),
    "rope_theta": ("rotary_emb_base", "global_rope_theta"),
    "rope_local_base_freq": ("local_rope_theta",),
    "sliding_window": ("local_attention",),
    "sliding_window_pattern": ("global_attn_every_n_layers",),
    "hidden_act": ("hidden_activation", "activation_function", "activation"),
    "num_experts": ("num_local_experts",),
}
"""Entry → other names of it in some families."""


class Description:
    """The entries of `config.json`; errors name file and entry."""

    def __init__(self, path: Path, entries: Mapping[str, Any], family: Family) -> None:
        self.path, self.entries, self.family = path, entries, family

    def error(self, key: str, reason: str) -> ModelError:
        """The error for an entry."""
        return ModelError(reason, file=str(self.path), node=key)

    def get(self, key: str) -> Any:
        """The entry of that name, or of another that some families give it; else the family's default, or `None`."""
        own = self.family.entries.get(key)
        for name in (key, *_OTHER_NAMES.get(key, ())) if own is None else (own,):
            if name in self.entries:
                return self.entries[name]
        return self.family.defaults.get(key)

    def size(self, key: str, default: int | None = None, least: int = 1, most: int = MAX_SIZE) -> int:
        """A size; raises `ModelError` if it is missing or no size."""
        given = self.get(key)
        given = default if given is None else given
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
            raise self.error(key, f"the entry must be a size from {least} to {most}, not {given!r}")
        return given

    def number(self, key: str, default: float | None = None, least: float = -math.inf) -> float:
        """A number that f32 has, from `least` on; raises `ModelError` if it is missing or none."""
        given = self.get(key)
        given = default if given is None else given
        if not is_number(given) or given < least:
            raise self.error(key, f"the entry must be a number, not {given!r}")
        return float(given)

    def list_of(self, key: str, count: int) -> list[Any] | None:
        """A list with an entry for each layer; `None` if there is none."""
        given = self.get(key)
        if given is None:
            return None
        if not isinstance(given, list) or len(cast("list[Any]", given)) < count:
            raise self.error(key, f"the entry must be a list for {count} layers")
        return cast("list[Any]", given)


def checkpoint_config(
    path: Path, entries: Mapping[str, Any], context: int | None = None, part: str = ""
) -> tuple[Family, DecoderConfig]:
    """
    Family and description of the decoder of a `config.json` with these entries, for up to `context` tokens.

    `part` is `encoder` or `decoder` for one of both.

    Raises `UnsupportedError` for another family or form, and `ModelError` for entries that are missing or no sizes.
    """
    given = _description(path, entries, part)
    family = given.family
    width, heads = given.size("hidden_size"), given.size("num_attention_heads")
    if given.get("head_dim") is None and width % heads:
        raise given.error("head_dim", f"{width} elements do not make {heads} heads")
    layers = given.size("num_hidden_layers", most=MAX_LAYERS)
    sizes = Sizes(width, heads, given.size("head_dim", width // heads), layers)
    key_heads = given.size("num_key_value_heads", heads)
    if heads % key_heads:
        raise given.error("num_key_value_heads", f"{heads} heads do not share {key_heads}")
    offset, trained = _positions(given)
    is_causal = _is_causal(given)
    forms = {
        "activation": _activation(given),
        "is_causal": is_causal,
        **{k: v for k, v in family.forms.items() if k not in ("activation", "is_causal")},
    }
    return family, DecoderConfig(
        family=family.name,
        width=width,
        heads=heads,
        key_heads=key_heads,
        head_size=sizes.head_size,
        hidden=given.size("intermediate_size", 4 * width),
        vocabulary=given.size("vocab_size"),
        context=min(context or trained, trained),
        layers=_layers(given, sizes, trained, context or trained, is_causal),
        epsilon=given.number("rms_norm_eps"),
        scale=_scale(given, sizes),
        norm_offset=family.checkpoint_norm_offset,
        score_cap=given.number("attn_logit_softcapping", 0.0, least=0),
        logit_cap=given.number("final_logit_softcapping", 0.0, least=0),
        embedding_scale=given.number("embedding_multiplier", family.embedding_scale(sizes)),
        residual_scale=given.number("residual_multiplier", 1.0),
        logit_scale=1 / (given.number("logits_scaling", 1.0) or 1.0),
        experts=_experts(given),
        position_offset=offset,
        token_types=given.size("type_vocab_size", 0, least=0) if "token_types" in family.names else 0,
        labels=_labels(given),
        scores_mean=given.get("classifier_pooling") == "mean",
        features=given.size("features", 0, least=0) if "features" in family.entries else 0,
        memory=given.size("memory") if "memory" in family.entries else 0,
        **cast("Any", forms),
    )


def _positions(given: Description) -> tuple[int, int]:
    """The number of the first position, and for how many positions the decoder was trained."""
    offset = given.size("pad_token_id", 1, least=0) + 1 if given.family.is_padding_first else 0
    trained = given.size("max_position_embeddings", least=offset + 1) - offset
    return offset, min(trained, given.size("max_trained_positions", trained))


def _description(path: Path, entries: Mapping[str, Any], part: str) -> Description:
    """The entries about the decoder, and its family."""
    try:
        family = family_of(str(entries.get("model_type")), is_checkpoint=True, part=part)
    except UnsupportedError as error:
        error.file = str(path)
        raise
    inner = entries.get("text_config")
    return Description(path, cast("dict[str, Any]", inner) if isinstance(inner, dict) else entries, family)


def _activation(given: Description) -> str:
    name = given.get("hidden_act")
    if name is None and "activation" in given.family.forms:
        return str(given.family.forms["activation"])
    found = ACTIVATIONS.get(str(name or "silu"))
    if found is None:
        hint = f"activations are {', '.join(ACTIVATIONS)}"
        raise UnsupportedError(f"the activation '{name}' is not supported", file=str(given.path), hint=hint)
    return found


def _is_causal(given: Description) -> bool:
    """Whether tokens see those before them only; raises `UnsupportedError` for forms that no encoder here has."""
    is_causal = bool(given.family.forms.get("is_causal", True))
    if not is_causal and (given.get("is_decoder") or given.get("position_embedding_type") not in (None, "absolute")):
        raise UnsupportedError("encoders as decoders, and relative positions, are not supported", file=str(given.path))
    return is_causal and not given.get("use_bidirectional_attention")


def _labels(given: Description) -> int:
    """The number of classes, or of scores, of a model that has a head for them."""
    names: Any = given.get("architectures")
    labels: Any = given.get("id2label")
    if not isinstance(names, list) or not any(
        "ForSequenceClassification" in str(name) for name in cast("list[Any]", names)
    ):
        return 0
    return len(cast("dict[str, Any]", labels)) if isinstance(labels, dict) else given.size("num_labels", 2)


def _scale(given: Description, sizes: Sizes) -> float:
    """The factor of scores."""
    if given.get("attention_multiplier") is not None:
        return given.number("attention_multiplier")
    if given.get("query_pre_attn_scalar") is not None:
        scalar = given.number("query_pre_attn_scalar")
        if scalar <= 0:
            raise given.error("query_pre_attn_scalar", f"the entry must be positive, not {scalar}")
        return scalar**-0.5
    return sizes.head_size**-0.5


def _experts(given: Description) -> ExpertsConfig | None:
    count = given.size("num_experts", 0, least=0)
    if not count:
        return None
    if given.get("mlp_only_layers") or given.get("decoder_sparse_step") not in (None, 1):
        raise UnsupportedError("experts in some layers only are not supported", file=str(given.path))
    hidden = given.size("moe_intermediate_size", given.size("intermediate_size"))
    is_normalized = bool(given.get("norm_topk_prob")) or given.family.name == "mixtral"
    return ExpertsConfig(count, given.size("num_experts_per_tok", most=count), hidden, is_normalized)


_KINDS = {"full_attention": False, "sliding_attention": True}
"""Kind of a layer in `layer_types` → whether it sees a window."""


def _layers(given: Description, sizes: Sizes, trained: int, context: int, is_causal: bool) -> tuple[LayerConfig, ...]:
    """The forms of the layers."""
    family, count = given.family, sizes.layers
    window = given.size("sliding_window", 0, least=0)
    if given.get("use_sliding_window") is False:
        window = 0
    if window and not is_causal:
        window = window // 2 + 1
    kinds, rotated = given.list_of("layer_types", count), given.list_of("no_rope_layers", count)
    period = given.size("sliding_window_pattern", given.size("no_rope_layer_interval", family.period))
    found: list[LayerConfig] = []
    for number in range(count):
        if kinds is None:
            first = given.size("max_window_layers", 0, least=0)
            is_local = bool(window) and number >= first and family.windowed(number, period)
        elif (kind := str(kinds[number])) in _KINDS:
            is_local = bool(window) and _KINDS[kind]
        else:
            raise UnsupportedError(f"layers of the type '{kind:.60}' are not supported", file=str(given.path))
        is_bare = family.unrotated(number, period) if rotated is None else not rotated[number]
        rotation = None
        if family.is_rotated and not is_bare:
            rotation = _rotation(given, sizes, trained, context, is_local)
        found.append(LayerConfig(rotation, window if is_local else 0))
    return tuple(found)


def _rotation(given: Description, sizes: Sizes, trained: int, context: int, is_local: bool) -> Rotation:
    """The rotation of a layer, from `rope_parameters` or the entries that older versions of transformers write."""
    entry: object = given.get("rope_parameters") or given.get("rope_scaling") or {}
    if not isinstance(entry, dict):
        raise given.error("rope_parameters", "the entry must be an object")
    numbers: dict[str, Any] = dict(cast("dict[str, Any]", entry))
    own = numbers.get("sliding_attention" if is_local else "full_attention")
    is_by_kind = isinstance(own, dict)
    if is_by_kind:
        numbers = dict(cast("dict[str, Any]", own))
    base = numbers.get("rope_theta")
    if base is None:
        base = given.number("rope_theta", given.family.base)
        if is_local and given.family.local_base:
            base = given.number("rope_local_base_freq", given.family.local_base)
            numbers = {}
    share = numbers.get("partial_rotary_factor", given.get("partial_rotary_factor"))
    share = 1.0 if share is None else share
    for key, number in (("rope_theta", base), ("partial_rotary_factor", share)):
        if not is_number(number):
            raise given.error(key, f"the entry must be a number, not {number!r}")
    if not 0 < share <= 1:
        raise given.error("partial_rotary_factor", f"the entry must be a share up to 1, not {share}")
    numbers.setdefault("original_max_position_embeddings", given.get("original_max_position_embeddings") or trained)
    numbers["trained"] = trained
    kind = numbers.get("rope_type", numbers.get("type", "default"))
    try:
        return Scaling(int(sizes.head_size * share), float(base), context, str(kind), numbers).rotation()
    except UnsupportedError as error:
        error.file = str(given.path)
        raise
