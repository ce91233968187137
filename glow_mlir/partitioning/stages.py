"""
Pipelines that minimize the time of the slowest stage: consecutive parts of the nodes, for a stream of calls.

A stage lies between two states of the computation, sets of nodes closed under predecessors. In small graphs, all pairs
of states are tried; in larger ones, the states along the given order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from glow_mlir.partitioning.problem import HOST, Assignment, Problem

MAX_STATES = 800
"""Maximum number of states for which every pair is tried."""

MAX_LIMITS = 12
"""Number of limits on constants tried until the stages fit memory."""


def balanced_stages(problem: Problem) -> tuple[Assignment, float] | None:
    """
    The device of each node, in order, and the seconds of the slowest stage; `None` if no such pipeline exists.

    The time of a stage is that of its nodes, plus transfers from earlier stages. Memory is respected.
    """
    states = _ideals(problem)
    if states is None:
        states = [(1 << count) - 1 for count in range(len(problem.seconds) + 1)]
        if len(states) > MAX_STATES:
            states = _thinned(problem, states)
    states = [state for state in states if _is_whole(problem, state)]
    limits = list(problem.memory)
    for _ in range(MAX_LIMITS):
        found = _best(problem, states, limits)
        if found is None or problem.fits(found[0]):
            return found
        # The constants that a stage shares with others are known only with the stage.
        over = (problem.bytes_on(found[0], device) - most for device, most in enumerate(problem.memory))
        limits = [most and max(1, most - max(0, more)) for most, more in zip(limits, over, strict=True)]
    return None


def _is_whole(problem: Problem, state: int) -> bool:
    """Whether a set contains all or none of the nodes that must be together."""
    return all((state >> left & 1) == (state >> right & 1) for left, right in problem.together)


def _before(problem: Problem) -> list[int]:
    """For each node, the bit set of its predecessors."""
    found = [0] * len(problem.seconds)
    for value in problem.values:
        if value.producer != HOST:
            for reader in value.readers:
                if reader != HOST:
                    found[reader] |= 1 << value.producer
    return found


def _ideals(problem: Problem) -> list[int] | None:
    """All sets of nodes closed under predecessors, small ones first; `None` if there are too many."""
    before = _before(problem)
    found, layer = [0], [0]
    for _ in problem.seconds:
        following: dict[int, None] = {}
        for state in layer:
            for node, needed in enumerate(before):
                if not state >> node & 1 and needed & state == needed:
                    following[state | 1 << node] = None
            if len(found) + len(following) > MAX_STATES:
                return None
        layer = list(following)
        found += layer
    return found


def _thinned(problem: Problem, states: Sequence[int]) -> list[int]:
    """Select states at about equal distances in time from a long sequence."""
    times = [min(seconds) for seconds in problem.seconds]
    step, since = sum(times) / MAX_STATES, inf
    found: list[int] = []
    for state, time in zip(states, (*times, 0.0), strict=True):
        if since >= step:
            found.append(state)
            since = 0.0
        since += time
    return found if found[-1] == states[-1] else [*found, states[-1]]


def _best(problem: Problem, states: Sequence[int], limits: Sequence[int]) -> tuple[Assignment, float] | None:
    """The best sequence of states with a step per device, under a limit on the bytes of constants."""
    best = [inf] * len(states)
    best[0] = 0.0
    ways: list[list[int]] = []
    held = [_constant_bytes(problem, state) if any(limits) else 0 for state in states]
    incoming = [_crossing(problem, state) for state in states]
    for device in problem.devices:
        most = limits[device] if limits else 0
        sums = [_seconds_of(problem, state, device) for state in states]
        following, way = [inf] * len(states), [0] * len(states)
        for number, state in enumerate(states):
            for earlier in range(number, -1, -1):  # Among equally slow stages, the smallest wins.
                start = states[earlier]
                if best[earlier] >= following[number] or start & state != start:
                    continue
                if most and held[number] - held[earlier] > most:
                    continue
                seconds = _stage_seconds(problem, start, state, sums[earlier], sums[number], device)
                if device and state != start:
                    seconds += problem.transfer_seconds(device - 1, device, incoming[earlier]) if start else 0.0
                slowest = max(best[earlier], seconds)
                if slowest < following[number]:
                    following[number], way[number] = slowest, earlier
        best = following
        ways.append(way)
    if best[-1] == inf:
        return None
    return _assignment(problem, states, ways), best[-1]


def _stage_seconds(problem: Problem, start: int, state: int, before: float, until: float, device: int) -> float:
    """The seconds of a device for the nodes between two states; the sums cover all nodes of each."""
    if until < inf:
        return until - before
    return _seconds_of(problem, state & ~start, device)


def _seconds_of(problem: Problem, nodes: int, device: int) -> float:
    """The seconds of a device for a set of nodes."""
    return sum(times[device] for node, times in enumerate(problem.seconds) if nodes >> node & 1)


def _constant_bytes(problem: Problem, nodes: int) -> int:
    """Bytes of the constants that a set of nodes reads, each once."""
    found: dict[str, int] = {}
    for node, own in enumerate(problem.constants):
        if nodes >> node & 1:
            found.update(own)
    return sum(found.values())


def _crossing(problem: Problem, state: int) -> int:
    """Bytes of values that nodes of a state produce and others read."""
    return sum(
        value.nbytes
        for value in problem.values
        if value.producer != HOST
        and state >> value.producer & 1
        and any(reader != HOST and not state >> reader & 1 for reader in value.readers)
    )


def _assignment(problem: Problem, states: Sequence[int], ways: Sequence[Sequence[int]]) -> Assignment:
    """Trace the device of each node back along the best sequence."""
    found = [0] * len(problem.seconds)
    number = len(states) - 1
    for device in reversed(problem.devices):
        earlier = ways[device][number]
        inside = states[number] & ~states[earlier]
        for node in range(len(found)):
            if inside >> node & 1:
                found[node] = device
        number = earlier
    return tuple(found)
