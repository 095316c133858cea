"""Checks of what research found: facts on the topic, in the language, from places to look up."""

import re
from collections.abc import Iterator
from typing import TypedDict
from urllib.parse import urlsplit

from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import Evidence, Inspection, NodeCheck
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.languages import SCRIPTS_OF, are_close, detect_text_language
from toolkit.planning.review.texts.terms import TermIndex, find_terms
from toolkit.planning.review.texts.word_lists import load_function_words
from toolkit.settings import SANDBOX_HOST

# How encyclopedias mark pages that only list what a word may mean: in titles and first sentences.
_MEANINGS_TITLE = re.compile(
    r"\((?:disambiguation|begriffsklärung|homonymie|désambiguïsation|desambiguación|disambigua|"
    r"desambiguação|olika betydelser|doorverwijspagina|flertydig|ujednoznacznienie|rozcestník|"
    r"значения|багатозначність|anlam ayrımı|täsmennyssivu|توضيح|曖昧さ回避|消歧义|消歧義|"
    r"동음이의)\)",
    re.I,
)
_MEANINGS_START = re.compile(
    r"\b(?:(?:may|can|might|could)(?: also)? refer to|"
    r"(?:most |more )?(?:often|commonly|usually) refers? to|"
    r"peu(?:t|vent) (?:aussi )?(?:désigner|faire référence)|"
    r"puede (?:referirse|hacer referencia)|può riferirsi|pode (?:referir-se|se referir)|"
    r"kan (?:syfta|verwijzen|henvise)|może (?:oznaczać|odnosić)|může (?:znamenat|odkazovat)|"
    r"может (?:означать|относиться)|şu anlamlara gelebilir)|"
    r"قد (?:تشير|يشير|تعني|يعني)|يمكن أن (?:تشير|يشير)|可以指|可能指|のことを指す|曖昧さ回避",
    re.I,
)
# The same words as in a definition, but for the list that follows.
_MEANINGS_LIST = re.compile(
    r"(?:steht für|bezeichnet|ist der name (?:folgender|mehrerer)|refers? to|can mean|stand for|"
    r"può indicare|pode significar|puede significar|可指|以下の意味)\W{0,3}(?::|：|$|\n)",
    re.I,
)
_MEANINGS_END = re.compile(
    r"internal link led you here|diese seite ist eine begriffsklärung|"
    r"cette page d'homonymie|esta página de desambiguación|questa è una pagina di disambigua",
    re.I,
)
_ERROR_PAGE = re.compile(
    r"^\W*(?:(?:http |error |fehler |erreur )?[45]\d\d\b|page not found|not found|access denied|"
    r"forbidden|bad gateway|service unavailable|too many requests|internal server error|"
    r"(?:please )?enable javascript|are you a (?:human|robot)|captcha|"
    r"wikipedia does not have an article|"
    r"there (?:is|are) (?:currently )?no (?:article|page|result))",
    re.I,
)
_PLACEHOLDER = re.compile(
    r"^\W*(?:n\W?/?\W?a|none|null|undefined|nil|tb[acd]|todo|unknown|lorem ipsum.*|"
    r"\[[^\]]{0,60}\]|<[^>]{0,60}>|\{[^}]{0,60}\})?\W*$",
    re.I | re.S,
)


_RESERVED_HOST = re.compile(r"(?:^|\.)example(?:\.(?:com|org|net))?$|\.invalid$")
_NOTHING_FOUND = re.compile(
    r"^.{0,40}\b(?:no (?:information|data|facts?|content|results?|article)|nothing) (?:\w+ )?"
    r"(?:available|found|there)|^.{0,40}\bkeine (?:informationen|daten|ergebnisse|artikel)\b|"
    r"^.{0,40}\b(?:aucune? (?:information|résultat|donnée)|no (?:hay|se encontr\w+) "
    r"(?:información|resultados|datos)|nessun[ao]? (?:informazione|risultato|dato)|"
    r"nenhuma? (?:informação|resultado))|^.{0,20}(?:情報がありません|見つかりません|没有找到|暂无|"
    r"لا توجد (?:معلومات|نتائج))",
    re.I,
)
_LONG_TOPIC = 3  # words: two of them have to be found


