"""A task's attempts side by side: their artifacts, verdicts and changes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from toolkit.contract.money import format_usd
from toolkit.display.records import html
from toolkit.display.records.text_differences import WORDS, compare_texts
from toolkit.display.text import truncate_line

if TYPE_CHECKING:
    from toolkit.contract.tasks import RecommendedAction, Review, Task

MIN_LIKENESS = 0.3  # share of unchanged words below which changes are not marked
MAX_COMPARED_CHARACTERS = 6_000
CRITERIA = ("objective_alignment", "technical_success", "output_completeness")


@dataclass(frozen=True, slots=True)
class ShownArtifact:
    """An artifact of a task, with the HTML that displays it.

    Attributes:
        look: the artifact as HTML: a picture, a player or a text.
        text: content of a small text artifact; None for other artifacts.
    """

    id: str
    look: str
    sha256: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt at a task, with all that its display needs."""

    n: int
    workflow_id: str
    status: str = ""
    reviews: "Sequence[Review]" = ()
    artifacts: Mapping[str, ShownArtifact] = field(default_factory=dict)
    cost_usd: float | None = None
    is_best: bool = False
    is_delivered: bool = False

    @property
    def review(self) -> "Review | None":
        """The last verdict, which is the valid verdict; None without a review."""
        return self.reviews[-1] if self.reviews else None

    @property
    def scored(self) -> "Review | None":
        """The last verdict with a score; None if no verdict has a score."""
        return next((review for review in reversed(self.reviews) if review.score is not None), None)

    @property
    def title(self) -> str:
        """The number of the attempt, with its marks.

        >>> AttemptView(2, "wfl_1", is_best=True).title
        'Attempt 2 ★ best'
        """
        marks = (" ★ best" * self.is_best) + (" ✓ delivered" * self.is_delivered)
        return f"Attempt {self.n}{marks}"


def list_attempts(task: "Task") -> list[AttemptView]:
    """List the attempts of a task without their artifacts, oldest first.

    The running attempt comes last.
    """
    ended_ids = [attempt.workflow_id for attempt in task.attempts]
    under_way = [id for id in task.workflow_ids if id not in ended_ids]
    costs = [attempt.cost_usd for attempt in task.attempts] + [None] * len(under_way)
    best = _find_best(task)
    return [
        AttemptView(
            n + 1,
            id,
            reviews=[review for review in task.reviews if review.attempt == n + 1],
            cost_usd=costs[n],
            is_best=n == best,
            is_delivered=n + 1 == task.final_attempt,
        )
        for n, id in enumerate([*ended_ids, *under_way])
    ]


def read_score(review: "Review | None", name: str) -> float | None:
    """Read the score of a review or of a criterion; return None if it has no score."""
    holder: object = review if review is None or name == "score" else review.criteria
    value: object = getattr(holder, name, None)
    return float(value) if isinstance(value, int | float) else None


def _find_best(task: "Task") -> int | None:
    """Find the index of the attempt with the task's best artifact, or None.

    Of several, prefer the final attempt, then the best score, then the last attempt.
    """
    candidates = [
        (n + 1 == task.final_attempt, read_score(attempt.review, "score") or 0.0, n)
        for n, attempt in enumerate(task.attempts)
        if task.best_artifact_id in attempt.artifact_ids.values()
    ]
    return max(candidates)[2] if candidates else None


