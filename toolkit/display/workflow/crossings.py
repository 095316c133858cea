"""Order nodes within layers to cross few edges: sweeps of means, then swaps of neighbours."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

MAX_SWEEPS, MAX_IDLE_SWEEPS, MAX_SWAP_ROUNDS = 24, 4, 8


@dataclass(slots=True)
class Layers:
    """Nodes by number: the order of each layer, and each node's neighbours on both sides."""

    order: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]


def reduce_crossings(layers: Layers) -> None:
    """Order the layers in place, by the order with the fewest crossings found."""
    place = [0] * len(layers.above)
    for row in layers.order:
        _assign_places(row, place)
    best, fewest, idle = _copy_order(layers.order), _count_crossings(layers, place), 0
    for sweep in range(MAX_SWEEPS):
        if not fewest or idle >= MAX_IDLE_SWEEPS:
            break
        down = sweep % 2 == 0
        _sweep_layers(layers, place, down=down)
        _swap_neighbours(layers, place)
        count = _count_crossings(layers, place)
        idle += 1
        if count < fewest:
            best, fewest, idle = _copy_order(layers.order), count, 0
    layers.order[:] = best


def _sweep_layers(layers: Layers, place: list[int], *, down: bool) -> None:
    """Order each layer by the mean place of its neighbours in the layer before."""
    near = layers.above if down else layers.below
    rows = layers.order[1:] if down else layers.order[-2::-1]
    for row in rows:
        middles = {
            node: sum(place[n] for n in near[node]) / len(near[node])
            if near[node]
            else float(place[node])
            for node in row
        }
        row.sort(key=middles.__getitem__)
        _assign_places(row, place)


def _swap_neighbours(layers: Layers, place: list[int]) -> None:
    """Swap neighbours in a layer as long as a swap reduces the crossings."""
    for _ in range(MAX_SWAP_ROUNDS):
        gained = 0
        above: list[list[int]] = [[] for _ in layers.above]
        below = [sorted(place[n] for n in near) for near in layers.below]
        for row in layers.order:
            for node in row:
                above[node] = sorted(place[n] for n in layers.above[node])
            for i in range(len(row) - 1):
                upper, lower = row[i], row[i + 1]
                gain = (
                    _count_pair_crossings(above[upper], above[lower])
                    - _count_pair_crossings(above[lower], above[upper])
                    + _count_pair_crossings(below[upper], below[lower])
                    - _count_pair_crossings(below[lower], below[upper])
                )
                if gain > 0:
                    row[i], row[i + 1] = lower, upper
                    gained += gain
            _assign_places(row, place)
        if not gained:
            return


def _count_pair_crossings(first: Sequence[int], second: Sequence[int]) -> int:
    """Count the crossings between the edges of two adjacent nodes, from their sorted neighbours."""
    if not first or not second or first[-1] <= second[0]:
        return 0
    return sum(bisect_left(second, at) for at in first)


def _count_crossings(layers: Layers, place: list[int]) -> int:
    """Count the pairs of edges that cross."""
    count = 0
    for row in layers.order[:-1]:
        ends: list[int] = []
        for node in row:
            near = sorted(place[n] for n in layers.below[node])
            count += sum(len(ends) - bisect_left(ends, at + 1) for at in near)
            for at in near:
                insort(ends, at)
    return count


def _assign_places(row: Sequence[int], place: list[int]) -> None:
    for i, node in enumerate(row):
        place[node] = i


def _copy_order(order: Sequence[Sequence[int]]) -> list[list[int]]:
    return [list(row) for row in order]
