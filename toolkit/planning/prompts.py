"""Prompts for the nodes of a plan: what to write, to say and to show, in the person's own words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from toolkit.planning.reading.objective_reading import Measure, ObjectiveReading, RequestedOutput
from toolkit.planning.reading.words.lexicon import Entry, Lexicon, load_lexicon
from toolkit.planning.reading.words.tokens import Token, fold_text, split_tokens

Purpose = Literal["deliver", "asked", "speak", "show", "part"]

DEFAULT_CARD_WORDS = 30
WORDS_A_SECOND = 2.5
_EMPTY = frozenset({"article", "function_word", "polite", "make", "filler", "pronoun"})
_SEPARATORS = frozenset(",;:、，；：،؛")
_JOINS = frozenset({"join.and", "join.then", "join.with"})
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", "؟")
# What is asked of a text that nobody asked for by itself, after the person's own words.
_MANNERS: Mapping[str, Mapping[str, str]] = {
    "speak": {
        "en": "in plain sentences", "de": "in einfachen Sätzen", "fr": "en phrases simples",
        "es": "en frases sencillas", "it": "in frasi semplici", "pt": "em frases simples",
        "ja": "平易な文で", "zh": "用简单的句子", "ar": "بجمل بسيطة",
    },
    "show": {
        "en": "in few words", "de": "in wenigen Worten", "fr": "en peu de mots",
        "es": "en pocas palabras", "it": "in poche parole", "pt": "em poucas palavras",
        "ja": "短い言葉で", "zh": "用几句话", "ar": "بكلمات قليلة",
    },
}  # fmt: skip
_UNITS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "words": "words", "characters": "characters", "sentences": "sentences",
        "paragraphs": "paragraphs", "lines": "lines", "bullets": "bullet points",
    },
    "de": {
        "words": "Wörter", "characters": "Zeichen", "sentences": "Sätze",
        "paragraphs": "Absätze", "lines": "Zeilen", "bullets": "Stichpunkte",
    },
    "fr": {
        "words": "mots", "characters": "caractères", "sentences": "phrases",
        "paragraphs": "paragraphes", "lines": "lignes", "bullets": "puces",
    },
    "es": {
        "words": "palabras", "characters": "caracteres", "sentences": "frases",
        "paragraphs": "párrafos", "lines": "líneas", "bullets": "viñetas",
    },
    "it": {
        "words": "parole", "characters": "caratteri", "sentences": "frasi",
        "paragraphs": "paragrafi", "lines": "righe", "bullets": "punti",
    },
    "pt": {
        "words": "palavras", "characters": "caracteres", "sentences": "frases",
        "paragraphs": "parágrafos", "lines": "linhas", "bullets": "tópicos",
    },
    "ja": {
        "words": "語", "characters": "字", "sentences": "文", "paragraphs": "段落",
        "lines": "行", "bullets": "項目の箇条書き",
    },
    "zh": {
        "words": "词", "characters": "字", "sentences": "句", "paragraphs": "段",
        "lines": "行", "bullets": "个要点",
    },
    "ar": {
        "words": "كلمة", "characters": "حرفًا", "sentences": "جمل", "paragraphs": "فقرات",
        "lines": "أسطر", "bullets": "نقاط",
    },
}  # fmt: skip
_BOUNDS: Mapping[str, Mapping[str, str]] = {
    "en": {"about": "about {}", "at_most": "at most {}", "at_least": "at least {}"},
    "de": {"about": "etwa {}", "at_most": "höchstens {}", "at_least": "mindestens {}"},
    "fr": {"about": "environ {}", "at_most": "au plus {}", "at_least": "au moins {}"},
    "es": {"about": "unas {}", "at_most": "como máximo {}", "at_least": "al menos {}"},
    "it": {"about": "circa {}", "at_most": "al massimo {}", "at_least": "almeno {}"},
    "pt": {"about": "cerca de {}", "at_most": "no máximo {}", "at_least": "pelo menos {}"},
    "ja": {"about": "約{}", "at_most": "{}以内", "at_least": "{}以上"},
    "zh": {"about": "约{}", "at_most": "不超过{}", "at_least": "至少{}"},
    "ar": {"about": "نحو {}", "at_most": "{} على الأكثر", "at_least": "{} على الأقل"},
}
_LANGUAGE_NAMES = {
    "ar": "العربية", "da": "Dansk", "de": "Deutsch", "en": "English", "es": "Español",
    "fr": "Français", "it": "Italiano", "ja": "日本語", "ko": "한국어", "nl": "Nederlands",
    "pl": "Polski", "pt": "Português", "ru": "Русский", "tr": "Türkçe", "zh": "中文",
}  # fmt: skip
_QUOTES = {"de": "„{}“", "fr": "« {} »", "ja": "「{}」", "ar": "«{}»"}


def write_brief(
    reading: ObjectiveReading, request: RequestedOutput, purpose: Purpose, variant: str = ""
) -> str:
    """Write what a text is to be: the objective's own words, and what these do not say.

    Args:
        reading: the objective as it was read.
        request: what the text serves.
        purpose: whether it was asked for, or is what another thing says or shows.
        variant: which one of several alike it is.

    >>> reading = ObjectiveReading("en")
    >>> write_brief(reading, RequestedOutput("text", wording="A teaser", topic="tea"), "deliver")
    'A teaser: tea'
    """
    wording = add_topic(request.wording.strip(), request.topic or reading.topic)
    measures = list(request.measures)
    if purpose == "show" and not any(m.name in _UNITS["en"] for m in measures):
        measures.append(Measure("words", DEFAULT_CARD_WORDS, "at_most"))
    said = [*_state_measures(measures, wording, reading.language)]
    manner = _MANNERS.get(purpose, {}).get(reading.language)
    said += [manner] if manner else []
    if request.language not in {None, reading.language}:
        said.append(_LANGUAGE_NAMES.get(request.language or "", request.language or ""))
    if request.literal and fold_text(request.literal) not in fold_text(wording):
        said.append(_QUOTES.get(reading.language, "“{}”").format(request.literal))
    said += [variant] if variant else []
    return _add_sentence(wording, ", ".join(said), reading.language) if said else wording


def cut_join(wording: str, language: str) -> str:
    """Cut the words that join a part of an objective to the part before it.

    >>> cut_join("and with a photo of a turbine", "en")
    'a photo of a turbine'
    """
    lexicon = load_lexicon(language)
    tokens = split_tokens(wording, language)
    while tokens and (entry := _find_join(lexicon, tokens)) is not None:
        tokens = tokens[entry.length :]
    return wording[tokens[0].start :] if tokens else wording


def _has_words(wording: str, words: str) -> bool:
    """Tell whether some words stand in others as whole words, or at all where none are spaced."""
    folded, wanted = fold_text(wording), fold_text(words)
    if any(letter >= "\u3000" for letter in wanted):
        return wanted in folded
    keys, wanted_keys = ([t.key for t in split_tokens(each)] for each in (wording, words))
    return f" {' '.join(wanted_keys)} " in f" {' '.join(keys)} "


def has_content(wording: str, language: str) -> bool:
    """Tell whether some words are more than those that hold a sentence together.

    >>> has_content("a", "en"), has_content("tidal power", "en")
    (False, True)
    """
    lexicon = load_lexicon(language)
    tokens = split_tokens(wording, language)
    empty: set[int] = set()
    for i in range(len(tokens)):
        for entry in lexicon.find_entries(tokens, i):
            if entry.category in _EMPTY:
                empty.update(range(i, i + entry.length))
    return any(token.is_word and i not in empty for i, token in enumerate(tokens))


def _find_join(lexicon: Lexicon, tokens: Sequence[Token]) -> Entry | None:
    if tokens[0].key in _SEPARATORS:
        return Entry("", "", 1)
    found = (e for e in lexicon.find_entries(tokens, 0) if e.category in _JOINS)
    return max(found, key=lambda entry: entry.length, default=None)


def _add_sentence(brief: str, said: str, language: str) -> str:
    """Add what a brief does not say as a sentence of its own, so that no topic runs into it."""
    stop = "。" if language in {"ja", "zh"} else "."
    gap = "" if stop == "。" else " "
    end = "" if brief.endswith(_SENTENCE_ENDS) else stop
    return f"{brief.rstrip(' ,;:')}{end}{gap}{said[:1].upper()}{said[1:]}{stop}"


def add_topic(wording: str, topic: str) -> str:
    """Add a topic to the words of a request that do not have it.

    >>> add_topic("an illustration", "bees"), add_topic("a photo of bees", "bees")
    ('an illustration: bees', 'a photo of bees')
    """
    if not wording or not topic or _has_words(wording, topic):
        return wording or topic
    return f"{wording.rstrip(' .,:;')}: {topic}"


def estimate_tokens(measures: Iterable[Measure]) -> int:
    """Estimate the most tokens that a text of the length asked for takes, in any language."""
    each = {
        "words": 4, "characters": 2, "sentences": 80, "lines": 40, "bullets": 80,
        "paragraphs": 400, "seconds": 4 * WORDS_A_SECOND, "minutes": 240 * WORDS_A_SECOND,
    }  # fmt: skip
    lengths = [
        each[m.name] * m.value
        for m in measures
        if m.name in each and isinstance(m.value, int | float)
    ]
    return round(max(lengths, default=0)) + 200


def _state_measures(measures: Iterable[Measure], brief: str, language: str) -> Iterable[str]:
    """State what a brief does not say in digits of how long it has to be."""
    units = _UNITS.get(language, _UNITS["en"])
    bounds = _BOUNDS.get(language, _BOUNDS["en"])
    folded = fold_text(brief)
    for measure in measures:
        value, name, bound = measure.value, measure.name, measure.bound
        if not isinstance(value, int | float):
            continue
        if name in {"seconds", "minutes"}:
            value = round(value * WORDS_A_SECOND * (60 if name == "minutes" else 1))
            name, bound = "words", "about"
        elif value == 1 or f"{value:g}" in folded:  # one is said by its unit: "a sentence"
            continue
        if name in units:
            gap = "" if language in {"ja", "zh"} else " "
            yield bounds.get(bound, "{}").format(f"{value:g}{gap}{units[name]}")
