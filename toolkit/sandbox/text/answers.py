"""Answers to common instructions: lists, verse, letters, tables, programs, labels, translations."""

import re
import textwrap
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any

from toolkit.sandbox.text import languages, reading
from toolkit.sandbox.text.languages import ENGLISH, compile_cue
from toolkit.sandbox.text.library import look_up_sentences
from toolkit.sandbox.text.prompts import UNKNOWN_TOPIC, ParsedPrompt, parse_prompt, trim_topic
from toolkit.sandbox.text.prose import choose_sentences
from toolkit.sandbox.text.reading import find_entities
from toolkit.sandbox.text.sentences import (
    capitalize_first,
    count_words,
    select_best,
    shorten_sentence,
    split_sentences,
    split_words,
)

_QUOTED = re.compile(r"[\"“‘'](.+?)[\"”’'](?!\w)", re.S)
_AND = re.compile(r",\s*(?:(?:or|and)\s+)?|\s+(?:or|and)\s+")
# The beginning of the planner's system prompt.
PLANNER = "You plan work for a service that runs graphs of capabilities"
_OBJECTIVE = re.compile(r"<(objective-[0-9a-f]+)>\n(.*?)\n</\1>", re.S)
_MAX_QUOTE = 300  # characters
_MAX_MATERIAL = 20_000
_ITEM_WORDS = 14


def answer_instruction(ask: ParsedPrompt) -> str | None:
    """Write the answer to a common instruction; returns None for others, which get prose."""
    for cue, write in _WRITERS.items():
        match = compile_cue(cue).search(ask.objective)
        text = write(ask, match) if match else None
        if text:
            return text
    return _fill_template(ask)


def find_material(ask: ParsedPrompt) -> str:
    """Find the text that an instruction is about: a source, a quote, or text after a colon or `?`.

    The text is empty if the instruction contains none.
    """
    if ask.source:
        return ask.source[:_MAX_MATERIAL]
    text = compile_cue("direction").sub("", ask.objective)
    quoted = _QUOTED.search(text)
    if quoted:
        return quoted.group(1)
    rests = (text.partition(mark)[2].strip() for mark in (": ", "? "))
    return next(filter(None, rests), "")


def find_fields(objective: str) -> list[str]:
    """Find the fields that an instruction wants in JSON, such as `name` and `population`."""
    match = compile_cue("json_fields").search(objective)
    names = _split_list(match.group(1)) if match else []
    return [re.sub(r"\W+", "_", name.strip("'\"` ")) for name in names if name]


def count_items(ask: ParsedPrompt) -> int | None:
    """Return the number of items that an instruction wants, such as `Five names for a café`."""
    match = compile_cue("items").search(ask.objective)
    if match is None or match.group(2).casefold() in reading.load_knowledge()["no_items"]:
        return None
    number = languages.read_number(match.group(1))
    if number == 1:  # "a list of uses" names no number
        return 5 if " list of " in match.group() else None
    return number


def _split_list(text: str) -> list[str]:
    """Split an enumeration, without its articles."""
    return [compile_cue("article").sub("", part).strip() for part in _AND.split(text)]


def _find_topic(ending: str, ask: ParsedPrompt) -> str:
    """Find the topic after the kind of a text, such as `a café` in `names for a café`."""
    phrase = compile_cue("preposition").sub("", compile_cue("direction").sub("", ending))
    article = compile_cue("article").match(phrase)
    topic = trim_topic(phrase) or ask.topic
    return f"{article.group()}{topic}" if article and topic in phrase else topic


def _fill_template(ask: ParsedPrompt) -> str | None:
    """Fill the text that fits the words of the request."""
    if ask.language != ENGLISH or ask.count("words") or ask.count("sentences"):
        return None
    for row in reading.load_knowledge()["templates"]:
        match = re.search(rf"{languages.HEAD}\b(?:{row['asked']})(?!\w)", ask.objective, re.I)
        if match is None or not re.search(row.get("words", ""), ask.objective, re.I):
            continue
        topic = _find_topic(ask.objective[match.end() :], ask)
        reader = compile_cue("reader").search(ask.objective)
        needs = reading.load_knowledge()["needs"]
        place = next((word for word in split_words(ask.objective) if word in needs), "other")
        text = row["text"].format(
            topic=topic,
            Topic=capitalize_first(topic),
            Name=capitalize_first(ask.topic),
            needs="\n".join(f"- {need}" for need in needs[place]),
            reader=reader.group(1) if reader else "reader",
        )
        lines = text.strip().splitlines()
        number = ask.count("lines") or row["lines"] if "lines" in row else len(lines)
        return "\n".join(islice(cycle(lines), number))
    return None


