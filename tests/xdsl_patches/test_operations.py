"""Operations of ours are what xDSL's are, and change as they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from filecheck_runner import FILECHECK_ROOT
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Operation, SSAValue, SSAValues

from glow_mlir.dialects.glow_high.elementwise_binary import AddOp
from glow_mlir.errors import GlowError
from glow_mlir.ir.context import new_context
from glow_mlir.ir.text import module_text, parse_module
from glow_mlir.xdsl_patches.operations import LeanOperation, cloned_region, operands_of

FILES = sorted(path for folder in ("transforms", "conversion") for path in (FILECHECK_ROOT / folder).glob("*.mlir"))

TEXT = """
glow_high.placeholder @x : tensor<2xf32> {input}
glow_high.placeholder @z : tensor<2xf32> {input}
glow_high.placeholder @y : tensor<2xf32> {output}
glow_high.func @main(@x, @z, @y) {
  %x = glow_high.get @x : tensor<2xf32>
  %z = glow_high.get @z : tensor<2xf32>
  %0 = glow_high.add %x, %z : tensor<2xf32>
  glow_high.save %0, @y
}
"""


def modules_of(path: Path) -> list[ModuleOp]:
    """The modules of a test that can be read."""
    found: list[ModuleOp] = []
    for text in path.read_text("utf-8").split("// -----\n"):
        try:
            found.append(parse_module(text, new_context()))
        except GlowError:  # What the test is about.
            continue
    return found


def uses_of(module: Operation) -> list[list[tuple[str, int]]]:
    """Which operands use each value of a module, in the order of its list of uses."""
    values = [value for op in module.walk() for value in (*op.results, *(a for r in op.regions for a in r.block.args))]
    return [[(use.operation.name, use.index) for use in value.uses] for value in values]


def test_most_modules_are_copied() -> None:
    assert sum(len(modules_of(path)) for path in FILES) > 200


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_copies_are_those_of_xdsl(path: Path) -> None:
    for module in modules_of(path):
        own, other = ModuleOp(cloned_region(module.body), dict(module.attributes)), module.clone()
        own.location = other.location
        assert module_text(own, locations=True) == module_text(other, locations=True)
        assert uses_of(own) == uses_of(other)


def add_of(module: ModuleOp) -> AddOp:
    """The sum of the module above."""
    (found,) = (op for op in module.walk() if isinstance(op, AddOp))
    return found


def test_operands_are_exchanged_with_their_uses() -> None:
    add = add_of(parse_module(TEXT, new_context()))
    left, right = operands_of(add)
    add.operands[0] = right
    assert list(add.operands) == [right, right]
    assert not left.uses
    assert [use.index for use in right.uses] == [0, 1]
    add.operands = [right, left]
    assert (add.left, add.right) == (right, left)
    assert [use.index for use in left.uses] == [1]


def test_several_operands_have_types() -> None:
    add = add_of(parse_module(TEXT, new_context()))
    both = add.operands[:]
    assert isinstance(both, SSAValues)
    assert both.types == tuple(value.type for value in add.operands)


def test_an_operation_that_is_used_is_not_erased() -> None:
    add = add_of(parse_module(TEXT, new_context()))
    add.detach()
    with pytest.raises(ValueError, match="still has uses"):
        add.erase()


def test_kinds_are_told_by_inheritance() -> None:
    add = add_of(parse_module(TEXT, new_context()))
    assert isinstance(add, LeanOperation)
    assert issubclass(AddOp, LeanOperation)
    assert not issubclass(UnregisteredOp, LeanOperation)
    assert not isinstance(add.result, LeanOperation)
    assert isinstance(add.result, SSAValue)
