"""One-line texts of records: short `repr`s and lines of progress."""

from collections.abc import Mapping

from pydantic import BaseModel

from toolkit.contract.events import Event

SYMBOLS = {
    "pending": "·",
    "queued": "·",
    "planning": "…",
    "running": "…",
    "executing": "…",
    "reviewing": "…",
    "blocked": "!",
    "completed": "✓",
    "ready": "✓",
    "failed": "✗",
    "cancelled": "-",
}
LONGEST = 60


def money(amount: float | None) -> str:
    """US dollars; an unknown price is said to be unknown, never 0.

    >>> money(None), money(0), money(0.00123)
    ('unknown', '$0', '$0.00123')
    """
    if amount is None:
        return "unknown"
    return "$0" if amount == 0 else f"${amount:.6f}".rstrip("0").rstrip(".")


def short(text: object, longest: int = LONGEST) -> str:
    """At most `longest` characters on one line.

    >>> short("a\\n long   story", 8)
    'a long …'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def cell(column: str, value: object) -> str:
    """A value as the cell of a table: states with their symbol, money as money.

    >>> cell("status", "completed"), cell("cost_usd", None), cell("tags", ["a", "b"])
    ('✓ completed', 'unknown', 'a, b')
    """
    if column.endswith("_usd") and (value is None or isinstance(value, int | float)):
        return money(value)
    if column == "status":
        return f"{SYMBOLS.get(str(value), '·')} {value}"
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = [f"{k.replace('_', ' ')}: {v}" for k, v in value.items() if v not in (None, [], {})]
    if isinstance(value, list | tuple):
        return short(", ".join(map(str, value)), 300)
    return short(value, 300)


def summary(kind: str, record: BaseModel) -> str:
    """A record as its `repr`: its id, state and what matters most."""
    parts = [str(getattr(record, "id", ""))]
    for name in ("capability", "name", "objective", "title", "status", "provider", "media_type"):
        value = getattr(record, name, None)
        if value is not None and value != parts[0]:
            parts.append(short(value, 40))
    error = getattr(record, "error", None)
    if error is not None:
        parts.append(error.code)
    if hasattr(record, "cost_usd") and getattr(record, "completed_at", None) is not None:
        parts.append(money(record.cost_usd))
    return f"<{kind} {' '.join(parts)}>"


def event_line(event: Event) -> str:
    """One line of progress for an event."""
    what, _, state = event.type.partition(".")
    data = event.data
    name = str(data.get("node_id") or what)
    parts = [SYMBOLS.get(state, "·"), f"{name:<14}", state]
    if data.get("status_detail"):
        parts.append(f"({data['status_detail']})")
    if data.get("provider"):
        parts.append(f"by {data['provider']}")
    if data.get("cached_from"):
        parts.append("(cached)")
    latency, cost = data.get("latency_ms"), data.get("cost_usd")
    if isinstance(latency, int | float):
        parts.append(f"{latency / 1000:.2f} s")
    if isinstance(cost, int | float):
        parts.append(money(float(cost)))
    error = data.get("error")
    if isinstance(error, dict):
        parts.append(f"{error.get('code')}: {short(error.get('message', ''))}")
    return " ".join(parts)
