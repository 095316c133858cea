"""Attempts of a task side by side, and an objective with its unknown words."""

from datetime import UTC, datetime

import pytest

from toolkit.contract.plans import PlanReading
from toolkit.contract.tasks import Criteria, RecommendedAction, Review, Task, TaskAttempt
from toolkit.display.records.attempts import (
    AttemptView,
    ShownArtifact,
    describe_attempts,
    list_attempts,
    mark_changes,
    render_attempts,
)
from toolkit.display.records.objective import render_objective, render_reading

EVIL = '<script>alert("x")</script>'


def review(score: float | None, decision: str = "pass", *issues: str, by: str = "checks") -> Review:
    """A review with or without a score."""
    return Review.model_construct(
        decision=decision,
        score=score,
        criteria=Criteria.model_construct(
            objective_alignment=score, technical_success=score, output_completeness=score
        ),
        issues=[*issues],
        recommended_action=None,
        recommended_actions=[],
        reviewer=by,
    )


def attempt(n: int, *reviews: Review, text: str = "Tides turn daily.") -> AttemptView:
    """An attempt that produced a text."""
    copy = ShownArtifact(f"art_{n}", f"<pre>{text}</pre>", text, text)
    return AttemptView(n, f"wfl_{n}", "completed", [*reviews], {"copy": copy}, 0.01 * n)


def task(status: str, *attempts: TaskAttempt, **fields: object) -> Task:
    """A task with these attempts."""
    return Task(
        id="tsk_1",
        objective="A text",
        status=status,  # type: ignore[arg-type]
        workflow_ids=[attempt.workflow_id for attempt in attempts],
        attempts=[*attempts],
        reviews=[
            attempt.review.model_copy(update={"attempt": n})
            for n, attempt in enumerate(attempts, 1)
            if attempt.review is not None
        ],
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        **fields,  # type: ignore[arg-type]
    )


def test_draws_no_bar_without_a_score() -> None:
    """Given a review without scores, then it has a line and no bar."""
    html = render_attempts([attempt(1, review(None, "fail", by="person"))])
    assert "<b>fail</b> by person" in html
    assert "tk-bar" not in html
    assert "score" not in html
    assert "score" not in describe_attempts([attempt(1, review(None))])
    scored = render_attempts([attempt(1, review(0.5)), attempt(2, review(None))])
    assert scored.count("tk-bar") == 4


def test_marks_differences_between_attempts() -> None:
    """Given two attempts, then changed words, scores and issues are marked."""
    html = render_attempts(
        [
            attempt(1, review(0.4, "retry", "too long", "too dull")),
            attempt(2, review(0.9, "pass", "too dull"), text="Tides turn twice."),
        ]
    )
    assert "Tides turn <ins>twice</ins>." in html
    assert "0.90 (+0.50)" in html
    assert "<b>still:</b> too dull" in html
    same = render_attempts([attempt(1), attempt(2)])
    assert "the same as in attempt 1" in same
    assert mark_changes("Tides turn.", "Nothing alike at all here, or there.").count("<ins>") == 0


def test_escapes_text_from_outside() -> None:
    """Given markup in every text, then it is shown as text."""
    evil = review(0.5, "retry", EVIL, by=EVIL)
    evil.recommended_action = RecommendedAction(node_id=EVIL, action=EVIL, constraints={EVIL: EVIL})
    views = [
        AttemptView(n, EVIL, EVIL, [evil], {EVIL: ShownArtifact(EVIL, "", f"{n}", f"{EVIL} {n}")})
        for n in (1, 2)
    ]
    for html in (
        render_attempts(views),
        render_objective(f"{EVIL} words", [EVIL, "words", "alert"]),
        render_reading(EVIL, PlanReading(understood=0.1, words=[EVIL]), EVIL),
    ):
        assert "<script" not in html
        assert "&lt;script" in html


@pytest.mark.parametrize(
    ("objective", "words", "marked"),
    [
        ("Drinking in the inn", ["in"], ["in"]),
        ("frob the frobs, frob", ["frob"], ["frob", "frob"]),
        ("潮汐の絵を描いて", ["の絵"], ["の絵"]),
        ("A card", ["", "moon"], []),
    ],
)
def test_marks_unknown_words(objective: str, words: list[str], marked: list[str]) -> None:
    """Given words, then each whole word is marked; scripts without spaces are marked by letters."""
    html = render_objective(objective, words)
    pieces = html.split('<mark title="not understood">')[1:]
    assert [piece.partition("</mark>")[0] for piece in pieces] == marked


def test_marks_the_best_and_the_delivered_attempt() -> None:
    """Given a first attempt that is the best, then it is marked, delivered or not."""
    first, second = (
        TaskAttempt(workflow_id=f"wfl_{n}", review=scored, artifact_ids={"copy": f"art_{n}"})
        for n, scored in enumerate((review(0.8, "retry"), review(0.7, "pass")), 1)
    )
    completed = task("completed", first, second, final_attempt=1, best_artifact_id="art_1")
    views = list_attempts(completed)
    assert [view.title for view in views] == ["Attempt 1 ★ best ✓ delivered", "Attempt 2"]
    failed = task("failed", first, second, best_artifact_id="art_2")
    assert [view.title for view in list_attempts(failed)] == ["Attempt 1", "Attempt 2 ★ best"]
    assert [review.decision for view in views for review in view.reviews] == ["retry", "pass"]
