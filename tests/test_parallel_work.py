"""Work in a second thread, and other work in the pauses that this leaves."""

from __future__ import annotations

import threading

import pytest

from glow_mlir.support.parallel_work import both, in_pauses


def test_both_results_are_returned_and_either_error_is_raised() -> None:
    assert both(lambda: 1, lambda: 2) == (1, 2)
    for calls in ((lambda: 1 // 0, int), (int, lambda: 1 // 0)):
        with pytest.raises(ZeroDivisionError):
            both(*calls)


def test_a_pause_is_used_for_waiting_work_until_the_thread_ends() -> None:
    done = list[int]()
    ends = threading.Event()

    def step(number: int) -> None:
        done.append(number)
        assert both(ends.is_set, lambda: None) == (False, None)  # A pause of waiting work is not for other work.
        if number == 1:
            ends.set()
            for thread in threading.enumerate():
                if thread.name == "glow-both":
                    thread.join()

    with in_pauses(*(lambda number=number: step(number) for number in range(3))):
        both(lambda: None, lambda: None)  # Its thread may have ended.
        done.clear()
        both(ends.wait, lambda: None)
    both(lambda: None, lambda: None)
    assert done in ([0, 1], [1])


def test_without_a_pause_waiting_work_is_left_out() -> None:
    with in_pauses(pytest.fail):
        pass
