"""Noun phrases that may name a request: `two short poems`, `the French version`, `its text`."""

from dataclasses import dataclass, field

from toolkit.planning.reading.spans.measures import find_attribute, read_quantity
from toolkit.planning.reading.spans.scan import Break, Phrase, Scan
from toolkit.planning.reading.words.grammar import get_grammar

_MAX_UNKNOWN_BEFORE_HEAD = 4
# Languages whose compounds are written as words apart, the first of which says of what kind.
_COMPOUNDS_APART = frozenset({"en"})
_MAX_PHRASE_WORDS = 16
_MAX_COUNT = 50
# The lexicon's keys of nouns that ask for what nothing makes; the others are verbs.
UNAVAILABLE_NOUNS = (
    "unavailable.live_data",
    "unavailable.video",
    "unavailable.music",
    "unavailable.slides",
    "unavailable.spreadsheet",
    "unavailable.document",
    "unavailable.website",
    "unavailable.chart",
    "unavailable.model_3d",
    "unavailable.map",
    "unavailable.qr_code",
    "unavailable.transcribe",
    "unavailable.translate_audio",
    "unavailable.database",
    "unavailable.print",
    "unavailable.schedule",
)
HEADS = ("kind", "thing.", "creative", *UNAVAILABLE_NOUNS)


@dataclass(slots=True)
class NounPhrase:
    """A noun phrase.

    Attributes:
        start, end: its tokens; the end is after its last noun.
        head: the last noun in it that names something to be made.
        modifier: a noun before that one that names something, too: `quote card`.
        count: how many, where a number says so.
        is_definite: whether it speaks of something there already.
        has_article: whether an article or a number opens it.
        language: the language that an adjective gives it.
        attributes: the places of attributes in it.
        unknown: words before the head that no lexicon knows.
        tail: where words begin that follow the head and belong to the phrase, as its topic.
    """

    start: int
    end: int
    head: Phrase | None = None
    modifier: Phrase | None = None
    count: int = 1
    is_definite: bool = False
    is_possessive: bool = False
    has_article: bool = False
    language: str | None = None
    attributes: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    tail: int | None = None


def find_head(scan: Scan, i: int) -> Phrase | None:
    """Return the noun at a word that names something to be made.

    A noun that is a thing in one sense and not available in another is the thing.
    """
    if not scan.is_free(i):
        return None
    best: Phrase | None = None
    for phrase in scan.phrases(i):
        if best is not None and phrase.end < best.end:
            break
        if any(not scan.is_free(k) for k in range(i, phrase.end)):
            continue
        if phrase.category.startswith(HEADS) and (
            best is None or best.category.startswith("unavailable")
        ):
            best = phrase
    if best is not None and labels_quote(scan, best):
        return None  # "Title: “…”" says what is quoted
    if best is not None and best.end < len(scan) and scan.gap(best.end) == "-":
        return None  # "a chart-topping singer"
    if best is not None and _is_modifier(scan, best):
        return None
    if best is not None and _is_progressive(scan, best):
        return None
    hiding = scan.find(i, "polite", "title", "unit.", "language")
    if best is not None and best.category == "thing.text":
        hiding = hiding or scan.find(i, "attribute.")  # "tema chiaro" is no essay
    if best is not None and hiding is not None and hiding.end > best.end:
        return None
    return best


def _is_progressive(scan: Scan, noun: Phrase) -> bool:
    """Tell whether a noun is a verb, as its object follows: `a snowman reading a meter`."""
    k = noun.end
    grammar = get_grammar(scan.lexicon.code)
    endings = grammar.progressive
    if not endings or not scan.word(k - 1).endswith(endings) or not scan.is_free(k):
        return False
    opens = scan.word(k) in grammar.definite | grammar.possessive or scan.has(k, "article")
    return opens and not scan.breaks[k]


def _is_modifier(scan: Scan, head: Phrase) -> bool:
    """Tell whether words with a hyphen say what the noun after them is: `picture-book page`."""
    k = head.end
    if not head.category.startswith("unavailable.") or k >= len(scan) or scan.breaks[k]:
        return False
    hyphens = any(scan.gap(n) == "-" for n in range(head.start + 1, k))
    if scan.breaks[head.start] and not scan.is_known(k) and scan.tokens[k].text.islower():
        return scan.lexicon.code in _COMPOUNDS_APART  # "website copy", "movie night"
    return hyphens and scan.is_free(k) and not scan.has(k, "function_word", "join.", "about")


def labels_quote(scan: Scan, head: Phrase) -> bool:
    """Tell whether a noun is what quoted words after it are on something, such as its subtitle."""
    if head.end >= len(scan) or scan.owners[head.end] != "literal":
        return False
    if scan.has(head.start, "title"):
        return True
    is_field = scan.names.find_label([scan.word(head.end - 1)])[0] is not None
    return is_field and head.category.startswith(("unavailable.", "act."))


