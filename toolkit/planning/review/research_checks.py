"""Checks of research results: facts on the topic, in the language, with addresses to look up."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from toolkit.media.text_languages import detect_language, find_foreign_part, uses_latin
from toolkit.media.text_parts import fold
from toolkit.media.text_words import find_terms
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import Criterion, Evidence, Inspection, NodeCheck, ReviewIssue
from toolkit.planning.review.phrases import compile_phrases
from toolkit.planning.review.text_case import MAX_FOREIGN_SHARE
from toolkit.settings import SANDBOX_HOST

_OPENING_CHARS = 90
_MIN_LETTERS, _MIN_LANGUAGE_LETTERS = 40, 80  # of facts; of facts whose language is checked
_MIN_FILLED_SHARE = 0.5  # of the parts that are no placeholders
_PLACEHOLDER = re.compile(
    r"\W*(?:n\W?/?\W?a|none|null|undefined|tb[acd]|todo|unknown|lorem ipsum.*|"
    r"\[[^\]]{0,60}\]|<[^>]{0,60}>|\{[^}]{0,60}\})?\W*",
    re.I | re.S,
)
_MARK_UP = re.compile(
    r"\{\{[^{}]{0,200}\}\}|\[\[[^\[\]]{0,200}\]\]|&(?:nbsp|amp|lt|gt|quot|#\d{2,5});|"
    r"</?(?:ref|div|span|p|br|li|ul|table|sup|b|i|a)\b[^<>]{0,200}>|={2,}[^=\n]{1,80}={2,}"
)
_RESERVED_HOST = re.compile(r"(?:^|\.)example(?:\.(?:com|org|net))?$|\.invalid$")


def check_sources(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that sources have different, valid web addresses, unless they are in a local file."""
    item, output = look.item, look.item.output or {}
    has_addresses = output.get("source_kind") != "zim"  # a file has no web addresses
    if "sources" not in item.capability.output_model.model_fields or not has_addresses:
        return
    urls = [str(part.get("url") or "").partition("#")[0] for part in _list_parts(item, "sources")]
    bad = [url for url in urls if not _is_address(url)]
    if not urls or bad:
        message = f"{len(bad)} of {len(urls)} sources have no address that opens."
        yield _block(item, message)
    elif len(urls) > len(set(urls)):
        message = f"{len(urls)} sources have {len(set(urls))} different addresses."
        yield _block(item, message)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return False
    is_public = "." in host and not _RESERVED_HOST.search(host)
    is_host = is_public or host in ("localhost", SANDBOX_HOST)
    leads_on = bool(parts.path.strip("/") or parts.query)  # to more than a front page
    return parts.scheme in ("http", "https") and is_host and leads_on and " " not in url.strip()


def check_meanings(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the article has one subject, and is no list of the meanings of a word."""
    item = look.item
    title, summary = _read_text(item, "title"), _read_text(item, "summary").strip()
    main = [str(part.get("title", "")) for part in _list_parts(item, "sources")[:1]]
    marks = [name.rpartition("(")[2] for name in (title, *main) if name.rstrip().endswith(")")]
    is_list = summary.endswith((":", "：")) or _opens_with("meanings", summary)
    if is_list or any(_opens_with("meanings_titles", mark) for mark in marks):
        message = f"The article only lists meanings of a word: `{title[:80]}`."
        yield _block(item, message, "objective_alignment")


def _opens_with(name: str, text: str) -> str:
    """Find a phrase of a list in `phrases.toml` near the beginning of a text; "" without any."""
    match = compile_phrases(name).search(fold(text[:_OPENING_CHARS]))
    return match.group() if match else ""


def check_substance(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that there are enough facts, without error pages, empty or equal parts, or mark-up."""
    item = look.item
    if "summary" not in item.capability.output_model.model_fields:
        return
    title, summary = _read_text(item, "title"), _read_text(item, "summary")
    texts = [summary, *(str(part.get("text", "")) for part in _list_parts(item, "sections"))]
    filled = [text for text in texts if not _PLACEHOLDER.fullmatch(text)]
    letters = sum(char.isalpha() for text in filled for char in text)
    long = [text for text in filled if len(text) > _MIN_LETTERS]
    if wrong := _opens_with("nothing_found", f"{title} {summary}"):
        yield _block(item, f"The facts say that nothing was found: `{wrong}`.")
    elif letters < _MIN_LETTERS or summary not in filled:
        message = (
            f"{len(filled)} of {len(texts)} parts have facts, with {letters} letters in total."
        )
        yield _block(item, message)
    elif len(filled) < _MIN_FILLED_SHARE * len(texts):
        yield _block(item, f"{len(texts) - len(filled)} of {len(texts)} parts are empty.")
    elif residue := _MARK_UP.search("\n".join(texts)):
        yield _block(item, f"Mark-up was left in the facts: `{residue.group()[:40]}`.")
    elif len(set(long)) < len(long):
        yield _block(item, "Parts of the facts are the same.")


def check_fact_language(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the facts are in the language that the node asks for."""
    item = look.item
    field = item.capability.input_model.model_fields.get("language")
    language = item.node.input.get("language", field.default) if field is not None else None
    if not isinstance(language, str):
        return
    code = {"simple": "en", "nb": "no", "nn": "no"}.get(language, language.split("-")[0])
    facts = _join_facts(item)
    is_long = sum(map(str.isalpha, facts)) >= _MIN_LANGUAGE_LETTERS
    if is_long and find_foreign_part(facts, code, MAX_FOREIGN_SHARE):
        yield _block(item, f"The facts are not in `{code}`.", "objective_alignment")


def check_subject(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the facts share words with the topic, if both are in the same language."""
    item = look.item
    field = find_role_field(item.capability, "topic")
    topic = item.node.input.get(field) if field is not None else None
    title = _read_text(item, "title")
    facts = f"{title} {_join_facts(item)}"
    if not isinstance(topic, str) or len(facts) < _MIN_LETTERS:
        return
    languages = {detect_language(topic), detect_language(facts)} - {None}
    terms, fact_terms = find_terms(topic), find_terms(facts)
    if not terms or uses_latin(topic) != uses_latin(facts) or len(languages) > 1:
        return
    # An article on a namesake names its kind in brackets: a company, a film.
    added = find_terms(title.rpartition("(")[2]) if title.rstrip().endswith(")") else set()
    is_other = bool(added) and not added & find_terms(f"{topic} {look.objective}")
    min_shared = len(terms) if is_other else 1 + (len(terms) > 2)
    if len(terms & fact_terms) < min_shared:
        message = f"The facts on `{title[:80]}` are not about `{topic[:80]}`."
        yield _block(item, message, "objective_alignment")


RESEARCH_CHECKS: tuple[NodeCheck, ...] = (
    check_substance, check_sources, check_meanings, check_fact_language, check_subject,
)  # fmt: skip


def _block(
    item: Evidence, message: str, criterion: Criterion = "output_completeness"
) -> ReviewIssue:
    return ReviewIssue(item.node.id, criterion, 0.9, message, is_blocking=True)


def _read_text(item: Evidence, name: str) -> str:
    value = (item.output or {}).get(name)
    return value if isinstance(value, str) else ""


def _list_parts(item: Evidence, name: str) -> list[dict[str, object]]:
    """List the JSON objects of an array in the output; none if it has no such array."""
    value = (item.output or {}).get(name)
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _join_facts(item: Evidence) -> str:
    parts = [
        f"{part.get('title', '')}: {part.get('text', '')}" for part in _list_parts(item, "sections")
    ]
    return "\n".join([_read_text(item, "summary"), *parts, _read_text(item, "text")])
