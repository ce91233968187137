"""
How the next token is chosen: the options of a request, and the definition of their meaning.

The steps, in their order; each is left out at its default:

1. `logit_bias` is added to logits (OpenAI).
2. `repetition_penalty` over tokens of prompt and output: positive logits are divided by it, others multiplied (Keskar
   et al. 2019, as transformers and llama.cpp do it).
3. `presence_penalty` and `frequency_penalty` over tokens of the output: the first is subtracted once, the second as
   many times as the token occurs (OpenAI).
4. The mask: tokens that a grammar forbids get the logit -inf.
5. `temperature`: logits are divided by it. At 0 the largest logit is chosen, and the steps below are left out.
6. `top_k`: the tokens with the largest logits are kept (Fan et al. 2018).
7. `typical_p`: the tokens whose information is closest to the entropy are kept, until their probabilities add up to it
   (Meister et al. 2022).
8. `top_p`: the most likely tokens are kept, until their probabilities add up to it (Holtzman et al. 2019).
9. `min_p`: tokens are kept that are at least that many times as likely as the most likely one (Nguyen et al. 2024).
10. The draw: kept tokens share the interval from 0 to 1 in the order of their ids, and a uniform number chooses one.

Temperature goes first, as in transformers, vLLM and OpenAI's models, where published settings were tried; llama.cpp
divides by it last. The order of the steps after it is llama.cpp's. Probabilities of a step are those among the tokens
that the steps before it kept. Among equal logits, the lowest id goes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from hashlib import blake2b
from math import inf
from numbers import Real
from struct import pack
from typing import Any

from glow_mlir.errors import OptionError
from glow_mlir.support.arguments import whole_number
from glow_mlir.support.dataclass import dataclass

MAX_LOGPROBS = 1024
"""The maximum number of most likely tokens that are reported."""


@dataclass(frozen=True)
class Sampling:
    """
    The options by which a token is chosen; the module says what each does.

    `seed`: equal seeds choose equal tokens; without one, each token is chosen by a fresh random number. `logprobs`: the
    number of most likely tokens whose logarithmic probabilities are reported, besides that of the chosen token; `None`
    for no probabilities at all. Raises `OptionError` for values out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict[int, float])
    seed: int | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        for name, bounds in _RANGES.items():
            bounds.check(name, getattr(self, name))
        for name in ("seed", "logprobs"):
            if getattr(self, name) is not None:
                _OPTIONAL[name].check(name, getattr(self, name))
        for token, bias in self.logit_bias.items():
            _TOKEN.check("a token of logit_bias", token)
            _BIAS.check(f"logit_bias of token {token}", bias)

    @property
    def is_greedy(self) -> bool:
        """Whether the largest logit is chosen."""
        return self.temperature == 0 or self.top_k == 1

    @property
    def has_penalties(self) -> bool:
        """Whether logits depend on the tokens before."""
        return self.repetition_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0


@dataclass(frozen=True)
class _Bounds:
    """The values of an option: numbers from `least` to `most`, both included unless `is_open`, whole ones or any."""

    least: float
    most: float
    is_whole: bool = False
    is_open: bool = False

    def check(self, name: str, value: object) -> None:
        """Raise `OptionError` for another value."""
        number = whole_number(value) if self.is_whole else _real(value)
        is_inside = number is not None and self.least <= number <= self.most
        if is_inside and not (self.is_open and number in (self.least, self.most)):
            return
        raise OptionError(f"{name} cannot be {value!r}", hint=str(self))

    def __str__(self) -> str:
        kind = "whole numbers" if self.is_whole else "numbers"
        if self.is_open:
            return f"{kind} above {self.least}" if self.most == inf > -self.least else f"finite {kind}"
        return f"{kind} from {self.least} on" if self.most == inf else f"{kind} from {self.least} to {self.most}"


def _real(value: Any) -> float | None:
    """A number, possibly numpy's, as a float; `None` for anything else."""
    return float(value) if isinstance(value, Real) and value is not True and value is not False else None


_SHARE = _Bounds(0, 1)
_FINITE = _Bounds(-inf, inf, is_open=True)
_RANGES = {
    "temperature": _Bounds(0, 10**9),
    "top_k": _Bounds(0, inf, is_whole=True),
    "top_p": _SHARE,
    "min_p": _SHARE,
    "typical_p": _SHARE,
    "repetition_penalty": _Bounds(0, inf, is_open=True),
    "presence_penalty": _FINITE,
    "frequency_penalty": _FINITE,
}
_OPTIONAL = {"seed": _Bounds(-(2**63), 2**64 - 1, is_whole=True), "logprobs": _Bounds(0, MAX_LOGPROBS, is_whole=True)}
_TOKEN = _Bounds(0, inf, is_whole=True)
_BIAS = _Bounds(-inf, 10**9)
"""A bias of -inf forbids a token."""


def uniform(seed: int, position: int) -> float:
    """A number from 0 up to, but not including, 1, which depends on seed and position alone: 53 bits of BLAKE2b."""
    digest = blake2b(pack("<Qq", seed % 2**64, position), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53
