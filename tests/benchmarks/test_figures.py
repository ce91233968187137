"""Figures from times: quartiles, ratios, differences."""

from __future__ import annotations

import numpy as np
import pytest

from contest.figures import Spread, best_peer, calls_within, difference, geometric_mean, ratios, spread


def test_spread_has_the_quartiles():
    assert spread([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(2.0, 3.0, 4.0)
    assert spread([1.0]) == Spread(1.0, 1.0, 1.0)


def test_ratio_is_above_one_where_we_are_faster():
    assert ratios([1.0, 2.0], [3.0, 1.0]) == [3.0, 0.5]


def test_ratios_are_of_the_rounds_that_peers_took_part_in():
    assert ratios([1.0, 2.0, 4.0], [3.0, 1.0]) == [3.0, 0.5]


def test_ratio_needs_our_time_of_every_round():
    with pytest.raises(ValueError, match=r"shorter|longer"):
        ratios([1.0], [1.0, 2.0])


def test_best_peer_is_one_for_all_rounds():
    # The first is fastest in one round only, by far; the second in the others.
    found = best_peer([1.0, 1.0, 1.0], {"lucky": [0.1, 3.0, 3.0], "steady": [2.0, 2.0, 2.0]})
    assert found is not None
    assert (found.peer, found.ratio) == ("steady", Spread(2.0, 2.0, 2.0))


def test_without_peers_nobody_is_best():
    assert best_peer([1.0], {}) is None


def test_geometric_mean_of_a_ratio_and_its_inverse_is_one():
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)


def test_difference_is_relative_to_each_output():
    wanted = [np.array([10.0, 0.0]), np.array([1.0])]
    assert difference([np.array([9.0, 0.0]), np.array([1.0])], wanted) == pytest.approx(0.1)
    assert difference([np.array([10.0, 0.0]), np.array([1.5])], wanted) == pytest.approx(0.5)


def test_difference_ignores_dimensions_of_one():
    assert difference([np.ones((4,))], [np.ones((1, 2, 2))]) == 0.0


def test_difference_of_what_is_not_a_number_is_not_small():
    gap = difference([np.array([np.nan, 1.0]), np.zeros(1)], [np.ones(2), np.zeros(1)])
    assert not gap <= 1.0


@pytest.mark.parametrize("found", [[np.ones(3)], [np.ones(2), np.ones(2)]])
def test_difference_refuses_other_sizes_and_numbers(found: list[np.ndarray]):
    with pytest.raises(ValueError, match=r"elements|shorter|longer"):
        difference(found, [np.ones(2)])


@pytest.mark.parametrize(
    ("seconds", "calls"), [(0.001, 50), (0.01, 25), (0.2, 3), (0.9, 3), (1.1, 1)], ids=lambda value: f"{value}"
)
def test_calls_fill_the_budget(seconds: float, calls: int):
    assert calls_within(0.25, seconds) == calls
