"""Prose written without a model: picks, orders and shortens sentences to fit a prompt."""

import re

from toolkit.sandbox.text.languages import ENGLISH
from toolkit.sandbox.text.library import look_up_sentences
from toolkit.sandbox.text.other_languages import (
    join_sentences,
    select_sentences,
    take_sentences,
    write_exact_length,
    write_title,
    write_within_length,
)
from toolkit.sandbox.text.prompts import ParsedPrompt
from toolkit.sandbox.text.sentences import (
    capitalize_first,
    close_sentence,
    count_spaced_words,
    extract_content_words,
    extract_keywords,
    extract_stems,
    list_stems,
    rank_sentences,
    select_best,
    shorten_sentence,
    split_clauses,
    split_sentences,
)

# Endings by their number of words, which make a text exactly as long as asked for.
_INVITING_ENDINGS = {
    2: "Read on.",
    3: "Take a look.",
    4: "Here is the story.",
    5: "See what lies behind this.",
    6: "Find out what lies behind this.",
    7: "Take a closer look at the story.",
    8: "Discover the story and see why people care.",
    9: "Discover the whole story, one step at a time.",
    10: "Read on to find out more about the whole story.",
}
_NEUTRAL_ENDINGS = {
    2: "Details matter.",
    3: "The details matter.",
    4: "The story goes on.",
    5: "There is more to learn.",
    6: "Much more could be said here.",
    7: "It remains a subject worth knowing well.",
    8: "The subject repays anyone who looks more closely.",
    9: "It is a subject that repays a closer look.",
    10: "For most readers it is a subject worth knowing well.",
}


_SOURCES = re.compile(r"\b(?:with|cite|citing|name|naming|give)\s+(?:\w+\s+)?sources?\b", re.I)


def write_text(ask: ParsedPrompt) -> str:
    """Write the text that a prompt asks for, with its source if that is wanted."""
    text = _write_form(ask)
    if ask.language != ENGLISH or not _SOURCES.search(ask.objective):
        return text
    return f"{text}\n\nSource: the article “{capitalize_first(ask.topic)}” of the encyclopedia."


def _write_form(ask: ParsedPrompt) -> str:
    sentences = collect_sentences(ask)
    if ask.language != ENGLISH:
        return _write_in_language(ask, ask.language, sentences)
    if ask.headline and not (ask.bullets or ask.paragraphs or (ask.words or 0) > 15):
        return write_headline(ask, sentences)
    if ask.bullets:
        return write_bullets(ask, sentences, ask.bullets)
    if ask.words and ask.at_most:
        return write_within(ask, sentences, ask.words)
    if ask.words:
        return write_exactly(ask, sentences, ask.words)
    if ask.one_line or ask.sentences == 1:
        return ensure_topic(ask, shorten_sentence(choose_lead(ask, sentences), 28))
    if ask.sentences:
        return ensure_topic(
            ask,
            " ".join(close_sentence(s) for s in select_best(sentences, ask.sentences, ask.topic)),
        )
    if ask.paragraphs and ask.paragraphs > 1:
        return write_paragraphs(ask, sentences, ask.paragraphs)
    number = 2 if ask.teaser else 4
    return ensure_topic(
        ask, " ".join(close_sentence(s) for s in select_best(sentences, number, ask.topic))
    )


def collect_sentences(ask: ParsedPrompt) -> list[str]:
    """Collect the sentences to write from: those given, else the library's, else generic ones."""
    if ask.language != ENGLISH:
        return select_sentences(ask.language, ask.topic, ask.source)
    handed = [s for s in split_sentences(ask.source) if count_spaced_words(s) >= 4]
    wanted = extract_stems(ask.topic)
    named = not wanted or not all(map(wanted.isdisjoint, map(list_stems, handed)))
    if len(handed) >= 2 and named:
        return handed
    # A text that never names the topic cannot answer for it.
    known = look_up_sentences(ask.topic) or _write_generic_sentences(ask.topic)
    return (handed if named else []) + known


def _write_in_language(ask: ParsedPrompt, code: str, sentences: list[str]) -> str:
    """Write the text that a prompt asks for in another language than English."""
    if ask.headline and not (ask.bullets or ask.paragraphs or (ask.words or 0) > 15):
        return write_title(code, ask.topic)
    if ask.bullets:
        return "\n".join(f"- {one}" for one in take_sentences(sentences, ask.bullets))
    if ask.words:
        return (write_within_length if ask.at_most else write_exact_length)(
            code, sentences, ask.words
        )
    if ask.paragraphs and ask.paragraphs > 1:
        parts = take_sentences(sentences, 3 * ask.paragraphs)
        return "\n\n".join(join_sentences(code, parts[i : i + 3]) for i in range(0, len(parts), 3))
    number = ask.sentences or (1 if ask.one_line else 2 if ask.teaser else 4)
    return join_sentences(code, take_sentences(sentences, number))


def _write_generic_sentences(topic: str) -> list[str]:
    name = capitalize_first(topic)
    return [
        f"{name} is worth a closer look.",
        f"A good account of {topic} says what it is, whom it serves and why it matters now.",
        f"Those who know {topic} well start from a clear question and test every answer.",
        f"Small steps, checked one by one, take the work on {topic} further than grand promises.",
        f"What people learn from {topic} today shapes what they will try next.",
        f"The best way into {topic} is one concrete example, told plainly from beginning to end.",
        "Costs, benefits and limits deserve equal space, so that readers can judge for themselves.",
        f"With that in hand, {topic} becomes easier to explain, to plan and to improve.",
    ]


