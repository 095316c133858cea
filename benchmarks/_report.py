"""JSON lines: one figure each, with the floor it was measured beside and the limit it must keep."""

import json


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


def report_share(
    figure: str, value: float, *, at_least: float | None = None, **more: object
) -> bool:
    """Print a figure that is a share, from 0 to 1, and say whether it reaches what it has to."""
    kept = at_least is None or round(value, 4) >= at_least
    line = {
        "figure": figure,
        "value": round(value, 4),
        "unit": "share",
        "at_least": at_least,
        "kept": kept,
        **more,
    }
    print(json.dumps(line), flush=True)
    return kept