def _write_items(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    number = count_items(ask)
    if number is None:
        return None
    items = _list_items(ask, match.group(2), _find_topic(match.group(3), ask), number)
    return "\n".join(f"{place}. {item}" for place, item in enumerate(items, 1))


def _list_items(ask: ParsedPrompt, noun: str, topic: str, number: int) -> list[str]:
    """List a number of items of a kind, in the language of the request."""
    if ask.language != ENGLISH:
        return choose_sentences(ask, number)
    noun, knowledge = noun.casefold(), reading.load_knowledge()
    if noun in knowledge["lists"]:
        return [*islice(cycle(knowledge["lists"][noun]), number)]
    sentences = select_best(look_up_sentences(topic), number, topic)
    if noun not in knowledge["texts"] and len(sentences) == number:
        return [shorten_sentence(sentence, _ITEM_WORDS) for sentence in sentences]
    texts = islice(cycle(knowledge["texts"].get(noun, knowledge["texts"]["items"])), number)
    return [text.format(topic=topic, Topic=capitalize_first(topic)) for text in texts]


def _summarize(ask: ParsedPrompt, _: re.Match[str]) -> str | None:
    """Summarize a short text; a longer text is the source of prose."""
    sentences = split_sentences(find_material(ask)) if not ask.source else []
    number = ask.count("sentences") or len(sentences) // 2
    return " ".join(select_best(sentences, number, ask.topic))


def _compare(_: ParsedPrompt, match: re.Match[str]) -> str:
    sides = [side.strip() for side in match.groups()]
    leads = [(look_up_sentences(side) or [f"a kind of its own: {side}"])[0] for side in sides]
    rows = [
        sides,
        [side.capitalize() for side in sides],
        [shorten_sentence(lead, _ITEM_WORDS).rstrip(".") for lead in leads],
    ]
    text: str = reading.load_knowledge()["comparison"]["text"]
    return text.strip().format(*zip(*rows, strict=True))


def _write_table(ask: ParsedPrompt, match: re.Match[str]) -> str:
    noun = match.group(2).casefold()
    number = languages.read_number(match.group(1)) if match.group(1) else 3
    columns = _split_list(match.group(3) or "note")
    facts = reading.load_knowledge()["facts"].get(noun, {})
    unknown = ["to be filled in"] * number
    cells = [facts.get(column.casefold(), unknown) for column in columns]
    head = [column.capitalize() for column in (noun.removesuffix("s"), *columns)]
    rows = zip(_list_items(ask, noun, ask.topic, number), *cells, strict=False)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _translate(_: ParsedPrompt, match: re.Match[str]) -> str | None:
    text, name, ending = match.groups()
    rows = languages.load_languages().items()
    code = next((code for code, row in rows if name.casefold() in row["names"]), "")
    phrases: dict[str, dict[str, str]] = reading.load_knowledge()["phrases"]
    plain = [part.casefold().strip(" \"'“”‘’.:!?,") for part in (text, ending)]
    return next((phrases[part].get(code) for part in plain if part in phrases), None)


def _classify(ask: ParsedPrompt, _: re.Match[str]) -> str | None:
    material = find_material(ask)
    choices = compile_cue("choices").search(ask.objective)
    if not material or not (choices or compile_cue("mood").search(ask.objective)):
        return None
    labels = _split_list(choices.group(1)) if choices else ["positive", "negative", "neutral"]
    return reading.choose_label(labels, material) or labels[-1]


def _count(ask: ParsedPrompt, match: re.Match[str]) -> str | None:
    text = find_material(ask).strip()
    counts = {
        "words": count_words(text),
        "letters": sum(map(str.isalpha, text)),
        "characters": len(text),
        "sentences": len(split_sentences(text)),
    }
    return str(counts[match.group(1).casefold()]) if text else None


def write_plan(user: str) -> dict[str, Any]:
    """Write a plan of the objective that a request contains."""
    match = _OBJECTIVE.search(user)
    objective = " ".join(match.group(2).split()) if match else ""
    topic = parse_prompt("", objective).topic
    if topic == UNKNOWN_TOPIC:
        question = "What is it to be about?"
        return {"nodes": [], "deliverables": [], "missing": [], "question": question}
    texts = {"topic": topic, "Topic": capitalize_first(topic), "objective": objective}
    nodes: list[dict[str, Any]] = []
    for row in reading.load_knowledge()["nodes"]:
        if not re.search(row["asked"], objective, re.I | re.X):
            continue
        fields = {name: text.format(**texts) for name, text in row["input"].items()}
        node = {
            "id": row["id"],
            "capability": row["capability"],
            "input": [{"field": name, "value": value} for name, value in fields.items()],
            "depends_on": [node["id"] for node in nodes if node["id"] in row["takes"]],
            "optional": False,
            "quote": textwrap.shorten(objective, _MAX_QUOTE, placeholder=""),
            "expect": [],
        }
        nodes.append(node)
    sources = {source for node in nodes for source in node["depends_on"]}
    deliverables = [node["id"] for node in reversed(nodes) if node["id"] not in sources]
    return {"nodes": nodes, "deliverables": deliverables, "missing": [], "question": ""}


# By cue; the first matching cue counts.
_WRITERS: dict[str, Callable[[ParsedPrompt, re.Match[str]], str | None]] = {
    "translate": _translate,
    "how_many": _count,
    "classify": _classify,
    "extract": lambda ask, match: "\n".join(find_entities(match.group(1), find_material(ask))),
    "summarize": _summarize,
    "compared": _compare,
    "table_of": _write_table,
    "items": _write_items,
}