def read_noun_phrase(scan: Scan, i: int) -> NounPhrase:
    """Read the noun phrase that begins at a word, up to where another phrase begins."""
    grammar = get_grammar(scan.lexicon.code)
    found = NounPhrase(i, i)
    k, unknown = i, 0
    while k < min(len(scan), i + _MAX_PHRASE_WORDS):
        if k > i and _ends_phrase(scan, k, found):
            break
        if not scan.is_free(k):
            # A measure inside the phrase: `a 50-word poem`.
            if scan.owners[k] == "measure" and found.head is None:
                k += 1
                continue
            break
        head = find_head(scan, k)
        if head is not None:
            found.modifier = found.head
            if found.head is None or found.head.category != "unavailable.qr_code":
                found.head = head
            k = head.end
            found.end, found.tail = k, None
            continue
        if found.head is None and _is_hyphenated(scan, k):
            found.unknown.append(k)
            k += 1
            continue
        has_article = found.has_article
        step = _read_modifier(scan, k, found, grammar.definite, grammar.possessive)
        if step is not None:
            if found.head is None and has_article and found.unknown and scan.has(k, "article"):
                break  # "a baker finds a map" is a clause
            k = step
            continue
        if _stops_phrase(scan, k):
            break
        if found.head is not None:
            # Words after a noun: a longer name of something else, or its topic.
            found.tail = found.tail if found.tail is not None else k
        else:
            found.unknown.append(k)
            unknown += 1
            if unknown > _MAX_UNKNOWN_BEFORE_HEAD:
                break
        k += 1
    if found.head is None:
        found.end = k
    elif grammar.article_prefix:
        # A noun without the article that is written as one with it is indefinite.
        is_definite = scan.word(found.head.start).startswith(grammar.article_prefix)
        found.is_definite = found.is_definite or is_definite
        found.has_article = True
    return found


def _is_hyphenated(scan: Scan, k: int) -> bool:
    """Tell whether a word is a part of a longer one: `out-of-office`."""
    return scan.gap(k) == "-" or (k + 1 < len(scan) and scan.gap(k + 1) == "-")


def _ends_phrase(scan: Scan, k: int, found: NounPhrase) -> bool:
    gap = scan.breaks[k]
    if gap == Break.NONE:
        return scan.has_join_sign(k)
    if gap > Break.COMMA or found.head is not None:
        return True
    # "a short, funny poem": a comma between adjectives.
    return not (scan.has(k - 1, "filler") and (scan.has(k, "filler") or find_head(scan, k)))


def _read_modifier(
    scan: Scan, k: int, found: NounPhrase, definite: frozenset[str], possessive: frozenset[str]
) -> int | None:
    """Read a word before a noun that says something of it; return where the next word begins."""
    if found.head is not None:
        return None
    number, end = read_quantity(scan, k)
    if number is not None and end < len(scan):
        found.has_article = True
        if 1 < number <= _MAX_COUNT and number == int(number):
            found.count = int(number)
        return end
    if scan.word(k) in definite or scan.word(k) in possessive:
        found.is_definite = found.is_definite or scan.word(k) in definite
        found.is_possessive = found.is_possessive or scan.word(k) in possessive
        found.has_article = True
        return k + 1
    if scan.word(k) in get_grammar(scan.lexicon.code).same and k > found.start:
        found.is_definite = True
        return k + 1
    article = scan.find(k, "article") or scan.find(k, "join.for_each")
    if article is not None:
        found.has_article = True
        return article.end
    attribute = find_attribute(scan, k)
    if attribute is not None:
        found.attributes.append(k)
        return attribute.end
    language = scan.find(k, "language")
    if language is not None:
        found.language = language.value
        return language.end
    participle = scan.find(k, "act.")
    if participle is not None and found.has_article and _is_adjective(scan, k, participle.end):
        return participle.end
    filler = scan.find(k, "filler") if not scan.has(k, "join.") else None
    return filler.end if filler is not None else None


def _is_adjective(scan: Scan, k: int, end: int) -> bool:
    """Tell whether a verb after an article is an adjective: `eine gezeichnete Landschaft`."""
    led = scan.has(k - 1, "article", "filler", "number")
    return led and end < len(scan) and not scan.breaks[end] and find_head(scan, end) is not None


def _stops_phrase(scan: Scan, k: int) -> bool:
    """Tell whether a word belongs to another phrase: a preposition, a conjunction, a verb."""
    if scan.has(k, "function_word", "polite", "pronoun", "question"):
        return True
    subject, contracts, _ = scan.word(k).partition("'")
    if contracts and subject in get_grammar(scan.lexicon.code).subject:
        return True  # "she'll print it"
    if scan.find(k, "about", "join.", "negation.", "title", "bound."):
        return True
    verb = scan.find(k, "act.", "make", "unavailable.")
    return verb is not None and not verb.is_ambiguous
