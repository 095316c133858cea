"""The parser of prompts: topic, requested form and length, and the text to work from."""

import json
import re
from dataclasses import dataclass
from typing import Any

from toolkit.sandbox.text import languages
from toolkit.sandbox.text.languages import ENGLISH
from toolkit.sandbox.text.sentences import (
    count_words,
    extract_content_words,
    load_stopwords,
    split_sentences,
)

UNKNOWN_TOPIC = "this subject"
_AMOUNT_LEAD = r"(?:\bin\s+)?(?:\b(?:about|around|under|at most|exactly|up to)\s+)?"
_FENCE = re.compile(r"^\s*(?:```\w*|<{1,3}/?[\w -]+>{1,3}|-{3,}|={3,}|\"{3})\s*$", re.M)
# A fence after a colon holds remarks on the last answer.
_MATERIAL = re.compile(r"(?<!:\n)^<(material-\w+)>\n(.*?)\n</\1>$", re.M | re.S)
_HEADING = re.compile(r"(?:\A|\n\n)[A-Za-z][A-Za-z _-]{1,30}:\s+")  # of a section in material
_BLANK_LINE = re.compile(r"\n\s*\n")
_LONG_BLOCK_WORDS = 60  # a longer first paragraph is no instruction
_MIN_SOURCE_WORDS = 25  # a shorter text is a part of the instruction
_MAX_READ = 2_000  # characters of an instruction: some patterns read each more than once
_MAX_TOPIC_WORDS = 6


@dataclass(frozen=True, slots=True)
class ParsedPrompt:
    """A parsed prompt.

    Attributes:
        objective: the instruction itself, without the text to work from.
        source: the text to work from, possibly empty.
        form: all instructions, with the instructions of the user first.
    """

    topic: str
    objective: str
    source: str
    form: str
    language: str

    def has(self, cue: str) -> bool:
        """Return True if the instructions have a cue, such as `headline`."""
        return languages.compile_cue(cue).search(self.form) is not None

    def count(self, unit: str) -> int | None:
        """Return the number of a unit, such as `words`, that the instructions ask for."""
        amount = languages.find_amount(unit, self.form, self.language)
        return amount or languages.find_amount(unit, self.form, ENGLISH)


def parse_prompt(system: str, user: str) -> ParsedPrompt:
    """Parse a prompt; the user's words count before the system's."""
    instruction, source = split_prompt(user)
    instruction, system = instruction[:_MAX_READ], system[:_MAX_READ]
    labelled = languages.compile_cue("objective").search(instruction)
    objective = labelled.group(1).strip(" \"'*") if labelled else instruction
    objective = " ".join(objective.split())
    code = languages.detect_language(system, instruction, objective, source)
    lead = " ".join(extract_content_words(source)[:2])
    topic = find_topic(objective, code) or lead or UNKNOWN_TOPIC
    return ParsedPrompt(topic, objective, source, f"{instruction}\n{system}", code)


def split_prompt(user: str) -> tuple[str, str]:
    """Split a prompt into its instruction and the text that it contains to work from."""
    source = [match.group(2) for match in _MATERIAL.finditer(user)]
    instruction = [_MATERIAL.sub("", user).strip()]
    if not source:
        first, *blocks = _BLANK_LINE.split(_FENCE.sub("\n\n", user).strip())
        if count_words(first) > _LONG_BLOCK_WORDS:
            first, *sentences = split_sentences(first)
            source.append(" ".join(sentences))
        instruction = [first]
        for block in blocks:
            asks = languages.compile_cue("instruction").match(block)
            is_short = count_words(block) < _LONG_BLOCK_WORDS
            (instruction if asks and is_short else source).append(block)
        if count_words(" ".join(source)) < _MIN_SOURCE_WORDS:
            return user, ""
    return "\n\n".join(instruction), _HEADING.sub("\n\n", "\n\n".join(source))


def find_topic(objective: str, code: str) -> str:
    """Find the few words that an objective is about, or "" if there are none."""
    rows = languages.load_languages()
    for unit in rows[ENGLISH]["units"]:
        amount = languages.compile_amount(unit, ENGLISH).pattern
        objective = re.sub(f"{_AMOUNT_LEAD}{amount}:?", " ", objective, flags=re.I)
    objective = objective.strip(" ,:;")
    for pattern in (*rows[code]["about"], *rows[ENGLISH]["about"]):
        match = re.search(pattern, objective, re.I)
        topic = trim_topic(match.group(1), code) if match else ""
        if topic:
            return topic
    return ""


def trim_topic(phrase: str, code: str = ENGLISH) -> str:
    """Trim a phrase to a topic: its beginning, without words of the form and the language."""
    end = languages.compile_topic_end(code).search(phrase, 3)
    words = (phrase[: end.start()] if end else phrase).split()
    rows = languages.load_languages()
    form_words = rows[ENGLISH]["form_words"].split()
    words = [word for word in words if word.strip("\"'*“”").lower() not in form_words]
    empty = load_stopwords() if code == ENGLISH else rows[code]["words"].split()
    while words and words[0].lower() in empty:
        words.pop(0)
    topic = " ".join(words[:_MAX_TOPIC_WORDS]).strip(" \"'*“”-–")
    return topic if code != ENGLISH or extract_content_words(topic) else ""


def find_schema(text: str) -> tuple[dict[str, Any] | None, str]:
    """Find the first JSON schema in a prompt; return it, and the prompt without it."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and {"properties", "$defs", "items"} & value.keys():
            return value, text[: match.start()] + text[end:]
    return None, text
