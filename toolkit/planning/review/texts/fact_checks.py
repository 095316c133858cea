"""Checks of what a text has from its brief and material: facts, names, numbers, sources."""

import re
from collections.abc import Iterator

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.spans.measures import read_quantity
from toolkit.planning.reading.spans.scan import Scan
from toolkit.planning.reading.words.lexicon import CODES, load_lexicon
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.demands import Demands, read_demands
from toolkit.planning.review.texts.sentences import split_lines
from toolkit.planning.review.texts.topic_checks import is_other_language
from toolkit.planning.review.texts.word_lists import compile_phrases, find_phrase, fold_phrase

_URL = re.compile(r"https?://([\w.-]+)(/[^\s)\]>,;\"”]*)?|\bdoi:\s*10\.\d+|\b10\.\d{4,9}/\S+")
_ADDRESS = re.compile(r"https?://[^\s)\]>,;\"”]+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MATERIAL_TITLE = re.compile(r"^([^\n:]{3,60}):", re.M)
_WORD = re.compile(r"[\w'’-]+")
# Whom a brief names: "for Tamsin", "an Frau Imhoff"; where every noun has a capital, by a title.
_TITLES = (
    r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Frau|Herrn?|Mme|Mlle|M|Sra?|Sr|Sig|Dott|Don|Doña|Dona)\b\.?\s+"
)
_NAME = r"([A-ZÀ-Þ][a-zß-ÿ][\w'’-]*)"
_ADDRESSEE = re.compile(
    rf"\b(?:for|to|pour|à|para|per|al|alla|a)\s+(?:{_TITLES})*{_NAME}|\b(?:an|für)\s+(?:{_TITLES})+{_NAME}"
)
_GREETING_CHARS = 200
_MAX_NAME_WORDS = 4
MAX_SPELLED = 4_000  # characters of a text that numbers in words are looked for in