def render_attempts(attempts: Sequence[AttemptView]) -> str:
    """Render attempts as the columns of a table; differences from the attempt before are marked.

    A score is drawn only if a review has one.

    >>> "Attempt 1" in render_attempts([AttemptView(1, "wfl_1")])
    True
    """
    if not attempts:
        return ""
    nodes = dict.fromkeys(node for attempt in attempts for node in attempt.artifacts)
    rows = [
        ("verdict", [_render_verdict(attempt) for attempt in attempts]),
        *((node, _render_across(attempts, _show_artifact, node)) for node in nodes),
        *(
            (name.replace("_", " "), _render_across(attempts, _show_score, name))
            for name in ("score", *CRITERIA)
        ),
        ("issues", _render_across(attempts, _show_issues)),
        ("runs again", [_render_actions(attempt.review) for attempt in attempts]),
        ("cost", [escape(format_usd(attempt.cost_usd)) for attempt in attempts]),
        ("workflow", [escape(f"{attempt.workflow_id} {attempt.status}") for attempt in attempts]),
    ]
    head = "".join(
        f'<th scope="col"{_style_column(attempt)}>{escape(attempt.title)}</th>'
        for attempt in attempts
    )
    body = "".join(_render_row(name, cells, attempts) for name, cells in rows if any(cells))
    return (
        f'<div class="tk-scroll {html.IGNORED_BY_MATHJAX}" tabindex="0">'
        f'<table class="tk tk-attempts"><caption></caption>'
        f'<thead><tr><th scope="col"></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def describe_attempts(attempts: Sequence[AttemptView]) -> str:
    """Describe attempts in plain text, a line each.

    >>> describe_attempts([AttemptView(1, "wfl_1", "completed", cost_usd=0.25, is_best=True)])
    'Attempt 1 ★ best: not reviewed, $0.25'
    """
    return "\n".join(_describe_attempt(attempt) for attempt in attempts)


def _describe_attempt(attempt: AttemptView) -> str:
    parts = ["not reviewed"]
    if (review := attempt.review) is not None:
        parts = [f"{review.decision} by {review.reviewer}"]
        score = read_score(attempt.scored, "score")
        parts += [] if score is None else [f"score {score:.2f}"]
    parts.append(format_usd(attempt.cost_usd))
    parts += [truncate_line(issue) for issue in (review.issues if review is not None else [])]
    return f"{attempt.title}: {parts[0]}, {'; '.join(parts[1:])}"


def _render_across(
    attempts: Sequence[AttemptView],
    show: Callable[[AttemptView, Sequence[AttemptView], str], str],
    name: str = "",
) -> list[str]:
    """Render a row's cells, each compared with the attempts before it."""
    return [show(attempt, attempts[:n], name) for n, attempt in enumerate(attempts)]


def _render_row(name: str, cells: Sequence[str], attempts: Sequence[AttemptView]) -> str:
    columns = "".join(
        f"<td{_style_column(attempt)}>{cell}</td>"
        for attempt, cell in zip(attempts, cells, strict=True)
    )
    return f'<tr><th scope="row">{escape(name)}</th>{columns}</tr>'


def _style_column(attempt: AttemptView) -> str:
    return ' class="tk-best"' if attempt.is_best else ""


def _render_verdict(attempt: AttemptView) -> str:
    if not attempt.reviews:
        return '<span class="tk-quiet">not reviewed</span>'
    return "<br>".join(
        f"<b>{escape(review.decision)}</b> by {escape(review.reviewer)}"
        for review in attempt.reviews
    )


def _show_artifact(attempt: AttemptView, before: Sequence[AttemptView], node_id: str) -> str:
    """Show an attempt's artifact at a node: short if unchanged, a text with its changes marked."""
    artifact = attempt.artifacts.get(node_id)
    if artifact is None:
        return '<span class="tk-quiet">nothing</span>'
    versions = [(view.n, view.artifacts[node_id]) for view in before if node_id in view.artifacts]
    for n, version in versions:
        if artifact.sha256 == version.sha256:
            return f'<span class="tk-quiet">the same as in attempt {n}</span>'
    if versions and artifact.text is not None and versions[-1][1].text is not None:
        caption = f'<div class="tk-quiet">{escape(artifact.id)}</div>'
        return f"<pre>{mark_changes(versions[-1][1].text, artifact.text)}</pre>{caption}"
    return artifact.look


def mark_changes(old: str, new: str) -> str:
    """Render a text, with the words marked that the earlier text lacks.

    >>> mark_changes("Tides turn <daily>.", "Tides turn <weekly>.")
    'Tides turn &lt;<ins>weekly</ins>&gt;.'
    """
    if max(len(old), len(new)) > MAX_COMPARED_CHARACTERS:
        return escape(new)
    markup, common_words = "", 0
    for kind, piece in compare_texts(old, new):
        if kind == "added" and piece.strip():
            markup += f"<ins>{escape(piece)}</ins>"
        elif kind != "removed":
            markup += escape(piece)
            common_words += _count_words(piece)
    return markup if common_words >= MIN_LIKENESS * _count_words(new) else escape(new)


def _count_words(text: str) -> int:
    return sum(piece[0].isalnum() for piece in WORDS.findall(text))


def _show_score(attempt: AttemptView, before: Sequence[AttemptView], name: str) -> str:
    """Show a score, if any, as a bar with its number and the change from the attempt before."""
    value = read_score(attempt.scored, name)
    if value is None:
        return ""
    old = read_score(before[-1].scored, name) if before else None
    change = "" if old is None or abs(value - old) < 0.005 else f" ({value - old:+.2f})"
    return f"{html.render_bar(value)}{value:.2f}{escape(change)}"


def _show_issues(attempt: AttemptView, before: Sequence[AttemptView], _: str) -> str:
    """Show the issues of all verdicts on an attempt; mark issues that the attempt before had."""
    old_issues = {
        issue for view in before[-1:] for review in view.reviews for issue in review.issues
    }
    issues = dict.fromkeys(
        (review.reviewer, issue) for review in attempt.reviews for issue in review.issues
    )
    has_reviewers = len({reviewer for reviewer, _ in issues}) > 1
    items = "".join(
        f"<li>{'<b>still:</b> ' if issue in old_issues else ''}"
        f"{f'<i>{escape(reviewer)}:</i> ' if has_reviewers else ''}{escape(issue)}</li>"
        for reviewer, issue in issues
    )
    return f"<ul>{items}</ul>" if items else ""


def _render_actions(review: "Review | None") -> str:
    return "<br>".join(escape(describe_action(action)) for action in list_actions(review))


def list_actions(review: "Review | None") -> "Sequence[RecommendedAction]":
    """List the actions that a review recommends; empty without a review."""
    if review is None or review.recommended_action is None:
        return []
    return review.recommended_actions or [review.recommended_action]


def describe_action(action: "RecommendedAction") -> str:
    """Describe which node a retry runs again, with which instructions and changes.

    >>> from toolkit.contract.tasks import RecommendedAction
    >>> describe_action(RecommendedAction(node_id="card", action="retry", constraints={"n": 1}))
    'retry card with {"n": 1}'
    """
    instructions = "".join(f' "{instruction}"' for instruction in action.instructions)
    changes = {
        name: value
        for name, value in action.constraints.items()
        # The objective contains the instructions as well.
        if not any(instruction in str(value) for instruction in action.instructions)
    }
    literal = json.dumps(changes, ensure_ascii=False) if changes else ""
    return (
        f"{action.action} {action.node_id}"
        f"{f' by {action.provider}' if action.provider else ''}"
        f"{f', instructed{instructions}' if instructions else ''}"
        f"{f' with {literal}' if literal else ''}"
    )
