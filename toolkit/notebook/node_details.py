"""The details of a node next to its graph: its job, input, output, and the text being written."""

from html import escape

from toolkit.client import TextPiece, WorkflowRun
from toolkit.notebook import widget_html

ATTEMPT_COLUMNS = ("n", "provider", "model", "status", "error", "http_status", "cost_usd")
SELECTION_HINT = (
    "Choose a node (click, or Tab, arrows and Enter) to see its input, output and cost."
)
MAX_TEXT_CHARACTERS = 8_000  # of the end of a text that is being written
MAX_LINE_CHARACTERS = 30  # of the end of that text, shown in a node's box


class NodeTexts:
    """The texts that nodes are writing, each until its node is over."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def add(self, piece: TextPiece) -> None:
        """Add a piece to the text of the node that writes it, or begin the text again."""
        before = "" if piece.restarts else self._texts.get(piece.node_id, "")
        self._texts[piece.node_id] = (before + piece)[-MAX_TEXT_CHARACTERS:]

    def drop(self, node_id: str) -> None:
        """Drop a finished text, because the node's output contains it."""
        self._texts.pop(node_id, None)

    def clear(self) -> None:
        """Drop the texts of all nodes."""
        self._texts.clear()

    def describe(self, node_id: str) -> str:
        """Return the end of a text in one line."""
        words = " ".join(self._texts.get(node_id, "")[-2 * MAX_LINE_CHARACTERS :].split())
        return f"✎ …{words[-MAX_LINE_CHARACTERS:]}" if words else ""

    def render(self, node_id: str) -> str:
        """Render the text written so far, or an empty string without a text."""
        text = self._texts.get(node_id)
        if not text:
            return ""
        return widget_html.render_card("Being written", widget_html.render_pre(text))


def render_hint() -> str:
    """Render a hint about how to see details."""
    return f'<p class="tk-quiet">{SELECTION_HINT}</p>'


def render_details(workflow: WorkflowRun, node_id: str) -> str:
    """Render the details of a node: its job, its input and its output."""
    node = workflow[node_id]
    job = workflow.job(node_id) if node.job_id else None
    fields = {
        "capability": node.label,
        "status": node.status,
        "depends_on": node.depends_on,
        "retries": node.retry_count,
        "error": node.error and f"{node.error.code}: {node.error.message}",
    }
    cards = [("Input", widget_html.render_json(node.input if job is None else job.input))]
    if node.error is not None and node.error.details:
        places = [
            {"field": detail.path, "problem": detail.message} for detail in node.error.details
        ]
        cards.insert(0, ("Where it failed", widget_html.render_table(places, ("field", "problem"))))
    if job is not None:
        fields |= {
            "provider": job.provider,
            "model": job.model,
            "cost_usd": job.cost_usd,
            "took": f"{job.latency_ms} ms" if job.latency_ms is not None else None,
            "cached_from": job.record.cached_from,
        }
        attempts = [attempt.model_dump(mode="json") for attempt in job.attempts]
        columns = [
            c for c in ATTEMPT_COLUMNS if any(attempt.get(c) is not None for attempt in attempts)
        ]
        if attempts:
            cards.insert(0, ("Attempts", widget_html.render_table(attempts, columns)))
        if job.record.output is not None:
            cards.append(("Output", widget_html.render_json(job.record.output)))
        if job.artifact_id:
            cards.append(("Artifact", widget_html.render_artifact(job.artifact())))
    body = "".join(widget_html.render_card(title, content) for title, content in cards)
    facts = widget_html.render_facts(fields)
    return widget_html.render_literally(
        f"<h4>{escape(node.id)}</h4>{facts}<div class='tk-columns'>{body}</div>"
    )
