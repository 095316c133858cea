"""Progress in words: the headline of all work, the details of each node, and the time left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter
from statistics import fmean

from toolkit.contract.money import format_usd
from toolkit.display.progress.work_progress import NodeState, WorkProgress
from toolkit.display.text import SYMBOLS, format_count, format_seconds, truncate_line

MAX_CHAINED = 2_000  # nodes; of larger graphs, no chain is measured
MIN_LEFT = 0.1  # share of the mean time that remains at least, even for a late node
MAX_ROWS = 12  # of larger graphs, only running and failed nodes are shown
MAX_ID_CHARACTERS = 40
COUNTED = ("failed", "cancelled", "running", "queued", "pending")


def estimate_left_s(work: WorkProgress, now: datetime) -> float | None:
    """Estimate the remaining seconds by the mean duration of completed nodes, if there are any.

    The estimate is the duration of the longest chain of remaining nodes. If nodes wait only for a
    free slot, it is at least the duration of all remaining nodes, run as many at a time as so far.
    """
    nodes = work.nodes
    durations = [
        node.took_s
        for node in nodes.values()
        if node.status == "completed" and not node.is_cached and node.took_s is not None
    ]
    remaining = {id: node for id, node in nodes.items() if not node.is_over}
    if not durations or not remaining:
        return None
    mean_s = fmean(durations)
    left_s = {
        id: max(MIN_LEFT * mean_s, mean_s - (node.measure_s(now) or 0.0))
        for id, node in remaining.items()
    }
    chain_s = _measure_longest_chain(nodes, left_s) if len(nodes) <= MAX_CHAINED else 0.0
    has_waiting = any(
        node.status != "running" and remaining.keys().isdisjoint(node.depends_on)
        for node in remaining.values()
    )
    return max(chain_s, sum(left_s.values()) / max(1, work.width)) if has_waiting else chain_s


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
        note: its error, the reason for waiting, or its provider.
        text: text and tool calls that the node is writing.
        reasoning: reasoning of the node's model, also after the node's end.
    """

    name: str
    status: str
    seconds: str
    cost: str
    note: str
    text: str
    reasoning: str


def choose_rows(work: WorkProgress, now: datetime) -> list[ProgressRow]:
    """Choose the nodes to show: all nodes, or the failed and the running nodes of a large graph."""
    nodes = list(work.nodes.values())
    if len(nodes) > MAX_ROWS:
        failed = [node for node in nodes if node.status == "failed"][: MAX_ROWS // 2]
        running = [node for node in nodes if node.status == "running"]
        nodes = [*failed, *running[: MAX_ROWS - len(failed)]]
    return [_make_row(node, work, now) for node in nodes]


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
    left_s = estimate_left_s(work, now)
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


def _make_row(node: NodeState, work: WorkProgress, now: datetime) -> ProgressRow:
    took_s = node.measure_s(now)
    note = node.error or node.detail or ("cached" if node.is_cached else node.provider)
    return ProgressRow(
        name=node.capability if node.id == work.id else truncate_line(node.id, MAX_ID_CHARACTERS),
        status=node.status,
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
