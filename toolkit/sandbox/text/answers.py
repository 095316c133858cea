"""Answers to common instructions: lists, verse, letters, tables, programs, labels, translations."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

from toolkit.sandbox.text import reading
from toolkit.sandbox.text.languages import load_languages
from toolkit.sandbox.text.library import look_up_sentences
from toolkit.sandbox.text.prompts import NUMBER_PATTERN, ParsedPrompt, read_number
from toolkit.sandbox.text.sentences import (
    capitalize_first,
    count_spaced_words,
    select_best,
    shorten_sentence,
    split_sentences,
    split_words,
)

# What is asked for stands before what it is about: no poem is wanted by "a text about a poem".
_HEAD = r"^(?:(?!(?:about|on|of|for|to|with)\b)\S+\s+){0,6}?\W*"
_COMMAND = (
    r"^\W*(?:please\s+)?(?:(?:write|give|list|suggest|name|find|make|create|propose|draft)\s+)?"
)
_ITEMS = re.compile(
    _COMMAND + r"(?:me\s+)?(?:an?\s+(?:\w+\s+)?list\s+(?:of|with)\s+)?(?:the\s+)?(?:\w+\s+)?"
    rf"{NUMBER_PATTERN}\s+((?:[\w-]+\s+){{0,2}}?)([a-z]+s)\b\W*(.*)",
    re.I | re.S,
)
_LIST = re.compile(
    _HEAD + r"\b(?:(shopping|packing|to-?do|check)[ -]?list|"
    r"list of (?:the )?([a-z ]+?)(?= for\b| to\b|[.,]|$)|an? list\b)", re.I
)  # fmt: skip
_PROS_AND_CONS = re.compile(r"\bpros and cons\b|\badvantages and disadvantages\b", re.I)
_STEPS = re.compile(
    _HEAD + r"\b(?:(recipe)\b|step[ -]by[ -]step\b(?: guide| instructions?)?|"
    r"instructions?\b(?= to\b| for\b| on\b)|how(?=[ -]to\b))",
    re.I,
)
_SLOGAN = re.compile(_HEAD + r"\b(?:slogan|motto|tagline)\b", re.I)
_SUMMARIZE = re.compile(r"\b(?:summari[sz]e|sum up|shorten|condense)\b", re.I)
_VERSE = re.compile(_HEAD + r"\b(haiku|limerick|poem|verse|rhyme|song)\b", re.I)
_LINES = re.compile(rf"\b{NUMBER_PATTERN}[- ]lines?\b", re.I)
_LETTER = re.compile(_HEAD + r"\b(e-?mail|letter|thank-you note|memo)\b", re.I)
_COMPARED = re.compile(
    r"(?:compar\w+|comparison (?:of|between))\s+(.+?)\s+(?:and|with|to|vs\.?|versus)\s+(.+?)"
    r"(?=[.,;:]|\s+(?:by|in|for|as)\b|$)", re.I
)  # fmt: skip
_TABLE = re.compile(_HEAD + r"\btable\b|\bas an?\s+(?:\w+\s+)?table\b", re.I)
_JSON = re.compile(
    r"\b(?:as|in|into|return|valid|only|output|an?)\s+(?:\w+\s+)?JSON\b"
    r"|\bJSON\s+(?:object|array|document|file|list|with|only)\b", re.I
)  # fmt: skip
_TABLE_OF = re.compile(
    rf"table (?:of|with|showing|listing)\s+(?:{NUMBER_PATTERN}\s+)?(?:[\w-]+\s+)??([a-z]+s)\b"
    r"(?:\s+(?:with|and|by|showing)\s+(?:their|its|the)?\s*([^.;:]+))?", re.I
)  # fmt: skip
_CODE = re.compile(
    r"\bpython\b.*\b(?:code|function|script|program|snippet|class|one-?liner)\b"
    r"|\b(?:code|function|script|program|snippet)\b.*\b(?:python|that|which|to)\b", re.I
)  # fmt: skip
_TRANSLATE = re.compile(
    r"\btranslate\s+(?:the\s+(?:\w+\s+){0,2})?(.+?)\s+(?:in)?to\s+([A-Za-z]+)\b\W*(.*)", re.I | re.S
)
_CLASSIFY = re.compile(
    r"\b(?:classify|categori[sz]e|label|sentiment|mood|positive or negative|which category|"
    r"is (?:this|the following))\b", re.I
)  # fmt: skip
_CHOICES = re.compile(
    r"\b(?:as|into|one of|either|is|category|categories|labels?|between)\b[^.?!:]*?[:\s]"
    r"((?:[\w-]+, )*[\w-]+,? (?:or|and) [\w-]+)(?=\s*(?:[:.?!\n]|$))", re.I
)  # fmt: skip
_EXTRACT = re.compile(
    r"\b(?:extract|find|list|pull out)\s+(?:all\s+)?(?:the\s+)?(.+?)\s+(?:from|in)\b", re.I
)
_HOW_MANY = re.compile(r"\bhow many (words|letters|characters|sentences|lines)\b", re.I)
_QUOTED = re.compile(r"[\"“‘'](.+?)[\"”’'](?!\w)", re.S)
_AND = re.compile(r",\s*(?:(?:or|and)\s+)?|\s+(?:or|and)\s+")
_LEAD = re.compile(r"^(?:for|of|about|on|to|in|with|from|that|at)\s+", re.I)
_ARTICLE = re.compile(r"^(?:an?|the|my|our|your)\s+", re.I)
_DIRECTION = re.compile(
    r"\s+(?:This is attempt \d+|Answer with|Write (?:the|all)|Do not)\b.*$", re.S
)
_MAX_TOPIC_WORDS = 6
_MAX_READ = 2_000  # characters of an instruction: some patterns look at each more than once
_MAX_MATERIAL = 20_000


def answer_instruction(ask: ParsedPrompt) -> str | None:
    """Write what a common instruction asks for; None for any other, which is answered in prose."""
    ask = replace(ask, objective=ask.objective[:_MAX_READ])
    for pattern, write in _WRITERS:
        match = pattern.search(ask.objective)
        text = write(ask, match) if match is not None else None
        if text is not None:
            return text
    return None


def find_material(ask: ParsedPrompt) -> str:
    """Find the text that an instruction is about: handed over, quoted, or behind a colon or a `?`.

    It is empty if there is none.
    """
    if ask.source:
        return ask.source[:_MAX_MATERIAL]
    said = _DIRECTION.sub("", ask.objective[:_MAX_READ])
    quoted = _QUOTED.search(said)
    if quoted is not None:
        return quoted.group(1)
    for mark in (": ", "? "):
        _, found, rest = said.partition(mark)
        if found and rest.strip():
            return rest.strip()
    return ""


def wants_json(ask: ParsedPrompt) -> bool:
    """Return True if an instruction asks for an answer in JSON, not about it."""
    return _JSON.search(ask.objective[:_MAX_READ]) is not None


def find_fields(objective: str) -> list[str]:
    """Find the fields that an instruction wants in JSON.

    >>> find_fields("A JSON object with name and population of Bern")
    ['name', 'population']
    """
    match = re.search(
        r"\bJSON\b.*?\bwith\s+(?:the\s+)?(?:(?:keys?|fields?|members?)\s+)?(.+?)"
        r"(?=\s+(?:of|for|about)\b|[.;:?!]|$)", objective[:_MAX_READ], re.I
    )  # fmt: skip
    if match is None:
        return []
    names = _AND.split(match.group(1))
    return [re.sub(r"\W+", "_", _ARTICLE.sub("", name).strip("'\"` ")) for name in names if name]


def _find_topic(rest: str, ask: ParsedPrompt) -> str:
    """Find what follows the kind of a text, such as `a café` in `names for a café`."""
    head = re.split(r"[.;:?!\n]", _DIRECTION.sub("", rest), maxsplit=1)[0]
    words = _LEAD.sub("", head.strip()).split()[:_MAX_TOPIC_WORDS]
    return " ".join(words).strip(" ,") or _name_topic(ask)


def _name_topic(ask: ParsedPrompt) -> str:
    """Name the topic with the article that it has in the instruction."""
    found = re.search(rf"\b(?:an?|the|my|our|your)\s+{re.escape(ask.topic)}", ask.objective, re.I)
    return found.group() if found else ask.topic


def _fill(kind: str, topic: str, number: int = 0) -> list[str]:
    """Fill the texts of a kind with a topic, again and again until there are enough."""
    texts: list[str] = reading.load_knowledge()["texts"][kind]
    chosen = islice(cycle(texts), number or len(texts))
    return [text.format(topic=topic, Topic=capitalize_first(topic)) for text in chosen]


def _write_items(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    number, noun = read_number(match, 1), match.group(3).casefold()
    if number is None or number < 2 or noun in reading.load_knowledge()["no_items"]:
        return None
    return _number_lines(_list_items(noun, _find_topic(match.group(4), ask), number))


def _list_items(noun: str, topic: str, number: int) -> list[str]:
    known = reading.load_knowledge()["lists"].get(noun)
    if known is None and noun in ("titles", "slogans", "headlines", "mottos", "brands"):
        known = reading.load_knowledge()["lists"]["names"]
    if known is not None:
        return [*islice(cycle(known), number)]
    if noun == "questions":
        return _fill("questions", topic, number)
    told = select_best(look_up_sentences(topic), number, topic)
    if len(told) == number:
        return [shorten_sentence(sentence, 14) for sentence in told]
    return _fill("items", topic, number)


def _number_lines(lines: list[str]) -> str:
    return "\n".join(f"{place}. {line}" for place, line in enumerate(lines, 1))


def _mark_lines(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _write_list(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    if ask.bullets or ask.words:
        return None
    noun = (match.group(2) or "").strip().casefold()
    if noun.rpartition(" ")[2] in reading.load_knowledge()["lists"]:
        return _mark_lines(_list_items(noun.rpartition(" ")[2], ask.topic, 5))
    if match.group(1):
        return _mark_lines(_list_needs(ask.objective))
    return _mark_lines(_list_items("items", noun or ask.topic, 5))


def _list_needs(objective: str) -> list[str]:
    needs = reading.load_knowledge()["needs"]
    words = split_words(objective)
    found: list[str] = next((needs[word] for word in words if word in needs), needs["other"])
    return found


def _write_pros_and_cons(ask: ParsedPrompt, match: re.Match[str]) -> str:
    topic = _find_topic(ask.objective[match.end() :], ask)
    pros, cons = _mark_lines(_fill("pros", topic)), _mark_lines(_fill("cons", topic))
    return f"Pros:\n{pros}\n\nCons:\n{cons}"


def _write_steps(ask: ParsedPrompt, match: re.Match[str]) -> str:
    topic = _find_topic(ask.objective[match.end() :], ask)
    steps = _fill("steps", topic)
    title = capitalize_first(topic)
    if not match.group(1):
        return f"{title}:\n{_number_lines(steps)}"
    needs = _mark_lines(_list_needs(topic))
    return f"{title}\n\nIngredients:\n{needs}\n\nMethod:\n{_number_lines(steps)}"


def _write_slogan(ask: ParsedPrompt, _: re.Match[str]) -> str | None:
    if ask.words or look_up_sentences(ask.topic):
        return None
    return f"{capitalize_first(ask.topic)}: made with care, day after day."


def _summarize(ask: ParsedPrompt, _: re.Match[str]) -> str | None:
    """Summarize a short text; a longer one is a source that prose is made from."""
    sentences = split_sentences(find_material(ask)) if not ask.source else []
    if len(sentences) < 2:
        return None
    return " ".join(select_best(sentences, max(1, ask.sentences or len(sentences) // 2), ask.topic))


def _write_verse(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    kind, topic = match.group(1).casefold(), _name_topic(ask)
    if kind == "haiku":
        return "\n".join(_fill("haiku", topic))
    if kind == "limerick":
        return "\n".join(_fill("limerick", topic))
    lines = _LINES.search(ask.objective)
    number = (read_number(lines, 1) if lines else None) or 4
    if ask.words or ask.sentences:
        return None
    return "\n".join(_fill("couplets", topic, number))


def _write_letter(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    if ask.words or ask.sentences or ask.bullets or ask.one_line:
        return None
    objective = ask.objective.casefold()
    letters: list[dict[str, str]] = reading.load_knowledge()["letters"]
    chosen = next(one for one in letters if re.search(one["words"], objective))
    subject = chosen["subject"].format(topic=ask.topic, Topic=capitalize_first(ask.topic))
    body = chosen["text"].strip().format(topic=_name_topic(ask))
    reader = re.search(r"\bto (?:an?|the|my|our) (\w+)", objective)
    name = reader.group(1) if reader and match.group(1) != "letter" else "reader"
    letter = f"Dear {name},\n\n{body}\n\nKind regards,\nYour correspondent"
    return letter if "note" in match.group(1) else f"Subject: {subject}\n\n{letter}"


def _write_table(ask: ParsedPrompt, _: re.Match[str]) -> str:
    compared = _COMPARED.search(ask.objective)
    if compared is not None:
        sides = [_ARTICLE.sub("", side).strip() for side in compared.groups()]
        names = ("Best for", "Strength", "Limit")
        cells = [_fill("compared", side) for side in sides]
        rows = [list(row) for row in zip(names, *cells, strict=True)]
        first = _shorten_leads(sides)
        return _draw_table(["", *(side.capitalize() for side in sides)], [first, *rows])
    match = _TABLE_OF.search(ask.objective)
    noun = match.group(2).casefold() if match else "items"
    number = (read_number(match, 1) if match and match.group(1) else None) or 3
    told = (match.group(3) if match else None) or "note"
    columns = [_ARTICLE.sub("", one).strip() for one in _AND.split(told)]
    items = _list_items(noun, ask.topic, number)
    rows = [
        [item, *(_find_cell(noun, column, place) for column in columns)]
        for place, item in enumerate(items)
    ]
    return _draw_table([noun.removesuffix("s").capitalize(), *map(str.capitalize, columns)], rows)


def _find_cell(noun: str, column: str, place: int) -> str:
    """Find what is known of the items of a list, by the name of a column."""
    known = reading.load_knowledge()["facts"].get(noun, {}).get(column.casefold(), [])
    return known[place] if place < len(known) else "to be filled in"


def _shorten_leads(sides: list[str]) -> list[str]:
    leads = [look_up_sentences(side)[:1] for side in sides]
    return [
        "What it is",
        *(
            shorten_sentence(lead[0], 12).rstrip(".") if lead else f"a kind of its own: {side}"
            for lead, side in zip(leads, sides, strict=True)
        ),
    ]


def _draw_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _write_code(ask: ParsedPrompt, _: re.Match[str]) -> str:
    folded = ask.objective.casefold()
    programs: list[dict[str, Any]] = reading.load_knowledge()["programs"]
    for program in programs:
        if all(word in folded for word in program["words"]):
            return f"```python\n{program['text'].strip()}\n```"
    name = re.sub(r"\W+", "_", ask.topic.casefold()).strip("_") or "answer"
    name = name if name.isascii() and name.isidentifier() else "answer"
    body = f'def {name}(value):\n    """Return a value for {ask.topic}."""\n    return value'
    return f"```python\n{body}\n\n\nprint({name}(1))\n```"


def _translate(_: ParsedPrompt, match: re.Match[str]) -> str | None:
    wanted, rest = match.group(2).casefold(), match.group(3).strip()
    code = next((c for c, one in load_languages().items() if wanted in one.names), None)
    quoted = _QUOTED.search(match.group(1))
    said = quoted.group(1) if quoted else match.group(1)
    if said.casefold().rstrip(":") in ("this", "it", "following", "text", "sentence") and rest:
        said = _DIRECTION.sub("", rest)
    plain = " ".join(said.casefold().strip(" \"'“”‘’.:!?,").split())
    phrase: dict[str, str] = reading.load_knowledge()["phrases"].get(plain, {})
    return phrase.get(code or "")


def _classify(ask: ParsedPrompt, _: re.Match[str]) -> str | None:
    material = find_material(ask)
    choices = _CHOICES.search(ask.objective)
    labels = ["positive", "negative", "neutral"]
    if choices is not None:
        labels = _AND.split(choices.group(1))
    elif not re.search(r"\b(?:sentiment|mood|positive or negative)\b", ask.objective, re.I):
        return None
    return (reading.choose_label(labels, material) or labels[-1]) if material else None


def _extract(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    found = reading.find_entities(match.group(1), find_material(ask))
    return "\n".join(found) or None


def _count(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    text = find_material(ask).strip()
    if not text:
        return None
    counts = {
        "words": count_spaced_words(text), "letters": sum(map(str.isalpha, text)),
        "characters": len(text), "sentences": len(split_sentences(text)),
        "lines": len(text.splitlines()),
    }  # fmt: skip
    return str(counts[match.group(1).casefold()])


_Writer = Callable[[ParsedPrompt, re.Match[str]], str | None]
_WRITERS: tuple[tuple[re.Pattern[str], _Writer], ...] = (
    (_TRANSLATE, _translate), (_HOW_MANY, _count), (_CLASSIFY, _classify), (_EXTRACT, _extract),
    (_SUMMARIZE, _summarize), (_CODE, _write_code), (_TABLE, _write_table), (_VERSE, _write_verse),
    (_SLOGAN, _write_slogan), (_LETTER, _write_letter),
    (_PROS_AND_CONS, _write_pros_and_cons), (_STEPS, _write_steps),
    (_ITEMS, _write_items), (_LIST, _write_list),
)  # fmt: skip
