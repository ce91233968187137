"""The choices of options of generators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ACTIVATIONS: Mapping[str, int] = {"int15": 15, "int8": 8, "float32": 0}
"""What rows are rounded to in front of quantized weights → the bits; 0 for none."""

CACHES = ("float16", "bfloat16", "float32", "int8")
"""The element types of keys and values."""

POOLINGS = ("mean", "cls", "last", "max")
"""How the rows of a text's tokens make a vector: their mean, the first, the last, or the largest elements."""

TASKS = ("transcribe", "translate")
"""What a speech model may write: what is said, or that in English."""

CONTEXT = 8192
"""The tokens of a sequence at most, where neither the caller nor the model says fewer."""

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""The schema of any JSON object."""
