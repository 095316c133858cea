"""The reviewer: good results pass, and each defect lowers a score and names its node."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageDraw

from benchmarks.sets.review.makers import make
from tests.planning.review.evidence import build_evidence, build_text
from tests.planning.sample_capabilities import CARD, FACTS, LLM, SPEECH
from toolkit.contract.plans import Expect
from toolkit.contract.tasks import Review
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.reviewer import PASS_SCORE, find_issues, judge_issues
from toolkit.plugins import Blob

OBJECTIVE = "a social card with a spoken summary about tidal power"
BRIEFS = {
    "script": "a spoken summary about tidal power. In plain sentences.",
    "copy": "a social card: tidal power. At most 30 words, in few words.",
}
DELIVERABLES = ("card", "narration")
SCRIPT = (
    "Tidal power turns the rise and fall of the sea into electricity. Turbines stand in the "
    "stream like windmills under water, and turn with it. The tides that drive them can be "
    "foretold for years, which no wind can. Few places have tides that are strong enough, and "
    "the salt is hard on every machine."
)
COPY = (
    "Twice a day the tide comes in, and turbines under water turn it into power. No other source "
    "can be foretold so well, and few are so little used."
)
REFUSAL = "I'm sorry, but I can't help with that."


@cache
def png(size: tuple[int, int] = (1200, 630), *, blank: bool = False) -> bytes:
    """Return a picture with rectangles, or a blank picture."""
    image = Image.new("RGB", size, (245, 240, 230))
    if not blank:
        draw = ImageDraw.Draw(image)
        for i in range(0, size[0], 40):
            draw.rectangle((i, i // 3, i + 20, i // 3 + 60), fill=(20, 60, i % 255))
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


NARRATION = make({"maker": "speech", "args": {"text": SCRIPT}})
AUDIO = NARRATION.data


def review_results(
    objective: str,
    evidence: Sequence[Evidence],
    deliverables: Sequence[str],
    *,
    retries_left: int = 2,
) -> Review:
    """Review results as the engine does, without a judge."""
    issues = find_issues(objective, evidence, deliverables, attempt=0)
    return judge_issues(issues, evidence, attempt=0, retries_left=retries_left)


def write(node_id: str, text: str) -> Evidence:
    """Build the evidence of a text that should have at most 60 words."""
    fields = {"objective": BRIEFS[node_id]}
    expect = Expect(words=[0, 60])
    return build_text(text, fields, node_id=node_id, depends_on=["facts"], expect=expect)


def build_good_evidence() -> dict[str, Evidence]:
    """Build evidence without a defect, by node."""
    data = b'{"text": "Tidal power is made by tides."}'
    facts: dict[str, Any] = {
        "topic": "tidal power", "title": "Tidal power", "text": "Tidal power is made by tides.",
        "summary": SCRIPT, "sections": [], "source_kind": "http",
        "sources": [
            {"title": "Tidal power", "url": "https://en.wikipedia.org/wiki/Tidal_power",
             "license": "CC BY-SA 4.0"}
        ],
    }  # fmt: skip
    laid_out: dict[str, Any] = {
        "width": 1200, "height": 630, "warnings": [], "missing_glyphs": [],
        "text_boxes": [
            {"role": "title", "text": "Tidal power", "x": 0, "y": 0, "width": 400, "height": 160,
             "font_size": 24}
        ],
    }  # fmt: skip
    items = [
        build_evidence(FACTS, {"topic": "tidal power"}, Blob(data, "application/json"),
                       node_id="facts", **facts),
        write("script", SCRIPT),
        build_evidence(SPEECH, {}, Blob(AUDIO, "audio/mpeg"), node_id="narration",
                       depends_on=["script"], upstream=SCRIPT,
                       duration_ms=NARRATION.facts["duration_ms"]),
        write("copy", COPY),
        build_evidence(CARD, {"title": "Tidal power"}, Blob(png(), "image/png"), node_id="card",
                       depends_on=["copy"], upstream=COPY, **laid_out),
    ]  # fmt: skip
    return {evidence.node.id: evidence for evidence in items}


def review_with(*changed: Evidence, retries_left: int = 2) -> Review:
    """Review good evidence with the evidence of some nodes changed."""
    evidence = build_good_evidence() | {item.node.id: item for item in changed}
    return review_results(
        OBJECTIVE, list(evidence.values()), DELIVERABLES, retries_left=retries_left
    )


def replace_blob(node_id: str, data: bytes, media_type: str | None = None) -> Evidence:
    """Return the good evidence of a node with another artifact."""
    before = build_good_evidence()[node_id]
    assert before.blob is not None
    return replace(before, blob=Blob(data, media_type or before.blob.media_type))


def replace_output(node_id: str, **output: object) -> Evidence:
    """Return the good evidence of a node with another output."""
    before = build_good_evidence()[node_id]
    return replace(before, output={**(before.output or {}), **output})


def test_passes_good_results() -> None:
    """Given artifacts without a defect, then they pass without an issue."""
    verdict = review_with()
    assert (verdict.decision, verdict.issues) == ("pass", [])
    assert verdict.score == 1.0
    assert verdict.recommended_action is None
    assert verdict.reviewer == "checks"


# name, evidence, decision, criterion with the lowest score, node to run again
DEFECTS = [
    ("truncated MP3", replace_blob("narration", AUDIO[: len(AUDIO) // 2]),
     "retry", "technical_success", "narration"),
    ("blank card", replace_blob("card", png(blank=True)), "fail", "technical_success", None),
    ("wrong size", replace_blob("card", png((800, 800))), "retry", "technical_success", "card"),
    ("no image", replace_blob("card", b"\x89PNG broken"), "fail", "technical_success", None),
    ("no text on the card", replace_output("card", text_boxes=[]),
     "fail", "output_completeness", None),
    ("empty text", replace_blob("copy", b"  \n"), "retry", "output_completeness", "copy"),
    ("cut off text", replace_output("copy", finish_reason="length"),
     "retry", "output_completeness", "copy"),
    ("refusal", replace_blob("copy", REFUSAL.encode()), "retry", "objective_alignment", "copy"),
    ("far too many words", replace_blob("copy", (COPY + " ").encode() * 20),
     "retry", "objective_alignment", "copy"),
    ("invalid output", replace(build_good_evidence()["script"], output={"words": 3}),
     "retry", "technical_success", "script"),
    ("no output", replace(build_good_evidence()["script"], output=None),
     "retry", "output_completeness", "script"),
    ("no artifact", replace(build_good_evidence()["narration"], blob=None),
     "retry", "output_completeness", "narration"),
    ("another kind of artifact", replace_blob("narration", b"words", "text/plain"),
     "retry", "technical_success", "narration"),
    ("failed for now",
     replace(build_good_evidence()["narration"], status="failed", output=None, blob=None,
             error_code="PROVIDER_UNAVAILABLE"), "retry", "technical_success", "narration"),
    ("failed for good",
     replace(build_good_evidence()["narration"], status="failed", output=None, blob=None,
             error_code="PROVIDER_AUTH_FAILED"), "fail", "technical_success", None),
    ("cancelled",
     replace(build_good_evidence()["narration"], status="cancelled", output=None, blob=None),
     "fail", "technical_success", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "decision", "criterion", "node"),
    [case[1:] for case in DEFECTS],
    ids=[case[0] for case in DEFECTS],
)
def test_finds_a_defect(
    evidence: Evidence, decision: str, criterion: str, node: str | None
) -> None:
    """Given a defect, then decision, criterion, issue and the node to run again follow."""
    verdict = review_with(evidence)
    assert verdict.decision == decision
    assert verdict.criteria is not None
    scores = verdict.criteria.model_dump()
    assert min(scores, key=lambda name: scores[name]) == criterion
    assert scores[criterion] < 1
    assert verdict.issues
    action = verdict.recommended_action
    assert (action.node_id if action else None) == node
    if action is not None:
        assert action.action == "regenerate"
        assert set(action.constraints) <= set(evidence.capability.input_model.model_fields)
        evidence.capability.input_model.model_validate(
            {**evidence.node.input, "text": "filled"} | action.constraints
            if evidence.capability is SPEECH
            else {**evidence.node.input, **action.constraints}
        )


@pytest.mark.parametrize(
    ("evidence", "constraints"),
    [
        (replace_output("copy", finish_reason="length"), {"max_tokens": 2048}),
        (replace_blob("copy", (COPY + " ").encode() * 20),
         {"objective": f"{BRIEFS['copy']} Write at most 60 words: the last text had 580. "
                       "Say each thing once."}),
        (replace_blob("card", png((800, 800))), {"width": 1200, "height": 630}),
        (replace_blob("narration", b"x" * 99), {"speed": 0.95}),
    ],
)  # fmt: skip
def test_recommends_a_change_of_the_input(
    evidence: Evidence, constraints: dict[str, object]
) -> None:
    """Given a defect that an input can cure, then the review recommends this input."""
    action = review_with(evidence).recommended_action
    assert action is not None
    assert action.constraints == constraints


def test_fails_if_no_tokens_are_left_to_double() -> None:
    """Given a text that was cut off at the maximum of tokens, then no retry is recommended."""
    evidence = replace_output("copy", finish_reason="length")
    inputs = {**evidence.node.input, "max_tokens": 16_384}
    node = evidence.node.model_copy(update={"input": inputs})
    assert review_with(replace(evidence, node=node)).decision == "fail"


def test_recommends_the_earliest_node() -> None:
    """Given defects of two nodes, then the earlier node runs again."""
    script = replace_blob("script", REFUSAL.encode())
    verdict = review_with(script, replace_blob("narration", AUDIO[:4000]))
    assert verdict.recommended_action is not None
    assert verdict.recommended_action.node_id == "script"


def test_recommends_the_failed_node_before_a_cancelled_node() -> None:
    """Given a failed node and a cancelled node after it, then the failed node runs again."""
    evidence = build_good_evidence()
    script = replace(
        evidence["script"], status="failed", error_code="PROVIDER_TIMEOUT", output=None, blob=None
    )
    narration = replace(
        evidence["narration"], status="cancelled", error_code="UPSTREAM_FAILED", output=None,
        blob=None,
    )  # fmt: skip
    verdict = review_with(script, narration)
    assert verdict.decision == "retry"
    assert verdict.recommended_action is not None
    assert verdict.recommended_action.node_id == "script"
    assert verdict.criteria is not None
    assert verdict.criteria.output_completeness == 0


def test_fails_without_a_deliverable() -> None:
    """Given a deliverable without a node, then the task fails, because no retry can help."""
    evidence = [value for name, value in build_good_evidence().items() if name != "narration"]
    verdict = review_results(OBJECTIVE, evidence, DELIVERABLES)
    assert verdict.decision == "fail"
    assert verdict.criteria is not None
    assert verdict.criteria.output_completeness == 0
    assert verdict.issues == ["narration: The deliverable is missing."]


def test_warnings_lower_the_score() -> None:
    """Given a card with warnings and missing glyphs, then it passes with a lower score."""
    verdict = review_with(
        replace_output("card", warnings=["title made smaller"], missing_glyphs=["🙂"])
    )
    assert verdict.decision == "pass"
    assert verdict.criteria is not None
    assert verdict.criteria.technical_success == 0.85
    assert verdict.score is not None
    assert PASS_SCORE < verdict.score < 1


@pytest.mark.parametrize("data", [b"", b"\x00", b'{"text": 3}', b"[" * 5000, "🙂".encode()])
@pytest.mark.parametrize("kind", ["image/png", "audio/mpeg", "text/plain", "application/json"])
def test_reviews_any_bytes(data: bytes, kind: str) -> None:
    """Given any bytes with any media type, then there is a verdict without an exception."""
    for node_id, evidence in build_good_evidence().items():
        changed = replace(evidence, blob=Blob(data, kind))
        assert review_results(OBJECTIVE, [changed], [node_id]).decision in {"pass", "retry", "fail"}


def test_checks_a_plugin_by_its_output_schema() -> None:
    """Given a plugin's capability that yields data, then only its output is checked."""
    capability = replace(LLM, id="count.words", produces="application/json", accepts={})
    blob = Blob(b"{}", "application/json")
    evidence = build_evidence(capability, {"objective": "count"}, blob, text="tidal power")
    assert review_results("count", [evidence], ["made"], retries_left=0).decision == "pass"
    evidence = replace(evidence, output={})
    assert review_results("count", [evidence], ["made"], retries_left=0).decision == "fail"