def choose_lead(ask: ParsedPrompt, sentences: list[str]) -> str:
    """Choose the one sentence that says most about the topic."""
    if ask.language != ENGLISH:
        return sentences[0]
    order = rank_sentences(sentences, ask.topic)
    return sentences[order[0]] if order else close_sentence(capitalize_first(ask.topic))


def ensure_topic(ask: ParsedPrompt, text: str) -> str:
    """Return the text, with its topic put before it if it does not mention it."""
    if extract_stems(ask.topic) & extract_stems(text) or not extract_content_words(ask.topic):
        return text
    return f"{capitalize_first(ask.topic)}: {text}"


def write_headline(ask: ParsedPrompt, sentences: list[str]) -> str:
    """Write a title: the topic, and a short promise."""
    if ask.language != ENGLISH:
        return write_title(ask.language, ask.topic)
    name = capitalize_first(ask.topic)
    text = choose_lead(ask, sentences)
    limit = max(3, (ask.words or 12) - count_spaced_words(name))
    body = re.sub(
        rf"^(?:an?|the)?\s*{re.escape(ask.topic.removesuffix('s'))}\w*\s*", "", text, flags=re.I
    )
    bare = re.sub(r"^(?:is|are|was|were|means)\s+(?:an?\s+|the\s+)?", "", body, flags=re.I)
    phrase = shorten_sentence(bare, limit).rstrip(".!?")
    if not extract_content_words(phrase):
        return name
    # A verb that follows the topic needs no colon.
    return f"{name} {phrase}" if body != text and bare == body else f"{name}: {phrase}"


def write_bullets(ask: ParsedPrompt, sentences: list[str], number: int) -> str:
    """Write a list of points, one per line."""
    limit = max(5, ask.words // number) if ask.words else 24
    chosen = select_best(sentences, number, ask.topic)
    spare = iter(_write_generic_sentences(ask.topic))
    while len(chosen) < number:
        chosen.append(next(spare, close_sentence(f"More on {ask.topic}")))
    return "\n".join(f"- {shorten_sentence(sentence, limit)}" for sentence in chosen)


def write_paragraphs(ask: ParsedPrompt, sentences: list[str], number: int) -> str:
    """Write several paragraphs that follow the order of the source."""
    chosen = select_best(sentences, number * 3, ask.topic)
    size = max(1, -(-len(chosen) // number))
    parts = [
        " ".join(close_sentence(s) for s in chosen[i : i + size])
        for i in range(0, len(chosen), size)
    ]
    return ensure_topic(ask, "\n\n".join(parts))


def write_within(ask: ParsedPrompt, sentences: list[str], limit: int) -> str:
    """Write the best whole sentences that fit in `limit` words, in their own order."""
    chosen: list[int] = []
    left = limit
    for place in rank_sentences(sentences, ask.topic)[:6]:
        if count_spaced_words(sentences[place]) <= left:
            chosen.append(place)
            left -= count_spaced_words(sentences[place])
    if not chosen:
        return shorten_sentence(choose_lead(ask, sentences), limit)
    return " ".join(close_sentence(sentences[place]) for place in sorted(chosen))


def write_exactly(ask: ParsedPrompt, sentences: list[str], number: int) -> str:
    """Write a text of exactly `number` words, in whole sentences wherever possible."""
    endings = _INVITING_ENDINGS if ask.teaser else _NEUTRAL_ENDINGS
    chosen: dict[int, str] = {}
    left = number
    for place in rank_sentences(sentences, ask.topic):
        for cut in _list_cuts(sentences[place], left):
            rest = left - count_spaced_words(cut)
            if rest == 0 or rest >= 2:
                chosen[place] = cut
                left = rest
                break
        if left <= max(endings) and (left == 0 or left in endings):
            break
    parts = [chosen[place] for place in sorted(chosen)]
    spare = iter(_write_generic_sentences(ask.topic) * (number // 40 + 1))
    while left > max(endings):
        part = shorten_sentence(next(spare, close_sentence(ask.topic)), left - 2)
        parts.append(part)
        left -= count_spaced_words(part)
    if left in endings:
        parts.append(endings[left])
    elif left or not parts:
        parts = _trim_parts(parts or [close_sentence(ask.topic)], number)
    return " ".join(parts)


def _trim_parts(parts: list[str], number: int) -> list[str]:
    kept = " ".join(parts).split()[:number]
    return [close_sentence(" ".join(kept))]


def _list_cuts(sentence: str, limit: int) -> list[str]:
    """List the sentence and its beginnings that fit and could stand alone, longest first."""
    fitting = [
        form for form in [*split_clauses(sentence), sentence] if count_spaced_words(form) <= limit
    ]
    return [close_sentence(form) for form in reversed(fitting)]


def write_summary(ask: ParsedPrompt, number: int = 3) -> str:
    """Write a short summary of the sentences to write from."""
    if ask.language != ENGLISH:
        return join_sentences(ask.language, take_sentences(collect_sentences(ask), number))
    chosen = select_best(collect_sentences(ask), number, ask.topic)
    return ensure_topic(ask, " ".join(close_sentence(sentence) for sentence in chosen))


def choose_tags(ask: ParsedPrompt, number: int) -> list[str]:
    """Choose keywords for the sentences to write from."""
    return extract_keywords(" ".join(collect_sentences(ask)), number, [ask.topic])
