"""The judge by language model: its prompt, and the proof of its findings; the engine asks it.

The judge reports defects, not a score: the code of a defect fixes the consequences. So no text can
talk its way to a better score. A finding counts only if its quoted words are in the text. If
something is missing, they must be in the brief or the material that asks for it.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, get_args

from toolkit.contract.base import JsonObject
from toolkit.planning.model_reply import load_document
from toolkit.planning.quotes import QuotedText
from toolkit.planning.review.evidence import Criterion, Evidence, ReviewIssue
from toolkit.plugins import Blob

MAX_FINDINGS = 10  # of one answer
ANSWER_TOKENS = 400
MAX_TEXT_CHARACTERS = 12_000  # of each text, brief and source
MAX_MATERIAL_CHARACTERS = 50_000  # of all texts, briefs and sources
MAX_QUOTED_CHARACTERS = 300  # of a quote or an explanation, in issues and instructions
BLOCKING_WEIGHT, OTHER_WEIGHT = 0.7, 0.1
# Every vendor takes pictures of these types and this size (Amazon's Converse API: 3.75 MB).
MAX_PICTURES, MAX_PICTURE_BYTES = 4, 3_750_000
PICTURE_TYPES = frozenset(("image/png", "image/jpeg", "image/webp", "image/gif"))


@dataclass(frozen=True, slots=True)
class Rubric:
    """The instructions of the judge, and the consequences of its findings.

    Attributes:
        criteria: the criterion that each defect lowers, by its code.
        instructions: the sentence for the writer, by the code of the defect.
        missing: the codes of defects that have no words to quote.
        picture_text: the further instructions for pictures.
        of_pictures: the codes of defects of pictures.
    """

    text: str
    criteria: Mapping[str, Criterion]
    instructions: Mapping[str, str]
    missing: frozenset[str]
    picture_text: str
    of_pictures: Sequence[str]


@cache
def load_rubric() -> Rubric:
    """Load the rubric from `judge.toml`."""
    source = resources.files(__package__) / "judge.toml"
    data: dict[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))
    groups = {name: data[name] for name in get_args(Criterion)}
    criteria = {code: name for name, defects in groups.items() for code in defects}
    instructions = {code: text for defects in groups.values() for code, text in defects.items()}
    of_pictures: list[str] = data["of_pictures"]
    codes = ", ".join(code for code in criteria if code not in of_pictures)
    return Rubric(
        data["rubric"].replace("{codes}", codes),
        criteria,
        instructions,
        frozenset(data["missing"]),
        data["picture_rubric"].replace("{codes}", ", ".join(of_pictures)),
        of_pictures,
    )


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A text to judge, or a picture that the judge is shown.

    Attributes:
        node_id: the node that wrote it.
        brief: the request to that node, with its system text and its material.
        sources: the texts of the nodes before it.
        remarks: a person's remarks on earlier versions.
        measured: counts by a program, such as words.
        suspected: issues that the checks suspect.
        picture_id: the artifact of the picture; empty for a text.
    """

    node_id: str
    brief: str
    text: str
    sources: str = ""
    remarks: Sequence[str] = ()
    measured: Mapping[str, object] = field(default_factory=dict)
    suspected: Sequence[str] = ()
    picture_id: str = ""


@dataclass(frozen=True, slots=True)
class JudgeFinding:
    """A finding of the judge whose quotes were found in the texts.

    Attributes:
        quote: the words of the text; empty if something is missing.
        against: the words that they break; empty if they break none.
        blocks: whether the text must not be delivered with it.
    """

    node_id: str
    code: str
    quote: str
    against: str
    explanation: str
    blocks: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """The findings of the judge's answer that are proven: their quotes were found in the texts.

    Attributes:
        dropped: number of findings that are not proven, or beyond the tenth.
    """

    findings: Sequence[JudgeFinding] = ()
    dropped: int = 0
    saw_pictures: bool = False


@dataclass(frozen=True, slots=True)
class JudgeBrief:
    """All that the judge, a language model, receives to review a task.

    Attributes:
        texts: the texts to judge, and the pictures that the judge is shown.
        media: a line of measures for each picture and sound; the judge gets no samples.
    """

    objective: str
    texts: Sequence[JudgedText]
    media: Sequence[str] = ()

    @property
    def picture_ids(self) -> list[str]:
        """The artifacts of the pictures that the judge is shown, in the order of their numbers."""
        return [judged.picture_id for judged in self.texts if judged.picture_id]

    def without_pictures(self) -> "JudgeBrief":
        """Return the same material without the pictures."""
        return replace(self, texts=[text for text in self.texts if not text.picture_id])


