"""Checks of what a text is about: its topic, the facts that its brief has, its sources."""

import re
from collections.abc import Iterable, Iterator

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.demands import read_demands
from toolkit.planning.review.texts.languages import detect_text_language
from toolkit.planning.review.texts.sentences import split_items, split_lines
from toolkit.planning.review.texts.terms import TermIndex, find_terms, measure_overlap
from toolkit.planning.review.texts.word_lists import compile_phrases, find_phrase, fold_phrase

_URL = re.compile(r"https?://([\w.-]+)(/[^\s)\]>,;\"”]*)?|\bdoi:\s*10\.\d+|\b10\.\d{4,9}/\S+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MATERIAL_TITLE = re.compile(r"^([^\n:]{3,60}):", re.M)
_MIN_TERMS = 8  # of a text, that a topic is told by
_MIN_MATERIAL = 20  # of its material
_SHARED_BY_CHANCE = 0.1  # of a brief's terms, that any text may have
_FEW_TERMS = 2
_MIN_COMPOUND, _MIN_PART = 7, 4  # letters of a compound, and of a part of it
_SIGN = re.compile(r"[\u3400-\u9fff]")
_MIN_SIGNS, _FEW_SIGNS = 2, 6  # signs that are shared; pairs of them, of a topic


def check_topic(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text speaks of what its brief and its material speak of."""
    if case.is_code or not case.is_instructed or not case.text.strip():
        return
    terms = find_terms(case.sample)
    if len(terms) < _MIN_TERMS or _is_other_language(case):
        return
    material = TermIndex(find_terms(case.material))
    if len(material) >= _MIN_MATERIAL:
        share = measure_overlap(terms, TermIndex(find_terms(f"{case.material} {case.brief}")))
        if share < case.thresholds.material_share and not case.demands.is_creative:
            message = f"{share:.0%} of the text's words stand in its material: {quote(case.text)}."
            told = "Write only what the material has."
            yield case.report(message, 0.8, instruction=told)
        return
    topic = _cut_clause(case.demands.topic) or _cut_clause(case.wishes.topic)
    topic = topic or case.brief  # what it is about was not told from the rest
    wanted = [term for term in dict.fromkeys(find_terms(topic)) if not term.isdigit()]
    there = TermIndex(terms)
    if not wanted or any(term in there or _is_compound(term, terms) for term in wanted):
        return
    is_free = (
        case.demands.is_creative
        or any(map(case.asks, ("fiction", "one_line")))
        or (measure_overlap(terms, material) >= case.thresholds.material_share)
    )
    others = set(find_terms(f"{case.brief} {case.look.objective}"))
    # A long brief may be met in other words; a topic of few words, or a long text, has them.
    is_dense = case.language.script in {"han", "kana"}
    is_list = "items" in case.demands.quantities or len(split_items(case.sample)) > 1
    least, few = (2, _FEW_SIGNS) if is_dense else (1, _FEW_TERMS)
    is_told = least <= len(wanted) <= few and not is_list
    is_long = len(terms) >= case.thresholds.topic_terms * (2 if is_dense else 1)
    if not (is_told or is_long):
        return
    shared = sum(term in there for term in others)
    most = 0 if is_list else _SHARED_BY_CHANCE * len(others)
    far = not is_free and shared <= most and not (is_dense and _shares_signs(case))
    short = " ".join(topic.split()[:8])
    instruction = f"Mention {short} by name."
    if instruction in str(case.item.node.input.get("objective", "")):
        instruction = f"Write of nothing but {short}."
    message = f"The text does not speak of {quote(topic)}."
    yield case.report(
        message, 0.9 if far else 0.3, blocks=far, instruction=instruction if far else ""
    )


def _cut_clause(topic: str) -> str:
    """Cut a topic at the comma behind its first words, where stands how it is to be written of."""
    clauses = map(str.strip, re.split(r"[,;:،、，]", topic))
    return next((one for one in clauses if any(map(str.isalpha, one))), "")


def _is_compound(term: str, others: Iterable[str]) -> bool:
    """Tell whether a term is made of another one: `milkmaid` of `milk`."""
    return len(term) >= _MIN_COMPOUND and any(
        len(one) >= _MIN_PART and (term.startswith(one) or term.endswith(one)) for one in others
    )


def _shares_signs(case: TextCase) -> bool:
    """Tell whether a text has signs of its brief, where each says something by itself."""
    briefs = f"{case.demands.topic} {case.wishes.topic}"
    return len(set(_SIGN.findall(briefs)) & set(_SIGN.findall(case.sample))) >= _MIN_SIGNS


def _is_other_language(case: TextCase) -> bool:
    """Tell whether a text and its brief cannot be compared word by word."""
    found = case.language
    source = detect_text_language(f"{case.brief} {case.material}")
    told = case.demands.language if case.demands.is_language_sure else found.code
    code = source.code or told
    return (found.code is not None and code != found.code) or found.script != source.script


def check_facts(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text has of the numbers and names in its brief some, where these are many."""
    if case.is_code or case.material or not case.is_instructed or not case.text.strip():
        return
    facts = _find_facts(case)
    # Names by themselves are often said in other words, a date or a number is not.
    least = case.thresholds.min_facts - any(fact[:1].isdigit() for fact in facts)
    if len(facts) < least + case.demands.asks("fiction") or _is_other_language(case):
        return
    folded = case.folded
    found = [fact for fact in facts if fact in folded]
    if not found:
        lacking = ", ".join(facts[:4])
        message = f"The text has none of what its brief says: {quote(lacking)}."
        yield case.report(
            message, 0.7, instruction="Use the names, dates and numbers of this request."
        )


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
    if case.is_code or not case.text.strip() or not _asks_for_sources(case.demands.folded):
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


def _asks_for_sources(folded: str) -> bool:
    """Tell whether a brief asks for sources to be named, and not only to be used."""
    if find_phrase("sources", folded) is not None:
        return True
    nouns = compile_phrases("source_heads").pattern
    verbs = compile_phrases("source_verbs").pattern
    return (
        re.search(rf"(?:{verbs})\W+(?:\w+\W+){{0,3}}?(?:{nouns})(?!\s+(?:of|code)\b)", folded)
        is not None
    )


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
