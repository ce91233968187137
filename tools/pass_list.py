"""`--list-passes`: every pass with its options, first sentence and patterns."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from xdsl.passes import ModulePass, get_pass_option_infos
from xdsl.transforms import get_all_passes

from glow_mlir.driver.pipelines import available_passes
from glow_mlir.ir.patterns import PatternPass
from glow_mlir.ir.universe import PASSES


def pass_list() -> str:
    """
    The text of `--list-passes`: our passes with their options, what they do, and the patterns that they are lists of,
    then the names of xDSL's.

    xDSL's are not described, since that would import all of them.
    """
    foreign = get_all_passes().keys() - PASSES.keys()
    ours = {name: load for name, load in available_passes().items() if name not in foreign}
    lines = [line for name in sorted(ours) for line in described(ours[name]())]
    return "\n".join([*lines, "", "passes of xDSL:", *(f"  {name}" for name in sorted(foreign))])


def described(kind: type[ModulePass]) -> Iterator[str]:
    """The lines about one pass."""
    infos = get_pass_option_infos(kind)
    spelled: Mapping[str, str] = kind.SPELLED if issubclass(kind, PatternPass) else {}
    options = " ".join(
        f"{spelled.get(info.name, info.name)}={info.default_value or f'<{info.expected_type}>'}" for info in infos
    )
    yield f"{kind.name}{f'{{{options}}}' if options else ''}"
    paragraph = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    yield f"  {' '.join(paragraph.split())}"
    if issubclass(kind, PatternPass) and not kind.required_fields():
        names = [pattern.name for walk in kind().walks() for pattern in walk.patterns]
        yield f"  patterns: {', '.join(names)}"
