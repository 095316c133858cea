"""The judge by language model: its prompt, and of its answer what can be proven; the engine asks.

It looks for what checks cannot see. It is asked for findings and not for a score: the score follows
from those whose quotes stand where it says, so that no text can talk its way to a better one.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict

from toolkit.contract.base import JsonObject
from toolkit.planning.model_reply import load_document
from toolkit.planning.review.evidence import Evidence
from toolkit.planning.review.issues import Criterion, ReviewIssue
from toolkit.review_thresholds import DEFAULT_THRESHOLDS, ReviewThresholds

FindingKind: TypeAlias = Literal["contradiction", "motif", "quality"]
Severity: TypeAlias = Literal["minor", "major", "critical"]

SEVERITY_WEIGHTS: Mapping[Severity, float] = {"minor": 0.15, "major": 0.45, "critical": 0.9}
KIND_CRITERIA: Mapping[FindingKind, Criterion] = {
    "contradiction": "objective_alignment",
    "motif": "objective_alignment",
    "quality": "technical_success",
}
MAX_SAMPLES = 2
MAX_ISSUES = 10  # of one answer
ANSWER_TOKENS = 1_500
MAX_TEXT_CHARACTERS = 12_000  # of each text, each brief, and what each was made from
MAX_MATERIAL_CHARACTERS = 50_000  # of all of them
MAX_TOLD_CHARACTERS = 300  # of a quote or an explanation, in issues and instructions
# Shorter quotes stand in any text; a sign of a script without spaces is half a word.
MIN_QUOTE_CHARACTERS, MIN_DENSE_QUOTE_CHARACTERS = 8, 4

RUBRIC = """\
You judge texts that were written for an objective. Programs have already checked their form,
length, language, spelling and completeness: say nothing of those. Look only for these issues.
contradiction: the text says otherwise than its brief, its sources, another of the texts or itself.
That its sources do not mention something is no contradiction.
motif: the text is about something else than its brief asks for: another subject, place, person or
occasion.
quality: a reader would stumble, as it is incoherent, does not follow, or has the wrong tone for
those whom the objective names.
Each issue names its text by `node`, and quotes in `quote` three words or more of that text, letter
by letter. A contradiction or a motif also quotes in `against`, letter by letter, what it is at odds
with: other words of the objective, the brief, the sources or a text. For quality it is empty. An
issue whose quotes are not found is dropped.
severity: minor, a reader would hardly notice; major, a reader would be misled or disappointed;
critical, nobody may be given this text. `explanation` says in one sentence what is wrong.
A text that ends in [...] was cut for you, and not by its writer.
Where nothing is wrong, `issues` is empty. Answer with the JSON alone."""
SECOND_OPINION = "Another judge has answered before you. Judge for yourself, the last text first."

_QUOTE_MARKS = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-"})


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A text to judge.

    Attributes:
        node_id: the node that wrote it.
        brief: what that node was asked for.
        sources: the texts that it was made from.
    """

    node_id: str
    brief: str
    text: str
    sources: str = ""


@dataclass(frozen=True, slots=True)
class JudgeFinding:
    """What the judge found, its quotes proven.

    Attributes:
        quote: the words of the text.
        against: the words that they are at odds with; none for quality.
        weight: how much it lowers the score of its text, of 1.
    """

    node_id: str
    kind: FindingKind
    quote: str
    against: str
    explanation: str
    weight: float


@dataclass(frozen=True, slots=True)
class JudgeSample:
    """One answer of the judge.

    Attributes:
        findings: those that are proven.
        dropped: how many were not.
    """

    findings: Sequence[JudgeFinding] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class JudgeBrief:
    """What the judge is given.

    Attributes:
        objective: of the task.
        texts: those to judge.
        media: what is known of pictures and sounds, a line each: their measures, not themselves.
    """

    objective: str
    texts: Sequence[JudgedText]
    media: Sequence[str] = field(default=())


