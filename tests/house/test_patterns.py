"""Every pattern of a pass has a name of its own, by which it runs alone."""

from __future__ import annotations

from collections import Counter

from glow_mlir.ir.patterns import Pattern, PatternPass
from glow_mlir.ir.universe import OWN_PASSES
from glow_mlir.transforms.graph.apply_patterns import ApplyPatternsPass, named_walks

KINDS = [kind for load in OWN_PASSES.values() if issubclass(kind := load(), PatternPass)]
PASSES = {kind.name: kind() for kind in KINDS if kind is not ApplyPatternsPass}
PATTERNS: list[Pattern] = [pattern for item in PASSES.values() for walk in item.walks() for pattern in walk.patterns]


def test_no_two_patterns_have_one_name() -> None:
    assert [name for name, count in Counter(pattern.name for pattern in PATTERNS).items() if count > 1] == []


def test_no_pattern_has_the_name_of_another_pass() -> None:
    """What a log names is either a pass, or a pattern of it."""
    own = {pattern.name: name for name, item in PASSES.items() for walk in item.walks() for pattern in walk.patterns}
    assert {name: owner for name, owner in own.items() if name in OWN_PASSES and name != owner} == {}


def test_passes_that_are_lists_of_patterns_have_some() -> None:
    assert not [name for name, item in PASSES.items() if not item.walks()]
    assert not [pattern.name for pattern in PATTERNS if not pattern.roots or not pattern.__doc__]


def test_every_pattern_runs_alone() -> None:
    assert {pattern.name for pattern in PATTERNS} == set(named_walks())
    for name, walk in named_walks().items():
        assert [pattern.name for pattern in walk.patterns] == [name]
