"""The levels of features that processors of x86-64 have, and a short spelling of long lists of features."""

from __future__ import annotations

from collections.abc import Mapping

_V3 = "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"

FEATURE_LEVELS: Mapping[str, str] = {
    "x86-64-v2": "+popcnt,+sse2,+sse4.1,+sse4.2,+ssse3",
    "x86-64-v3": _V3,
    "x86-64-v4": f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl",
}
"""Level, as LLVM calls a processor that has no more → its features, without some that these imply."""

_MAX_CHARACTERS = 80
"""How long a list of features may be that is spelled out."""


def short_features(features: str) -> str:
    """Features as LLVM lists them, in few words: as they are, or the highest level and the number of the others."""
    if len(features) <= _MAX_CHARACTERS:
        return features
    enabled = others = enabled_features(features)
    reached = ""
    for level, listed in FEATURE_LEVELS.items():
        needed = enabled_features(listed)
        if not needed <= enabled:
            break
        reached, others = level, others - needed
    count = f"{len(others)} {'more ' if reached else ''}features"
    return " and ".join(filter(None, (reached, count if others else "")))


def enabled_features(features: str) -> frozenset[str]:
    """The features of a list, as LLVM writes it, that are on."""
    return frozenset(item[1:] for item in features.split(",") if item.startswith("+"))
