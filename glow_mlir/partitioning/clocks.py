"""What queues know of each other: which of the others' work is done when they come to a place (Lamport, 1978)."""

from __future__ import annotations

from collections.abc import Mapping


class Clocks:
    """
    How far each queue is known to be, by each queue, where one thing after the other is put into them.

    Work in a queue is numbered from 1.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}
        self._at: dict[tuple[str, int], Mapping[str, int]] = {}
        """Queue and number → what is known to be done when that is."""

    def put(self, queue: str) -> int:
        """Put work into a queue; its number."""
        known = self._known.setdefault(queue, {})
        known[queue] = known.get(queue, 0) + 1
        self._at[queue, known[queue]] = dict(known)
        return known[queue]

    def is_known(self, queue: str, other: str, number: int) -> bool:
        """Whether what comes next in a queue comes behind some work of another one."""
        return self._known.get(queue, {}).get(other, 0) >= number

    def wait(self, queue: str, other: str, number: int) -> None:
        """Let a queue wait until another one has done some work, and all that is known to be done by then."""
        known = self._known.setdefault(queue, {})
        for name, done in self._at[other, number].items():
            known[name] = max(known.get(name, 0), done)