class _Issue(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    node: str
    kind: FindingKind
    severity: Severity
    quote: str
    against: str
    explanation: str


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    issues: list[_Issue]


def build_judge_input(
    brief: JudgeBrief, sample: int = 0, max_tokens: int = ANSWER_TOKENS
) -> JsonObject:
    """Build the question to the judge, as an input of `llm.generate`.

    Whatever others wrote is its `context`, which that capability fences.

    Args:
        brief: what is judged.
        sample: how many answers there are already; a further one is asked for in other words.
        max_tokens: the most that the answer may have.

    >>> brief = JudgeBrief("On tides", [JudgedText("copy", "Write on tides", "Tides turn.")])
    >>> "Tides turn." in str(build_judge_input(brief)["context"])
    True
    """
    room = MAX_TEXT_CHARACTERS
    while len(context := _format_material(brief, room, sample)) > MAX_MATERIAL_CHARACTERS and room:
        room = room * 2 // 3
    return {
        "objective": "Judge these texts.",
        "system": f"{RUBRIC}\n{SECOND_OPINION}" if sample else RUBRIC,
        "context": context[:MAX_MATERIAL_CHARACTERS],
        "max_tokens": max_tokens,
        "output_schema": build_answer_schema(brief.texts),
    }


def _format_material(brief: JudgeBrief, room: int, sample: int) -> str:
    """Write the material as JSON, so that no text can end itself and begin another."""
    texts = [
        {
            "node": one.node_id,
            "brief": _cut_text(one.brief, room),
            "sources": _cut_text(one.sources, room),
            "text": _cut_text(one.text, room),
        }
        for one in brief.texts
    ]
    material = {
        "objective": brief.objective,
        "texts": texts[::-1] if sample else texts,
        "pictures and sounds": [*brief.media],
    }
    return json.dumps(material, ensure_ascii=False, indent=1)


def _cut_text(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]} [...]"


def build_answer_schema(texts: Sequence[JudgedText]) -> JsonObject:
    """Build the JSON schema of an answer, with the nodes that there are."""
    properties: JsonObject = {
        "node": {"type": "string", "enum": [one.node_id for one in texts]},
        "kind": {"type": "string", "enum": [*get_args(FindingKind)]},
        "severity": {"type": "string", "enum": [*get_args(Severity)]},
        "quote": {"type": "string"},
        "against": {"type": "string"},
        "explanation": {"type": "string"},
    }
    issue: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"issues": {"type": "array", "items": issue}},
        "required": ["issues"],
        "additionalProperties": False,
    }


def read_answer(text: str, brief: JudgeBrief) -> JudgeSample:
    """Read an answer, and keep of its issues those that are proven.

    Raises:
        ValueError: it is not the JSON that was asked for.

    >>> brief = JudgeBrief("On tides", [JudgedText("copy", "Write on tides", "Tides turn daily.")])
    >>> issue = {"node": "copy", "kind": "quality", "severity": "minor", "quote": "turn weekly",
    ...          "against": "", "explanation": "It is odd."}
    >>> read_answer(json.dumps({"issues": [issue]}), brief)
    JudgeSample(findings=[], dropped=1)
    """
    issues = _Answer.model_validate(load_document(text)).issues
    texts = {one.node_id: one for one in brief.texts}
    kept = [
        JudgeFinding(
            issue.node,
            issue.kind,
            _make_line(issue.quote),
            "" if issue.kind == "quality" else _make_line(issue.against),
            _make_line(issue.explanation),
            SEVERITY_WEIGHTS[issue.severity],
        )
        for issue in issues[:MAX_ISSUES]
        if issue.node in texts and _is_proven(issue, texts[issue.node], brief)
    ]
    return JudgeSample(kept, len(issues) - len(kept))


def _is_proven(issue: _Issue, judged: JudgedText, brief: JudgeBrief) -> bool:
    """Tell whether the words that an issue quotes stand where it says."""
    if not _is_quoted(issue.quote, [judged.text]):
        return False
    if issue.kind == "quality":
        return True
    if _fold(issue.against) in _fold(issue.quote):  # nothing is at odds with itself
        return False
    others = [one.text for one in brief.texts]
    return _is_quoted(issue.against, [brief.objective, judged.brief, judged.sources, *others])


def _is_quoted(quote: str, places: Sequence[str]) -> bool:
    words = _fold(quote).strip(" \"'.,;:!?…")
    dense = any(unicodedata.east_asian_width(sign) in "WF" for sign in words)
    least = MIN_DENSE_QUOTE_CHARACTERS if dense else MIN_QUOTE_CHARACTERS
    folded = [_fold(place) for place in places]
    if len(words) < least:
        return bool(words) and any(words == place.strip(" \"'.,;:!?…") for place in folded)
    return any(words in place for place in folded)


