"""Attempts of a task beside each other, and an objective with what was not understood."""

from datetime import UTC, datetime

import pytest

from toolkit.contract.plans import PlanReading
from toolkit.contract.tasks import Criteria, RecommendedAction, Review, Task, TaskAttempt
from toolkit.display.records.attempt_view import AttemptView, ShownArtifact, list_attempts
from toolkit.display.records.attempts import describe_attempts, mark_changes, render_attempts
from toolkit.display.records.objective import render_objective, render_reading

EVIL = '<script>alert("x")</script>'


def review(score: float | None, decision: str = "pass", *issues: str, by: str = "checks") -> Review:
    """A review, with a score or with none that anybody gave."""
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


def attempt(n: int, *reviews: Review, text: str = "Tides turn daily.", **more: bool) -> AttemptView:
    """An attempt that wrote a text."""
    copy = ShownArtifact(f"art_{n}", f"<pre>{text}</pre>", text, text)
    return AttemptView(n, f"wfl_{n}", "completed", [*reviews], {"copy": copy}, 0.01 * n, **more)


def task(status: str, *attempts: TaskAttempt, **fields: object) -> Task:
    """A task with these attempts."""
    return Task(
        id="tsk_1",
        objective="A text",
        status=status,  # type: ignore[arg-type]
        workflow_ids=[one.workflow_id for one in attempts],
        attempts=[*attempts],
        reviews=[
            one.review.model_copy(update={"attempt": n})
            for n, one in enumerate(attempts, 1)
            if one.review is not None
        ],
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        **fields,  # type: ignore[arg-type]
    )


def test_no_score_is_drawn_that_nobody_gave() -> None:
    """Given a verdict without scores, then it has a line and no bar."""
    shown = render_attempts([attempt(1, review(None, "fail", by="person"))])
    assert "<b>fail</b> by person" in shown
    assert "tk-bar" not in shown
    assert "score" not in shown
    assert "score" not in describe_attempts([attempt(1, review(None))])
    scored = render_attempts([attempt(1, review(0.5)), attempt(2, review(None))])
    assert scored.count("tk-bar") == 4


def test_what_differs_is_marked() -> None:
    """Given two attempts, then words, scores and issues that changed are told apart."""
    shown = render_attempts(
        [
            attempt(1, review(0.4, "retry", "too long", "too dull")),
            attempt(2, review(0.9, "pass", "too dull"), text="Tides turn twice."),
        ]
    )
    assert "Tides turn <ins>twice</ins>." in shown
    assert "0.90 (+0.50)" in shown
    assert "<b>still:</b> too dull" in shown
    same = render_attempts([attempt(1), attempt(2)])
    assert "the same as in attempt 1" in same
    assert mark_changes("Tides turn.", "Nothing alike at all here, or there.").count("<ins>") == 0


def test_what_comes_from_outside_is_escaped() -> None:
    """Given markup in every text, then none of it is markup."""
    evil = review(0.5, "retry", EVIL, by=EVIL)
    evil.recommended_action = RecommendedAction(node_id=EVIL, action=EVIL, constraints={EVIL: EVIL})
    views = [
        AttemptView(n, EVIL, EVIL, [evil], {EVIL: ShownArtifact(EVIL, "", f"{n}", f"{EVIL} {n}")})
        for n in (1, 2)
    ]
    for shown in (
        render_attempts(views),
        render_objective(f"{EVIL} words", [EVIL, "words", "alert"]),
        render_reading(EVIL, PlanReading(understood=0.1, words=[EVIL]), EVIL),
    ):
        assert "<script" not in shown
        assert "&lt;script" in shown


@pytest.mark.parametrize(
    ("objective", "words", "marked"),
    [
        ("Drinking in the inn", ["in"], ["in"]),
        ("frob the frobs, frob", ["frob"], ["frob", "frob"]),
        ("潮汐の絵を描いて", ["の絵"], ["の絵"]),
        ("A card", [], []),
        ("A card", ["", "moon"], []),
    ],
)
def test_words_that_were_not_understood_are_marked(
    objective: str, words: list[str], marked: list[str]
) -> None:
    """Given words, then each whole one is marked, and the letters of scripts without spaces."""
    shown = render_objective(objective, words)
    pieces = shown.split('<mark title="not understood">')[1:]
    assert [piece.partition("</mark>")[0] for piece in pieces] == marked


def test_the_best_and_what_is_delivered() -> None:
    """Given attempts of which the first is the best, then it is marked, delivered or not."""
    first = TaskAttempt(
        workflow_id="wfl_1", review=review(0.8, "retry"), artifact_ids={"copy": "art_1"}
    )
    second = TaskAttempt(
        workflow_id="wfl_2", review=review(0.7, "pass"), artifact_ids={"copy": "art_2"}
    )
    done = task("completed", first, second, final_attempt=1, best_artifact_id="art_1")
    views = list_attempts(done)
    assert [view.title for view in views] == ["Attempt 1 ★ best ✓ delivered", "Attempt 2"]
    failed = task("failed", first, second, best_artifact_id="art_2")
    assert [view.title for view in list_attempts(failed)] == ["Attempt 1", "Attempt 2 ★ best"]
    assert [one.decision for view in views for one in view.reviews] == ["retry", "pass"]
