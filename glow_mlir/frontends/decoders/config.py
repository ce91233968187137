"""The description of a decoder or an encoder: sizes, and the forms in which they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from glow_mlir.frontends.decoders.rotation import Rotation
from glow_mlir.support.dataclass import dataclass

Shapes = Mapping[str, tuple[str | int, ...]]
"""Name → the sizes of its axes, or their labels."""

INPUTS: Shapes = {
    "tokens": ("rows",),
    "positions": ("rows",),
    "sequences": ("rows",),
    "table": ("sequences", "pages"),
    "last": ("outputs",),
}
"""The inputs of a program of a decoder: name → labels of its axes."""

ADAPTER_INPUTS: Shapes = {"adapters": ("rows",)}
"""The further inputs of a program with low-rank adapters."""

COPY_INPUTS: Shapes = {"copied": ("copies",), "copies": ("copies",)}
"""The further inputs of a program that copies pages before it writes to them: which ones, and to which."""

FLOATS = frozenset({"features", "memory"})
"""The inputs of f32; others are of i64."""

RESULTS = ("logits", "hidden", "scores")
"""
The outputs that a module may have.

`logits` [outputs, vocabulary] of the next tokens, `hidden` [outputs, width], the rows behind the last norm, and
`scores` [outputs, labels], the results of a head for classes.
"""

ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "swiglu": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""transformers' names of activations → ours."""

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
    """A decoder whose network is made from this description and weights; or an encoder: its rows see all of a text."""

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
    has_first_norm: bool = True
    """Whether the attention of the first layer has it, too."""
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
    is_causal: bool = True
    """Whether a token sees those before it only; else all of its text must be in one call."""
    has_norms_around: bool = False
    """Whether the sums of rows and the results of attention and feed-forward network have norms."""
    has_embedding_norm: bool = False
    has_last_norm: bool = True
    position_offset: int = 0
    """The row of the table of positions for the first token."""
    token_types: int = 0
    """The number of types of tokens, of which embeddings are added; 0 for none."""
    labels: int = 0
    """The number of results of a head for classes, or for the score of a text; 0 for none."""
    scores_mean: bool = False
    """Whether that head takes the mean of a text's rows, so that outputs are numbers of sequences, and not of rows."""
    head_activation: str = "tanh"
    """The activation between the two matrices of that head, if it has two."""
    features: int = 0
    """The numbers of a frame of sound, of which two make a row, where an encoder reads these; 0 for tokens."""
    memory: int = 0
    """The number of rows of an encoder at most, to which the rows of each sequence attend; 0 for none."""

    @property
    def inputs(self) -> Shapes:
        """The inputs of a program: name → sizes or labels of its axes."""
        found = dict(INPUTS)
        last = found.pop("last")
        if self.features:
            del found["tokens"]
            found["features"] = (2 * self.context, self.features)
        if self.token_types:
            found["types"] = ("rows",)
        if not self.is_causal:
            found["lengths"] = ("sequences",)
        if self.memory:
            found |= {
                "memory": ("memory_rows", self.width),
                "memory_sequences": ("memory_rows",),
                "memory_positions": ("memory_rows",),
                "memory_table": ("sequences", "memory_pages"),
                "memory_lengths": ("sequences",),
                **COPY_INPUTS,
            }
        return {**found, "last": last}

    @property
    def query_width(self) -> int:
        """The number of elements of all heads of queries."""
        return self.heads * self.head_size

    @property
    def key_width(self) -> int:
        """The number of elements of all heads of keys."""
        return self.key_heads * self.head_size
