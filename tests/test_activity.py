"""Who hears of what long work says and warns of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from glow_mlir.errors import GlowError
from glow_mlir.support.activity import say, warn, warning_to, watching


def test_nothing_happens_where_nobody_listens() -> None:
    say("working")
    warn(GlowError("reason"))


def test_the_innermost_hears_all_that_is_said() -> None:
    outer, inner = list[str](), list[str]()
    with watching(outer.append):
        with watching(inner.append):
            say("one")
            say("one")
        say("two")
    say("three")
    assert (outer, inner) == (["two"], ["one", "one"])


def test_each_warning_is_heard_once() -> None:
    heard: list[str] = []
    for _ in range(2):
        with warning_to(lambda warning: heard.append(str(warning))):
            for reason in ("one", "two", "one"):
                warn(GlowError(reason, file="folder", hint="do this"))
    warn(GlowError("three"))
    assert heard == ["folder: one (hint: do this)", "folder: two (hint: do this)"] * 2


def test_other_threads_are_not_heard() -> None:
    heard: list[GlowError] = []
    with warning_to(heard.append), ThreadPoolExecutor(1) as threads:
        threads.submit(warn, GlowError("reason")).result()
    assert not heard
