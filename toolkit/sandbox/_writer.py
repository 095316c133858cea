"""Prose written without a model: picks, orders and shortens sentences to fit a prompt."""

import re

from toolkit.sandbox._ask import Ask
from toolkit.sandbox._foreign import (
    exactly_in,
    join_in,
    sentences_in,
    take,
    title_in,
    within_in,
)
from toolkit.sandbox._language import ENGLISH
from toolkit.sandbox._library import look_up
from toolkit.sandbox._text import (
    best,
    clauses,
    close,
    content_words,
    count,
    keywords,
    rank,
    shorten,
    split_sentences,
    stems,
)

# Endings by their number of words, which make a text exactly as long as asked for.
_INVITING = {
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
_NEUTRAL = {
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


def write(ask: Ask) -> str:
    """Write the text that a prompt asks for."""
    sentences = material(ask)
    if ask.language != ENGLISH:
        return _write_in(ask, ask.language, sentences)
    if ask.headline and not (ask.bullets or ask.paragraphs or (ask.words or 0) > 15):
        return headline(ask, sentences)
    if ask.bullets:
        return bullets(ask, sentences, ask.bullets)
    if ask.words and ask.at_most:
        return within(ask, sentences, ask.words)
    if ask.words:
        return exactly(ask, sentences, ask.words)
    if ask.one_line or ask.sentences == 1:
        return on_topic(ask, shorten(lead(ask, sentences), 28))
    if ask.sentences:
        return on_topic(ask, " ".join(close(s) for s in best(sentences, ask.sentences, ask.topic)))
    if ask.paragraphs and ask.paragraphs > 1:
        return paragraphs(ask, sentences, ask.paragraphs)
    number = 2 if ask.teaser else 4
    return on_topic(ask, " ".join(close(s) for s in best(sentences, number, ask.topic)))


def material(ask: Ask) -> list[str]:
    """Collect the sentences to write from: those given, else the library's, else generic ones."""
    if ask.language != ENGLISH:
        return sentences_in(ask.language, ask.topic, ask.source)
    handed = [s for s in split_sentences(ask.source) if count(s) >= 4]
    named = not stems(ask.topic) or any(stems(ask.topic) & stems(s) for s in handed)
    if len(handed) >= 2 and named:
        return handed
    known = look_up(ask.topic)  # a text that never names the topic cannot answer for it
    return (handed if named else []) + (split_sentences(known) if known else _plain_talk(ask.topic))


def _write_in(ask: Ask, code: str, sentences: list[str]) -> str:
    """Write the text that a prompt asks for in another language than English."""
    if ask.headline and not (ask.bullets or ask.paragraphs or (ask.words or 0) > 15):
        return title_in(code, ask.topic)
    if ask.bullets:
        return "\n".join(f"- {one}" for one in take(sentences, ask.bullets))
    if ask.words:
        return (within_in if ask.at_most else exactly_in)(code, sentences, ask.words)
    if ask.paragraphs and ask.paragraphs > 1:
        parts = take(sentences, 3 * ask.paragraphs)
        return "\n\n".join(join_in(code, parts[i : i + 3]) for i in range(0, len(parts), 3))
    number = ask.sentences or (1 if ask.one_line else 2 if ask.teaser else 4)
    return join_in(code, take(sentences, number))


def _plain_talk(topic: str) -> list[str]:
    name = capital(topic)
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


def capital(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def lead(ask: Ask, sentences: list[str]) -> str:
    """Choose the one sentence that says most about the topic."""
    if ask.language != ENGLISH:
        return sentences[0]
    order = rank(sentences, ask.topic)
    return sentences[order[0]] if order else close(capital(ask.topic))


def on_topic(ask: Ask, text: str) -> str:
    """Return the text, with its topic put before it if it does not mention it."""
    if stems(ask.topic) & stems(text) or not content_words(ask.topic):
        return text
    return f"{capital(ask.topic)}: {text}"


def headline(ask: Ask, sentences: list[str]) -> str:
    """Write a title: the topic, and a short promise."""
    if ask.language != ENGLISH:
        return title_in(ask.language, ask.topic)
    name = capital(ask.topic)
    text = lead(ask, sentences)
    limit = max(3, (ask.words or 12) - count(name))
    body = re.sub(
        rf"^(?:an?|the)?\s*{re.escape(ask.topic.removesuffix('s'))}\w*\s*", "", text, flags=re.I
    )
    bare = re.sub(r"^(?:is|are|was|were|means)\s+(?:an?\s+|the\s+)?", "", body, flags=re.I)
    phrase = shorten(bare, limit).rstrip(".!?")
    if not content_words(phrase):
        return name
    # A verb that follows the topic needs no colon.
    return f"{name} {phrase}" if body != text and bare == body else f"{name}: {phrase}"


def bullets(ask: Ask, sentences: list[str], number: int) -> str:
    """Write a list of points, one per line."""
    limit = max(5, ask.words // number) if ask.words else 24
    chosen = best(sentences, number, ask.topic)
    spare = iter(_plain_talk(ask.topic))
    while len(chosen) < number:
        chosen.append(next(spare, close(f"More on {ask.topic}")))
    return "\n".join(f"- {shorten(sentence, limit)}" for sentence in chosen)


def paragraphs(ask: Ask, sentences: list[str], number: int) -> str:
    """Write several paragraphs that follow the order of the source."""
    chosen = best(sentences, number * 3, ask.topic)
    size = max(1, -(-len(chosen) // number))
    parts = [" ".join(close(s) for s in chosen[i : i + size]) for i in range(0, len(chosen), size)]
    return on_topic(ask, "\n\n".join(parts))


def within(ask: Ask, sentences: list[str], limit: int) -> str:
    """Write the best whole sentences that fit in `limit` words, in their own order."""
    chosen: list[int] = []
    left = limit
    for place in rank(sentences, ask.topic)[:6]:
        if count(sentences[place]) <= left:
            chosen.append(place)
            left -= count(sentences[place])
    if not chosen:
        return shorten(lead(ask, sentences), limit)
    return " ".join(close(sentences[place]) for place in sorted(chosen))


def exactly(ask: Ask, sentences: list[str], number: int) -> str:
    """Write a text of exactly `number` words, in whole sentences wherever possible."""
    endings = _INVITING if ask.teaser else _NEUTRAL
    chosen: dict[int, str] = {}
    left = number
    for place in rank(sentences, ask.topic):
        for cut in _cuts(sentences[place], left):
            rest = left - count(cut)
            if rest == 0 or rest >= 2:
                chosen[place] = cut
                left = rest
                break
        if left <= max(endings) and (left == 0 or left in endings):
            break
    parts = [chosen[place] for place in sorted(chosen)]
    spare = iter(_plain_talk(ask.topic) * (number // 40 + 1))
    while left > max(endings):
        part = shorten(next(spare, close(ask.topic)), left - 2)
        parts.append(part)
        left -= count(part)
    if left in endings:
        parts.append(endings[left])
    elif left or not parts:
        parts = _trim(parts or [close(ask.topic)], number)
    return " ".join(parts)


def _trim(parts: list[str], number: int) -> list[str]:
    kept = " ".join(parts).split()[:number]
    return [close(" ".join(kept))]


def _cuts(sentence: str, limit: int) -> list[str]:
    """List the sentence and its beginnings that fit and could stand alone, longest first."""
    fitting = [form for form in [*clauses(sentence), sentence] if count(form) <= limit]
    return [close(form) for form in reversed(fitting)]


def summary(ask: Ask, number: int = 3) -> str:
    """Write a short summary of the sentences to write from."""
    if ask.language != ENGLISH:
        return join_in(ask.language, take(material(ask), number))
    chosen = best(material(ask), number, ask.topic)
    return on_topic(ask, " ".join(close(sentence) for sentence in chosen))


def tags(ask: Ask, number: int) -> list[str]:
    """Choose keywords for the sentences to write from."""
    return keywords(" ".join(material(ask)), number, [ask.topic])
