"""One-line texts of records: short `repr`s and lines of progress."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from toolkit.contract.money import format_usd

# A table of plain values needs no models and prints without importing them.
if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.contract.events import Event
    from toolkit.contract.plans import Missing

SYMBOLS = {
    "planning": "…",
    "running": "…",
    "executing": "…",
    "reviewing": "…",
    "blocked": "!",
    "completed": "✓",
    "creating": "…",
    "ready": "✓",
    "deleting": "…",
    "deleted": "-",
    "failed": "✗",
    "cancelled": "-",
}
MAX_LINE_CHARACTERS = 60
MAX_CELL_CHARACTERS = 300
SHOWN_DIGITS = 6  # digits of a number with a fraction
MISSING_FIELD = "missing"  # field that lists what a plan or task lacks


def format_spending(cost: float | None, incurred: float) -> str:
    """Format a cost, followed by the cost of all attempts and retries if that is higher.

    >>> format_spending(0.02, 0.02), format_spending(0.02, 0.05), format_spending(None, 0.05)
    ('$0.02', '$0.02 ($0.05 with all attempts)', 'unknown ($0.05 with all attempts)')
    """
    is_higher = incurred > (cost or 0.0)
    return format_usd(cost) + (f" ({format_usd(incurred)} with all attempts)" if is_higher else "")


def format_missing(missing: "Iterable[Missing | Mapping[str, Any]]") -> str:
    """Describe the things that a plan or task lacks, so that a person can provide them.

    >>> from toolkit.contract.plans import Missing
    >>> format_missing([Missing(capability="speech.generate", any_of=["minimax", "elevenlabs"])])
    'speech.generate needs a connection to minimax or elevenlabs'
    >>> format_missing([{"capability": "video.generate", "any_of": []}])
    'video.generate is not available here'
    """
    from toolkit.contract.plans import Missing

    sentences = []
    for need in (Missing.model_validate(record, from_attributes=True) for record in missing):
        kind = need.capability.removesuffix(".upload")
        if need.any_of:
            sentences.append(f"{need.capability} needs a connection to {' or '.join(need.any_of)}")
        elif kind != need.capability:
            sentences.append(
                f"the objective must contain the id of an uploaded artifact with {kind}"
            )
        else:
            sentences.append(f"{need.capability} is not available here")
    return "; ".join(sentences)


def truncate_line(text: object, longest: int = MAX_LINE_CHARACTERS) -> str:
    """Cut a text to at most `longest` characters on one line.

    >>> truncate_line("a\\n long   story", 8)
    'a long …'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def format_status(status: str) -> str:
    """Format a status as its symbol and its name, such as `✓ completed`.

    >>> format_status("completed"), format_status("queued")
    ('✓ completed', '· queued')
    """
    return f"{SYMBOLS.get(status, '·')} {status}"


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun, in the plural unless it is 1.

    >>> format_count(1, "warning"), format_count(2, "warning")
    ('1 warning', '2 warnings')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


def format_total(count: int, nouns: str) -> str:
    """Format a count with a noun in the plural.

    >>> format_total(0, "runs"), format_total(1, "capabilities"), format_total(2, "GPUs")
    ('no runs', '1 capability', '2 GPUs')
    """
    if count == 1:
        return f"1 {nouns[:-3]}y" if nouns.endswith("ies") else f"1 {nouns.removesuffix('s')}"
    return f"{count or 'no'} {nouns}"


def format_size(count: int) -> str:
    """Format a number of bytes with its unit, such as `1.5 MB`.

    >>> format_size(512), format_size(48_000), format_size(3_200_000)
    ('512 B', '48 kB', '3.2 MB')
    """
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def format_seconds(amount: float) -> str:
    """Format a duration with the precision that matters.

    >>> format_seconds(0.0042), format_seconds(3.21), format_seconds(75), format_seconds(7300)
    ('4 ms', '3.2 s', '1 min 15 s', '2 h 2 min')
    >>> format_seconds(2.0), format_seconds(60)
    ('2 s', '1 min')
    """
    if amount < 0.9995:
        return f"{amount * 1000:.0f} ms"
    if amount < 59.95:
        return f"{amount:.1f}".removesuffix(".0") + " s"
    large, small, units = (
        (*divmod(round(amount), 60), ("min", "s"))
        if amount < 3599.5
        else (*divmod(round(amount / 60), 60), ("h", "min"))
    )
    return f"{large} {units[0]}" + (f" {small} {units[1]}" if small else "")


def fit_text(text: str, room: float, font: float) -> str:
    """Cut a text to this number of pixels, by the average width of letters.

    >>> fit_text("research.gather@1", 60, 10)
    'research.…'
    >>> fit_text("PROVIDER_REJECTED", 90, 10)
    'PROVIDER_REJ…'
    """
    # Capitals take a quarter more than the average letter.
    wide = sum(
        2 if east_asian_width(c) in "WF" else 1.25 if c.isupper() or c == "_" else 1 for c in text
    )
    letters = room / (0.55 * font)
    if wide <= letters:
        return truncate_line(text, len(text) + 1)
    return truncate_line(text, max(2, int(len(text) * letters / wide)))


