"""The parser of prompts: their topic, the form and length asked for, and the text to work from."""

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolkit.sandbox.text.languages import ENGLISH, detect_language
from toolkit.sandbox.text.other_languages import parse_form, parse_topic
from toolkit.sandbox.text.sentences import (
    STOPWORDS,
    count_spaced_words,
    extract_content_words,
    split_sentences,
)

UNKNOWN_TOPIC = "this subject"
_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "a": 1, "single": 1,
}  # fmt: skip
NUMBER_PATTERN = r"(\d+|" + "|".join(_NUMBERS) + ")"


class Cue(NamedTuple):
    """A pattern that only a text with one of some words can match; a word is quicker to find."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]

    def search(self, text: str, folded: str) -> re.Match[str] | None:
        """Search a text, of which the case-folded form is given, too."""
        known = any(word in folded for word in self.words)
        return self.pattern.search(text) if known else None


_WORDS = re.compile(r"\b(\d+)[\s-]+words?\b", re.I)
_AT_MOST = Cue(
    ("words",),
    re.compile(
        r"\b(?:at most|up to|under|below|no more than|not more than|maximum(?: of)?|within|"
        r"fewer than)\s+\d+\s+words",
        re.I,
    ),
)
_BULLETS = Cue(
    ("bullet", "point", "takeaway", "fact"),
    re.compile(
        NUMBER_PATTERN + r"[\s-]+(?:\w+\s+)?(?:bullets?(?: points?)?|points|takeaways|facts)\b",
        re.I,
    ),
)
_BULLET = Cue(("bullet",), re.compile(r"\bbullet", re.I))
_SENTENCES = Cue(("sentence",), re.compile(NUMBER_PATTERN + r"[\s-]+(?:\w+\s+)?sentences?\b", re.I))
_PARAGRAPHS = Cue(
    ("paragraph",), re.compile(NUMBER_PATTERN + r"[\s-]+(?:\w+\s+)?paragraphs?\b", re.I)
)
_ONE_LINE = re.compile(r"\b(?:one|single|1)[\s-]+lin(?:e|er)\b|\btagline\b|\bslogan\b", re.I)
_HEADLINE = Cue(
    ("headline", "title", "subject line", "heading"),
    re.compile(r"\b(?:headline|title|subject line|heading)s?\b", re.I),
)
_TEASER = Cue(
    ("teaser", "hook", "invit", "promo", "caption", "tweet"),
    re.compile(r"\b(?:teaser|hook|invit\w+|promo\w*|caption|tweet)\b", re.I),
)

_IMPERATIVE = re.compile(
    r"^(?:please\s+)?(?:write|summari[sz]e|give|return|produce|create|draft|compose|explain|list|"
    r"describe|answer|reply|respond|make|generate|provide|use|do not|don't|keep|mention|include|"
    r"avoid|tell|turn|rewrite|condense|be|you are|act as|only|output|in (?:about |at most )?\d+ "
    r"words|plan|review|judge|check|state|say|speak|treat|never|the (?:following|text below))\b",
    re.I,
)
_LABEL = re.compile(r"^\s*(?:[#*]+\s*)?([A-Za-z][A-Za-z _-]{1,30})\s*:\s*\**\s*", re.M)
_OBJECTIVE = Cue(
    ("objective", "topic", "subject", "task", "goal", "about"),
    re.compile(r"\b(?:objective|topic|subject|task|goal|about)\s*:\s*(.+)", re.I),
)
_ABOUT = tuple(
    re.compile(rf"\b(?:{lead})\s+(?:the (?:topic|subject) (?:of )?)?(.+)", re.I | re.S)
    for lead in ("about|explaining|describing|introducing|covering|regarding", "on|of", "for")
)
_AFTER_FORM = re.compile(r"[^.:\n]{1,40}:\s+(.+)", re.S)  # "A social card: tidal power"
_LENGTH = re.compile(
    r"\b(?:in\s+)?(?:about |around |under |at most |exactly |up to )?"
    + NUMBER_PATTERN
    + r"[\s-]+(?:words?|sentences?|paragraphs?|bullet points|bullets?|points|characters|lines?)"
    r"\b:?",
    re.I,
)
_TOPIC_END = re.compile(
    r"[.,;:?!\n(]|\s(?:for|in|with|using|based|from|that|which|as|aimed|to|so|suitable|and then|"
    r"at|by|post|card)\s|$",
    re.I,
)
_FENCE = re.compile(r"^\s*(?:```\w*|<{1,3}/?[\w -]+>{1,3}|-{3,}|={3,}|\"{3})\s*$", re.M)
_BLANK_LINE = re.compile(r"\n\s*\n")
_ANYTHING = re.compile(r"(.+)", re.S)
_JSON = Cue(("json",), re.compile(r"\bjson\b", re.I))
_FORM_TEXT = """
write summarise summarize teaser word words line sentence sentences paragraph paragraphs
headline title bullet bullets point points short brief summary copy text article post blog
social card caption tweet picture image illustration speech audio explain describe create make
generate give produce draft please friendly plain clear simple tagline slogan introduction
overview note piece research gather objective topic task following below passage document notes
source context readers audience exactly clickable
"""
_FORM_WORDS = frozenset(_FORM_TEXT.split())


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """A parsed prompt.

    Attributes:
        topic: the words it is about.
        objective: the instruction itself, source text left out.
        source: the text in it to work from, possibly empty.
        at_most: true if `words` is a limit and not the length itself.
        language: the code of the language to answer in.
    """

    topic: str
    objective: str
    source: str
    words: int | None = None
    at_most: bool = False
    bullets: int | None = None
    sentences: int | None = None
    paragraphs: int | None = None
    one_line: bool = False
    headline: bool = False
    teaser: bool = False
    language: str = ENGLISH


def parse_prompt(system: str, user: str) -> ParsedPrompt:
    """Parse a prompt; the user's words count before the system's."""
    instruction, source = split_prompt(user)
    form = f"{instruction}\n{system}"
    objective = _find_labelled_objective(user) or instruction.strip() or user.strip()
    language = detect_language(system, user, objective)
    said, folded = parse_form(form, language), form.casefold()
    return ParsedPrompt(
        language=language,
        topic=parse_topic(objective, language) or extract_topic(objective, source),
        objective=" ".join(objective.split()),
        source=source,
        words=read_number(_WORDS.search(form)) or said.words,
        at_most=bool(_AT_MOST.search(form, folded)),
        bullets=read_number(_BULLETS.search(form, folded))
        or said.bullets
        or (3 if _BULLET.search(form, folded) else None),
        sentences=read_number(_SENTENCES.search(form, folded)) or said.sentences,
        paragraphs=read_number(_PARAGRAPHS.search(form, folded)),
        one_line=bool(_ONE_LINE.search(form)),
        headline=bool(_HEADLINE.search(instruction, instruction.casefold())),
        teaser=bool(_TEASER.search(form, folded)),
    )


def read_number(match: re.Match[str] | None, group: int = 1) -> int | None:
    """Read the number that a text asks for, in a group of a match."""
    raw = match.group(group) if match is not None else None
    if raw is None:
        return None
    value = _NUMBERS.get(raw.lower()) or int(raw)
    return max(1, min(value, 2000))


def _find_labelled_objective(text: str) -> str:
    match = _OBJECTIVE.search(text, text.casefold())
    return match.group(1).strip(" \"'*") if match else ""


def split_prompt(user: str) -> tuple[str, str]:
    """Split a prompt into its instruction and the text that it contains to work from."""
    instruction: list[str] = []
    source: list[str] = []
    blocks = [one for one in _BLANK_LINE.split(_FENCE.sub("\n\n", user)) if one.strip()]
    for place, block in enumerate(blocks):
        label = _LABEL.match(block)
        if place == 0 and len(blocks) > 1 and not label and count_spaced_words(block) < 60:
            instruction.append(block)  # an objective leads, however it is worded
            continue
        body = block[label.end() :] if label else block
        for sentence in split_sentences(body):
            asks = _IMPERATIVE.match(sentence) or _WORDS.search(sentence[:40])
            short = count_spaced_words(sentence) < 5 and not sentence.endswith((".", "!"))
            told = asks or sentence.endswith((":", "?")) or short
            (instruction if told else source).append(sentence)
    text = " ".join(source)
    if (
        count_spaced_words(text) < 25
    ):  # a bare objective, however it is worded, is no text to work from
        return user, ""
    return " ".join(instruction) or source[0], "\n\n".join(source)


def extract_topic(objective: str, source: str = "") -> str:
    """Extract the few words that an objective is about."""
    objective = _LENGTH.sub(" ", objective).strip(" ,:;")
    tries = (
        *(pattern.search(objective) for pattern in _ABOUT),
        _AFTER_FORM.match(objective),
        _ANYTHING.search(objective),
    )
    for match in tries:
        if match is None:
            continue
        phrase = match.group(1)
        end = _TOPIC_END.search(phrase, 3)
        head = phrase[: end.start()] if end else phrase
        kept = [w for w in head.split() if w.strip("\"'*“”").lower() not in _FORM_WORDS]
        while kept and kept[0].lower() in STOPWORDS:
            kept.pop(0)
        if len(kept) > 1 and kept[-1].lower() in ("works", "work", "matters", "matter", "means"):
            kept.pop()  # how it works, why it matters
        topic = " ".join(kept[:6]).strip(" \"'*“”-–")
        if extract_content_words(topic):
            return topic
    fallback = extract_content_words(source)[:2] or extract_content_words(objective)[:3]
    return " ".join(fallback) or UNKNOWN_TOPIC


def find_schema(text: str) -> tuple[dict[str, Any] | None, str]:
    """Find the first JSON schema in a prompt; return it, and the prompt without it."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and is_schema(value):
            return value, text[: match.start()] + text[end:]
    return None, text


def is_schema(value: dict[str, Any]) -> bool:
    """Tell whether a JSON object looks like a JSON schema."""
    return any(isinstance(value.get(name), dict) for name in ("properties", "$defs")) or (
        "type" in value and "items" in value
    )


def wants_json(text: str) -> bool:
    """Tell whether a prompt asks for JSON and nothing else."""
    return bool(_JSON.search(text, text.casefold()))
