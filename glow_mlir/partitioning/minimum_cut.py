"""Minimum cuts of networks, by Dinic's maximum-flow algorithm (Y. Dinitz, 1970)."""

from __future__ import annotations

from collections import deque
from math import inf

_LEAST = 1e-18
"""Residual capacity treated as zero, since float sums are inexact; in seconds, below any cost."""


class Network:
    """Nodes, beginning with `SOURCE` and `SINK`, and edges with capacities."""

    SOURCE = 0
    SINK = 1

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]
        """For each node, the numbers of its edges; a reverse edge has the number with the last bit flipped."""
        self._heads: list[int] = []
        self._rest: list[float] = []

    def node(self) -> int:
        """A new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def edge(self, tail: int, head: int, capacity: float) -> None:
        """Add an edge of that capacity from `tail` to `head`: the cost of a cut between them."""
        if capacity <= 0:
            return
        for start, end, rest in ((tail, head, capacity), (head, tail, 0.0)):
            self._edges[start].append(len(self._heads))
            self._heads.append(end)
            self._rest.append(rest)

    def source_side(self) -> set[int]:
        """The nodes on the source side of a minimum cut."""
        while (levels := self._levels())[self.SINK] >= 0:
            self._block(levels)
        return {node for node, level in enumerate(levels) if level >= 0}

    def _levels(self) -> list[int]:
        """The distance of each node from the source along residual edges; -1 if unreachable."""
        levels = [-1] * len(self._edges)
        levels[self.SOURCE] = 0
        queue = deque([self.SOURCE])
        while queue:
            node = queue.popleft()
            for edge in self._edges[node]:
                head = self._heads[edge]
                if self._rest[edge] > _LEAST and levels[head] < 0:
                    levels[head] = levels[node] + 1
                    queue.append(head)
        return levels

    def _block(self, levels: list[int]) -> None:
        """Saturate all shortest paths to the sink."""
        ahead = [0] * len(self._edges)
        path: list[int] = []
        node = self.SOURCE
        while True:
            if node == self.SINK:
                sent = min(self._rest[edge] for edge in path)
                for edge in path:
                    self._rest[edge] -= sent if sent < inf else 0
                    self._rest[edge ^ 1] += sent
                used = next(at for at, edge in enumerate(path) if self._rest[edge] <= _LEAST)
                node = self._heads[path[used] ^ 1]
                del path[used:]
            elif (edge := self._next(node, levels, ahead)) is not None:
                path.append(edge)
                node = self._heads[edge]
            elif not path:
                return
            else:
                node = self._heads[path.pop() ^ 1]
                ahead[node] += 1

    def _next(self, node: int, levels: list[int], ahead: list[int]) -> int | None:
        """The next edge of a node that may still lead to the sink."""
        edges = self._edges[node]
        while ahead[node] < len(edges):
            edge = edges[ahead[node]]
            if self._rest[edge] > _LEAST and levels[self._heads[edge]] == levels[node] + 1:
                return edge
            ahead[node] += 1
        return None
