"""Data classes whose methods are made when needed do what those of Python do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pytest
from checkout import ROOT

from glow_mlir.support.dataclass import dataclass

Decorator = Callable[..., Any]
FLAGS = [dict(zip(("frozen", "eq", "repr"), values, strict=True)) for values in product((False, True), repeat=3)]


def pair(make: Callable[[Decorator], type]) -> tuple[Any, Any]:
    """A class made with Python's decorator, and the same one made with ours."""
    return make(dataclasses.dataclass), make(dataclass)


def outcome(function: Callable[[], object]) -> object:
    """What a function returns, or the kind and the text of what it raises."""
    try:
        return function()
    except Exception as error:
        return type(error), str(error)


def point(flags: dict[str, bool]) -> Callable[[Decorator], type]:
    """A class with each kind of field."""

    def make(decorator: Decorator) -> type:
        @decorator(**flags)
        class Point:
            """A point."""

            LIMIT: ClassVar[int] = 3
            x: float
            names: list[str] = dataclasses.field(default_factory=list[str])
            y: float = 1.5
            note: str = dataclasses.field(default="", compare=False)
            seen: int = dataclasses.field(default=4, init=False, repr=False)
            cache: dict[str, int] = dataclasses.field(default_factory=dict[str, int], init=False)

        return Point

    return make


@pytest.mark.parametrize("flags", FLAGS)
def test_methods_do_what_those_of_python_do(flags: dict[str, bool]) -> None:
    theirs, ours = pair(point(flags))
    arguments: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1.0,), {}),
        ((1.0,), {"note": "other"}),
        ((2.0, ["a"], 3.0), {}),
        ((float("nan"),), {}),
        ((), {}),
        ((1.0, [], 2.0, "", 5), {}),
        ((1.0,), {"unknown": 1}),
    ]
    for given, named in arguments:
        a, b = (outcome(lambda kind=kind: kind(*given, **named)) for kind in (theirs, ours))
        if isinstance(a, tuple):
            assert b == a
            continue
        assert vars(a) == vars(b) or given[0] != given[0]
        assert (a == copy.copy(a)) == (b == copy.copy(b))
        if flags["repr"]:
            assert repr(a) == repr(b)
        for change in ("x", "note", "seen", "new"):
            assert outcome(lambda: setattr(a, change, 2)) == outcome(lambda: setattr(b, change, 2))
            assert outcome(lambda: delattr(a, change)) == outcome(lambda: delattr(b, change))
    assert str(inspect.signature(theirs)) == str(inspect.signature(ours))
    assert theirs.__match_args__ == ours.__match_args__
    assert repr(theirs.__dataclass_params__) == repr(ours.__dataclass_params__)
    assert [repr(field) for field in dataclasses.fields(theirs)] == [repr(field) for field in dataclasses.fields(ours)]
    assert vars(theirs)["y"] == vars(ours)["y"]
    assert not {"x", "names", "cache"} & vars(ours).keys()
    assert ours(1.0).names is not ours(1.0).names


def test_comparisons_and_hashes_are_those_of_python() -> None:
    def make(decorator: Decorator) -> type:
        @decorator(frozen=True, order=True)
        class Key:
            """A key."""

            a: int
            b: str = ""
            unhashed: int = dataclasses.field(default=0, hash=False)
            ignored: int = dataclasses.field(default=0, compare=False)

        return Key

    theirs, ours = pair(make)
    given = [(1,), (1, "x"), (2, "", 3), (1, "", 0, 9), (2, "", 0)]
    for left, right in product(given, repeat=2):
        a, b, c, d = theirs(*left), theirs(*right), ours(*left), ours(*right)
        results = [(p == q, p != q, p < q, p <= q, p > q, p >= q, hash(p) == hash(q)) for p, q in ((a, b), (c, d))]
        assert results[0] == results[1]
        assert hash(a) == hash(c)
        assert a != c
        with pytest.raises(TypeError):
            assert c < a


@pytest.mark.parametrize("count", range(3))
@pytest.mark.parametrize("frozen", [False, True])
def test_hashes_are_those_of_tuples(count: int, frozen: bool) -> None:
    names = ["a", "b"][:count]
    bare = type("Bare", (), {"__annotations__": dict.fromkeys(names, "int"), "__doc__": "Bare."})
    made: Any = dataclass(bare, frozen=frozen)
    assert made(*range(count)) == made(*range(count))
    assert outcome(lambda: hash(made(*range(count)))) == (
        hash(tuple(range(count))) if frozen else (TypeError, "unhashable type: 'Bare'")
    )


def test_without_init_a_class_keeps_that_of_its_base() -> None:
    def make(decorator: Decorator) -> type:
        @decorator(frozen=True, init=False)
        class Number:
            """A number."""

            a: int

        return Number

    theirs, ours = pair(make)
    for kind in (theirs, ours):
        assert kind.__init__ is object.__init__
        number = kind()
        object.__setattr__(number, "a", 1)
        assert (hash(number), repr(number)) == (hash((1,)), f"{kind.__qualname__}(a=1)")
    assert repr(theirs.__dataclass_params__) == repr(ours.__dataclass_params__)


