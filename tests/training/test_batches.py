"""Batches: each sample once, in an order that the seed and the epoch decide, on any machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glow_mlir.errors import InputError, OptionError
from glow_mlir.training.batches import ArraySamples, Batches, padded

ORDERS = [[3, 5, 2, 7, 0, 6, 1, 4], [0, 6, 5, 3, 4, 7, 2, 1]]


def samples(count: int) -> ArraySamples:
    return ArraySamples({"x": np.arange(count), "targets": np.arange(count) * 10})


@given(st.integers(1, 40), st.integers(1, 10), st.integers(0, 2**64 - 1), st.integers(0, 1000))
def test_an_epoch_has_no_sample_twice(count: int, size: int, seed: int, epoch: int) -> None:
    if size > count:
        with pytest.raises(InputError, match=f"there are {count} samples, and a batch has {size}"):
            Batches(samples(count), size, seed)
        return
    batches = Batches(samples(count), size, seed)
    found = list(batches.epoch(epoch))
    assert len(found) == batches.per_epoch == count // size
    places = np.concatenate([batch["x"] for batch in found])
    assert len(set(places.tolist())) == len(places) == batches.per_epoch * size
    assert all((batch["targets"] == batch["x"] * 10).all() for batch in found)
    begin = len(found) // 2
    for batch, again in zip(found[begin:], batches.epoch(epoch, begin), strict=True):
        assert (batch["x"] == again["x"]).all()


def test_orders_are_the_same_for_ever() -> None:
    """The bits of Philox are fixed: a run goes on with another version of numpy."""
    batches = Batches(samples(8), 4, seed=1)
    assert [batches.order(epoch).tolist() for epoch in range(2)] == ORDERS
    assert Batches(samples(8), 4, seed=2).order(0).tolist() != ORDERS[0]
    assert Batches(samples(8), 4, seed=None).order(5).tolist() == list(range(8))


def test_wrong_seeds_and_arrays_are_told() -> None:
    with pytest.raises(OptionError, match="there is no seed -1"):
        Batches(samples(4), 2, seed=-1)
    with pytest.raises(InputError, match="different numbers of samples: 3 for x, 4 for targets"):
        ArraySamples({"x": np.zeros(3), "targets": np.zeros(4)})


@given(st.integers(1, 30), st.integers(1, 12))
def test_padding_copies_the_last_sample(count: int, size: int) -> None:
    found = list(padded(samples(count), size))
    assert sum(batch.own for batch in found) == count
    assert np.concatenate([batch.inputs["x"][: batch.own] for batch in found]).tolist() == list(range(count))
    assert all(len(batch.inputs["x"]) == size for batch in found)
    assert (found[-1].inputs["x"][found[-1].own :] == count - 1).all()
