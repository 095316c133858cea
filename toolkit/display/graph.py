"""A layered layout of a graph: where each node stands, and how each edge runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions on a grid: `layer` counts from the left, `row` from the top.

    Attributes:
        places: layer and row of each node.
        routes: for each edge, the places it runs through, both ends included; an edge over
            several layers has a place of its own in each, so that it hides behind no node.
    """

    places: dict[str, tuple[int, float]]
    routes: dict[tuple[str, str], tuple[tuple[int, float], ...]]


def layered(depends_on: Mapping[str, Sequence[str]]) -> Layout:
    """Lay a graph out, the same one always in the same way.

    >>> layered({"a": [], "b": ["a"]}).places
    {'a': (0, 0.0), 'b': (1, 0.0)}
    """
    depth = _depths(depends_on)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in depends_on:
        layers[depth[node]].append(node)
    above: dict[str, list[str]] = {node: [] for node in depends_on}
    chains: dict[tuple[str, str], list[str]] = {}
    for node, upstreams in depends_on.items():
        for upstream in upstreams:
            chain = [upstream]
            for layer in range(depth[upstream] + 1, depth[node]):
                dummy = f"\0{upstream}\0{node}\0{layer}"
                layers[layer].append(dummy)
                above[dummy] = [chain[-1]]
                chain.append(dummy)
            above[node].append(chain[-1])
            chains[upstream, node] = [*chain, node]
    _untangle(layers, above)
    tallest = max((len(layer) for layer in layers), default=0)
    places = {
        node: (x, y + (tallest - len(layer)) / 2)
        for x, layer in enumerate(layers)
        for y, node in enumerate(layer)
    }
    return Layout(
        places={node: places[node] for node in depends_on},
        routes={edge: tuple(places[step] for step in chain) for edge, chain in chains.items()},
    )


def _depths(depends_on: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The longest way to each node, counted in edges."""
    depth: dict[str, int] = {}
    waiting = {node: len(set(upstreams)) for node, upstreams in depends_on.items()}
    below: dict[str, list[str]] = {node: [] for node in depends_on}
    for node, upstreams in depends_on.items():
        for upstream in set(upstreams):
            below[upstream].append(node)
    ready = [node for node, count in waiting.items() if count == 0]
    for node in ready:
        depth[node] = max((depth[up] + 1 for up in depends_on[node]), default=0)
        for dependent in below[node]:
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                ready.append(dependent)
    if len(depth) != len(depends_on):
        raise ValueError("a graph with a cycle has no layers")
    return depth


def _untangle(layers: list[list[str]], above: Mapping[str, Sequence[str]]) -> None:
    """Order each layer by where its neighbours stand, down and up in turns."""
    below: dict[str, list[str]] = {node: [] for layer in layers for node in layer}
    for node, upstreams in above.items():
        for upstream in upstreams:
            below[upstream].append(node)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        order = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
        for i in order:
            beside = {node: y for y, node in enumerate(layers[i - 1 if down else i + 1])}
            here = {node: y for y, node in enumerate(layers[i])}

            def middle(
                node: str,
                beside: dict[str, int] = beside,
                here: dict[str, int] = here,
                neighbours: Mapping[str, Sequence[str]] = neighbours,
            ) -> float:
                near = [beside[n] for n in neighbours.get(node, ()) if n in beside]
                return sum(near) / len(near) if near else here[node]

            layers[i].sort(key=middle)