_MARK_UP = re.compile(
    r"\{\{[^{}]{0,200}\}\}|\[\[[^\[\]]{0,200}\]\]|&(?:nbsp|amp|lt|gt|quot|#\d{2,5});|mw-parser-output|"
    r"</?(?:ref|div|span|p|br|li|ul|table|sup|b|i|a)\b[^<>]{0,200}>|={2,}[^=\n]{1,80}={2,}"
)


class _SourcePart(TypedDict):
    title: str
    text: str


def check_sources(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that each source has an address to open, and that no two are one."""
    item = look.item
    if "sources" not in item.capability.output_model.model_fields:
        return
    output = item.output or {}
    sources = [source for source in _read_list(output.get("sources")) if isinstance(source, dict)]
    urls = [str(source.get("url") or "").partition("#")[0] for source in sources]
    if output.get("source_kind") == "zim":
        return  # a file has no addresses of the web
    bad = [url for url in urls if not _is_address(url)]
    if not urls or bad:
        message = f"{len(bad)} of {len(urls)} sources have no address that opens"
        message += f", such as `{bad[0][:60]}`." if any(bad) else "."
        yield _block(item, 0.9, message)
    elif len(urls) > len(set(urls)):
        message = f"{len(urls)} sources are {len(set(urls))}: one is there more than once."
        yield _block(item, 0.7, message)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return False
    is_host = host in ("localhost", SANDBOX_HOST) or (
        "." in host and not _RESERVED_HOST.search(host)
    )
    leads_on = bool(parts.path.strip("/") or parts.query)  # to more than a front page
    return parts.scheme in ("http", "https") and is_host and leads_on and " " not in url.strip()


def check_meanings(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the article is on one thing, and no list of what a word may mean."""
    item = look.item
    title, summary = _read_text(item, "title"), _read_text(item, "summary")
    main = _read_list((item.output or {}).get("sources"))[:1]
    titles = [title, *(str(one.get("title", "")) for one in main if isinstance(one, dict))]
    everything = " ".join(part["text"] for part in _read_parts(item))
    opening = summary[:160]
    start = _MEANINGS_START.search(opening) or _MEANINGS_LIST.search(opening)
    if any(_MEANINGS_TITLE.search(one) for one in titles) or _MEANINGS_END.search(everything):
        yield _report_meanings(item, title)
    elif start is not None and start.start() < 90:
        yield _report_meanings(item, start.group())
    elif summary.rstrip().endswith((":", "：")):
        yield _report_meanings(item, summary[-60:])  # a list follows, and no sentence


def _report_meanings(item: Evidence, found: str) -> ReviewIssue:
    message = f"The article only lists what a word may mean: `{found[:80]}`."
    return ReviewIssue(item.node.id, "objective_alignment", 0.9, message, is_blocking=True)


def check_substance(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that there are facts: neither nothing, nor placeholders, nor the page of an error."""
    item, limits = look.item, look.thresholds.research
    if "summary" not in item.capability.output_model.model_fields:
        return
    title, summary = _read_text(item, "title"), _read_text(item, "summary")
    parts = _read_parts(item)
    wrong = _ERROR_PAGE.match(summary) or _ERROR_PAGE.match(title) or _NOTHING_FOUND.match(summary)
    if wrong is not None:
        yield _block(item, 0.9, f"It says that there is nothing: `{wrong.group().strip()}`.")
        return
    texts = [summary, *(part["text"] for part in parts)]
    filled = [text for text in texts if not _PLACEHOLDER.match(text)]
    letters = sum(char.isalpha() for text in filled for char in text)
    if letters < limits.min_letters or summary not in filled:
        message = f"{len(filled)} of {len(texts)} parts have facts, of {letters} letters in all."
        yield _block(item, 0.9, message)
    elif (residue := _MARK_UP.search("\n".join(texts))) is not None:
        yield _block(item, 0.7, f"Mark-up was left in the facts: `{residue.group()[:40]}`.")
    elif len({text for text in filled if len(text) > limits.min_letters}) < sum(
        len(text) > limits.min_letters for text in filled
    ):
        yield _block(item, 0.7, "Parts of the facts are the same.")
    elif len(filled) < limits.min_filled_share * len(texts):
        message = f"{len(texts) - len(filled)} of {len(texts)} parts are empty."
        yield _block(item, 0.7, message)


def check_fact_language(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the facts are in the language that was asked for."""
    item, limits = look.item, look.thresholds.research
    fields = item.capability.input_model.model_fields
    if "language" not in fields:
        return
    asked = item.node.input.get("language", fields["language"].default)
    if not isinstance(asked, str):
        return
    code = {"simple": "en", "nb": "no", "nn": "no"}.get(asked, asked.split("-")[0])
    known = SCRIPTS_OF.keys() | {one for codes in load_function_words().values() for one in codes}
    if code not in known:
        return
    parts = " ".join(part["text"] for part in _read_parts(item))
    for text in (_read_text(item, "summary"), parts):
        found = detect_text_language(text)
        if found.letters < limits.min_language_letters:
            continue
        other = found.code not in (None, code) and not are_close(str(found.code), code)
        if other or found.script not in SCRIPTS_OF.get(code, {"latin"}):
            message = f"The facts are in `{found.code or found.script}`, not in `{code}`."
            yield ReviewIssue(item.node.id, "objective_alignment", 0.8, message, is_blocking=True)
            return


def check_subject(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the facts are on the topic: its words stand in them."""
    item = look.item
    field = find_role_field(item.capability, "topic")
    topic = item.node.input.get(field) if field is not None else None
    facts = f"{_read_text(item, 'title')} {_join_facts(item)}"
    if not isinstance(topic, str) or len(facts) < look.thresholds.research.min_letters:
        return
    asked, found = detect_text_language(topic), detect_text_language(facts)
    wanted = find_terms(topic)
    if not wanted or asked.script != found.script:
        return  # an article in another script says the same in other letters
    there, title = TermIndex(find_terms(facts)), _read_text(item, "title")
    found_terms = [term for term in dict.fromkeys(wanted) if term in there]
    least = 1 if len(set(wanted)) < _LONG_TOPIC else 2
    other = _find_qualifier(title, f"{topic} {look.objective}")
    if len(found_terms) < least or (other and len(found_terms) < len(set(wanted))):
        share = len(found_terms) / len(set(wanted))
        message = f"{share:.0%} of `{topic[:80]}` stands in the facts on `{title[:80]}`."
        yield ReviewIssue(item.node.id, "objective_alignment", 0.8, message, is_blocking=True)


def _find_qualifier(title: str, asked: str) -> str:
    """Find what an article's title adds in brackets, such as a company, and nobody asked for."""
    added = re.search(r"\(([^()]{2,60})\)\s*$", title)
    known = TermIndex(find_terms(asked))
    is_other = added is not None and not any(one in known for one in find_terms(added.group(1)))
    return added.group(1) if added is not None and is_other else ""


RESEARCH_CHECKS: tuple[NodeCheck, ...] = (
    check_substance, check_sources, check_meanings, check_fact_language, check_subject,
)  # fmt: skip


def _block(item: Evidence, weight: float, message: str) -> ReviewIssue:
    return ReviewIssue(item.node.id, "output_completeness", weight, message, is_blocking=True)


def _read_text(item: Evidence, name: str) -> str:
    value = (item.output or {}).get(name)
    return value if isinstance(value, str) else ""


def _read_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _read_parts(item: Evidence) -> list[_SourcePart]:
    """Read the sections of what was found."""
    return [
        _SourcePart(title=str(part.get("title", "")), text=str(part.get("text", "")))
        for part in _read_list((item.output or {}).get("sections"))
        if isinstance(part, dict)
    ]


def _join_facts(item: Evidence) -> str:
    return "\n".join([
        _read_text(item, "summary"),
        *(f"{part['title']}: {part['text']}" for part in _read_parts(item)),
        _read_text(item, "text"),
    ])  # fmt: skip
