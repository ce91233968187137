"""`apply-patterns`: apply single patterns by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import ClassVar, Self

from xdsl.transforms import get_all_passes
from xdsl.utils.arg_spec import ArgSpec

from glow_mlir.driver.pipelines import available_passes
from glow_mlir.errors import OptionError
from glow_mlir.ir.patterns import PatternPass, Walk
from glow_mlir.ir.universe import PASSES
from glow_mlir.support.dataclass import dataclass


@dataclass(frozen=True)
class ApplyPatternsPass(PatternPass):
    """
    Apply patterns of other passes, each in a walk of its own: `apply-patterns{name=sink-reshape,merge-reshapes}`.

    Patterns have the default options of their pass. Raises `OptionError` for an unknown pattern.
    """

    name = "apply-patterns"
    # A field `name` would override the name of the pass.
    SPELLED: ClassVar[Mapping[str, str]] = {"names": "name"}

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in named_walks():
                close = ", ".join(get_close_matches(name, named_walks()))
                listing = "glow-opt --list-passes lists them with their passes"
                raise OptionError(f"there is no pattern '{name}'", hint=f"{close}; {listing}" if close else listing)

    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        if set(spec.parameters) != {"name"}:
            raise ValueError(f'{cls.name} takes one argument, "name", with one pattern or several')
        return super().from_spec(ArgSpec(spec.name, {"names": spec.parameters["name"]}))

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        return ArgSpec(self.name, {"name": self.names})

    def walks(self) -> tuple[Walk, ...]:
        return tuple(named_walks()[name] for name in self.names)


@cache
def named_walks() -> dict[str, Walk]:
    """For each pattern of all passes, those of other packages included, a walk that applies it alone."""
    foreign = get_all_passes().keys() - PASSES.keys()
    kinds = (load() for name, load in available_passes().items() if name not in foreign)
    others = (kind() for kind in kinds if issubclass(kind, PatternPass) and kind is not ApplyPatternsPass)
    walks = (walk for item in others for walk in item.walks())
    return {pattern.name: replace(walk, patterns=(pattern,)) for walk in walks for pattern in walk.patterns}
