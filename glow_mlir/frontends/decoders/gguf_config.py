"""The description of a decoder from the metadata of a GGUF file."""

from __future__ import annotations

import math
from typing import Any

from glow_mlir.errors import ModelError
from glow_mlir.frontends.decoders.config import ACTIVATIONS, DecoderConfig, ExpertsConfig, LayerConfig, is_number
from glow_mlir.frontends.decoders.families import Family, Sizes, family_of
from glow_mlir.frontends.decoders.rotation import Rotation, Scaling
from glow_mlir.frontends.gguf.file import GgufFile

MAX_LAYERS, MAX_SIZE = 1 << 10, 1 << 24
"""The largest number of layers, and of any other size."""

_SCALING_NUMBERS = {
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
"""Entry of the metadata → the parameter of a scaling."""


_MEAN = 1
"""The number of the pooling to the mean."""


class Metadata:
    """The entries of a GGUF file below its architecture; errors name file and entry."""

    def __init__(self, file: GgufFile) -> None:
        self.file = file
        name = file.metadata.get("general.architecture")
        if not isinstance(name, str):
            raise self.error("general.architecture", "the entry is missing or no text")
        self.architecture = name

    def error(self, key: str, reason: str) -> ModelError:
        """The error for an entry."""
        return ModelError(reason, file=str(self.file.path), node=key)

    def get(self, key: str) -> Any:
        """The entry of that name below the architecture, or `None`."""
        return self.file.metadata.get(f"{self.architecture}.{key}")

    def size(self, key: str, default: int | None = None, least: int = 1, most: int = MAX_SIZE) -> int:
        """A size; of several, one a layer, the one that all have. Raises `ModelError` if it is missing or no size."""
        given = self.get(key)
        if given is None:
            if default is None:
                raise self.error(f"{self.architecture}.{key}", "the entry is missing")
            return default
        if hasattr(given, "tolist"):
            found = set(given.tolist())
            if len(found) != 1:
                raise self.error(f"{self.architecture}.{key}", "sizes that differ between layers are not supported")
            (given,) = found
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
            raise self.error(
                f"{self.architecture}.{key}", f"the size must be from {least} to {most}, not {given!r:.60}"
            )
        return given

    def flag(self, key: str, default: bool) -> bool:
        """A truth value; raises `ModelError` if it is none."""
        given = self.get(key)
        if given is None:
            return default
        if not isinstance(given, bool):
            raise self.error(f"{self.architecture}.{key}", f"the entry must be true or false, not {given!r:.60}")
        return given

    def number(self, key: str, default: float | None = None, least: float = -math.inf) -> float:
        """A number that f32 has, from `least` on; raises `ModelError` if it is missing or none."""
        given = self.get(key)
        if given is None and default is not None:
            return default
        if not is_number(given) or given < least:
            raise self.error(f"{self.architecture}.{key}", f"the entry must be a number, not {given!r:.60}")
        return float(given)


def gguf_config(file: GgufFile, context: int | None = None) -> tuple[Family, DecoderConfig]:
    """
    Family and description of the decoder in a file, for sequences of up to `context` tokens.

    Raises `UnsupportedError` for another family, and `ModelError` for entries that are missing or no sizes.
    """
    metadata = Metadata(file)
    family = family_of(metadata.architecture, is_checkpoint=False)
    heads, width = metadata.size("attention.head_count"), metadata.size("embedding_length")
    trained = metadata.size("context_length")
    layers = metadata.size("block_count", most=MAX_LAYERS)
    if width % heads and metadata.get("attention.key_length") is None:
        raise metadata.error(
            f"{metadata.architecture}.attention.key_length", f"{width} elements do not make {heads} heads"
        )
    sizes = Sizes(width, heads, metadata.size("attention.key_length", width // heads), layers)
    key_heads = metadata.size("attention.head_count_kv", heads)
    if heads % key_heads:
        raise metadata.error(
            f"{metadata.architecture}.attention.head_count_kv", f"{heads} heads do not share {key_heads}"
        )
    is_causal = metadata.flag("attention.causal", bool(family.forms.get("is_causal", True)))
    forms: dict[str, Any] = {**family.forms, "is_causal": is_causal}
    if isinstance(activation := metadata.get("hidden_activation"), str) and activation in ACTIVATIONS:
        forms = {**forms, "activation": ACTIVATIONS[activation]}
    if family.name == "bert" and "token_types.weight" not in file.tensors:
        # Of all encoders with this architecture, only DistilBERT has no types of tokens; its file does not say ReLU.
        forms = {**forms, "head_activation": "relu"}
    norm = "layer_norm_epsilon" if family.forms.get("norm") == "layer" else "layer_norm_rms_epsilon"
    experts = metadata.size("expert_count", 0, least=0)
    return family, DecoderConfig(
        family=family.name,
        width=width,
        heads=heads,
        key_heads=key_heads,
        head_size=sizes.head_size,
        hidden=metadata.size("feed_forward_length", 0 if experts else None, least=0),
        vocabulary=_vocabulary(metadata),
        context=min(context or trained, trained),
        layers=_layers(metadata, family, sizes, context or trained, is_causal),
        epsilon=metadata.number(f"attention.{norm}"),
        scale=metadata.number("attention.scale", family.scale(sizes)) or family.scale(sizes),
        score_cap=_cap(metadata, family, "attn_logit_softcapping"),
        logit_cap=_cap(metadata, family, "final_logit_softcapping"),
        embedding_scale=metadata.number("embedding_scale", family.embedding_scale(sizes)),
        residual_scale=metadata.number("residual_scale", 1.0) or 1.0,
        logit_scale=1 / (metadata.number("logit_scale", 1.0) or 1.0),
        experts=_experts(metadata, experts),
        token_types=_rows(metadata, "token_types.weight"),
        labels=_rows(metadata, "cls.output.weight"),
        scores_mean=family.scores_mean and metadata.size("classifier.pooling_type", _MEAN, least=0) == _MEAN,
        **forms,
    )


def _cap(metadata: Metadata, family: Family, key: str) -> float:
    return metadata.number(key, family.defaults.get(key, 0.0), least=0)


def _rows(metadata: Metadata, name: str) -> int:
    """The number of rows of a matrix that a file may have; 0 if it has not."""
    table = metadata.file.tensors.get(name)
    return 0 if table is None else table.shape[0] if len(table.shape) == 2 else 1


def _vocabulary(metadata: Metadata) -> int:
    """The number of tokens: the rows of the table of embeddings."""
    table = metadata.file.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2 or not table.shape[0]:
        raise metadata.error("token_embd.weight", "the tensor is missing or no matrix")
    return table.shape[0]


def _experts(metadata: Metadata, count: int) -> ExpertsConfig | None:
    if not count:
        return None
    hidden = metadata.size("expert_feed_forward_length", metadata.size("feed_forward_length", 0, least=0) or None)
    return ExpertsConfig(count, metadata.size("expert_used_count", most=count), hidden)


def _layers(metadata: Metadata, family: Family, sizes: Sizes, context: int, is_causal: bool) -> tuple[LayerConfig, ...]:
    """The forms of the layers."""
    window = metadata.size("attention.sliding_window", 0, least=0)
    if window and not is_causal:
        window = window // 2 + 1
    rotation = _rotation(metadata, family, sizes, context) if family.is_rotated else None
    local = rotation
    if family.local_base:
        base = metadata.number("rope.freq_base_swa", family.local_base)
        local = Scaling(metadata.size("rope.dimension_count", sizes.head_size), base, context).rotation()
    found: list[LayerConfig] = []
    for number in range(sizes.layers):
        is_local = bool(window) and family.windowed(number, family.period)
        own = local if is_local else rotation
        found.append(LayerConfig(None if family.unrotated(number, family.period) else own, window if is_local else 0))
    return tuple(found)


def _rotation(metadata: Metadata, family: Family, sizes: Sizes, context: int) -> Rotation:
    size = metadata.size("rope.dimension_count", sizes.head_size, most=sizes.head_size)
    base = metadata.number("rope.freq_base", family.base)
    given = metadata.get("rope.scaling.type")
    kind = given if isinstance(given, str) else "default"
    numbers: dict[str, Any] = {
        name: metadata.get(key) for key, name in _SCALING_NUMBERS.items() if metadata.get(key) is not None
    }
    numbers["trained"] = metadata.size("context_length")
    if kind == "longrope" or "rope_factors_long.weight" in metadata.file.tensors:
        kind = "longrope"
        for name in ("long", "short"):
            tensor = metadata.file.tensors.get(f"rope_factors_{name}.weight")
            numbers[f"{name}_factor"] = () if tensor is None else tensor.array()
        if (factor := metadata.get("rope.scaling.attn_factor")) is not None:
            numbers["attention_factor"] = factor
    elif (divisors := metadata.file.tensors.get("rope_freqs.weight")) is not None:
        kind, numbers = "divided", {"divisors": divisors.array()}
    return Scaling(size, base, context, kind, numbers).rotation()
