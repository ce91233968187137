"""
Layered layout of a graph without cycles, after Sugiyama, Tagawa and Toda (1981).

Each node is one layer below the lowest it uses; edges over several layers bend at a point in each; layers are ordered
by the barycentre of neighbours, and nodes placed as near to them as the order allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from glow_mlir.pictures.graph import Graph

SWEEPS = 4
NODE_GAP = 1.0
"""Between centres of neighbouring nodes, in widths of a node."""
BEND_GAP = 0.25
"""Between an edge that passes and its neighbour."""


@dataclass(frozen=True)
class Layout:
    """Places of nodes, as column and layer in widths and heights of a node, and the points at which edges bend."""

    places: tuple[tuple[float, int], ...]
    bends: tuple[tuple[tuple[float, int], ...], ...]
    """For each edge of the graph."""


def layered(graph: Graph) -> Layout:
    """The layout of a graph."""
    count = len(graph.nodes)
    layers = layers_of(graph)
    chains: list[list[int]] = []
    links: list[tuple[int, int]] = []
    depth = list(layers)
    for edge in graph.edges:
        between = range(layers[edge.source] + 1, layers[edge.target])
        chain = list(range(len(depth), len(depth) + len(between)))
        depth += between
        chains.append(chain)
        path = [edge.source, *chain, edge.target]
        links += pairwise(path)
    above: list[list[int]] = [[] for _ in depth]
    below: list[list[int]] = [[] for _ in depth]
    for source, target in links:
        above[target].append(source)
        below[source].append(target)
    rows: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for item, layer in enumerate(depth):
        rows[layer].append(item)
    order(rows, above, below)
    columns = place(rows, above, below, count)
    places = tuple((columns[item], depth[item]) for item in range(count))
    return Layout(places, tuple(tuple((columns[item], depth[item]) for item in chain) for chain in chains))


def layers_of(graph: Graph) -> list[int]:
    """The layer of each node; one that uses nothing stands right above the first that uses it."""
    targets: list[list[int]] = [[] for _ in graph.nodes]
    missing = [0] * len(graph.nodes)
    for edge in graph.edges:
        targets[edge.source].append(edge.target)
        missing[edge.target] += 1
    roots = [number for number, count in enumerate(missing) if not count]
    layers = [0] * len(graph.nodes)
    ready = list(roots)
    while ready:
        number = ready.pop()
        for target in targets[number]:
            layers[target] = max(layers[target], layers[number] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    for number in roots:
        layers[number] = min((layers[target] - 1 for target in targets[number]), default=0)
    return layers


def order(rows: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> None:
    """Order each row by the mean position of its neighbours in the row before, downwards and upwards in turn."""
    position: dict[int, float] = {}
    for row in rows:
        position.update({item: float(index) for index, item in enumerate(row)})
    for sweep in range(SWEEPS):
        neighbours, walk = (above, rows) if sweep % 2 == 0 else (below, list(reversed(rows)))
        for row in walk:
            centre = {item: mean([position[other] for other in neighbours[item]], position[item]) for item in row}
            row.sort(key=centre.__getitem__)
            position.update({item: float(index) for index, item in enumerate(row)})


def mean(values: Sequence[float], default: float) -> float:
    """The mean of some numbers, or `default` where there are none."""
    return sum(values) / len(values) if values else default


def place(
    rows: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]], count: int
) -> list[float]:
    """A column for every item, near to its neighbours, in the order of its row; items from `count` on are bends."""
    columns = [0.0] * len(above)
    for row in rows:
        for item, column in zip(row, spread(row, [0.0] * len(row), count), strict=True):
            columns[item] = column
    for sweep in range(SWEEPS):
        neighbours, walk = (above, rows) if sweep % 2 == 0 else (below, list(reversed(rows)))
        for row in walk:
            wishes = [mean([columns[other] for other in neighbours[item]], columns[item]) for item in row]
            for item, column in zip(row, spread(row, wishes, count), strict=True):
                columns[item] = column
    least = min(columns, default=0.0)
    return [round(column - least, 2) for column in columns]


def spread(row: Sequence[int], wishes: Sequence[float], count: int) -> list[float]:
    """The columns nearest to the wishes in the sense of least squares that keep order and distances of a row."""
    starts: list[float] = []
    for index, item in enumerate(row):
        gap = NODE_GAP if item < count else BEND_GAP
        before = NODE_GAP if index and row[index - 1] < count else BEND_GAP
        starts.append(starts[-1] + (gap + before) / 2 if starts else 0.0)
    # Pool adjacent violators: blocks of items that touch share the mean of what they would like to be moved by.
    blocks: list[tuple[float, int]] = []
    for wish, start in zip(wishes, starts, strict=True):
        total, size = wish - start, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            earlier, members = blocks.pop()
            total, size = total + earlier, size + members
        blocks.append((total, size))
    moves = [total / size for total, size in blocks for _ in range(size)]
    return [start + move for start, move in zip(starts, moves, strict=True)]
