"""The choices of options of generators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ACTIVATIONS: Mapping[str, int] = {"int15": 15, "int8": 8, "float32": 0}
"""What rows are rounded to in front of quantized weights → the bits; 0 for none."""

CACHES = ("float16", "bfloat16", "float32", "int8")
"""The element types of keys and values."""

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""The schema of any JSON object."""
