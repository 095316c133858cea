"""The check of a text's language: the one that was asked for, or that of the brief."""

from collections.abc import Collection, Iterator

from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.languages import (
    MIN_WORDS,
    SCRIPTS_OF,
    are_close,
    count_scripts,
    detect_text_language,
    score_words,
    split_words,
)
from toolkit.planning.review.texts.sentences import split_sentences

MIN_LETTERS = 12  # of a text whose script says something
MAX_SENTENCES = 200  # of a long text, that are looked at one by one
MIN_SENTENCE_HITS = 2.0  # function words that a sentence by itself is told by
LEAD = 2.0  # of a language over those that may be, in one sentence
MIN_CJK = 8  # letters of a sentence that tells Chinese or Japanese


def check_language(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is in a language that was asked for, all of it."""
    if case.is_code or not case.is_instructed:
        return
    wanted = case.demands.wanted or case.wishes.wanted
    # Of a brief with too few words to tell its language, the nearest is told: it says little.
    sure = [one.language for one in (case.demands, case.wishes) if one.is_language_sure]
    allowed = set(wanted) or set(sure)
    # A brief that names a language without asking for it may still mean it.
    if allowed and not (wanted and case.demands.asks("translating")):
        allowed |= case.demands.named | case.wishes.named
    allowed.discard("")
    if not allowed:
        return
    found = case.language
    names = " or ".join(sorted(allowed))
    told = f"Write all of it in this language: {names}."
    # Names and words in Latin letters are at home everywhere, where nobody asked for others.
    is_told = bool(wanted) or found.script != "latin"
    if is_told and found.letters >= MIN_LETTERS:
        missing = _find_missing_script(case.sample, allowed, case.thresholds.script_share)
        if missing:
            message = f"The text is in {found.script} letters: {quote(case.text)}, not in {names}."
            yield case.report(message, 0.9, instruction=told)
            return
    if found.code is not None and not _is_allowed(found.code, allowed):
        message = f"The text is in `{found.code}` and not in {names}: {quote(case.text)}."
        yield case.report(message, 0.9, instruction=told)
        return
    share, example = _measure_foreign_share(case.sample, allowed)
    if share > case.thresholds.foreign_share:
        message = f"{share:.0%} of the text is not in {names}: {quote(example)}."
        yield case.report(message, 0.7, instruction=told)


def _is_allowed(code: str, allowed: set[str]) -> bool:
    return code in allowed or (
        # Short texts in two near languages look alike, but those with lexicons are told apart.
        any(are_close(code, one) for one in allowed)
        and not {code, *allowed} <= {"es", "pt", "it", "ca", "fr", "en", "de"}
    )


def _find_missing_script(text: str, wanted: Collection[str], least: float) -> bool:
    """Tell whether a text lacks the script of every language that is wanted."""
    scripts: set[str] = set()
    for code in wanted:
        scripts |= SCRIPTS_OF.get(code, {"latin"})
    counts = count_scripts(text)
    total = counts.total()
    return total > 0 and sum(counts[name] for name in scripts) < least * total


def _leads(sentence: str, code: str, allowed: set[str]) -> bool:
    """Tell whether a sentence has twice as much of a language as of those that may be."""
    scores = score_words(split_words(sentence))
    return scores.get(code, 0.0) >= LEAD * max(scores.get(one, 0.0) for one in allowed)


def _measure_foreign_share(text: str, allowed: set[str]) -> tuple[float, str]:
    """Measure the share of a text's sentences in other languages, with the longest of them."""
    total = foreign = 0
    longest = ""
    for sentence in split_sentences(text)[:MAX_SENTENCES]:
        size = len(sentence)
        total += size
        is_told = len(sentence.split()) >= MIN_WORDS or not sentence.isascii()
        found = detect_text_language(sentence, MIN_SENTENCE_HITS) if is_told else None
        if found is None or found.code is None or found.code in allowed:
            continue
        if any(are_close(found.code, one) for one in allowed):
            continue
        if found.script == "latin" and not _leads(sentence, found.code, allowed):
            continue
        if found.script in {"han", "kana"} and found.letters < MIN_CJK:
            continue
        foreign += size
        longest = max(longest, sentence, key=len)
    return (foreign / total if total else 0.0), longest
