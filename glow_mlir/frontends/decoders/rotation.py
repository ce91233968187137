"""
Rotary positions of decoders: frequencies, and the ways in which longer contexts scale them.

The scalings are those of transformers' `modeling_rope_utils`: linear (positions divided by a factor), dynamic (a larger
base, NTK), YaRN (Peng et al. 2023), Llama 3's, and LongRoPE (Ding et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glow_mlir.errors import UnsupportedError
from glow_mlir.support.dataclass import dataclass

MAX_ELEMENTS = 1 << 12
"""The maximum number of rotated elements of a head, of which a damaged file may claim many."""


@dataclass(frozen=True)
class Rotation:
    """Rotate the first elements of a head, a pair for each frequency; cosines and sines are scaled by `magnitude`."""

    frequencies: tuple[float, ...]
    """Radians per position, in f32."""
    magnitude: float = 1.0


@dataclass(frozen=True)
class Scaling:
    """
    How a rotation of `size` elements with a `base` is scaled: by the rule `kind`, for up to `context` tokens.

    `numbers` are the parameters of the rule by transformers' names; lists are `long_factor` and `short_factor`.
    """

    size: int
    base: float
    context: int
    kind: str = "default"
    numbers: Mapping[str, Any] | None = None

    def number(self, name: str, default: float | None = None) -> float:
        """A parameter; raises `UnsupportedError` if it is missing or no number."""
        given = (self.numbers or {}).get(name)
        given = default if given is None else given
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise UnsupportedError(f"the scaling '{self.kind}' of rotary positions needs the number '{name}'")
        return float(given)

    def divisors(self, name: str) -> np.ndarray:
        """A parameter with a number for each frequency; raises `UnsupportedError` for another number of them."""
        found = np.asarray((self.numbers or {}).get(name, ()), np.float32)
        if found.shape != (self.size // 2,):
            raise UnsupportedError(f"the rotation needs {self.size // 2} numbers '{name}', and has {found.size}")
        return found

    @property
    def original(self) -> float:
        """The context that the decoder was first trained for."""
        return self.number("original_max_position_embeddings", self.context)

    def rotation(self) -> Rotation:
        """The rotation; raises `UnsupportedError` for an unknown rule, or numbers that give no frequencies."""
        rule = RULES.get(self.kind)
        if rule is None:
            known = ", ".join(RULES)
            raise UnsupportedError(f"rotary positions of the kind '{self.kind}' are not supported, only {known}")
        if self.size < 2 or self.size % 2:
            raise UnsupportedError(f"a rotation of {self.size} elements is not supported, only of pairs")
        if self.size > MAX_ELEMENTS:
            raise UnsupportedError(
                f"a rotation of {self.size} elements is not supported, only of {MAX_ELEMENTS} at most"
            )
        try:
            with np.errstate(all="ignore"):
                frequencies, magnitude = rule(self)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self._no_frequencies(str(error)) from error
        if not np.isfinite([*frequencies, magnitude]).all():
            raise self._no_frequencies("some are infinite, or no numbers")
        return Rotation(tuple(frequencies.astype(np.float32).tolist()), magnitude)

    def _no_frequencies(self, reason: str) -> UnsupportedError:
        return UnsupportedError(f"numbers of rotary positions of the kind '{self.kind}' give no frequencies: {reason}")

    def plain(self, base: float | None = None) -> np.ndarray:
        """The frequencies without scaling, as f32."""
        exponents = np.arange(0, self.size, 2, dtype=np.float32) / np.float32(self.size)
        return (1.0 / np.float32(base or self.base) ** exponents).astype(np.float32)


_Rule = Callable[[Scaling], tuple[np.ndarray, float]]


def _default(scaling: Scaling) -> tuple[np.ndarray, float]:
    return scaling.plain(), 1.0


def _linear(scaling: Scaling) -> tuple[np.ndarray, float]:
    return scaling.plain() / np.float32(scaling.number("factor")), 1.0


def _dynamic(scaling: Scaling) -> tuple[np.ndarray, float]:
    """NTK: a base that grows with the context."""
    factor, length, original = scaling.number("factor"), scaling.context, scaling.original
    if length <= original:
        return scaling.plain(), 1.0
    stretched = factor * length / original - (factor - 1)
    return scaling.plain(scaling.base * stretched ** (scaling.size / (scaling.size - 2))), 1.0


def _yarn(scaling: Scaling) -> tuple[np.ndarray, float]:
    """Interpolate slow frequencies, keep fast ones, and blend between them."""
    factor = scaling.number("factor", scaling.number("trained", scaling.context) / scaling.original)

    def correction(turns: float) -> float:
        span = math.log(scaling.original / (turns * 2 * math.pi))
        return scaling.size * span / (2 * math.log(scaling.base))

    low, high = (correction(scaling.number(name, turns)) for name, turns in (("beta_fast", 32), ("beta_slow", 1)))
    if (scaling.numbers or {}).get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, scaling.size - 1)
    ramp = (np.arange(scaling.size // 2, dtype=np.float32) - low) / ((high - low) or 0.001)
    kept = 1 - np.clip(ramp, 0, 1).astype(np.float32)
    plain = scaling.plain()
    frequencies = plain / np.float32(factor) * (1 - kept) + plain * kept
    return frequencies, _yarn_magnitude(scaling, factor)


def _yarn_magnitude(scaling: Scaling, factor: float) -> float:
    """The factor of cosines and sines, that keeps the entropy of attention."""
    numbers = scaling.numbers or {}
    if numbers.get("attention_factor") is not None:
        return scaling.number("attention_factor")

    def grown(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    if numbers.get("mscale") and numbers.get("mscale_all_dim"):
        return grown(scaling.number("mscale")) / grown(scaling.number("mscale_all_dim"))
    return grown(1.0)


def _llama3(scaling: Scaling) -> tuple[np.ndarray, float]:
    """Slow frequencies are divided by the factor, fast ones kept, and those between blended."""
    factor, original = scaling.number("factor"), scaling.original
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    plain = scaling.plain()
    turns = original * plain / (2 * np.pi)
    share = np.clip((turns - low) / (high - low), 0, 1).astype(np.float32)
    return (1 - share) * plain / np.float32(factor) + share * plain, 1.0


def _longrope(scaling: Scaling) -> tuple[np.ndarray, float]:
    """Divisors for each frequency, from one of two lists: for contexts within the original one, and beyond."""
    original = scaling.original
    is_long = scaling.context > original
    name = "long_factor" if is_long else "short_factor"
    divisors = scaling.divisors(name)
    factor = scaling.number("factor", scaling.number("trained", scaling.context) / original)
    grown = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return scaling.plain() / divisors, scaling.number("attention_factor", grown)


def _divided(scaling: Scaling) -> tuple[np.ndarray, float]:
    """Divisors for each frequency, as GGUF files have them for Llama 3."""
    return scaling.plain() / scaling.divisors("divisors"), 1.0


RULES: Mapping[str, _Rule] = {
    "default": _default,
    "none": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "su": _longrope,
    "divided": _divided,
}
"""Kind of a scaling → the rule for frequencies and magnitude."""
