"""
Layered layout of a graph without cycles, after Sugiyama, Tagawa and Toda (1981).

Each node is one layer below the lowest it uses. Edges over several layers are upright at each between, and those from
one node share their way down as far as they go. Layers are ordered by the barycentre of neighbours, and nodes placed as
near to them as the order allows: what leads from inputs to outputs stays in line, and the rest stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glow_mlir.pictures.graph import Graph
from glow_mlir.support.dataclass import dataclass

SWEEPS = 4
NODE_GAP = 1.0
"""The distance between centres of neighbouring nodes, in node widths."""
BEND_GAP = 0.25
"""The distance between a passing edge and its neighbour."""
STRAIGHT = 0.05
"""The column distance that is treated as zero, so that edges are straight."""

NODE_WEIGHT, BEND_WEIGHT, END_WEIGHT = 1.0, 0.02, 0.002
"""The weights of items' preferred positions; an end is a node without neighbours above or below."""

Stretch = tuple[float, int, int]
"""A vertical part of an edge: its column, and the first and the last layer that it passes."""


@dataclass(frozen=True)
class Layout:
    """Positions of nodes as column and layer, in node widths and heights, and the routes of edges."""

    positions: tuple[tuple[float, int], ...]
    bends: tuple[tuple[Stretch, ...], ...]
    """The route of each edge, from its source down."""


def layered(graph: Graph) -> Layout:
    """The layout of a graph."""
    count = len(graph.nodes)
    layers = layers_of(graph)
    depth = list(layers)
    ways: dict[int, list[int]] = {}
    links: list[tuple[int, int]] = []
    for edge in graph.edges:
        way = ways.setdefault(edge.source, [edge.source])
        between = layers[edge.target] - layers[edge.source]
        while len(way) < between:
            links.append((way[-1], len(depth)))
            way.append(len(depth))
            depth.append(layers[edge.source] + len(way) - 1)
        links.append((way[between - 1], edge.target))
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
    stretches = {source: straight((columns[item], depth[item]) for item in way[1:]) for source, way in ways.items()}
    bends = tuple(down_to(layers[edge.target], stretches[edge.source]) for edge in graph.edges)
    return Layout(tuple((columns[item], depth[item]) for item in range(count)), bends)


def straight(points: Iterable[tuple[float, int]]) -> list[Stretch]:
    """The vertical parts of a route that passes layer after layer."""
    found: list[Stretch] = []
    for column, layer in points:
        if found and abs(found[-1][0] - column) <= STRAIGHT:
            found[-1] = (found[-1][0], found[-1][1], layer)
        else:
            found.append((column, layer, layer))
    return found


def down_to(end: int, stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """The vertical parts of a route above a layer."""
    return tuple((column, first, min(last, end - 1)) for column, first, last in stretches if first < end)


def layers_of(graph: Graph) -> list[int]:
    """The layer of each node; a node without operands is directly above its first user."""
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
    """The mean of numbers, or `default` for none."""
    return sum(values) / len(values) if values else default


def place(
    rows: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]], count: int
) -> list[float]:
    """A column for each item, near its neighbours, in row order; items from `count` on are bends."""
    columns = [0.0] * len(above)
    weights = [weight(item < count, above[item], below[item]) for item in range(len(above))]
    for row in rows:
        for item, column in zip(row, spread(row, [0.0] * len(row), weights, count), strict=True):
            columns[item] = column
    for sweep in range(SWEEPS):
        neighbours, walk = (above, rows) if sweep % 2 == 0 else (below, list(reversed(rows)))
        for row in walk:
            wishes = [
                mean([columns[near] for near in heaviest(neighbours[item], weights)], columns[item]) for item in row
            ]
            for item, column in zip(row, spread(row, wishes, weights, count), strict=True):
                columns[item] = column
    least = min(columns, default=0.0)
    return [round(column - least, 2) for column in columns]


def weight(is_node: bool, above: Sequence[int], below: Sequence[int]) -> float:
    """The weight of an item's preferred position."""
    if not is_node:
        return BEND_WEIGHT
    return NODE_WEIGHT if above and below else END_WEIGHT


def heaviest(items: Sequence[int], weights: Sequence[float]) -> list[int]:
    """The items of maximum weight."""
    most = max((weights[item] for item in items), default=0.0)
    return [item for item in items if weights[item] == most]


def spread(row: Sequence[int], wishes: Sequence[float], weights: Sequence[float], count: int) -> list[float]:
    """The columns nearest to the preferred ones by weighted least squares, keeping order and distances in a row."""
    starts: list[float] = []
    for index, item in enumerate(row):
        gap = NODE_GAP if item < count else BEND_GAP
        before = NODE_GAP if index and row[index - 1] < count else BEND_GAP
        starts.append(starts[-1] + (gap + before) / 2 if starts else 0.0)
    # Pool adjacent violators: blocks of touching items move by the mean of their preferred moves.
    blocks: list[tuple[float, float, int]] = []
    for item, wish, start in zip(row, wishes, starts, strict=True):
        total, heavy, size = (wish - start) * weights[item], weights[item], 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / heavy:
            earlier, weighed, members = blocks.pop()
            total, heavy, size = total + earlier, heavy + weighed, size + members
        blocks.append((total, heavy, size))
    moves = [total / heavy for total, heavy, size in blocks for _ in range(size)]
    return [start + move for start, move in zip(starts, moves, strict=True)]