def check_facts(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text has of the numbers and names in its brief some, where these are many."""
    if case.is_code or case.material or not case.is_instructed or not case.text.strip():
        return
    facts = _find_facts(case)
    # Names by themselves are often said in other words, a date or a number is not.
    least = case.thresholds.min_facts - any(fact[:1].isdigit() for fact in facts)
    if len(facts) < least + case.demands.asks("fiction") or is_other_language(case):
        return
    if any(fact in case.folded for fact in facts) or _spells_number(case, facts):
        return
    lacking = ", ".join(facts[:4])
    message = f"The text has none of what its brief says: {quote(lacking)}."
    # A text may breathe a place without its name, but hardly a date or a price.
    is_sure = any(fact[:1].isdigit() for fact in facts)
    told = "Use the names, dates and numbers of this request."
    yield case.report(
        message, 0.7 if is_sure else 0.3, blocks=is_sure, instruction=told if is_sure else ""
    )


def _spells_number(case: TextCase, facts: list[str]) -> bool:
    """Tell whether a text says one of some numbers in words."""
    wanted = {float(fact) for fact in facts if fact.isdecimal()}
    code = case.language.code
    if not wanted or code not in CODES:
        return False
    scan = Scan(case.sample[:MAX_SPELLED], load_lexicon(code), CapabilityNames())
    return any(read_quantity(scan, i)[0] in wanted for i in range(len(scan)))


def _find_facts(case: TextCase) -> list[str]:
    """Find the names and numbers in a brief: words with a capital inside of a sentence.

    How much is to be written is none, nor in which language.
    """
    brief = case.brief
    names = re.findall(r"(?<=[a-zà-ÿ,;] )([A-ZÀ-Þ][\w'’-]{2,})", brief)
    # Where every noun has a capital, it says nothing.
    is_nouns = case.demands.language == "de"
    sizes = {f"{n:g}" for one in case.demands.quantities.values() for n in (one.least, one.most)}
    numbers = [n for n in _NUMBER.findall(brief) if len(n) > 1 and n not in sizes]
    kept = [] if is_nouns else [one for one in names if not read_demands(one).named]
    return list(dict.fromkeys(map(fold_phrase, [*numbers, *kept])))


def check_addressee(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text greets nobody else than its brief names."""
    if case.is_code or not case.is_instructed:
        return
    briefs = f"{case.brief} {case.look.objective}"
    named = {fold_phrase(one or other) for one, other in _ADDRESSEE.findall(briefs)}
    if not named or any(name in case.folded for name in named):
        return
    known = set(_WORD.findall(fold_phrase(briefs)))
    for line in split_lines(case.sample[:_GREETING_CHARS])[:2]:
        greeted = _find_greeted(line)
        if greeted and not any(fold_phrase(one) in known for one in greeted):
            message = f"The text greets {quote(' '.join(greeted))}, not whom its brief names."
            yield case.report(message, 0.8, instruction="Use the names of this request.")
            return


def _find_greeted(line: str) -> list[str]:
    """Find the names that a line greets; `all` and `neighbours` are none."""
    greeting = compile_phrases("greetings").match(fold_phrase(line))
    if greeting is None:
        return []
    words = re.split(r"[,،!:;.?]", line, maxsplit=1)[0].split()[len(greeting.group().split()) :]
    is_name = all(word[:1].isupper() for word in words) and len(words) <= _MAX_NAME_WORDS
    if not is_name or any(compile_phrases("everyone").match(fold_phrase(w)) for w in words):
        return []
    return words


def check_translation(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a translation has the numbers of what it translates."""
    if not case.demands.asks("translating") or not case.text.strip():
        return
    source = case.material or _find_literal(case.brief)
    numbers = {n for n in _NUMBER.findall(source) if len(n) > 1}
    if len(numbers) < 2:
        return
    kept = {re.sub(r"\D", "", n) for n in _NUMBER.findall(case.sample)}
    lost = sorted(n for n in numbers if re.sub(r"\D", "", n) not in kept)
    if len(lost) * 2 > len(numbers):
        message = f"The translation lacks numbers: {quote(', '.join(lost))}."
        yield case.report(message, 0.6, instruction="Keep every number.")


def _find_literal(brief: str) -> str:
    """Find what a brief quotes, or what follows its colon."""
    head, _, tail = brief.partition(":")
    return tail if len(tail) > len(head) else ""


def check_sources(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that sources are named where the brief asks for them."""
    if case.is_code or not case.text.strip() or not _asks_for_sources(case.demands):
        return
    given = {_cut_address(one) for one in _ADDRESS.findall(case.material)}
    cited = {_cut_address(one) for one in _ADDRESS.findall(case.text)}
    if given and cited and not any(one in other for one in cited for other in given):
        message = f"The text cites an address that nobody gave: {quote(min(cited))}."
        yield case.report(message, 0.7, instruction="Cite the addresses of the material alone.")
        return
    if _URL.search(case.text):
        return
    folded = case.folded
    titles = [fold_phrase(title) for title in _MATERIAL_TITLE.findall(case.material)]
    if not _URL.search(case.material) and not re.search(
        r"link|url|adress|address", case.demands.folded
    ):
        if re.search(r"\[\d{1,2}\]|\([A-Z]\w+[^()]{0,40}\d{4}\)", case.text):
            return
        if any(title in folded for title in titles) and case.has_phrase("source_heads"):
            return
        if _names_source(case):
            return
    message = "The text names no source, though its brief asks for them."
    yield case.report(message, 0.7, instruction="Name each source with its address at the end.")


def _cut_address(address: str) -> str:
    """Cut off an address how it is reached, and what stands behind it in a sentence."""
    return re.sub(r"^https?://(?:www\.)?", "", address.lower()).rstrip("/.,;:!?*_'")


def _asks_for_sources(demands: Demands) -> bool:
    """Tell whether a brief asks for sources to be named, and not only to be used."""
    if find_phrase("sources", demands.folded) is not None:
        return True
    nouns, verbs = (demands.compile(name).pattern for name in ("source_heads", "source_verbs"))
    # "A source at 200 m" is a spring.
    other = r"(?!\s+(?:of\b|code\b|a \d))"
    wanted = rf"(?:{verbs})\W+(?:\w+\W+){{0,3}}?(?:{nouns}){other}"
    return re.search(wanted, demands.folded) is not None


def _names_source(case: TextCase) -> bool:
    """Tell whether a line after the head of a list of sources has a name in it."""
    lines = split_lines(case.sample)
    heads = compile_phrases("source_heads")
    for i, line in enumerate(lines):
        if not heads.match(fold_phrase(line).lstrip("#*-_ ")):
            continue
        rest = " ".join([line.partition(":")[2], *lines[i + 1 :]])
        if re.search(r"\d{4}|\b[A-Z]\w+ [A-Z]\w+|[»“”\"«]", rest):
            return True
    return False
