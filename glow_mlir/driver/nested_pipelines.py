"""Nested pass pipelines in mlir-opt's syntax: `builtin.module(a,func.func(b{x=1}))`."""

from __future__ import annotations

import re

from glow_mlir.errors import OptionError

ANCHORS = frozenset({"any", "builtin.module", "func.func", "glow_high.func", "glow_low.func", "llvm.func"})
"""Anchors of passes: a module, or all functions of it; passes on modules cover both."""

_PART = re.compile(
    r"""(?P<anchor>[\w.-]+)\s*\(|(?P<close>\))|(?P<options>\{(?:"[^"]*"|[^{}"])*\})|(?P<other>.)""", re.DOTALL
)


def flattened(text: str) -> str:
    """
    The passes of a pipeline in order, without anchors and spaces.

    Raises `OptionError` for unbalanced parentheses, and for anchors other than modules and functions.
    """
    open_at: list[int] = []
    kept: list[str] = []
    for part in _PART.finditer(text):
        if anchor := part["anchor"]:
            if anchor not in ANCHORS:
                hint = f"passes run on {', '.join(sorted(ANCHORS - {'any'}))}; options are in braces: a{{x=1}}"
                raise _wrong(text, f"no pass runs on '{anchor}'", part.start(), hint)
            open_at.append(part.start())
        elif part["close"]:
            if not open_at:
                raise _wrong(text, "')' closes nothing", part.start())
            open_at.pop()
        elif not part.group().isspace():
            kept.append(part.group())
    if open_at:
        raise _wrong(text, "')' is missing", len(text))
    return "".join(kept)


def _wrong(text: str, reason: str, at: int, hint: str = "") -> OptionError:
    return OptionError(f"pass pipeline '{text}': {reason} (column {at + 1})", hint=hint)
