"""The description of a decoder: sizes, and the forms in which decoders differ."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from glow_mlir.frontends.decoders.rotation import Rotation
from glow_mlir.support.dataclass import dataclass

_NUMBERS = np.finfo(np.float32)


def is_number(given: Any) -> TypeGuard[int | float]:
    """Whether the entry of a description is a number that f32 has: finite, and 0 only if it is 0."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return given == 0 or float(_NUMBERS.tiny) <= abs(given) <= float(_NUMBERS.max)


@dataclass(frozen=True)
class ExpertsConfig:
    """A mixture of experts in place of a feed-forward network: `used` of `count` for each token."""

    count: int
    used: int
    hidden: int
    is_normalized: bool = True
    """Whether the shares of the chosen experts are scaled to the sum 1."""


@dataclass(frozen=True)
class LayerConfig:
    """The forms in which the layers of one decoder differ."""

    rotation: Rotation | None = None
    """The rotation of queries and keys, if there is one."""
    window: int = 0
    """The number of last tokens that a token sees; 0 for all."""


@dataclass(frozen=True)
class TextConfig:
    """What those who call a decoder of text have to know: tokens in, logits of the next token out."""

    family: str
    vocabulary: int
    """The number of logits."""
    context: int
    """The number of tokens of a sequence at most."""


@dataclass(frozen=True)
class DecoderConfig(TextConfig):
    """A decoder of text whose network is made from this description and weights."""

    width: int
    heads: int
    key_heads: int
    head_size: int
    hidden: int
    layers: tuple[LayerConfig, ...]
    epsilon: float
    scale: float
    """The factor of products of queries and keys."""
    norm: str = "rms"
    """The kind of the norms: `rms`, or `layer`, which subtracts the mean."""
    norm_offset: float = 0.0
    """A number that is added to the stored weights of norms."""
    has_norms_before: bool = True
    """Whether attention and feed-forward network have norms in front."""
    has_norms_after: bool = False
    """Whether their results have norms."""
    activation: str = "silu"
    is_gated: bool = True
    """Whether the feed-forward network multiplies two products, one of them activated."""
    is_parallel: bool = False
    """Whether attention and feed-forward network read the same rows, and both results are added."""
    has_positions: bool = False
    """Whether a table of learned positions is added to the embeddings."""
    score_cap: float = 0.0
    logit_cap: float = 0.0
    """Results x become cap · tanh(x / cap); 0 for none."""
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    """A factor of the results of attention and feed-forward network before they are added."""
    logit_scale: float = 1.0
    experts: ExpertsConfig | None = None

    @property
    def query_width(self) -> int:
        """The number of elements of all heads of queries."""
        return self.heads * self.head_size

    @property
    def key_width(self) -> int:
        """The number of elements of all heads of keys."""
        return self.key_heads * self.head_size
