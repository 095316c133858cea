"""The pace of a graph: how long its nodes take, and how much time is left."""

from collections.abc import Mapping
from datetime import datetime
from graphlib import TopologicalSorter

from toolkit.display.progress.node_states import NodeState

MAX_CHAINED = 2_000  # nodes; larger graphs use only the mean time
LATE_PART = 0.1  # share of the expected time that remains at least, even for a late node


class Pace:
    """The durations of a graph's nodes so far, by capability."""

    def __init__(self, nodes: Mapping[str, NodeState], now: datetime) -> None:
        self._nodes = nodes
        self._now = now
        sums: dict[str, tuple[float, int]] = {}
        for node in nodes.values():
            if node.status == "completed" and not node.is_cached and node.took_s is not None:
                for name in (node.capability, ""):
                    sum_s, count = sums.get(name, (0.0, 0))
                    sums[name] = sum_s + node.took_s, count + 1
        self._means = {name: sum_s / count for name, (sum_s, count) in sums.items()}

    def find_expected_s(self, node: NodeState) -> float | None:
        """Find the expected duration of a node in seconds; return None while nothing is known."""
        return self._means.get(node.capability, node.expected_s or self._means.get(""))

    def measure_part(self, node: NodeState) -> float | None:
        """Estimate the completed part of a node, from 0 to 1; return None if it is unknown."""
        if node.status != "running":
            return 1.0 if node.status == "completed" else 0.0
        took_s, expected_s = node.measure_s(self._now), self.find_expected_s(node)
        if took_s is None or not expected_s:
            return None
        return min(1 - LATE_PART / 2, took_s / expected_s)

    def estimate_left_s(self, width: int) -> float | None:
        """Estimate the remaining seconds; return None while a node's duration is unknown.

        The estimate is the duration of the longest chain of remaining nodes. If nodes wait only for
        a free slot, it is at least the duration of all remaining nodes, run `width` at a time.

        Args:
            width: highest number of nodes that have run at once so far.
        """
        remaining_s: dict[str, float] = {}
        for id, node in self._nodes.items():
            if node.is_over:
                continue
            all_s = self.find_expected_s(node)
            if all_s is None:
                return None
            remaining_s[id] = max(LATE_PART * all_s, all_s - (node.measure_s(self._now) or 0.0))
        if not remaining_s:
            return None
        even_s = sum(remaining_s.values()) / max(1, width)
        if len(self._nodes) > MAX_CHAINED:
            return even_s
        chain_s = _measure_longest_chain(self._nodes, remaining_s)
        return max(even_s, chain_s) if self._has_waiting(remaining_s) else chain_s

    def _has_waiting(self, remaining_s: Mapping[str, float]) -> bool:
        """Check whether a node does not run although all its dependencies are over."""
        return any(
            self._nodes[id].status != "running"
            and remaining_s.keys().isdisjoint(self._nodes[id].depends_on)
            for id in remaining_s
        )


def _measure_longest_chain(
    nodes: Mapping[str, NodeState], remaining_s: Mapping[str, float]
) -> float:
    """Measure the longest chain of remaining nodes, each after its dependencies, in seconds."""
    before = {id: [up for up in nodes[id].depends_on if up in remaining_s] for id in remaining_s}
    chains: dict[str, float] = {}
    for id in TopologicalSorter(before).static_order():
        chains[id] = remaining_s[id] + max((chains[up] for up in before[id]), default=0.0)
    return max(chains.values())
