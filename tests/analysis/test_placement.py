"""Places of requests for memory: valid, near the lower bound, and on small instances as good as exhaustive search."""

from __future__ import annotations

import random
from collections.abc import Sequence

from glow_mlir.analysis.placement import WORK, Placement, Request, place

INSTANCES = 200
UNIT = 64


def random_requests(seed: int, count: int, longest: int, largest: int) -> list[Request]:
    """Requests that begin anywhere and last up to `longest` positions."""
    draw = random.Random(seed)
    begins = [draw.randrange(2 * count) for _ in range(count)]
    return [Request(b, b + 1 + draw.randrange(longest), UNIT * draw.randint(1, largest)) for b in begins]


def network_requests(seed: int, count: int) -> list[Request]:
    """Requests as networks make them: one a step, most needed by the next, some much longer; sizes shrink by halves."""
    draw = random.Random(seed)
    scale = 4096
    requests: list[Request] = []
    for number in range(count):
        scale = max(16, scale // 2) if draw.random() < 0.1 else scale
        size = UNIT * max(1, int(scale * draw.choice([1, 1, 1, 0.5, 0.25, 2, 0.75])))
        requests.append(Request(2 * number, 2 * (number + 1 + draw.choice([1, 1, 1, 2, 2, 3, 5, 8, 20])), size))
    return requests


def alive_together(one: Request, other: Request) -> bool:
    return one.begin < other.end and other.begin < one.end


def lower_bound(requests: Sequence[Request]) -> int:
    """The most bytes that are needed at one position."""
    return max(sum(r.size for r in requests if r.begin <= at < r.end) for at in {r.begin for r in requests})


def extent(requests: Sequence[Request], offsets: Sequence[int]) -> int:
    """The size of the region; fails where two requests overlap."""
    placed = list(zip(requests, offsets, strict=True))
    for position, (one, low) in enumerate(placed):
        for other, start in placed[:position]:
            if one.size and other.size and alive_together(one, other):
                assert low + one.size <= start or start + other.size <= low
    return max(offset + request.size for request, offset in placed)


def least_extent(requests: list[Request], known: int) -> int:
    """The smallest region by branch and bound: requests from the lowest offset up, each as low as it can be."""
    bound = lower_bound(requests)
    best = known

    def extend(placed: list[tuple[Request, int]], rest: list[Request], highest: int) -> None:
        nonlocal best
        if not rest:
            best = min(best, highest)
        last = placed[-1][1] if placed else 0
        for request in dict.fromkeys(rest):
            offset = max((low + other.size for other, low in placed if alive_together(request, other)), default=0)
            if best > bound and offset >= last and max(highest, offset + request.size) < best:
                others = list(rest)
                others.remove(request)
                extend([*placed, (request, offset)], others, max(highest, offset + request.size))

    extend([], requests, 0)
    return best


def test_small_instances_against_branch_and_bound() -> None:
    ratios: list[float] = []
    for seed in range(INSTANCES):
        count = 5 + seed % 5
        requests = random_requests(seed, count, count, 12)
        found = extent(requests, place(requests))
        ratios.append(found / least_extent(requests, found))
    optimal = sum(ratio == 1 for ratio in ratios)
    print(f"\n{optimal} of {INSTANCES} small instances are optimal, the worst is {max(ratios):.3f} of the optimum")
    assert optimal >= 0.98 * INSTANCES
    assert max(ratios) <= 1.1


def test_requests_of_networks_are_near_the_bound() -> None:
    ratios: list[float] = []
    for seed in range(INSTANCES):
        requests = network_requests(seed, 30 + seed)
        ratios.append(extent(requests, place(requests)) / lower_bound(requests))
    optimal = sum(ratio == 1 for ratio in ratios)
    mean = sum(ratios) / INSTANCES
    near = sum(ratio <= 1.02 for ratio in ratios)
    print(f"\n{optimal} of {INSTANCES} reach the bound, {near} within 2 %; mean {mean:.4f}, worst {max(ratios):.3f}")
    assert near >= 0.95 * INSTANCES
    assert mean <= 1.005


def test_the_search_improves_on_the_orders() -> None:
    """Where no order reaches the bound; work is bounded."""
    better = tried = 0
    for seed in range(INSTANCES):
        requests = random_requests(seed, 40, 20, 100)
        placement = Placement(requests)
        first = min(placement.extent(placement.first_fit(order)) for order in placement.orders())
        found = extent(requests, place(requests))
        assert lower_bound(requests) <= found <= first
        tried += first > placement.bound
        better += found < first
    print(f"\nof {tried} instances whose best order is above the bound {better} are improved")
    assert better > 0.5 * tried


def test_first_fit_takes_the_lowest_gap() -> None:
    requests = random_requests(0, 200, 20, 25)
    placement = Placement(requests)
    order = list(range(len(requests)))
    offsets = placement.first_fit(order)
    for number in order:
        request = requests[number]
        others = [
            (offsets[n], offsets[n] + requests[n].size) for n in order[:number] if alive_together(request, requests[n])
        ]
        fits = [p for p in (0, *(end for _, end in others)) if all(p + request.size <= b or e <= p for b, e in others)]
        assert offsets[number] == min(fits)


def test_work_is_bounded() -> None:
    """A region in which everything lives at once is placed by its first order; else work stops at its limit."""
    together = [Request(0, 2, UNIT) for _ in range(500)]
    placement = Placement(together)
    assert placement.extent(place(together)) == placement.bound == 500 * UNIT
    requests = random_requests(3, 2000, 40, 1000)
    placement = Placement(requests)
    pairs = sum(map(len, placement.neighbours)) + len(requests)
    assert pairs < 100 * len(requests)
    assert extent(requests, place(requests)) <= 1.1 * lower_bound(requests)
    assert WORK / pairs < 50


def test_places_do_not_depend_on_the_run() -> None:
    requests = random_requests(7, 100, 20, 100)
    assert place(requests) == place(list(requests))


def test_nothing_needs_no_memory() -> None:
    assert place([]) == []
    assert place([Request(0, 1, 0), Request(0, 1, 64)]) == [0, 0]
