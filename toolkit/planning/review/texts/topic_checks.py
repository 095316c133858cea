"""The check of what a text is about: what its brief and its material speak of."""

import re
from collections.abc import Iterable, Iterator

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.languages import detect_text_language
from toolkit.planning.review.texts.sentences import split_items
from toolkit.planning.review.texts.terms import TermIndex, find_terms, measure_overlap

_MIN_TERMS = 8  # of a text, that a topic is told by
_MIN_MATERIAL = 20  # of its material
_SHARED_BY_CHANCE = 0.05  # of a brief's terms, that any text may have
_FEW_TERMS = 2
_MIN_COMPOUND, _MIN_PART = 7, 4  # letters of a compound, and of a part of it
_SIGN = re.compile(r"[\u3400-\u9fff]")
_MIN_SIGNS, _FEW_SIGNS = 2, 6  # signs that are shared; pairs of them, of a topic


def check_topic(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text speaks of what its brief and its material speak of."""
    if case.is_code or not case.is_instructed or not case.text.strip():
        return
    terms = find_terms(case.sample)
    if len(terms) < _MIN_TERMS or is_other_language(case):
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
        (not case.demands.informs and (case.asks("describing") or not case.wishes.informs))
        or case.demands.is_creative
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
    briefs = f"{case.brief} {case.look.objective}"
    return len(set(_SIGN.findall(briefs)) & set(_SIGN.findall(case.sample))) >= _MIN_SIGNS


def is_other_language(case: TextCase) -> bool:
    """Tell whether a text and its brief cannot be compared word by word."""
    found = case.language
    source = detect_text_language(f"{case.brief} {case.material}")
    told = case.demands.language if case.demands.is_language_sure else found.code
    code = source.code or told
    return (found.code is not None and code != found.code) or found.script != source.script
