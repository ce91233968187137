"""`--list-passes`: every pass with its options, first sentence and patterns."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from xdsl.passes import ModulePass, PassOptionInfo, get_pass_option_infos
from xdsl.transforms import get_all_passes

from glow_mlir.driver.pipelines import available_passes
from glow_mlir.ir.patterns import Pattern, PatternPass
from glow_mlir.ir.universe import PASSES


def pass_list() -> str:
    """
    The text of `--list-passes`: our passes with their options, summaries and patterns, then the names of xDSL's passes.

    xDSL's passes are not described, because that would import all of them.
    """
    foreign = get_all_passes().keys() - PASSES.keys()
    ours = {name: load for name, load in available_passes().items() if name not in foreign}
    lines = [line for name in sorted(ours) for line in described(ours[name]())]
    return "\n".join([*lines, "", "passes of xDSL:", *(f"  {name}" for name in sorted(foreign))])


def described(kind: type[ModulePass]) -> Iterator[str]:
    """The lines that describe one pass."""
    options = " ".join(f"{name}={info.default_value or f'<{info.expected_type}>'}" for name, info in options_of(kind))
    yield f"{kind.name}{f'{{{options}}}' if options else ''}"
    yield f"  {first_paragraph(kind)}"
    if patterns := patterns_of(kind):
        yield f"  patterns: {', '.join(pattern.name for pattern in patterns)}"


def options_of(kind: type[ModulePass]) -> list[tuple[str, PassOptionInfo]]:
    """The options of a pass, by their names on the command line."""
    spelled: Mapping[str, str] = kind.SPELLED if issubclass(kind, PatternPass) else {}
    return [(spelled.get(info.name, info.name), info) for info in get_pass_option_infos(kind)]


def patterns_of(kind: type[ModulePass]) -> list[Pattern]:
    """The patterns of a pattern pass that needs no options; empty for others."""
    if not issubclass(kind, PatternPass) or kind.required_fields():
        return []
    return [pattern for walk in kind().walks() for pattern in walk.patterns]


def first_paragraph(kind: type) -> str:
    """The first paragraph of a class's docstring, in one line."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
