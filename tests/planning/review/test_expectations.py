"""Expectations of a plan: exact counts of a result, and the medium that the objective names."""

import numpy as np
import pytest

from benchmarks.sets.review.makers import RATE, encode_mp3, voice_samples
from tests.planning.review.evidence import build_evidence, build_text
from tests.planning.review.test_reviewer import png
from tests.planning.sample_capabilities import DRAWING, SPEECH
from toolkit.contract.plans import Expect
from toolkit.planning.review.evidence import Evidence, ReviewIssue
from toolkit.planning.review.reviewer import find_issues
from toolkit.plugins import Blob

BRIEF = "Write about peat."
PEAT = "Peat is old moss. It keeps carbon, and burns when it is dry. Bogs grow slowly."


def write(text: str, expect: Expect) -> Evidence:
    """Build a text with the expectations of its plan."""
    return build_text(text, {"objective": BRIEF}, expect=expect)


def find(*evidence: Evidence, objective: str = BRIEF) -> list[ReviewIssue]:
    """Return the issues that block these results of a task; the last result is delivered."""
    issues = find_issues(objective, evidence, [evidence[-1].node.id], attempt=0)
    return [issue for issue in issues if issue.is_blocking and not issue.is_hint]


# an expectation, a text that meets it, a near miss
NEAR_MISSES = [
    (Expect(sentences=3), PEAT, f"{PEAT} They are wet."),
    (Expect(sentences=2), "Dr. Lee paid 3.50 euros at 6 p.m. yesterday. Was it enough?", PEAT),
    (Expect(sentences=2), "泥炭は古い苔です。炭素です。", "泥炭は古い苔です。炭素です。水です。"),
    (Expect(sentences=2), "الخث طحلب قديم. يخزن الكربون.", "الخث طحلب. يخزن الكربون. وهو رطب."),
    (Expect(words=[3, 5]), "Old moss keeps carbon.", "Old moss keeps carbon for centuries."),
    (Expect(words=4), "Old moss keeps carbon.", "Old moss keeps."),
    (Expect(characters=[None, 20]), "Old moss.", "Old moss keeps carbon."),
    (Expect(lines=3), "Old pond\na frog\nsplash", "Old pond\na frog\nsplash\nsilence"),
    (Expect(lines=3), "A title\n\nOld pond\na frog\nsplash", "A title\n\nOld pond"),
    (Expect(paragraphs=2), f"{PEAT}\n\n{PEAT}", PEAT),
    (Expect(items=4), "- a\n- b\n- c\n- d", "- a\n- b\n- c\n- d\n- e"),
    (Expect(items=3), "1. a\n   - x\n2. b\n3. c", "1. a\n   - x\n2. b"),
    (Expect(items=3), "Peat, moss, turf", "Peat, moss"),
    (Expect(items=2), '["peat", "moss"]', '["peat", "moss", "turf"]'),
    (Expect(items=2), '{"names": ["peat", "moss"]}', '{"names": ["peat"]}'),
    (Expect(items=2), "| a |\n|---|\n| 1 |\n| 2 |", "| a |\n|---|\n| 1 |"),
    (Expect(format="json"), '```json\n{"a": 1}\n```', "a: 1"),
    (Expect(format="csv"), "a,b\n1,2", "a,b\n1"),
    (Expect(format="html"), "<p>Peat</p>", "Peat"),
    (Expect(format="plain"), PEAT, "**Peat** is old moss."),
    (Expect(language="de"), "Torf ist altes Moos und speichert viel Kohlenstoff.", PEAT),
    (Expect(language="ja"), "泥炭は古い苔で、炭素をためます。", "Deitan wa furui koke desu yo."),
    (Expect(language="zh"), "泥炭是古老的苔藓，储存着碳。", "Nítàn shì gǔlǎo de táixiǎn."),
    (Expect(language="es"), "La turba es musgo viejo y guarda mucho carbono.",
     "La torba è muschio vecchio e conserva molto carbonio nel suolo."),
]  # fmt: skip