def build_judge_input(brief: JudgeBrief, max_tokens: int = ANSWER_TOKENS) -> JsonObject:
    """Build the question to the judge, as an input of `llm.generate`; long material is cut.

    Text of other authors goes into `context`, because that capability marks it as untrusted.

    >>> brief = JudgeBrief("On tides", [JudgedText("copy", "Write on tides", "Tides turn.")])
    >>> "Tides turn." in str(build_judge_input(brief)["context"])
    True
    """
    room = MAX_TEXT_CHARACTERS
    while len(context := _format_material(brief, room)) > MAX_MATERIAL_CHARACTERS and room:
        room = room * 2 // 3
    question: JsonObject = {
        "objective": "Judge these texts.",
        "system": load_rubric().text,
        "context": context[:MAX_MATERIAL_CHARACTERS],
        "max_tokens": max_tokens,
        "output_schema": build_answer_schema(brief.texts),
    }
    if brief.picture_ids:
        question["objective"] = "Judge these texts and pictures."
        question["system"] = f"{load_rubric().text}\n\n{load_rubric().picture_text}"
        question["images"] = [*brief.picture_ids]
    return question


def _format_material(brief: JudgeBrief, room: int) -> str:
    """Write the material as JSON, each long text cut to `room` characters.

    In JSON, no text can close its string and begin another.
    """
    numbers = {picture_id: n for n, picture_id in enumerate(brief.picture_ids, 1)}
    texts = [
        {
            "node": judged.node_id,
            "picture": numbers.get(judged.picture_id),
            "brief": _cut_text(judged.brief, room),
            "sources": _cut_text(judged.sources, room),
            "remarks": [*judged.remarks],
            "measured": dict(judged.measured),
            "suspected": [*judged.suspected],
            "text": _cut_text(judged.text, room),
        }
        for judged in brief.texts
    ]
    material = {
        "objective": brief.objective,
        "texts": [{name: value for name, value in entry.items() if value} for entry in texts],
        "pictures and sounds": [*brief.media],
    }
    return json.dumps(material, ensure_ascii=False, indent=1)


def _cut_text(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]} [...]"


def build_answer_schema(texts: Sequence[JudgedText]) -> JsonObject:
    """Build the JSON schema of the judge's answer about these texts and pictures."""
    rubric = load_rubric()
    hidden = () if any(judged.picture_id for judged in texts) else rubric.of_pictures
    codes = [code for code in rubric.criteria if code not in hidden]
    text: JsonObject = {"type": "string"}
    properties: JsonObject = {
        "node": {"type": "string", "enum": [judged.node_id for judged in texts]},
        "code": {"type": "string", "enum": [*codes]},
        "quote": text,
        "against": text,
        "explanation": text,
        "blocks": {"type": "boolean"},
    }
    finding: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"findings": {"type": "array", "items": finding}},
        "required": ["findings"],
        "additionalProperties": False,
    }


def read_answer(text: str, brief: JudgeBrief) -> Judgement:
    """Read the judge's answer, and keep each finding whose quotes are found in the texts.

    Raises:
        ValueError: the answer is no JSON with findings.

    >>> brief = JudgeBrief("On tides", [JudgedText("copy", "Write on tides", "Tides turn daily.")])
    >>> finding = {"code": "incoherent", "quote": "turn weekly", "explanation": "It is odd."}
    >>> read_answer(json.dumps({"findings": [finding]}), brief)
    Judgement(findings=[], dropped=1, saw_pictures=False)
    """
    document = load_document(text, frozenset(("findings", "issues")))
    raw = document.get("findings", document.get("issues"))
    entries: list[Any] = raw if isinstance(raw, list) else [raw] if raw else []
    readings = [_read_finding(entry, brief) for entry in entries[:MAX_FINDINGS]]
    findings = [finding for finding in readings if finding is not None]
    return Judgement(findings, len(entries) - len(findings), bool(brief.picture_ids))


def _read_finding(raw: Any, brief: JudgeBrief) -> JudgeFinding | None:
    """Read a finding of the judge; None if it is unreadable or its quotes are not in the texts."""
    if not isinstance(raw, dict):
        return None
    texts = {judged.node_id: judged for judged in brief.texts}
    judged = texts.get(str(raw.get("node"))) or (brief.texts[0] if len(texts) == 1 else None)
    if judged is None:
        return None
    code = re.sub(r"\W+", "_", _make_line(raw.get("code"))).strip("_").lower()
    rubric = load_rubric()
    code = code if code in rubric.criteria else "other"
    if judged.picture_id and code not in rubric.of_pictures:
        code = rubric.of_pictures[0]
    quote, against = _make_line(raw.get("quote")), _make_line(raw.get("against"))
    if not _is_proven(code, quote, against, judged, brief):
        return None
    blocks = raw.get("blocks", raw.get("severity"))
    # What a program draws, and not a model by a brief, would be the same again.
    is_drawn = bool(judged.picture_id) and not judged.brief
    return JudgeFinding(
        judged.node_id,
        code,
        quote,
        against,
        _make_line(raw.get("explanation")),
        not is_drawn and str(blocks).casefold() in {"true", "yes", "high", "critical", "major"},
    )