def format_cell(column: str, value: object) -> str:
    """Format a value as the cell of a table: states with their symbol, money as money.

    >>> format_cell("status", "completed"), format_cell("cost_usd", None)
    ('✓ completed', 'unknown')
    >>> format_cell("tags", ["a", "b"])
    'a, b'
    >>> format_cell("max_cost_usd_per_day", 1e-07), format_cell("max_cost_usd_per_day", None)
    ('$0.0000001', '')
    >>> format_cell("prices_usd", {"input_tokens": 1e-07})
    'input tokens: $0.0000001'
    >>> format_cell("options", {"max_cost_usd": 1e-07})
    'max cost usd: $0.0000001'
    """
    if column.endswith("_usd") and (value is None or isinstance(value, int | float)):
        return format_usd(value)
    if "_usd_" in column and isinstance(value, int | float):
        return format_usd(value)
    if column.endswith("_usd") and isinstance(value, Mapping):
        return ", ".join(f"{k.replace('_', ' ')}: {format_usd(v)}" for k, v in value.items())
    if column.endswith("_ms") and isinstance(value, int | float):
        return format_seconds(value / 1000)
    if column.endswith("_bytes") and isinstance(value, int):
        return format_size(value)
    if column == "status":
        return format_status(str(value))
    if column == MISSING_FIELD and isinstance(value, list):
        return format_missing(value)
    if column == "error" and isinstance(value, Mapping):
        return truncate_line(f"{value.get('code')}: {value.get('message')}", MAX_CELL_CHARACTERS)
    return truncate_line(format_inline(value), MAX_CELL_CHARACTERS)


def format_inline(value: object, name: str = "") -> str:
    """Format a value on one line for people, including nested values.

    >>> format_inline(168.47999999999996)
    '168.48'
    >>> many = [{"n": 1}, {"n": 2}]
    >>> format_inline({"max_cost_usd": 1e-07, "tags": ["a", "b"], "of": many, "no": None})
    'max cost usd: $0.0000001, tags: a, b, of: n: 1; n: 2'
    """
    if isinstance(value, Mapping):
        return ", ".join(
            f"{str(key).replace('_', ' ')}: {format_inline(member, str(key))}"
            for key, member in value.items()
            if not is_empty(member)
        )
    if isinstance(value, list | tuple):
        deep = any(isinstance(member, Mapping | list | tuple) for member in value)
        return ("; " if deep else ", ").join(format_inline(member, name) for member in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_usd") and isinstance(value, int | float):
        return format_usd(value)
    if isinstance(value, float) and abs(value) < 10**SHOWN_DIGITS:
        return f"{value:.{SHOWN_DIGITS}g}"
    return "" if value is None else str(value)


def is_empty(value: object) -> bool:
    """Check whether a value is empty: 0 and `False` are not."""
    return value is None or (isinstance(value, str | Mapping | list | tuple) and not value)


def summarize_record(kind: str, record: "BaseModel") -> str:
    """Format a record as its `repr`: its id, its state and its main fields."""
    parts = [str(getattr(record, "id", ""))] if getattr(record, "id", "") else []
    for name in ("capability", "name", "objective", "title", "status", "provider", "media_type"):
        value = getattr(record, name, None)
        if value is not None and value not in parts:
            parts.append(truncate_line(value, 40))
    error = getattr(record, "error", None)
    if error is not None:
        parts.append(error.code)
    warning = getattr(record, "warning", None)
    if warning is not None:
        parts.append(f"warning: {warning.code}")
    if warnings := getattr(record, "warnings", None):
        parts.append(format_count(len(warnings), "warning"))
    if hasattr(record, "size_bytes"):
        parts.append(format_size(record.size_bytes))
    if hasattr(record, "cost_usd") and getattr(record, "completed_at", None) is not None:
        parts.append(format_usd(record.cost_usd))
    return f"<{kind} {' '.join(parts)}>"


def format_event(event: "Event") -> str:
    """Format an event as one line of progress."""
    what, _, state = event.type.partition(".")
    data = event.data
    name = truncate_line(data.get("node_id") or what, 40)
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
        parts.append(format_usd(float(cost)))
    error = data.get("error")
    missing = data.get(MISSING_FIELD)
    if isinstance(missing, list) and missing:
        parts.append(format_missing(missing))
    if data.get("question"):
        parts.append(truncate_line(data["question"], 200))
    if isinstance(error, dict):
        parts.append(f"{error.get('code')}: {truncate_line(error.get('message', ''))}")
    warnings = data.get("warnings")
    if isinstance(warnings, list):
        parts += [f"({truncate_line(warning)})" for warning in warnings]
    return " ".join(parts)
