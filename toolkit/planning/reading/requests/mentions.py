"""Mentions: what an objective asks for, as the passes find it, before it is tied together."""

from dataclasses import dataclass, field

from toolkit.planning.reading.spans.scan import KINDS, Phrase, Scan

ACT_KINDS = {
    "write": "text",
    "summarize": "text",
    "translate": "text",
    "rewrite": "text",
    "explain": "text",
    "answer": "text",
    "list": "text",
    "brainstorm": "text",
    "compare": "text",
    "classify": "text",
    "research": "research",
    "draw": "image",
    "speak": "speech",
    "lay_out": "card",
    "clone": "clone",
}
# Acts that work on something there already.
TRANSFORMING_ACTS = frozenset({"summarize", "translate", "rewrite", "classify"})
# What a capability would be called that did what the lexicons call by these keys.
UNAVAILABLE_IDS = {
    "send": "email.send",
    "post": "post.publish",
    "book": "booking.make",
    "call": "phone.call",
    "schedule": "calendar.schedule",
    "monitor": "monitor.watch",
    "live_data": "data.live",
    "transcribe": "speech.transcribe",
    "read_file": "file.read",
    "look_at_image": "image.describe",
    "edit_image": "image.edit",
    "edit_audio": "audio.edit",
    "run_code": "code.run",
    "video": "video.generate",
    "music": "music.generate",
    "slides": "slides.generate",
    "spreadsheet": "spreadsheet.generate",
    "document": "document.generate",
    "website": "website.generate",
    "chart": "chart.generate",
    "model_3d": "mesh.generate",
    "map": "map.generate",
    "qr_code": "qrcode.generate",
    "database": "database.query",
    "print": "document.print",
    "translate_audio": "speech.translate",
    "handle": "task.perform",
}


@dataclass(slots=True, eq=False)
class Mention:
    """Something that the objective asks for, at its place.

    Attributes:
        kind: as in `RequestedOutput`.
        start, end: the tokens that name it.
        clause: the first token of the clause that asks for it.
        act: the verb's key.
        form: the noun that names it.
        join: how it hangs on what came before: `start`, `and`, `with`, `as`.
        refers: whether its object is something mentioned before.
        refers_to: the kind of that, where the words say it.
        is_part: whether it is asked for as a part of another.
        count: how many of it.
        listed: how many things one of it is to list.
        each: whether one is to be made for each of something.
        language: the code of the language it is to be in.
        attributes: tokens where words stand that say how it looks or sounds.
        topics: stretches of tokens that it is about.
        has_subject: whether any of them says more than whom it is for.
        is_question: whether a question asks for it.
        is_earlier: whether it is to be made before what was asked for, as `first` says afterwards.
    """

    kind: str
    start: int
    end: int
    clause: int
    act: str | None = None
    form: str = ""
    join: str = "start"
    refers: bool = False
    refers_to: str | None = None
    is_part: bool = False
    is_creative: bool = False
    count: int = 1
    listed: int = 1
    each: bool = False
    language: str | None = None
    attributes: list[int] = field(default_factory=list)
    topics: list[tuple[int, int]] = field(default_factory=list)
    has_subject: bool = False
    needs_facts: bool = False
    is_question: bool = False
    is_earlier: bool = False
    inputs: list["Mention"] = field(default_factory=list)
    is_delivered: bool = True


@dataclass(frozen=True, slots=True)
class UnavailableMention:
    """Something asked for that nothing here does, at its place."""

    key: str
    start: int
    end: int


def get_kind(scan: Scan, phrase: Phrase) -> str | None:
    """Return the kind that a noun or a verb asks for; `None` where nothing here makes it.

    A capability that makes what is usually unavailable has a kind of its own: its id.
    """
    group, _, key = phrase.category.partition(".")
    match group:
        case "kind":
            return phrase.value
        case "act":
            return ACT_KINDS.get(key)
        case "thing":
            return key if key in KINDS else None
        case "creative":
            return "text"
        case "unavailable":
            capability = UNAVAILABLE_IDS.get(key, "")
            return capability if capability in scan.names.kinds else None
    return None
