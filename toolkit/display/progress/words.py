"""Progress in words: the headline of all work, the details of each node, and the time left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter

from toolkit.contract.money import format_usd
from toolkit.display.progress.work_progress import NodeState, WorkProgress
from toolkit.display.text import SYMBOLS, format_count, format_seconds, truncate_line

MAX_CHAINED = 2_000  # nodes; larger graphs use only the mean time
LATE_PART = 0.1  # share of the expected time that remains at least, even for a late node
MAX_ROWS = 12  # of larger graphs, only running and failed nodes are shown
MAX_ID_CHARACTERS = 40
COUNTED = ("failed", "cancelled", "running", "queued", "pending")


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


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """The displayed details of a node.

    Attributes:
        part: completed part, from 0 to 1; None if it is unknown.
        note: its error, the reason for waiting, or its provider.
        text: text and tool calls that the node is writing.
        reasoning: reasoning of the node's model, also after the node's end.
    """

    name: str
    status: str
    part: float | None
    seconds: str
    cost: str
    note: str
    text: str
    reasoning: str


def choose_rows(work: WorkProgress, now: datetime) -> list[ProgressRow]:
    """Choose the nodes to show: all nodes, or the failed and the running nodes of a large graph."""
    pace = Pace(work.nodes, now)
    nodes = list(work.nodes.values())
    if len(nodes) > MAX_ROWS:
        failed = [node for node in nodes if node.status == "failed"][: MAX_ROWS // 2]
        running = [node for node in nodes if node.status == "running"]
        nodes = [*failed, *running[: MAX_ROWS - len(failed)]]
    return [_make_row(node, work, pace, now) for node in nodes]


def format_headline(work: WorkProgress, now: datetime) -> str:
    """Format the progress of work on one line: nodes, elapsed time, money, and remaining time."""
    parts = [f"{SYMBOLS.get(work.status, '·')} {work.title}"]
    if not work.is_single and work.nodes:
        counts = work.count_states()
        parts.append(f"{counts.get('completed', 0)} of {len(work.nodes)} done")
        parts += [f"{counts[state]} {state}" for state in COUNTED if state in counts]
    if work.is_single or not work.nodes:
        parts.append(work.status)
    if work.detail and not work.is_single:
        parts.append(work.detail)
    parts.append(_format_counted_seconds(work.measure_s(now)))
    parts.append(_format_money(work))
    left_s = Pace(work.nodes, now).estimate_left_s(work.width) if work.nodes else None
    if left_s is not None and left_s >= 1:
        parts.append(f"about {format_seconds(round(left_s))} left")
    return " · ".join(parts)


def format_end(work: WorkProgress, now: datetime) -> str:
    """Format the outcome of work on one line, or that the work goes on."""
    counts = work.count_states()
    fraction = f"{counts.get('completed', 0)} of {format_count(len(work.nodes), 'node')}"
    if not work.is_over:
        so_far = "" if work.is_single or not work.nodes else f": {fraction} done"
        waits = f", {work.detail}" if work.detail else ""
        return f"… {work.title} goes on{waits}{so_far}, {_format_money(work)}"
    if work.is_single:
        provider = work.nodes[work.id].provider
        detail = f" by {provider}" if provider else ""
    elif work.nodes:
        all_done = work.status == "completed" and "failed" not in counts
        detail = f": {format_count(len(work.nodes), 'node')}" if all_done else f": {fraction}"
    else:
        detail = ""
    took = format_seconds(work.measure_s(now))
    line = f"{SYMBOLS.get(work.status, '·')} {work.title} {work.status}{detail}"
    line += f" in {took}, {_format_money(work)}"
    outcome = _find_outcome(work)
    return f"{line}; {outcome}" if outcome else line


def _make_row(node: NodeState, work: WorkProgress, pace: Pace, now: datetime) -> ProgressRow:
    took_s = node.measure_s(now)
    note = node.error or node.detail or ("cached" if node.is_cached else node.provider)
    return ProgressRow(
        name=node.capability if node.id == work.id else truncate_line(node.id, MAX_ID_CHARACTERS),
        status=node.status,
        part=pace.measure_part(node),
        seconds="" if took_s is None else f"{took_s:.1f} s",
        cost=format_usd(node.cost_usd) if node.is_over and node.status == "completed" else "",
        note=note,
        text="\n".join(filter(None, (node.text, *node.calls.values()))),
        reasoning=node.reasoning,
    )


def _format_money(work: WorkProgress) -> str:
    budget = "" if work.budget_usd is None else f" of {format_usd(work.budget_usd)}"
    return work.describe_spending() + budget


def _format_counted_seconds(seconds: float) -> str:
    """Format a duration that changes while a person reads it."""
    return format_seconds(max(1.0, round(seconds))) if seconds >= 10 else f"{seconds:.1f} s"


def _find_outcome(work: WorkProgress) -> str:
    """Find the detail to add at the end: the error, with the node that failed."""
    if work.is_single or not work.outcome:
        return work.outcome
    failed: Sequence[NodeState] = [node for node in work.nodes.values() if node.error]
    same = [node.id for node in failed if node.error.partition(":")[0] in work.outcome]
    return f"{truncate_line(same[0], MAX_ID_CHARACTERS)}: {work.outcome}" if same else work.outcome


def escape_line(text: str) -> str:
    """Replace the characters of a text that could control a terminal.

    >>> escape_line("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
