"""The reviewer: good work passes, and every defect is found, weighed and blamed on its node."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageDraw

from tests.planning.review.evidence import build_evidence, build_text
from tests.planning.review.sounds import add_silence, encode_mp3, speak
from tests.planning.sample_capabilities import CARD, DRAWING, FACTS, LLM, SPEECH
from toolkit.contract.plans import Expect
from toolkit.contract.tasks import Review
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.reviewer import find_issues, judge_issues
from toolkit.plugins import Blob
from toolkit.review_thresholds import DEFAULT_THRESHOLDS

OBJECTIVE = "a social card with a spoken summary about tidal power"
TOLD = {
    "script": "a spoken summary about tidal power. In plain sentences.",
    "copy": "a social card: tidal power. At most 30 words, in few words.",
}
DELIVERED = ("card", "narration")
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
    """A picture with something on it, or nothing."""
    image = Image.new("RGB", size, (245, 240, 230))
    if not blank:
        draw = ImageDraw.Draw(image)
        for i in range(0, size[0], 40):
            draw.rectangle((i, i // 3, i + 20, i // 3 + 60), fill=(20, 60, i % 255))
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@cache
def mp3(seconds: float) -> bytes:
    """Speech of that length."""
    return encode_mp3(add_silence(speak(1, seconds), 0, 0.1), kbps=32)


AUDIO = mp3(len(SCRIPT) / 15)


def review_results(
    objective: str,
    evidence: Sequence[Evidence],
    deliverables: Sequence[str],
    *,
    attempt: int = 0,
    retries_left: int = 2,
) -> Review:
    """Review results as the engine does, without a judge."""
    issues = find_issues(objective, evidence, deliverables, attempt=attempt)
    return judge_issues(issues, evidence, attempt=attempt, retries_left=retries_left)


def write(node_id: str, text: str) -> Evidence:
    """Write a text, of which its plan expects at most 60 words."""
    told = {"objective": TOLD[node_id]}
    expect = Expect(words=[0, 60])
    return build_text(text, told, node_id=node_id, depends_on=["facts"], expect=expect)


def build_good_evidence() -> dict[str, Evidence]:
    """Evidence that has nothing wrong with it, by node."""
    data = b'{"text": "Tidal power is made by tides."}'
    found: dict[str, Any] = {
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
                       node_id="facts", **found),
        write("script", SCRIPT),
        build_evidence(SPEECH, {}, Blob(AUDIO, "audio/mpeg"), node_id="narration",
                       depends_on=["script"], upstream=SCRIPT,
                       duration_ms=len(SCRIPT) * 1000 // 15),
        write("copy", COPY),
        build_evidence(CARD, {"title": "Tidal power"}, Blob(png(), "image/png"), node_id="card",
                       depends_on=["copy"], upstream=COPY, **laid_out),
    ]  # fmt: skip
    return {evidence.node.id: evidence for evidence in items}


def review_with(
    changed: Evidence | None = None, *, attempt: int = 0, retries_left: int = 2
) -> Review:
    """The review of good evidence, with one node's changed."""
    evidence = build_good_evidence()
    if changed is not None:
        evidence[changed.node.id] = changed
    return review_results(
        OBJECTIVE, list(evidence.values()), DELIVERED, attempt=attempt, retries_left=retries_left
    )


def replace_blob(node_id: str, data: bytes, media_type: str | None = None) -> Evidence:
    """A node of good evidence with another artifact."""
    before = build_good_evidence()[node_id]
    assert before.blob is not None
    return replace(before, blob=Blob(data, media_type or before.blob.media_type))


def replace_output(node_id: str, **output: object) -> Evidence:
    """A node of good evidence with another output."""
    before = build_good_evidence()[node_id]
    return replace(before, output={**(before.output or {}), **output})


def replace_audio(seconds: float) -> Evidence:
    """A narration of another length, which its record does not tell."""
    before = replace_blob("narration", mp3(seconds))
    return replace(before, output={**(before.output or {}), "duration_ms": None})


def test_good_work_passes() -> None:
    """Given artifacts that are what was asked for, then they pass with nothing to say."""
    verdict = review_with()
    assert (verdict.decision, verdict.issues) == ("pass", [])
    assert verdict.score == 1.0
    assert verdict.recommended_action is None
    assert verdict.reviewer == "checks"


