"""The meanings of colours in all pictures: operators with the same meaning have the same colour."""

from __future__ import annotations

COLOURS: dict[str, str] = {
    "input or output": "#99ddff",
    "buffer": "#dddddd",
    "convolution": "#77aadd",
    "matrix product": "#ee8866",
    "recurrence": "#aaaa00",
    "elementwise": "#44bb99",
    "reduction": "#ffaabb",
    "pooling and sampling": "#bbcc33",
    "data movement": "#eedd88",
    "quantization": "#aa88cc",
    "control flow": "#b09080",
    "scratch": "#aab0ba",
    "other": "#ffffff",
}
"""
Meaning → colour. Most are the light scheme of Tol (https://personal.sron.nl/~pault/), which the colour-blind tell apart
and on which dark letters can be read, on a light page and a dark one.
"""

OTHER = "other"

FAMILIES: dict[str, tuple[str, ...]] = {
    "input or output": ("input", "output"),
    "buffer": ("buffer",),
    "convolution": ("convolution",),
    "matrix product": ("attention", "blockwise", "einsum", "fourier", "linear", "linear_attention", "pages", "cache"),
    "recurrence": ("recurrence", "recurrent"),
    "elementwise": (
        *("activation_functions", "activations", "elementwise_binary", "elementwise_math", "gated", "random_numbers"),
        "stack",
    ),
    "reduction": ("generic", "normalization", "reductions", "stages"),
    "pooling and sampling": ("pooling", "resize", "sampling"),
    "data movement": (
        *("data_movement", "embedding", "indexing", "memory", "ngrams", "packing", "ranges", "samples", "selection"),
        *(
            "dynamic_slices",
            "gradient",
            "host",
            "predicate",
            "returns",
            "saved",
            "storage",
            "transposition",
            "trees",
            "windowed",
        ),
    ),
    "quantization": ("quantization",),
    "control flow": ("body", "call", "control_flow", "early_return", "loop", "sizes"),
    "scratch": ("scratch",),
}
"""Meaning → families of nodes: modules that define operators, and kinds of other nodes."""

_MEANINGS = {family: meaning for meaning, families in FAMILIES.items() for family in families}


def meaning_of(family: str) -> str:
    """The meaning of a node's family; `other` for modules of other packages."""
    return _MEANINGS.get(family, OTHER)