def _fold(text: str) -> str:
    """Fold what a model that quotes may change: letter case, quotation marks, dashes, spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_QUOTE_MARKS).casefold().split())


def _make_line(text: str) -> str:
    line = " ".join(re.sub(r"[^\S ]|[\x00-\x1f\x7f]", " ", text).split())
    return line if len(line) <= MAX_TOLD_CHARACTERS else line[: MAX_TOLD_CHARACTERS - 1] + "…"


def merge_samples(samples: Sequence[JudgeSample]) -> JudgeSample:
    """Merge answers: what only one of two found counts half.

    >>> found = JudgeFinding("copy", "quality", "turn daily", "", "It is odd.", 0.45)
    >>> [one.weight for one in merge_samples([JudgeSample([found]), JudgeSample()]).findings]
    [0.225]
    """
    merged: list[JudgeFinding] = []
    for sample in samples:
        for finding in sample.findings:
            share = finding.weight / len(samples)
            same = next((n for n, one in enumerate(merged) if _are_same(one, finding)), None)
            if same is None:
                merged.append(replace(finding, weight=share))
            else:
                merged[same] = replace(merged[same], weight=merged[same].weight + share)
    return JudgeSample(merged, sum(sample.dropped for sample in samples))


def _are_same(one: JudgeFinding, other: JudgeFinding) -> bool:
    if (one.node_id, one.kind) != (other.node_id, other.kind):
        return False
    first, second = _fold(one.quote), _fold(other.quote)
    return first in second or second in first


def score_texts(sample: JudgeSample) -> dict[str, float]:
    """Score each text that something was found in: 1 less the weights of it."""
    lost: dict[str, float] = {}
    for finding in sample.findings:
        lost[finding.node_id] = lost.get(finding.node_id, 0.0) + finding.weight
    return {node_id: round(max(0.0, 1.0 - weight), 3) for node_id, weight in lost.items()}


def is_near_line(sample: JudgeSample, thresholds: ReviewThresholds = DEFAULT_THRESHOLDS) -> bool:
    """Tell whether another answer might change the verdict: a text scores near what passes."""
    line, margin = thresholds.pass_score, thresholds.judge_margin
    return any(abs(score - line) <= margin for score in score_texts(sample).values())


def make_issues(
    sample: JudgeSample, thresholds: ReviewThresholds = DEFAULT_THRESHOLDS
) -> list[ReviewIssue]:
    """Make the issues of a review from findings; they block where a text scores too low to pass."""
    scores = score_texts(sample)
    return [
        ReviewIssue(
            finding.node_id,
            KIND_CRITERIA[finding.kind],
            round(finding.weight, 3),
            _describe_finding(finding),
            is_blocking=scores[finding.node_id] < thresholds.pass_score,
            instruction=_make_instruction(finding),
            check=f"judge: {finding.kind}",
        )
        for finding in sample.findings
    ]


def _describe_finding(finding: JudgeFinding) -> str:
    against = f' is at odds with "{finding.against}"' if finding.against else ""
    return f'"{finding.quote}"{against}: {finding.explanation}'


def _make_instruction(finding: JudgeFinding) -> str:
    """Make the sentence that a writer is told: of proven words alone, as the rest of an answer may
    be what a text has talked the judge into.
    """
    if finding.against:
        return f'Do not say "{finding.quote}": it is at odds with "{finding.against}".'
    return f'Put "{finding.quote}" in better words, or leave it out.'


def build_brief(objective: str, evidence: Sequence[Evidence]) -> JudgeBrief:
    """Build what the judge is given: each text that a model wrote, and measures of what is none."""
    texts = [
        JudgedText(item.node.id, item.brief, item.text, item.upstream_text or "")
        for item in evidence
        if item.status == "completed" and item.brief and item.text
    ]
    media = [
        _describe_medium(item)
        for item in evidence
        if item.blob is not None and item.blob.media_type.startswith(("image/", "audio/"))
    ]
    return JudgeBrief(objective, texts, media)


def _describe_medium(item: Evidence) -> str:
    kind = item.blob.media_type if item.blob is not None else ""
    measures = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in (item.output or {}).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return f"{item.node.id}: {', '.join([kind, *measures])}"
