"""Modules of xDSL mean the same, however they are loaded. Each check runs a new Python."""

from __future__ import annotations

from checkout import run_python

INSTALL = "from glow_mlir.xdsl_patches import loader; loader.install()"

MODULES = (
    "xdsl.dialects.builtin xdsl.dialects.llvm xdsl.dialects.arith xdsl.dialects.math xdsl.printer xdsl.builder "
    "xdsl.irdl.declarative_assembly_format_parser"
)

CLASSES = f"""
import re, sys
from importlib import import_module

def classes():
    for name in "{MODULES}".split():
        import_module(name)
    for name, module in sorted(sys.modules.items()):
        if name.startswith("xdsl."):
            for member in vars(module).values():
                if isinstance(member, type) and member.__module__ == name:
                    yield member
"""

DESCRIPTION = """
import dataclasses, inspect

def shown(value):
    text = re.sub(r"0x[0-9a-f]+|<locals>[^>]*", "", repr(value))
    return re.sub(r"frozenset\\(\\{[^}]*\\}\\)", "a set", text)

for kind in classes():
    print(kind.__module__, kind.__qualname__)
    if "get_irdl_definition" in vars(kind):
        print("  definition", shown(kind.get_irdl_definition()))
    if "__dataclass_params__" in vars(kind):
        print("  flags", kind.__dataclass_params__, [shown(field) for field in dataclasses.fields(kind)])
        print("  methods", sorted(name for name in vars(kind) if name in MADE), kind.__hash__ is None)
        print("  signature", shown(inspect.signature(kind.__init__)))
"""

MADE = "MADE = {'__init__', '__eq__', '__repr__', '__setattr__', '__delattr__', '__lt__', '__match_args__'}\n"

COUNT = """
definitions = [vars(kind)["get_irdl_definition"] for kind in classes() if "get_irdl_definition" in vars(kind)]
print(sum(not isinstance(each, classmethod) for each in definitions), len(definitions))
"""


def test_definitions_and_data_classes_are_those_of_xdsl() -> None:
    ours = run_python(f"{INSTALL}\n{MADE}{CLASSES}{DESCRIPTION}")
    theirs = run_python(f"{MADE}{CLASSES}{DESCRIPTION}")
    assert theirs.count("  definition") > 150
    assert theirs.count("  signature") > 100
    assert ours == theirs


def test_definitions_are_made_when_they_are_needed() -> None:
    later, all_of_them = map(int, run_python(f"{INSTALL}\n{CLASSES}{COUNT}").split())
    assert later > 0.8 * (all_of_them - 60)  # Attributes are defined at once.
    assert run_python(f"{CLASSES}{COUNT}").split()[0] == "0"


def test_what_was_imported_before_is_left_alone() -> None:
    code = (
        f"import sys, xdsl.dialects.llvm as before\n{INSTALL}\nimport xdsl.dialects.llvm as after, xdsl.dialects.scf\n"
    )
    assert run_python(f"{code}print(before is after, before.AddOp.get_irdl_definition().name)") == "True llvm.add\n"


def test_a_module_that_fails_says_why() -> None:
    code = f"{INSTALL}\ntry:\n    import xdsl.nowhere\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert run_python(code) == "No module named 'xdsl.nowhere'\n"
