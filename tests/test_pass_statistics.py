"""Statistics go to who collects them, and nowhere else."""

from __future__ import annotations

from threading import Thread

import pytest

from glow_mlir.ir.statistics import count, counting


def test_counts_are_summed_by_name() -> None:
    with counting() as collected:
        count("copies eliminated")
        count("copies eliminated", 2)
        count("stacks made", 0)
    assert collected == {"copies eliminated": 3, "stacks made": 0}


def test_nothing_is_kept_where_nobody_collects() -> None:
    count("copies eliminated")
    with counting() as collected:
        pass
    count("copies eliminated")
    assert not collected


def test_collections_do_not_mix() -> None:
    with counting() as outer:
        count("a")
        with counting() as inner:
            count("b")
        count("a")
        thread = Thread(target=count, args=("c",))
        thread.start()
        thread.join()
    assert (outer, inner) == ({"a": 2}, {"b": 1})


def test_collection_ends_with_a_failure() -> None:
    with pytest.raises(ValueError, match="stop"), counting() as failed:
        raise ValueError("stop")
    count("a")
    assert not failed
