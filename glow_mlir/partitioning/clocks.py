"""Vector clocks of queues: which work of other queues is known to be complete (Lamport, 1978)."""

from __future__ import annotations

from collections.abc import Mapping


class Clocks:
    """
    The progress of each queue that each other queue is known to follow.

    Work in a queue is numbered from 1.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}
        self._at: dict[tuple[str, int], Mapping[str, int]] = {}
        """Queue and number → the work that is complete when this is."""

    def put(self, queue: str) -> int:
        """Append work to a queue; returns its number."""
        known = self._known.setdefault(queue, {})
        known[queue] = known.get(queue, 0) + 1
        self._at[queue, known[queue]] = dict(known)
        return known[queue]

    def is_known(self, queue: str, other: str, number: int) -> bool:
        """Whether the next entry of a queue is ordered after some work of another queue."""
        return self._known.get(queue, {}).get(other, 0) >= number

    def wait(self, queue: str, other: str, number: int) -> None:
        """Let a queue wait for work of another queue, and thereby for its predecessors."""
        known = self._known.setdefault(queue, {})
        for name, done in self._at[other, number].items():
            known[name] = max(known.get(name, 0), done)
