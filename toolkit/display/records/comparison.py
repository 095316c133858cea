"""Two runs, jobs, workflows or tasks side by side: shared and different facts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from toolkit.contract.jobs import FROM_ARTIFACTS, Job
from toolkit.contract.tasks import Review, Task
from toolkit.contract.workflows import Node, WorkflowRecord
from toolkit.display.records import html
from toolkit.display.records.text_differences import (
    TextPart,
    compare_texts,
    format_parts,
    render_parts,
    shorten_parts,
)
from toolkit.display.records.text_table import format_table
from toolkit.display.text import format_cell, format_count

if TYPE_CHECKING:
    import pandas as pd

ROOM = 120  # characters of a line
MAX_OPEN_TEXTS = 3  # of more texts, a reader opens each
MAX_CELL_CHARACTERS = 80  # longer values are shown word by word
# These values are hardly ever the same, so they do not count as a difference.
_MEASURES = ("cost_usd", "cost_incurred_usd", "latency_ms", "queue_ms")
Facts = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ComparedFact:
    """A fact of two compared runs, jobs, workflows or tasks, with both values.

    Attributes:
        node: id of the fact's node; empty for the whole.
        what: name of the fact, such as `input.objective` or `provider`.
        a: value in the first; None if the first lacks it.
        b: value in the second; None if the second lacks it.
    """

    node: str
    what: str
    a: object
    b: object

    @property
    def differs(self) -> bool:
        """True unless both values are the same."""
        return self.a != self.b

    @property
    def is_text(self) -> bool:
        """True for values that are shown word by word: written texts, and all long values."""
        texts = [value for value in (self.a, self.b) if isinstance(value, str)]
        is_long = len(texts) == 2 and max(map(len, texts)) > MAX_CELL_CHARACTERS
        return bool(texts) and (self.what == "text" or is_long)

    @property
    def title(self) -> str:
        """The name of the fact, with its node."""
        return f"{self.node} · {self.what}" if self.node else self.what


@dataclass(frozen=True)
class WorkComparison:
    """Two runs, jobs, workflows or tasks, compared fact by fact; a notebook shows the differences.

    Attributes:
        kind: kind of both: `runs`, `jobs`, `workflows` or `tasks`.
        a, b: ids of both.
        facts: all compared facts, node by node.
    """

    kind: str
    a: str
    b: str
    facts: list[ComparedFact] = field(repr=False)

    @property
    def differences(self) -> list[ComparedFact]:
        """The facts that differ, including costs and durations."""
        return [fact for fact in self.facts if fact.differs]

    @property
    def is_same(self) -> bool:
        """True if only costs and durations differ."""
        return all(fact.what in _MEASURES for fact in self.differences)

    @property
    def text(self) -> str:
        """The texts that differ, word by word: `[-the first's-]{+the second's+}`."""
        return "\n\n".join(
            f"{fact.title}: {format_parts(parts)}" for fact, parts in self._list_texts()
        )

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each fact: its node, if any, its name, both values, and `differs`."""
        import pandas as pd

        names = ["node", "what", "a", "b", "differs"]
        frame = pd.DataFrame(self._list_facts(), columns=names, dtype=object)
        frame["differs"] = frame["differs"].astype(bool)
        return frame.drop(columns="node") if self.kind in ("runs", "jobs") else frame

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as JSON values: both ids, and every fact of both."""
        return {"kind": self.kind, "a": self.a, "b": self.b, "facts": self._list_facts()}

    def _list_facts(self) -> list[dict[str, object]]:
        return [{**asdict(fact), "differs": fact.differs} for fact in self.facts]

    def format_lines(self, width: int = ROOM) -> list[str]:
        """Format the differences as lines of text: a table, then the texts word by word.

        Args:
            width: width of the table in characters; 120 by default.
        """
        rows, columns = self._list_rows()
        lines: list[str] = []
        if rows:
            cells = [[str(row[name]) for name in columns] for row in rows]
            lines += format_table(columns, cells, width, "what")
        return lines + [
            f"{fact.title}: {format_parts(shorten_parts(parts))}"
            for fact, parts in self._list_texts()
        ]

    def __repr__(self) -> str:
        summary = (
            format_count(len(self.differences), "difference") if self.differences else "the same"
        )
        return f"<Comparison of {self.kind} {self.a} and {self.b}: {summary}>"

    def _list_texts(self) -> Iterable[tuple[ComparedFact, list[TextPart]]]:
        for fact in self.differences:
            if fact.is_text:
                yield fact, compare_texts(str(fact.a or ""), str(fact.b or ""))

    def _list_rows(self) -> tuple[list[dict[str, str]], list[str]]:
        rows = [
            {
                "node": fact.node,
                "what": fact.what,
                "a": _format(fact, fact.a),
                "b": _format(fact, fact.b),
            }
            for fact in self.differences
            if not fact.is_text
        ]
        has_nodes = any(row["node"] for row in rows)
        return rows, ["node", "what", "a", "b"] if has_nodes else ["what", "a", "b"]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("\n".join([repr(self), *([] if cycle else self.format_lines())]))

    def _repr_html_(self) -> str:
        rows, columns = self._list_rows()
        table = html.render_table(rows, columns, repr(self)[1:-1], max_rows=html.MAX_ROWS)
        pairs = list(self._list_texts())
        is_open = " open" if len(pairs) <= MAX_OPEN_TEXTS else ""
        texts = "".join(
            f"<details{is_open}><summary>{escape(fact.title)}</summary>"
            f"{render_parts(shorten_parts(parts))}</details>"
            for fact, parts in pairs
        )
        return html.fit_cell(table) + texts


def _format(fact: ComparedFact, value: object) -> str:
    if isinstance(value, float) and value.is_integer() and not fact.what.endswith("_usd"):
        value = int(value)
    return "" if value is None else format_cell(fact.what, value)


def compare_jobs(a: Job, b: Job) -> list[ComparedFact]:
    """Compare two runs, or two jobs."""
    return list(_pair_facts("", _list_job_facts(a), _list_job_facts(b)))


def compare_workflows(
    a: WorkflowRecord, b: WorkflowRecord, jobs: Mapping[str, Job]
) -> list[ComparedFact]:
    """Compare two workflows, and their nodes by id.

    Args:
        jobs: jobs of the nodes that the workflows do not share, by id.
    """
    facts = list(_pair_facts("", _list_workflow_facts(a), _list_workflow_facts(b)))
    before = {node.id: node for node in a.nodes}
    after = {node.id: node for node in b.nodes}
    for node_id in dict.fromkeys([*before, *after]):
        pair = [_list_node_facts(nodes.get(node_id), jobs) for nodes in (before, after)]
        facts += _pair_facts(node_id, *pair)
    return facts


def compare_tasks(
    a: Task, b: Task, workflows: Sequence[WorkflowRecord], jobs: Mapping[str, Job]
) -> list[ComparedFact]:
    """Compare two tasks, and the delivered or else the last workflow of each.

    Args:
        workflows: a workflow of each task; empty if a task has no workflow yet.
        jobs: jobs of the nodes that the workflows do not share, by id.
    """
    facts = list(_pair_facts("", _list_task_facts(a), _list_task_facts(b)))
    if len(workflows) == 2:  # the task's own facts already describe the whole
        before, after = workflows
        facts += [fact for fact in compare_workflows(before, after, jobs) if fact.node]
    return facts


def find_workflow_shown(task: Task) -> str | None:
    """Find the id of the workflow that a task delivers, otherwise of its last, or None."""
    n = task.final_attempt
    return task.workflow_id if n is None else task.attempts[n - 1].workflow_id


def _list_task_facts(task: Task) -> dict[str, object]:
    review = task.review
    return {
        "objective": task.objective,
        **_flatten("constraints", task.constraints.model_dump(mode="json", exclude_defaults=True)),
        "status": task.status,
        "question": task.question,
        "answers": [answer.answer for answer in task.answers] or None,
        "attempts": len(task.attempts),
        "final_attempt": task.final_attempt,
        **_flatten("review", {} if review is None else _list_review_facts(review)),
        "cost_usd": task.cost_usd,
        "cost_incurred_usd": task.cost_incurred_usd,
        "warnings": task.warnings or None,
        "error": None if task.error is None else f"{task.error.code}: {task.error.message}",
        "tags": task.tags or None,
    }


def _list_review_facts(review: Review) -> dict[str, object]:
    return {
        "decision": review.decision,
        "reviewer": review.reviewer,
        "score": review.score,
        **({} if review.criteria is None else review.criteria.model_dump()),
        "issues": review.issues or None,
    }


def _list_node_facts(node: Node | None, jobs: Mapping[str, Job]) -> dict[str, object]:
    if node is None:
        return {}
    job = jobs.get(node.job_id or "")
    facts = {
        "capability": node.capability,
        **_flatten("input", node.input),
        "status": node.status,
        "provider": node.provider,
        "cost_usd": node.cost_usd,
    }
    return {**facts, **(_list_job_facts(job) if job else {}), "depends_on": node.depends_on or None}


def _list_workflow_facts(workflow: WorkflowRecord) -> dict[str, object]:
    return {
        "name": workflow.name,
        "status": workflow.status,
        "nodes": len(workflow.nodes),
        **_flatten("options", workflow.options.model_dump(exclude_defaults=True)),
        "cost_usd": workflow.cost_usd,
        "latency_ms": workflow.latency_ms,
        "retries": workflow.retries,
        "error": None if workflow.error is None else workflow.error.code,
        "tags": workflow.tags or None,
    }


def _list_job_facts(job: Job) -> dict[str, object]:
    output = job.output or {}
    fields = {name: value for name, value in job.input.items() if name != FROM_ARTIFACTS}
    candidates = job.routing.candidates if job.routing else []
    choice = next((candidate for candidate in candidates if not candidate.excluded), None)
    return {
        "capability": job.capability,
        **_flatten("input", fields),
        **_flatten("options", job.options.model_dump(exclude_defaults=True)),
        "status": job.status,
        "provider": job.provider,
        "model": job.model,
        "policy": job.routing.policy if job.routing else None,
        "reason": choice.reason if choice else None,
        "attempts": len(job.attempts),
        **_flatten("usage", job.usage),
        "cost_usd": job.cost_usd,
        "latency_ms": job.latency_ms,
        "cached": job.cached,
        "error": None if job.error is None else f"{job.error.code}: {job.error.message}",
        **_flatten("output", {k: v for k, v in output.items() if k not in ("text", "model")}),
        "text": output.get("text"),
        "tags": getattr(job, "tags", None) or None,
    }


def _flatten(name: str, value: Mapping[str, Any]) -> dict[str, object]:
    return {f"{name}.{member}": content for member, content in value.items()}


def _pair_facts(node: str, a: Facts, b: Facts) -> Iterable[ComparedFact]:
    """Pair the facts of both, grouped by the first part of the name; omit facts that both lack."""
    names = dict.fromkeys([*a, *b])
    groups = list(dict.fromkeys(name.partition(".")[0] for name in names))
    for what in sorted(names, key=lambda name: groups.index(name.partition(".")[0])):
        if a.get(what) is not None or b.get(what) is not None:
            yield ComparedFact(node, what, a.get(what), b.get(what))


def list_jobs_apart(a: WorkflowRecord, b: WorkflowRecord) -> Sequence[str]:
    """List the ids of jobs that only one of two workflows has; forks share unchanged jobs."""
    ids = [
        {node.job_id for node in workflow.nodes if node.job_id is not None} for workflow in (a, b)
    ]
    return sorted(ids[0] ^ ids[1])
