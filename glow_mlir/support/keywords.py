"""Errors for unknown keyword arguments, with the nearest known one as hint."""

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
"""Keywords of other libraries → the equivalent here."""


def keyword_error(owner: str, name: str, known: Collection[str]) -> KeywordError:
    """The error for a keyword unknown to `owner`, a function or class; `known` are its keywords."""
    from difflib import get_close_matches

    replacement = _OF_OTHERS.get(name, "")
    if not replacement or (replacement.isidentifier() and replacement not in known):
        replacement = next(iter(get_close_matches(name, known, n=1)), f"there are {', '.join(known)}")
    return KeywordError(f"{owner} has no keyword '{name}'", hint=replacement)


def with_known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function without `**` parameters raise `KeywordError` for an unknown keyword."""
    code = function.__code__
    known = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name != "self"]
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        if unknown := keywords.keys() - set(known):
            raise keyword_error(owner, min(unknown), known)
        return function(*args, **keywords)

    return checked
