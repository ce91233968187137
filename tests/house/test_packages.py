"""The built-in package names each module that registers something, and no other."""

from __future__ import annotations

import re

import pytest
from checkout import ROOT, files

from glow_mlir.dialects.packages import BUILTIN

MARKS = {
    "semantics": r"@semantics\(",
    "importers": r"\bonnx_operator\(",
    "tflite_importers": r"^@tflite_(custom_)?operator\(",
    "exporters": r"\bonnx_export\(",
    "lowerings": r"@lowering\(",
    "gradients": r"@gradient\(",
    "kernels": r"@kernel\(",
    "packed_forms": r"@packed_form\(",
    "backends": r"@backend\(",
}
"""Part of a package → how a module says that it has entries of it."""

ROOMS = tuple(
    f"glow_mlir/{room}/"
    for room in ("backends", "codegen", "differentiation", "frontends", "interpreter", "transforms")
)


def registering(mark: str) -> set[str]:
    """The modules of the compiler that register entries of a part."""
    found: set[str] = set()
    for path in files(".py"):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(ROOMS) and re.search(mark, path.read_text(encoding="utf-8"), re.MULTILINE):
            found.add(name.removesuffix(".py").replace("/", "."))
    return found


def named(part: str) -> list[str]:
    """The modules that the package names for a part."""
    modules = getattr(BUILTIN, part)
    return [*modules] if isinstance(modules, tuple) else [name for names in modules.values() for name in names]


@pytest.mark.parametrize("part", MARKS)
def test_modules_of_a_part_are_those_that_register_it(part: str) -> None:
    names = named(part)
    assert len(set(names)) == len(names)
    assert set(names) == registering(MARKS[part])