def _is_proven(code: str, quote: str, against: str, judged: JudgedText, brief: JudgeBrief) -> bool:
    """Return whether the quotes of a finding are in the texts that it refers to.

    A quote must be in the judged text. Without a quote, something is missing. Then the words that
    ask for it must be in the objective, the brief, a remark or a text. A picture has no words to
    quote.
    """
    requests = [brief.objective, judged.brief, judged.sources, *judged.remarks]
    texts = [text.text for text in brief.texts]
    is_broken = any(QuotedText(place).mark(against) for place in [*requests, *texts])
    if judged.picture_id:
        return is_broken
    if quote:
        needs_other = code in {"contradiction", "wrong_fact"}
        is_other = is_broken and not QuotedText(quote).mark(against)
        return QuotedText(judged.text).mark(quote) and (is_other or not needs_other)
    return code in load_rubric().missing and is_broken


def _make_line(value: object) -> str:
    text = value if isinstance(value, str) else ""
    line = " ".join(re.sub(r"[^\S ]|[\x00-\x1f\x7f]", " ", text).split())
    if len(line) <= MAX_QUOTED_CHARACTERS:
        return line
    return line[: MAX_QUOTED_CHARACTERS - 1] + "…"


def make_issues(judgement: Judgement) -> list[ReviewIssue]:
    """Make an issue of the review from each finding of the judge."""
    return [
        ReviewIssue(
            finding.node_id,
            load_rubric().criteria[finding.code],
            BLOCKING_WEIGHT if finding.blocks else OTHER_WEIGHT,
            _describe_finding(finding),
            is_blocking=finding.blocks,
            instruction=_make_instruction(finding),
            check=f"judge: {finding.code}",
        )
        for finding in judgement.findings
    ]


def _describe_finding(finding: JudgeFinding) -> str:
    quoted = f'"{finding.quote}"' if finding.quote else ""
    broken = f'"{finding.against}"' if finding.against else ""
    words = " is at odds with ".join(filter(None, (quoted, broken)))
    reason = finding.explanation or finding.code.replace("_", " ")
    return f"{words}: {reason}" if words else reason


def _make_instruction(finding: JudgeFinding) -> str:
    """Make the instruction to mend a finding, from a template and the finding's quotes alone.

    A text may have talked the judge into the rest of its answer.
    """
    template = load_rubric().instructions[finding.code]
    lacks = any(
        f"{{{name}}}" in template and not getattr(finding, name) for name in ("quote", "against")
    )
    if lacks:
        return "Mend what the review found, and keep the rest."
    return template.format(quote=finding.quote, against=finding.against)


def build_brief(
    objective: str,
    evidence: Sequence[Evidence],
    suspected: Sequence[ReviewIssue] = (),
    *,
    shows_pictures: bool = False,
) -> JudgeBrief:
    """Build the material for the judge: texts of models, and measures of pictures and sounds.

    Args:
        suspected: issues that the checks suspect, for the judge to confirm or overrule.
        shows_pictures: whether the judge can see; it is shown the last few pictures.
    """
    from toolkit.media.text_counts import measure_text  # its patterns are slow to compile

    texts = [
        JudgedText(
            item.node.id,
            _write_brief(item),
            item.text,
            item.upstream_text or "",
            item.remarks,
            measure_text(item.text),
            [issue.message for issue in suspected if issue.node_id == item.node.id],
        )
        for item in evidence
        if item.status == "completed" and item.brief and item.text
    ]
    pictures = [
        JudgedText(item.node.id, _write_brief(item), "", picture_id=item.artifact_id)
        for item in evidence
        if shows_pictures and item.artifact_id and _is_shown(item.blob)
    ]
    media = [
        _describe_medium(item)
        for item in evidence
        if item.blob is not None and item.blob.media_type.startswith(("image/", "audio/"))
    ]
    return JudgeBrief(objective, [*texts, *pictures[-MAX_PICTURES:]], media)


def _is_shown(blob: Blob | None) -> bool:
    """Check whether each vendor whose models see pictures takes one of this type and size."""
    if blob is None or blob.media_type not in PICTURE_TYPES:
        return False
    return len(blob.data) <= MAX_PICTURE_BYTES


def _write_brief(item: Evidence) -> str:
    """Compose the request that a text answers: its brief, its system text and its material."""
    fields = item.node.input if item.planned_input is None else item.planned_input
    parts = [f"{name}: {fields[name]}" for name in ("system", "context") if fields.get(name)]
    return "\n\n".join([item.brief, *parts])


def _describe_medium(item: Evidence) -> str:
    kind = item.blob.media_type if item.blob is not None else ""
    measures = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in (item.output or {}).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return f"{item.node.id}: {', '.join([kind, *measures])}"