def test_what_a_class_defines_itself_is_kept() -> None:
    def make(decorator: Decorator) -> type:
        @decorator(frozen=True)
        class Own:
            """An own one."""

            a: int
            b: int = 0

            def __post_init__(self) -> None:
                object.__setattr__(self, "b", self.a + self.b)

            def __eq__(self, other: object) -> bool:
                return True

            def __repr__(self) -> str:
                return "own"

            @cached_property
            def double(self) -> int:
                return 2 * self.b

        return Own

    for kind in pair(make):
        assert repr(kind(1)) == "own"
        assert (kind(1, 2).b, kind(1, 2).double, kind(1) == 3) == (3, 6, True)
        assert hash(kind(1, 2)) == hash((1, 3))


def test_data_classes_of_both_kinds_are_bases_of_each_other() -> None:
    for first, second in product((dataclasses.dataclass, dataclass), repeat=2):
        base_of: Any = first
        derived_of: Any = second

        @base_of(frozen=True)
        class Base:
            """A base."""

            a: int
            b: int = 1

        class Between(Base):
            """Not a data class."""

        @derived_of(frozen=True)
        class Derived(Between):
            """A derived one."""

            c: int = 2
            b: int = 5

        assert repr(Between(1)).endswith("Between(a=1, b=1)")
        assert Between(1) != Base(1)
        assert [field.name for field in dataclasses.fields(Derived)] == ["a", "b", "c"]
        assert Derived(1) == Derived(1, 5, 2) != Derived(1, 1)
        between = Between(1)
        setattr(between, "other", 1)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
            setattr(between, "a", 1)


@dataclass(frozen=True)
class Held:
    """At the top of a module, where pickle finds it."""

    a: int
    more: tuple[int, ...] = ()


def test_functions_of_dataclasses_and_copies_work() -> None:
    held = Held(1, (2,))
    assert dataclasses.replace(held, a=3) == Held(3, (2,))
    assert dataclasses.asdict(held) == {"a": 1, "more": (2,)}
    assert pickle.loads(pickle.dumps(held)) == copy.deepcopy(held) == held
    match held:
        case Held(a, more):
            assert (a, more) == (1, (2,))
    assert Held.__init__ is Held.__init__


def test_mistakes_are_found_when_the_class_is_made() -> None:
    bare = type("Bare", (), {"__annotations__": {"names": "list[str]"}, "names": []})
    with pytest.raises(ValueError, match="mutable default"):
        dataclass(bare)


def decorated_by_python(path: Path) -> bool:
    """Whether a file takes the decorator of Python."""
    text = path.read_text(encoding="utf-8")
    return bool(re.search(r"^from dataclasses import .*\bdataclass\b|\bdataclasses\.dataclass\b", text, re.MULTILINE))


def behind_a_default(decorator: Decorator) -> type:
    @decorator
    class Base:
        first: int = 1

    @decorator
    class Derived(Base):
        second: int

    return Derived


def thawed(decorator: Decorator) -> type:
    @decorator(frozen=True)
    class Base:
        first: int

    @decorator
    class Derived(Base):
        second: int

    return Derived


@pytest.mark.parametrize("make", [behind_a_default, thawed])
def test_what_python_refuses_is_refused(make: Callable[[Decorator], type]) -> None:
    for decorator in (dataclasses.dataclass, dataclass):
        with pytest.raises(TypeError):
            make(decorator)


def test_a_field_without_default_has_that_of_its_base() -> None:
    def make(decorator: Decorator) -> type:
        class Plain:
            """No data class."""

            a = 5

        @decorator
        class Again(Plain):
            """One that says the field again."""

            a: int
            b: int = 1

        return Again

    theirs, ours = pair(make)
    assert (theirs().a, theirs(2).a) == (ours().a, ours(2).a) == (5, 2)
    assert "a" not in vars(ours)


def test_fields_by_keyword_alone_are_those_of_python() -> None:
    def make(decorator: Decorator) -> type:
        @decorator
        class Base:
            """A base."""

            first: int = dataclasses.field(kw_only=True)
            second: list[int] = dataclasses.field(default_factory=list[int], kw_only=True)

        @decorator
        class Named(Base):
            """One that has a field by position besides."""

            given: int
            third: int = dataclasses.field(default=7, kw_only=True)

        return Named

    theirs, ours = pair(make)
    assert theirs.__match_args__ == ours.__match_args__ == ("given",)
    for given, named in [((1,), {"first": 2}), ((1,), {"first": 2, "second": [3]}), ((1,), {}), ((1, 2), {"first": 2})]:
        a, b = (outcome(lambda kind=kind: kind(*given, **named)) for kind in (theirs, ours))
        assert b == a if isinstance(a, tuple) else vars(b) == vars(a)


def test_the_compiler_has_no_data_class_of_python() -> None:
    files = [path for room in ("glow_mlir", "dialects", "tools") for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 600
    home = ROOT / "glow_mlir" / "support" / "dataclass.py"
    assert not [path for path in files if path != home and decorated_by_python(path)]
