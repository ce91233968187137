"""
Assignment of least latency for sequential execution.

For two devices that is a minimum cut (H. Stone, 1977): the costs of a node on either device are the capacities of its
edges to source and sink, and a cut value costs its transfer. For more devices, pairs of them swap nodes, each swap an
optimal cut, until none improves (Y. Boykov, O. Veksler and R. Zabih, 2001); small problems are searched exhaustively.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import inf, isinf

from glow_mlir.partitioning.minimum_cut import Network
from glow_mlir.partitioning.problem import HOST, Assignment, Problem, Value, assigned_device, grouped

NEVER = 1e12
"""Seconds that represent infinity in a network: above all finite costs."""

MAX_SEARCHED = 1 << 14
"""Maximum number of assignments for an exhaustive search."""

PREFERENCE = 1000.0
"""Assumed slowdown of an operator on each device relative to the first one."""

MULTIPLIERS = 40
"""Number of memory prices tried until the devices have enough memory."""

PATIENCE = 8
"""Number of memory prices tried without improvement once the assignment fits."""


def least_latency(problem: Problem) -> Assignment | None:
    """The assignment of least latency found among those that fit memory; `None` if there is none."""
    groups = grouped(len(problem.seconds), problem.together)
    # One device has one assignment, however many groups there are, and the search is as deep as there are groups.
    if max(2, len(problem.devices)) ** len(groups) <= MAX_SEARCHED:
        return _searched(problem, groups)
    found = _swapped(problem, groups)
    if found is None or problem.fits(found):
        return found
    return _within_memory(problem, groups)


def preferring(problem: Problem) -> Problem:
    """The problem in which an operator takes much longer on each device than on the previous one in the list."""
    seconds: list[tuple[float, ...]] = []
    for times in problem.seconds:
        base = min(times)
        seconds.append(tuple(inf if isinf(time) else base * (1 + PREFERENCE * rank) for rank, time in enumerate(times)))
    return replace(problem, seconds=tuple(seconds))


def _searched(problem: Problem, groups: Sequence[Sequence[int]]) -> Assignment | None:
    """The best of all assignments, by branch and bound."""
    times = [[sum(problem.seconds[node][device] for node in group) for device in problem.devices] for group in groups]
    least = [0.0] * (len(groups) + 1)
    for number in range(len(groups) - 1, -1, -1):
        least[number] = least[number + 1] + min(times[number])
    best: tuple[float, Assignment | None] = (inf, None)
    chosen = [0] * len(problem.seconds)

    def choose(number: int, computed: float) -> None:
        nonlocal best
        if computed + least[number] >= best[0]:
            return
        if number == len(groups):
            latency = problem.latency(chosen)
            if latency < best[0] and problem.fits(chosen):
                best = latency, tuple(chosen)
            return
        for device in sorted(problem.devices, key=lambda device: times[number][device]):
            for node in groups[number]:
                chosen[node] = device
            choose(number + 1, computed + times[number][device])

    choose(0, 0.0)
    return best[1]


def _swapped(problem: Problem, groups: Sequence[Sequence[int]]) -> Assignment | None:
    """The best assignment reachable by swaps between pairs of devices; `None` if no device executes some node."""
    starts = [_start(problem, groups, device) for device in problem.devices]
    if any(start is None for start in starts):
        return None
    found = [_improved(problem, groups, start) for start in starts if start is not None]
    return min(found, key=problem.latency)


def _start(problem: Problem, groups: Sequence[Sequence[int]], preferred: int) -> list[int] | None:
    """All nodes on one device, except those that it does not execute."""
    start = [preferred] * len(problem.seconds)
    for group in groups:
        times = [sum(problem.seconds[node][device] for node in group) for device in problem.devices]
        device = preferred if not isinf(times[preferred]) else min(problem.devices, key=times.__getitem__)
        if isinf(times[device]):
            return None
        for node in group:
            start[node] = device
    return start


def _improved(problem: Problem, groups: Sequence[Sequence[int]], start: Sequence[int]) -> Assignment:
    """Improve an assignment by swaps until none helps."""
    best, latency = tuple(start), problem.latency(start)
    while True:
        before = latency
        for pair in combinations(problem.devices, 2):
            tried = _swap(problem, groups, best, pair)
            if (seconds := problem.latency(tried)) < latency:
                best, latency = tried, seconds
        if latency >= before:
            return best


def _swap(
    problem: Problem, groups: Sequence[Sequence[int]], assignment: Assignment, pair: tuple[int, int]
) -> Assignment:
    """The best assignment that redistributes the nodes of two devices between them."""
    network = Network()
    here, there = pair
    nodes: dict[int, int] = {}
    for group in groups:
        if assignment[group[0]] not in pair:
            continue
        network_node = network.node()
        nodes.update(dict.fromkeys(group, network_node))
        times = [sum(min(problem.seconds[node][device], NEVER) for node in group) for device in pair]
        network.edge(network.SOURCE, network_node, times[1])
        network.edge(network_node, network.SINK, times[0])
    for value in problem.values:
        _add_value(network, problem, value, assignment, pair, nodes)
    side = network.source_side()
    return tuple(
        (here if nodes[node] in side else there) if node in nodes else device for node, device in enumerate(assignment)
    )


def _add_value(
    network: Network,
    problem: Problem,
    value: Value,
    assignment: Assignment,
    pair: tuple[int, int],
    nodes: dict[int, int],
) -> None:
    """Add the transfer costs of a value: once per destination, wherever it is read there."""
    here, there = pair
    readers = {nodes[reader] for reader in value.readers if reader in nodes}
    if value.producer in nodes:
        producer = nodes[value.producer]
        fixed = {assigned_device(reader, assignment) for reader in value.readers if reader not in nodes}
        from_here, from_there = (
            sum(problem.transfer_seconds(device, target, value.nbytes) for target in fixed) for device in pair
        )
        network.edge(producer, network.SINK, from_here)
        network.edge(network.SOURCE, producer, from_there)
        sides = ((producer, "there"), (producer, "here"))
        sources = (here, there)
    else:
        source = assigned_device(value.producer, assignment)
        sides = ((network.SOURCE, "there"), (network.SINK, "here"))
        sources = (source, source)
    for (tail, target), source in zip(sides, sources, strict=True):
        seconds = problem.transfer_seconds(source, there if target == "there" else here, value.nbytes)
        others = readers - {tail}
        if not others or seconds <= 0:
            continue
        meeting = network.node()
        # A reader on the other side pulls the meeting point along, which is then cut from the producer.
        if target == "there":
            network.edge(tail, meeting, seconds)
        else:
            network.edge(meeting, tail, seconds)
        for reader in others:
            if target == "there":
                network.edge(meeting, reader, NEVER)
            else:
                network.edge(reader, meeting, NEVER)


def _within_memory(problem: Problem, groups: Sequence[Sequence[int]]) -> Assignment | None:
    """The best assignment found that fits, by prices of memory on the devices with too little (Lagrange)."""
    prices = [0.0] * len(problem.devices)
    best: Assignment | None = None
    least, tried = inf, 0
    scale = max(sum(min(times) for times in problem.seconds), 1e-9)
    bytes_of = [sum(size for _, size in own) for own in problem.constants]
    for _ in range(MULTIPLIERS):
        if tried == PATIENCE:
            break
        priced = tuple(
            tuple(seconds + prices[device] * bytes_of[node] for device, seconds in enumerate(times))
            for node, times in enumerate(problem.seconds)
        )
        found = _swapped(replace(problem, seconds=priced), groups)
        if found is None:
            return None
        if problem.fits(found) and (latency := problem.latency(found)) < least:
            best, least, tried = found, latency, 0
        else:
            tried += best is not None
        for device, most in enumerate(problem.memory):
            if most and (used := problem.bytes_on(found, device)) > most:
                prices[device] = max(prices[device] * 1.5, scale / used / 8)
            else:
                prices[device] *= 0.9
    return None if best is None else _refilled(problem, groups, best)


def _refilled(problem: Problem, groups: Sequence[Sequence[int]], assignment: Assignment) -> Assignment:
    """Improve a fitting assignment by moving groups one by one while it still fits."""
    best = list(assignment)
    near: list[list[int]] = [[] for _ in best]
    for number, value in enumerate(problem.values):
        for node in {value.producer, *value.readers} - {HOST}:
            near[node].append(number)
    for group in groups:
        around = [problem.values[number] for number in {number for node in group for number in near[node]}]
        least = _seconds_around(problem, best, group, around)
        for device in problem.devices:
            old = best[group[0]]
            for node in group:
                best[node] = device
            seconds = _seconds_around(problem, best, group, around)
            if seconds < least and problem.fits(best):
                least = seconds
                continue
            for node in group:
                best[node] = old
    return tuple(best)


def _seconds_around(
    problem: Problem, assignment: Sequence[int], group: Sequence[int], values: Sequence[Value]
) -> float:
    """The cost that depends on the device of a group: its nodes, and the transfers of their values."""
    computed = sum(problem.seconds[node][assignment[node]] for node in group)
    return computed + sum(problem.moving_seconds(value, assignment) for value in values)
