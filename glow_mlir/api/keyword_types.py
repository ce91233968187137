"""Of what type each keyword of `InferenceSession` is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glow_mlir.support.kinds import FLAG, NAMES, NUMBER, PATH, TEXT, Kind, check_kinds, has, is_flag, lists, made_by, of

KEYWORDS: Mapping[str, Kind] = {
    "backend": TEXT,
    "dimensions": Kind("sizes by the names of dimensions", of(Mapping), "{'batch': 1}"),
    "target": TEXT,
    "profile": FLAG,
    "cache": FLAG,
    "observers": Kind("a list of functions", lists(callable), "[print]", False),
    "pipeline": Kind("a pipeline", made_by("glow_mlir.driver.pipelines", "Pipeline"), "Backend.pipeline() gives one"),
    "disable": NAMES,
    "pass_observers": Kind("a list of observers", lists(has("before", "after", "failed")), "[CompilationLog()]", False),
    "accuracy": TEXT,
    "optimize": TEXT,
    "ram_bytes": NUMBER,
    "flash_bytes": NUMBER,
    "tune": FLAG,
    "entry": TEXT,
    "quantize": Kind(
        "a Quantization", made_by("glow_mlir.quantization.options", "Quantization"), "Quantization('profile.json')"
    ),
    "precision": TEXT,
    "keep_precision": NAMES,
    "weights": TEXT,
    "configuration": PATH,
    "limits": Kind(
        "limits of specializations",
        made_by("glow_mlir.runtime.specializations", "SpecializationLimits"),
        "SpecializationLimits(number=8)",
    ),
    "strict": FLAG,
    "read_config_from_model": Kind("a truth value", is_flag, "True"),
}
"""Keyword → what it may be. `threads`, limits of time, and what is onnxruntime's, are looked at where they are read."""


def check_keywords(given: Mapping[str, Any]) -> None:
    """Raise `OptionError` for a keyword of another type than it takes."""
    check_kinds(KEYWORDS, given)
