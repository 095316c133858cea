"""JSON lines: one figure each, with the floor it was measured beside and the limit it must keep."""

import json
import statistics
from collections.abc import Sequence

from benchmarks._process import spread


def report(
    figure: str, value: float, unit: str, *, floor: float, limit: float | None, **more: object
) -> bool:
    """Print one figure and say whether it keeps its limit; what has none is only told."""
    kept = limit is None or value <= limit
    line = {
        "figure": figure,
        "value": round(value, 4),
        "unit": unit,
        "floor": round(floor, 4),
        "ratio": round(value / floor, 2) if floor else None,
        "limit": limit,
        "kept": kept,
        **more,
    }
    print(json.dumps(line), flush=True)
    return kept


def report_rounds(
    figure: str,
    values: Sequence[float],
    unit: str,
    *,
    floors: Sequence[float],
    limit: float | None,
    peers: Sequence[float] = (),
    peer: str = "",
    **more: object,
) -> bool:
    """Print the figure that rounds found, each with its floor and, where there is one, its peer.

    Args:
        figure: its name.
        values: what each round found; the figure is their median.
        unit: of the values, the floors and the peers.
        floors: what the least that could do the work took, in turns with it.
        limit: the most that the median may be; none if it is only told.
        peers: what a program of others' took for the same.
        peer: the name of that program.
        **more: what else the line has.

    Returns:
        true if the limit is kept.
    """
    if peers:
        more |= {"peer": round(statistics.median(peers), 4), "peer_name": peer}
    if least := min(floors):
        # Of what others on the machine do, the least of several rounds has the smallest part.
        more["least_ratio"] = round(min(values) / least, 3)
    return report(
        figure,
        statistics.median(values),
        unit,
        floor=statistics.median(floors),
        limit=limit,
        **spread(values),
        **more,
    )


def report_share(
    figure: str,
    value: float,
    *,
    at_least: float | None = None,
    unit: str = "share",
    **more: object,
) -> bool:
    """Print a figure of which more is better, and say whether it reaches what it has to."""
    kept = at_least is None or round(value, 4) >= at_least
    line = {
        "figure": figure,
        "value": round(value, 4),
        "unit": unit,
        "at_least": at_least,
        "kept": kept,
        **more,
    }
    print(json.dumps(line), flush=True)
    return kept
