"""Prose written without a model: whole sentences, chosen and put in order to fit a prompt."""

import re
from functools import lru_cache
from itertools import cycle, islice
from math import ceil

from toolkit.sandbox.text import languages
from toolkit.sandbox.text.languages import ENGLISH
from toolkit.sandbox.text.library import look_up_sentences
from toolkit.sandbox.text.prompts import ParsedPrompt
from toolkit.sandbox.text.sentences import (
    capitalize_first,
    close_sentence,
    count_words,
    extract_stems,
    rank_sentences,
    shorten_sentence,
    split_sentences,
)

_LENGTH_SLACK = 0.2  # share of the words asked for
_USUAL_BULLETS, _BULLET_WORDS = 3, 24
_PARAGRAPH_SENTENCES = 3
_TITLE_WORDS = 12


def write_text(ask: ParsedPrompt) -> str:
    """Write the text that a prompt asks for, with its source if that is wanted."""
    text = _write_form(ask)
    if ask.language == ENGLISH and ask.has("sources"):
        text += f"\n\nSource: the article “{capitalize_first(ask.topic)}” of the encyclopedia."
    return text


def _write_form(ask: ParsedPrompt) -> str:
    words, paragraphs = ask.count("words"), ask.count("paragraphs")
    bullets = ask.count("bullets") or (_USUAL_BULLETS if ask.has("bullets") else None)
    is_title = languages.compile_cue("headline").search(ask.objective)
    if is_title and not (bullets or paragraphs or (words or 0) > 15):
        return write_headline(ask)
    if bullets:
        limit = max(5, words // bullets) if words else _BULLET_WORDS
        points = choose_sentences(ask, bullets)
        return "\n".join(f"- {shorten_sentence(point, limit)}" for point in points)
    if paragraphs and not words:
        selection = choose_sentences(ask, _PARAGRAPH_SENTENCES * paragraphs)
        starts = range(0, len(selection), _PARAGRAPH_SENTENCES)
        parts = (selection[start : start + _PARAGRAPH_SENTENCES] for start in starts)
        return "\n\n".join(languages.join_sentences(part, ask.language) for part in parts)
    return write_paragraph(ask, 1 if ask.has("one_line") else 2 if ask.has("teaser") else 4)


def write_paragraph(ask: ParsedPrompt, number: int) -> str:
    """Write the requested number of words or sentences, or else at most `number` sentences."""
    words = ask.count("words")
    if words:
        return _write_words(ask, words)
    usual = min(number, len(collect_sentences(ask)))
    selection = choose_sentences(ask, ask.count("sentences") or usual)
    return languages.join_sentences(selection, ask.language)


@lru_cache(maxsize=8)
def collect_sentences(ask: ParsedPrompt) -> tuple[str, ...]:
    """Collect the sentences to write from: the source, else the library, else generic sentences."""
    source = [
        close_sentence(text) for text in split_sentences(ask.source) if count_words(text) >= 4
    ]
    if ask.language != ENGLISH:
        is_readable = languages.detect_written_language(ask.source) == ask.language
        return tuple(source) if len(source) >= 2 and is_readable else _write_generic(ask)
    stems = extract_stems(ask.topic)
    is_named = not stems or any(stems & extract_stems(sentence) for sentence in source)
    if len(source) >= 2 and is_named:
        return tuple(source)
    # A text that never names the topic does not inform about it.
    library = look_up_sentences(ask.topic) or _write_generic(ask)
    return (*(source if is_named else ()), *library)


def _write_generic(ask: ParsedPrompt) -> tuple[str, ...]:
    """Write sentences that are true of any topic."""
    texts = languages.load_languages()[ask.language]["sentences"]
    return tuple(capitalize_first(text.format(topic=ask.topic)) for text in texts)


def _rank(ask: ParsedPrompt) -> list[int]:
    """Rank the sentences to write from; sentences in other languages keep their order."""
    sentences = collect_sentences(ask)
    ranked = rank_sentences(sentences, ask.topic) if ask.language == ENGLISH else []
    return ranked or list(range(len(sentences)))


def choose_sentences(ask: ParsedPrompt, number: int) -> list[str]:
    """Choose `number` sentences: the best in their own order, then generic sentences."""
    sentences = collect_sentences(ask)
    selection = [sentences[place] for place in sorted(_rank(ask)[:number])]
    return [*selection, *islice(cycle(_write_generic(ask)), number - len(selection))]


def choose_sentence(ask: ParsedPrompt, rank: int) -> str:
    """Choose the sentence that says most about the topic, or the next best sentence."""
    places = _rank(ask)
    return collect_sentences(ask)[places[rank % len(places)]]


def _write_words(ask: ParsedPrompt, number: int) -> str:
    """Write whole sentences of about `number` words, or at most `number` if a limit is asked."""
    is_limit = ask.has("at_most")
    minimum = number // 2 if is_limit else ceil(number * (1 - _LENGTH_SLACK))
    limit = number if is_limit else int(number * (1 + _LENGTH_SLACK))
    spare = () if is_limit else _write_generic(ask) * (number // 40 + 1)
    sentences = (*collect_sentences(ask), *spare)
    selection: list[int] = []
    total = 0
    for place in [*_rank(ask), *range(len(sentences) - len(spare), len(sentences))]:
        size = count_words(sentences[place])
        if total < minimum and total + size <= limit:
            selection.append(place)
            total += size
    text = [sentences[place] for place in sorted(selection)]
    ending = shorten_sentence(choose_sentence(ask, len(selection)), max(1, limit - total))
    fits = total < minimum and count_words(ending) <= limit - total and not is_limit
    if fits or not selection:
        text.append(ending)
    return languages.join_sentences(text, ask.language)


def write_headline(ask: ParsedPrompt) -> str:
    """Write a title: the topic, and a short promise."""
    name = capitalize_first(ask.topic)
    if ask.language != ENGLISH:
        return f"{name}{languages.load_languages()[ask.language]['headline']}"
    lead = choose_sentence(ask, 0)
    subject = rf"(?:an?\s|the\s)?{re.escape(ask.topic.removesuffix('s'))}\w*"
    definition = re.match(rf"{subject}\s(?:is|are|was|were|means)\s(?:an?\s|the\s)?", lead, re.I)
    text = f"{name}: {lead[definition.end() :] if definition else lead}"
    if not definition and re.match(subject, lead, re.I):
        text = lead
    return shorten_sentence(text, max(3, ask.count("words") or _TITLE_WORDS)).rstrip(".!?")
