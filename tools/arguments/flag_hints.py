"""Rewrite session keywords in hints as flags of the tools: `devices='cuda'` becomes `--devices cuda`."""

from __future__ import annotations

import re

_SIZE = r"'[^'\"=:,]+': \w+"
"""A dimension and a size that `--bind` accepts."""

_KEYWORD = re.compile(
    rf"\bdimensions=\{{(?P<sizes>{_SIZE}(?:, {_SIZE})*)\}}"
    r"|(?P<no>with )?(?<![\w.,'\"{(-])(?P<name>\w+)=(?P<value>'[^']*'|\"[^\"]*\"|\d[\d_]*|True|False)(?![\w.])"
)


def with_flags(hint: str) -> str:
    """Return the hint with session keywords replaced by the corresponding flags; other text is kept."""
    if "=" not in hint:
        return hint
    from glow_mlir.api.session_keywords import KEYWORDS

    def flag(found: re.Match[str]) -> str:
        if found["sizes"]:
            pairs = (pair.split(": ") for pair in found["sizes"].split(", "))
            return " ".join(f"--bind {name[1:-1]}={size}" for name, size in pairs)
        item = KEYWORDS.get(found["name"])
        name = "" if item is None else item.option.flag.name if item.option.flag else item.option.within or ""
        name = name.partition(" ")[0]
        if not name.startswith("--"):
            return found[0]
        prefix, value = found["no"] or "", found["value"]
        if value in ("True", "False"):
            is_set = (value == "True") != name.startswith("--no-")
            return f"{prefix}{name}" if is_set else f"without {name}" if prefix else f"no {name}"
        return f"{prefix}{name} {value.strip(chr(39) + chr(34))}"

    return _KEYWORD.sub(flag, hint)
