"""Verbs in a verb's place: an act is asked for by a verb only where a verb can stand."""

from dataclasses import replace

from toolkit.planning.reading.spans.noun_phrases import (
    UNAVAILABLE_NOUNS,
    find_head,
    labels_quote,
    read_noun_phrase,
)
from toolkit.planning.reading.spans.scan import Break, Phrase, Scan
from toolkit.planning.reading.words.grammar import get_grammar

# Keys that have verbs besides their nouns, as `print` has, stand for verbs, too.
NOUNS_ONLY = frozenset(UNAVAILABLE_NOUNS) - {
    "unavailable.print",
    "unavailable.schedule",
    "unavailable.transcribe",
    "unavailable.translate_audio",
}
_MAX_VERB_GAP = 5
_ADJECTIVES = ("filler", "attribute.")
VERB_CATEGORIES = ("act.", "make", "unavailable.", "kind")


def find_verb(scan: Scan, i: int) -> Phrase | None:
    """Return the verb at a word, if a verb can stand there; its parts may stand apart."""
    apart = _find_separated_verb(scan, i)
    if names_label(scan, i):
        return None
    verb = scan.find(i, "act.", "make", "unavailable.")
    if verb is not None and verb.particle is not None:
        return verb
    if verb is not None and verb.category == "unavailable.transcribe" and labels_quote(scan, verb):
        return None  # "Untertitel: „…“" is no request to subtitle
    if verb is not None:
        verb = _add_manner(scan, verb)
    if apart is not None and (verb is None or verb.end - verb.start < 2):
        return apart
    if verb is None or _is_hyphenated(scan, verb):
        return None
    is_noun = verb.category in NOUNS_ONLY and not verb.is_ambiguous and verb.end - i == 1
    if is_noun and (not has_object(scan, verb.end) or scan.word(verb.end).isdigit()):
        return None
    if has_clitic(scan, verb) or _has_pronoun_inside(scan, verb):
        return _prefer_available(scan, verb)
    if _may_be_noun(scan, verb) and not has_object(scan, verb.end):
        return None
    if _opens_compound(scan, verb):
        return None
    labels = verb.is_ambiguous and verb.category.startswith("unavailable.")
    if labels and verb.end < len(scan) and scan.breaks[verb.end] == Break.CLAUSE:
        return None  # "Text: …", "Alert: …"
    return _prefer_available(scan, verb)


def find_final_verb(scan: Scan, i: int) -> Phrase | None:
    """Return the infinitive or participle that ends a German clause: `einen Igel zeichnen`."""
    grammar = get_grammar(scan.lexicon.code)
    if not grammar.verb_final or not scan.is_free(i) or scan.word(i) in grammar.relative:
        return None
    last = i + 1
    while last < len(scan) and not scan.breaks[last] and not scan.has(last, "join.and"):
        last += 1
    last -= 1
    while last > i and scan.word(last) in grammar.verb_final | grammar.finite:
        last -= 1
    if last == i or not scan.is_free(last) or not scan.tokens[last].text.islower():
        return None
    if any(scan.word(k) in grammar.subject | grammar.finite for k in range(i, last)):
        return None
    verb = scan.find(last, "act.", "unavailable.", "make")
    is_verb = verb is not None and scan.word(last).endswith(("n", "t"))
    return verb if is_verb and verb is not None and not verb.is_tail else None


def _opens_compound(scan: Scan, verb: Phrase) -> bool:
    """Tell whether a word is the first part of a work's name: `call sign ideas`."""
    k = verb.end
    is_noun = verb.category in UNAVAILABLE_NOUNS and not verb.is_ambiguous
    may_be = is_noun or (verb.is_ambiguous and verb.category.startswith("unavailable."))
    if not may_be or k >= len(scan):
        return False
    if scan.word(verb.start).endswith(get_grammar(scan.lexicon.code).gerund or ("\0",)):
        return not scan.has(k, "article", "pronoun", "number") and not scan.breaks[k]
    named = read_noun_phrase(scan, k) if not scan.breaks[k] else None
    if named is None or named.has_article or not (is_noun or named.unknown) or named.head is None:
        return False
    return not named.head.category.startswith("unavailable.")


def _is_hyphenated(scan: Scan, verb: Phrase) -> bool:
    """Tell whether a verb is a part of a noun: `pay-what-you-can notice`, `sign-up blurb`."""
    if verb.end >= len(scan) or scan.breaks[verb.end]:
        return False
    if get_grammar(scan.lexicon.code).enclitics:
        return False  # "faites-le", "envie-me"
    inside = any(scan.gap(k) == "-" for k in range(verb.start + 1, verb.end))
    before_noun = (
        inside
        and verb.category.startswith("unavailable.")
        and not scan.has(verb.end, "article", "pronoun", "function_word")
    )
    return scan.gap(verb.end) == "-" or before_noun


