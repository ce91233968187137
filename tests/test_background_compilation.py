"""Work in a thread beside other work: both results, and either's error, after both have ended."""

from __future__ import annotations

import threading

import pytest

from glow_mlir.support.parallel_work import both


def test_both_results_from_two_threads() -> None:
    name, here = both(lambda: threading.current_thread().name, lambda: threading.current_thread().name)
    assert name != here == threading.current_thread().name


@pytest.mark.parametrize("first", [True, False])
def test_an_error_of_either_is_raised_when_both_have_ended(first: bool) -> None:
    begun, ended = threading.Event(), list[str]()

    def fails() -> None:
        begun.wait(10)
        raise ValueError("what fails")

    def works() -> None:
        begun.set()
        ended.append("works")

    with pytest.raises(ValueError, match="what fails"):
        both(*((fails, works) if first else (works, fails)))
    assert ended == ["works"]


def test_without_threads_one_runs_behind_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    order: list[str] = []
    both(lambda: order.append("beside"), lambda: order.append("here"))
    assert order == ["here", "beside"]
