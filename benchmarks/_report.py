"""Print figures as JSON lines, each with the floor measured in the same run and its limit."""

import json
import statistics
from collections.abc import Sequence

from benchmarks._process import spread


def report(
    figure: str, value: float, unit: str, *, floor: float, limit: float | None, **details: object
) -> bool:
    """Print a figure, and return whether it keeps its limit; None is no limit."""
    is_kept = limit is None or value <= limit
    line = {
        "figure": figure,
        "value": round(value, 4),
        "unit": unit,
        "floor": round(floor, 4),
        "ratio": round(value / floor, 2) if floor else None,
        "limit": limit,
        "kept": is_kept,
        **details,
    }
    print(json.dumps(line), flush=True)
    return is_kept


def report_rounds(
    figure: str,
    values: Sequence[float],
    unit: str,
    *,
    floors: Sequence[float],
    limit: float | None,
    peers: Sequence[float] = (),
    peer: str = "",
    **details: object,
) -> bool:
    """Print the median of several rounds, with the floor and, if there is one, the peer.

    Args:
        figure: name of the figure.
        values: result of each round; the figure is their median.
        unit: unit of the values, the floors and the peers.
        floors: results of the least work that could do the same, measured in turns with it.
        limit: maximum of the median; None if there is no limit.
        peers: results of another program that does the same.
        peer: name of that program.
        **details: further members of the line.

    Returns:
        True if the limit is kept.
    """
    if peers:
        details |= {"peer": round(statistics.median(peers), 4), "peer_name": peer}
    if lowest_floor := min(floors):
        # The lowest of several rounds is disturbed least by other programs on the machine.
        details["least_ratio"] = round(min(values) / lowest_floor, 3)
    return report(
        figure,
        statistics.median(values),
        unit,
        floor=statistics.median(floors),
        limit=limit,
        **spread(values),
        **details,
    )


def report_share(
    figure: str,
    value: float,
    *,
    at_least: float | None = None,
    unit: str = "share",
    **details: object,
) -> bool:
    """Print a figure that should be high, and return whether it reaches its minimum."""
    is_kept = at_least is None or round(value, 4) >= at_least
    line = {
        "figure": figure,
        "value": round(value, 4),
        "unit": unit,
        "at_least": at_least,
        "kept": is_kept,
        **details,
    }
    print(json.dumps(line), flush=True)
    return is_kept