@pytest.mark.parametrize(("expect", "right", "wrong"), NEAR_MISSES)
def test_counts_expected_parts(expect: Expect, right: str, wrong: str) -> None:
    """Given an expectation, then a text that meets it passes, and a near miss is blocked."""
    assert find(write(right, expect)) == []
    assert find(write(wrong, expect))


def test_does_not_count_sources_below_a_text() -> None:
    """Given a text with its sources below, then only the text itself is counted."""
    text = f"{PEAT}\n\nSources:\n- Peat, https://en.wikipedia.org/wiki/Peat"
    assert find(write(text, Expect(sentences=3, words=[10, 16]))) == []


def test_an_instruction_has_both_numbers() -> None:
    """Given too many items, then the instruction has the expected and the actual number."""
    (issue,) = find(write("- a\n- b\n- c", Expect(items=2)))
    assert issue.message == "The text has 3 items, not exactly 2."
    assert issue.instruction == "Write exactly 2 items: the last text had 3."


def speak_for(seconds: float, expect: Expect, depends_on: tuple[str, ...] = ()) -> Evidence:
    """Build a narration of this length."""
    text = "Twice a day the tide comes in. " * 9
    samples = np.resize(voice_samples(text), round(seconds * RATE))
    blob = Blob(encode_mp3(samples, kbps=32), "audio/mpeg")
    fields = {} if depends_on else {"text": text}
    return build_evidence(
        SPEECH, fields, blob, node_id="narration", depends_on=depends_on, expect=expect
    )


def test_rewrites_the_text_of_a_long_narration() -> None:
    """Given a narration of 20 s that should have 10 s, then its text gets the issue."""
    text = write("tide " * 100, Expect())
    narration = speak_for(20, Expect(duration_s=[9, 11]), ("made",))
    issues = [issue for issue in find(text, narration) if issue.check == "expected_duration"]
    assert [issue.node_id for issue in issues] == ["made"]
    assert "about 50 words" in issues[0].instruction


@pytest.mark.parametrize(("seconds", "is_right"), [(18.5, True), (21.5, True), (16.0, False)])
def test_tolerates_a_tenth_of_a_duration(seconds: float, is_right: bool) -> None:
    """Given an expected number of seconds, then a narration within a tenth of it passes."""
    issues = find(speak_for(seconds, Expect(duration_s=20)))
    assert ("expected_duration" in {issue.check for issue in issues}) != is_right


def test_speeds_up_the_text_of_a_person() -> None:
    """Given a text of a person in a long narration, then the issue changes the speed."""
    blocking = find(speak_for(20, Expect(duration_s=[14, 16])))
    issues = [issue for issue in blocking if issue.check == "expected_duration"]
    assert [issue.changes for issue in issues] == [{"speed": pytest.approx(1.33, abs=0.03)}]


def test_blocks_a_picture_of_another_size() -> None:
    """Given a picture of another size than its plan expects, then it is blocked."""
    size = {"width": 512, "height": 512}

    def draw(expect: Expect) -> Evidence:
        blob = Blob(png((512, 512)), "image/png")
        return build_evidence(DRAWING, {"prompt": "tea", **size}, blob, expect=expect, **size)

    assert find(draw(Expect(width=512, height=[500, 520])), objective="tea") == []
    (issue,) = find(draw(Expect(width=768)), objective="tea")
    assert issue.changes == {"width": 768}


@pytest.mark.parametrize(
    ("objective", "is_delivered"),
    [
        ("A picture of a bog at dawn", False),
        ("Male ein Bild von einem Moor", False),
        ("沼の絵を描いて", False),
        ("A caption for a picture of a bog", True),
        ("Write two sentences about peat, no picture", True),
        ("Frobnicate the bog", True),
    ],
)
def test_requires_the_medium_that_the_objective_names(objective: str, is_delivered: bool) -> None:
    """Given a plan that delivers a text instead of a requested picture, then it fails."""
    issues = find(write(PEAT, Expect()), objective=objective)
    assert ("media" in {issue.check for issue in issues}) != is_delivered
