"""What an objective works on that nothing here can look into: web pages, pictures, recordings."""

import re
from collections.abc import Sequence

from toolkit.planning.reading.requests.mentions import (
    TRANSFORMING_ACTS,
    Mention,
    UnavailableMention,
)
from toolkit.planning.reading.spans.scan import Scan

_ADDRESS = re.compile(
    r"\b(?:https?://|www\.)\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|de|fr|es|it|pt|br|jp|cn|co|eu"
    r"|info|example)\b",
    re.I,
)
_READING_ACTS = frozenset(
    {"summarize", "translate", "rewrite", "classify", "compare", "explain", "research", "speak"}
)
_LOOKING_ACTS = frozenset({"explain", "answer", "list", "classify", "compare"})


def find_addresses(scan: Scan) -> list[int]:
    """Find the words where addresses of the web begin, outside of what is quoted."""
    places = {match.start() for match in _ADDRESS.finditer(scan.objective)}
    return [i for i, token in enumerate(scan.tokens) if token.start in places and scan.is_free(i)]


def find_unreadable(
    scan: Scan,
    mentions: Sequence[Mention],
    addresses: Sequence[int],
    artifacts: Sequence[tuple[int, str]],
) -> list[tuple[Mention, UnavailableMention]]:
    """Find the requests whose source nothing here can read, with what would be needed."""
    found = []
    for place in addresses:
        for mention in _list_in_sentence(scan, mentions, place):
            if mention.act in _READING_ACTS or mention.is_question:
                found.append((mention, UnavailableMention("read_file", place, place + 1)))
                break
    for place, _ in artifacts:
        for mention in _list_in_sentence(scan, mentions, place, after=True):
            there = _list_in_sentence(scan, mentions, place, after=True)
            others = {one.kind for one in there}
            # "Write it and speak it with the voice from art_…" has that voice say it.
            voiced = any(
                (one.act == "speak" or one.kind == "clone") and mention.start < one.start < place
                for one in there
            )
            key = _find_sense(scan, mention, place, voiced=voiced)
            if key is not None and not (key == "look_at_image" and others & {"card", "clone"}):
                found.append((mention, UnavailableMention(key, place, place + 1)))
                break
    return found


def _find_sense(scan: Scan, mention: Mention, place: int, *, voiced: bool) -> str | None:
    """Return what would have to look at an artifact, or listen to it, for a request of text."""
    is_shown = any(
        phrase.category == "thing.image" and phrase.end == place
        for k in range(max(mention.start, place - 3), place)
        for phrase in scan.phrases(k)
    )
    if mention.kind == "image" and mention.act == "draw" and is_shown:
        return "edit_image"
    if mention.kind == "speech" and is_shown:
        return "look_at_image"
    if mention.kind != "text":
        return None
    first, last = sorted((mention.start, place))
    heard = any(scan.has(k, "act.speak", "thing.speech") for k in range(first, last))
    joined = not any(scan.breaks[first + 1 : last + 1])
    if voiced:
        return None
    written = mention.act == "write" and joined
    if heard and (mention.act in TRANSFORMING_ACTS or written or mention.join == "as"):
        return "translate_audio" if mention.act == "translate" else "transcribe"
    seen = mention.act in _LOOKING_ACTS or (mention.act in {"write", None} and joined)
    return "look_at_image" if seen and mention.start < place else None


def find_source_nouns(
    scan: Scan, mentions: Sequence[Mention], artifacts: Sequence[tuple[int, str]]
) -> list[Mention]:
    """Find nouns that only say what an artifact is: `the recording art_…`."""
    places = {place for place, _ in artifacts}
    return [
        one
        for one in mentions
        if one.end in places and one.act is None and one.count == 1 and not scan.breaks[one.end]
    ]


def _list_in_sentence(
    scan: Scan, mentions: Sequence[Mention], place: int, *, after: bool = False
) -> list[Mention]:
    """List what the sentence of a word asks for, before it or also after."""
    start = scan.find_sentence_start(place)
    end = scan.find_sentence_end(place) if after else place + 1
    return [one for one in mentions if start <= one.start < end]