# what is wrong, its evidence, decision, criterion that suffers most, node to run again
DEFECTS = [
    ("truncated MP3", replace_blob("narration", AUDIO[: len(AUDIO) // 2]),
     "retry", "technical_success", "narration"),
    ("too short MP3", replace_audio(1.2),
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
    ("empty artifact", replace_blob("narration", b""), "retry", "output_completeness", "narration"),
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
def test_a_defect_is_found(
    evidence: Evidence, decision: str, criterion: str, node: str | None
) -> None:
    """Given one defect, then decision, criterion, issue and the node to run again follow."""
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
    ("evidence", "attempt", "constraints"),
    [
        (replace_output("copy", finish_reason="length"), 0, {"max_tokens": 2048}),
        (replace_blob("copy", (COPY + " ").encode() * 20), 0,
         {"objective": f"{TOLD['copy']} Write at most 60 words: the last text had 580. "
                       "Say each thing once."}),
        (replace_blob("card", png((800, 800))), 0, {"width": 1200, "height": 630}),
        (replace_blob("narration", b"x" * 99), 0, {"speed": 0.95}),
    ],
)  # fmt: skip
def test_the_constraints_change_the_input(
    evidence: Evidence, attempt: int, constraints: dict[str, object]
) -> None:
    """Given a defect that an input can cure, then that change is recommended."""
    action = review_with(evidence, attempt=attempt).recommended_action
    assert action is not None
    assert action.constraints == constraints


def test_a_blank_image_gets_another_seed() -> None:
    """Given a blank picture of a capability with seeds, then another seed is recommended."""
    blob = Blob(png((512, 512), blank=True), "image/png")
    size = {"width": 512, "height": 512}
    given = {"prompt": "tea", **size}
    shown = build_evidence(DRAWING, given, blob, node_id="illustration", **size)
    first = review_results("a photo of tea", [shown], ["illustration"], attempt=0, retries_left=2)
    assert first.recommended_action is not None
    assert first.recommended_action.constraints == {"seed": 1}
    again = replace(shown, node=shown.node.model_copy(update={"input": {**given, "seed": 2}}))
    second = review_results("a photo of tea", [again], ["illustration"], attempt=1, retries_left=1)
    assert second.recommended_action is not None
    assert second.recommended_action.constraints == {"seed": 3}


def test_no_tokens_left_to_double_is_a_failure() -> None:
    """Given a text cut off at the most tokens there are, then running it again is no cure."""
    cut = replace_output("copy", finish_reason="length")
    node = cut.node.model_copy(update={"input": {**cut.node.input, "max_tokens": 16_384}})
    assert review_with(replace(cut, node=node)).decision == "fail"


def test_the_earliest_node_is_to_blame() -> None:
    """Given defects at two nodes, then the one that runs first runs again."""
    evidence = build_good_evidence()
    evidence["script"] = replace_blob("script", REFUSAL.encode())
    evidence["narration"] = replace_blob("narration", mp3(0.5))
    verdict = review_results(
        OBJECTIVE, list(evidence.values()), DELIVERED, attempt=0, retries_left=1
    )
    assert verdict.recommended_action is not None
    assert verdict.recommended_action.node_id == "script"


def test_who_only_suffers_is_not_to_blame() -> None:
    """Given a failed node and one cancelled after it, then the failed one runs again."""
    evidence = build_good_evidence()
    lost: dict[str, Any] = {"output": None, "blob": None}
    evidence["script"] = replace(
        evidence["script"], status="failed", error_code="PROVIDER_TIMEOUT", **lost
    )
    evidence["narration"] = replace(
        evidence["narration"], status="cancelled", error_code="UPSTREAM_FAILED", **lost
    )
    verdict = review_results(
        OBJECTIVE, list(evidence.values()), DELIVERED, attempt=0, retries_left=1
    )
    assert verdict.decision == "retry"
    assert verdict.recommended_action is not None
    assert verdict.recommended_action.node_id == "script"
    assert verdict.criteria is not None
    assert verdict.criteria.output_completeness == 0


@pytest.mark.parametrize("retries_left", [0, -1])
def test_no_retries_left_is_a_failure(retries_left: int) -> None:
    """Given a defect and no retries left, then the task fails and nothing is recommended."""
    verdict = review_with(replace_blob("copy", b""), retries_left=retries_left)
    assert (verdict.decision, verdict.recommended_action) == ("fail", None)


def test_a_missing_deliverable_fails() -> None:
    """Given a deliverable that no node was run for, then no retry can bring it."""
    evidence = [value for name, value in build_good_evidence().items() if name != "narration"]
    verdict = review_results(OBJECTIVE, evidence, DELIVERED, attempt=0, retries_left=2)
    assert verdict.decision == "fail"
    assert verdict.criteria is not None
    assert verdict.criteria.output_completeness == 0
    assert verdict.issues == ["narration: The deliverable is missing."]


def test_warnings_count_and_do_not_block() -> None:
    """Given a card with warnings and lost glyphs, then it passes with less."""
    verdict = review_with(
        replace_output("card", warnings=["title made smaller"], missing_glyphs=["🙂"])
    )
    assert verdict.decision == "pass"
    assert verdict.criteria is not None
    assert verdict.criteria.technical_success == 0.85
    assert verdict.score is not None
    assert DEFAULT_THRESHOLDS.pass_score < verdict.score < 1


@pytest.mark.parametrize("data", [b"", b"\x00", b'{"text": 3}', b"[" * 5000, "🙂".encode()])
@pytest.mark.parametrize("kind", ["image/png", "audio/mpeg", "text/plain", "application/json"])
def test_no_bytes_break_the_review(data: bytes, kind: str) -> None:
    """Given any bytes under any name, then there is a verdict and not an exception."""
    for node_id, evidence in build_good_evidence().items():
        changed = replace(evidence, blob=Blob(data, kind))
        verdict = review_results(OBJECTIVE, [changed], [node_id], attempt=0, retries_left=1)
        assert verdict.decision in {"pass", "retry", "fail"}


def test_a_stranger_s_result_is_held_to_its_own_schema() -> None:
    """Given a third-party capability that yields data, then its output alone is checked."""
    stranger = replace(LLM, id="count.words", produces="application/json", accepts={})
    blob = Blob(b"{}", "application/json")
    made = build_evidence(stranger, {"objective": "count"}, blob, text="tidal power")
    assert review_results("count", [made], ["made"], attempt=0, retries_left=0).decision == "pass"
    bad = replace(made, output={})
    assert review_results("count", [bad], ["made"], attempt=0, retries_left=0).decision == "fail"