def names_label(scan: Scan, i: int) -> bool:
    """Tell whether a word that may be a verb is a noun: `its text`, `Card: …, text “…”`."""
    noun = next((one for one in scan.phrases(i) if one.category == "thing.text"), None)
    if noun is None or not noun.is_ambiguous:
        return False
    led = i > 0 and not scan.breaks[i] and scan.has(i - 1, "article")
    k = noun.end
    quoted = k < len(scan) and scan.owners[k] == "literal"
    return led or (quoted and (scan.breaks[i] == Break.COMMA or scan.breaks[k] >= Break.CLAUSE))


def _add_manner(scan: Scan, verb: Phrase) -> Phrase:
    """Add the words after a verb that say the same act: `leia` + `em voz alta`."""
    k = verb.end
    if k >= len(scan) or scan.breaks[k] or not scan.has(k, "function_word", "join."):
        return verb
    for manner in scan.phrases(k):
        if manner.category == verb.category and manner.end > k + 1:
            return replace(verb, end=manner.end)
    return verb


def is_unknown_verb(scan: Scan, i: int) -> bool:
    """Tell whether an unknown word stands where only a verb can: before a determiner."""
    k = i + 1
    if k >= len(scan) or scan.breaks[k] or not scan.is_free(i):
        return False
    grammar = get_grammar(scan.lexicon.code)
    if scan.is_known(i) and "literal" in scan.owners:
        return False  # "take that line" speaks of what is quoted
    # An adjective cannot stand before a determiner, so that "clean" in "clean my desk" is a verb.
    if any(not phrase.category.startswith(_ADJECTIVES) for phrase in scan.phrases(i)):
        return False
    if not scan.word(i).isalpha() or scan.word(k).isdigit():
        return False
    if scan.word(k) in grammar.particles - grammar.leading and not scan.breaks[k]:
        k += 1
        if k >= len(scan) or scan.breaks[k]:
            return False
    determiners = grammar.definite | grammar.possessive | grammar.objects | grammar.pronouns
    return scan.word(k) in determiners or scan.has(k, "article")


def _has_pronoun_inside(scan: Scan, verb: Phrase) -> bool:
    """Tell whether the object stands within a verb: `look it up`."""
    pronouns = get_grammar(scan.lexicon.code).pronouns
    return any(scan.word(k) in pronouns for k in range(verb.start + 1, verb.end))


def has_clitic(scan: Scan, verb: Phrase) -> bool:
    """Tell whether a verb has its object written on to it: `traducilo`."""
    return verb.is_tail and bool(scan.lexicon.enclitics)


def has_object(scan: Scan, i: int) -> bool:
    """Tell whether an object begins at a word, so that what stands before it is a verb."""
    if i >= len(scan) or scan.breaks[i] >= Break.CLAUSE:
        return i < len(scan) and scan.owners[i] == "literal"
    if scan.breaks[i] == Break.COMMA or scan.has_join_sign(i):
        return False
    if scan.owners[i] in {"literal", "artifact"}:
        return True
    if scan.find(i, "about", "join."):
        # "answer in two sentences", "draft in French"
        return i + 1 < len(scan) and (
            scan.owners[i + 1] == "measure" or scan.find(i, "language") is not None
        )
    grammar = get_grammar(scan.lexicon.code)
    word = scan.word(i)
    if word in grammar.definite | grammar.possessive | grammar.objects:
        return True
    if scan.has(i, "article", "pronoun", "number", "question") or word.isdigit():
        return True
    if scan.owners[i] == "measure":
        return True
    if grammar.article_prefix and find_head(scan, i) is not None:
        return True  # a noun without an article is indefinite
    return not scan.has(i, "function_word", "polite", "filler") and find_head(scan, i) is None


def _may_be_noun(scan: Scan, verb: Phrase) -> bool:
    named = any(
        phrase.end >= verb.end and phrase.category.startswith(("thing.", "creative", "unit."))
        for phrase in scan.phrases(verb.start)
    )
    # What only names an act, as "research" does, is its verb where a sentence begins.
    opens = verb.category.startswith("act.") and scan.breaks[verb.start] == Break.SENTENCE
    return named or (verb.is_ambiguous and not opens)


def _prefer_available(scan: Scan, verb: Phrase) -> Phrase:
    """Return the sense of a verb that something here does, where it has one as long."""
    for phrase in scan.phrases(verb.start):
        if phrase.end == verb.end and phrase.category.startswith(("kind", "act.")):
            return phrase
    return verb


def _find_separated_verb(scan: Scan, i: int) -> Phrase | None:
    """Find a verb whose second part stands apart: `look the wombat up`, `lies das Gedicht vor`."""
    particles = get_grammar(scan.lexicon.code).particles
    if not particles or not scan.is_free(i):
        return None
    if not scan.lexicon.is_known(scan.word(i)):
        return None
    k = i + 1
    while k < len(scan) and k - i <= _MAX_VERB_GAP and scan.breaks[k] == Break.NONE:
        if scan.word(k) in particles and k > i + 1 and scan.is_free(k):
            pair = [scan.tokens[i], scan.tokens[k]]
            for entry in scan.lexicon.find_entries(pair, 0):
                if entry.length == 2 and entry.category.startswith(("act.", "unavailable.")):
                    return Phrase(i, i + 1, entry.category, entry.value, particle=k)
        k += 1
    return None
