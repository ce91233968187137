"""Keyword arguments that there are not: the nearest of those that there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from glow_mlir.errors import KeywordError

P = ParamSpec("P")
R = TypeVar("R")

_OF_OTHERS: Mapping[str, str] = {
    "betas": "optimizer=glow_mlir.training.AdamW(beta1=…, beta2=…)",
    "device": "devices='cpu', or backend='cuda'",
    "inter_op_num_threads": "threads",
    "intra_op_num_threads": "threads",
    "num_threads": "threads",
    "options": "sess_options",
    "session_options": "sess_options",
    "weight_decay": "optimizer=glow_mlir.training.AdamW(weight_decay=…)",
}
"""Words that other libraries have → what says the same here."""


def keyword_error(owner: str, name: str, known: Collection[str]) -> KeywordError:
    """The error for a keyword that `owner`, a function or class, does not have; `known` are those that it has."""
    from difflib import get_close_matches

    replacement = _OF_OTHERS.get(name, "")
    if not replacement or (replacement.isidentifier() and replacement not in known):
        replacement = next(iter(get_close_matches(name, known, n=1)), f"there are {', '.join(known)}")
    return KeywordError(f"{owner} has no keyword '{name}'", hint=replacement)


def with_known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Have calls of a function raise `KeywordError` for a keyword that it does not have; it takes no `**` of any."""
    code = function.__code__
    known = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name != "self"]
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        if unknown := keywords.keys() - set(known):
            raise keyword_error(owner, min(unknown), known)
        return function(*args, **keywords)

    return checked
