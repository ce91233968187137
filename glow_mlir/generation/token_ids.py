"""Token ids as callers give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from glow_mlir.errors import InputError
from glow_mlir.support.arguments import whole_number


def token_ids(tokens: Iterable[Any], vocabulary: int) -> list[int]:
    """Token ids, also numpy's, as numbers; raises `InputError` for what is none of a vocabulary of that size."""
    found: list[int] = []
    for token in tokens:
        number = whole_number(token)
        if number is None or not 0 <= number < vocabulary:
            raise InputError(f"the token {token!r:.40} is not one of the {vocabulary} of the vocabulary")
        found.append(number)
    return found
