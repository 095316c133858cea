"""`research.gather`: facts on a topic from an encyclopedia; the registry loads it."""

import re
import unicodedata

from pydantic import Field

from toolkit.capabilities._encyclopedia import (
    Encyclopedia,
    EncyclopediaArticle,
    SearchHit,
    open_encyclopedia,
)
from toolkit.capabilities._text import clean, shorten
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.plugins import (
    Call,
    Capability,
    Flow,
    ProviderError,
    Result,
    TextRequest,
    request_operation,
)
from toolkit.plugins.fencing import fence_text

MAX_SECTIONS = 12
MAX_SUMMARY_CHARACTERS = 2_000
MAX_SECTION_CHARACTERS = 1_500
MAX_CANDIDATES = 3  # articles considered as the main article
MIN_FIT = 0.3  # minimum share of a topic's words that a main article must mention
EXTRA_HITS = 3  # hits beyond max_sources, because some will be disambiguation pages
SYNTHESIS_TOKENS = 600
ASSUMED_MATERIAL_CHARACTERS = 6_000  # characters, for an estimate before anything was read
# Headings of sections that are lists of links or notes, in the languages known here.
_LIST_HEADINGS = frozenset(
    """see also|references|external links|further reading|notes|bibliography|sources|citations|
    gallery|einzelnachweise|weblinks|literatur|siehe auch|notes et références|voir aussi|
    liens externes|bibliographie|véase también|referencias|enlaces externos""".replace(
        "\n    ", ""
    ).split("|")
)


class ResearchInput(Request):
    """The input of `research.gather`."""

    topic: str = Field(
        min_length=1,
        max_length=300,
        pattern=r"\S",
        description="what to look up: a name or a few words",
        json_schema_extra={"x-role": "topic"},
    )
    language: str = Field(
        default="en",
        max_length=32,
        pattern=r"^[a-z]{2,12}(-[a-z]{2,12}){0,3}$",
        description="which encyclopedia to read, by its language code",
    )
    max_sources: int = Field(default=3, ge=1, le=5, description="the most articles to read")
    synthesize: bool = Field(
        default=True, description="add a synthesis by a connected LLM, which is billed"
    )


class ResearchSection(Record):
    """A titled part of the facts on a topic."""

    title: str = Field(description="its heading, or the article it is from")
    text: str = Field(description="plain text")


class ResearchSource(Record):
    """An article that was read."""

    title: str = Field(description="the article's title")
    url: str = Field(description="where to read it")
    license: str | None = Field(default=None, description="its license, where known")


class ResearchOutput(Record):
    """The output of `research.gather`."""

    topic: str = Field(description="what was asked for")
    title: str = Field(description="the title of the main article")
    summary: str = Field(description="what it says in short")
    sections: list[ResearchSection] = Field(description="what it and the other articles say")
    sources: list[ResearchSource] = Field(min_length=1, description="the articles read")
    text: str = Field(description="all of it as one readable text")
    synthesis: str | None = Field(
        default=None, description="a summary of all of it by an LLM, if one is connected"
    )
    source_kind: str = Field(description="`http` or `zim`")
    warnings: list[str] = Field(default=[], description="what could not be done")


def gather_facts(call: Call[ResearchInput]) -> Flow[Result]:
    """Look a topic up and return the articles' contents; an LLM, if any, adds a synthesis.

    Raises:
        ProviderError: `PROVIDER_REJECTED` if the encyclopedia has nothing on the topic.
    """
    fields = call.input
    topic = " ".join(clean(fields.topic).split())
    source = open_encyclopedia(call.services, fields.language)
    pages, warnings = yield from _read_pages(source, topic, fields.max_sources)
    if not pages:
        raise ProviderError(
            ErrorCode.PROVIDER_REJECTED,
            f"The encyclopedia has nothing on `{shorten(topic, 80)}`; try a simpler topic.",
        )
    title, sections = pages[0].title, _collect_sections(pages)
    summary = shorten(pages[0].summary, MAX_SUMMARY_CHARACTERS)
    passages = [(title, summary), *((section.title, section.text) for section in sections)]
    text = "\n\n".join(f"{heading}: {words}" for heading, words in passages)
    output: dict[str, object] = {
        "topic": fields.topic,
        "title": title,
        "summary": summary,
        "sections": [section.model_dump() for section in sections],
        "sources": [{"title": p.title, "url": p.url, "license": p.license} for p in pages],
        "text": text,
        "source_kind": source.kind,
        "warnings": warnings,
    }
    if fields.synthesize and call.has_operation:
        output["synthesis"], problem = yield from _synthesize(_build_request(topic, text))
        warnings += [problem] if problem else []
    return Result(output)


def _read_pages(
    source: Encyclopedia, topic: str, limit: int
) -> Flow[tuple[list[EncyclopediaArticle], list[str]]]:
    """Read the main article, whole, and the summaries of others on the topic.

    Returns the articles, the main article first, and warnings; no articles if none fits the topic.
    """
    hits = yield from source.search(topic, limit + EXTRA_HITS)
    main, fit = yield from _find_main(source, topic, hits[:MAX_CANDIDATES])
    if main is None:
        return [], []
    pages = [main]
    for hit in hits:
        if len(pages) == limit:
            break
        if hit.title in {article.title for article in pages}:
            continue
        if hit.excerpt and _measure_share(topic, f"{hit.title} {hit.excerpt}") < 1:
            continue  # the search result is enough, which saves a request
        page = yield from source.read_article(hit, with_sections=False)
        if page is None or page.title in {article.title for article in pages}:
            continue
        if _measure_share(topic, f"{_join_opening(page)} {hit.excerpt}") == 1:
            pages.append(page)
    doubt = f"The closest article is `{main.title}`, which may be about something else."
    return pages, [] if fit == 1 else [doubt]


def _find_main(
    source: Encyclopedia, topic: str, hits: list[SearchHit]
) -> Flow[tuple[EncyclopediaArticle | None, float]]:
    """Find the first article on the topic, else the closest, with its fit from 0 to 1.

    Returns None as the article if none fits by `MIN_FIT` at least.
    """
    best: EncyclopediaArticle | None = None
    best_fit = MIN_FIT
    for hit in hits:
        page = yield from source.read_article(hit, with_sections=True)
        if page is None:
            continue
        fit = _rate_fit(topic, hit, page)
        if fit == 1:
            return page, fit
        if fit >= best_fit and (best is None or fit > best_fit):
            best, best_fit = page, fit
    return best, best_fit


def _rate_fit(topic: str, hit: SearchHit, page: EncyclopediaArticle) -> float:
    """Rate how well an article fits a topic, 0 to 1, because a search finds something for any."""
    opening = f"{_join_opening(page)} {hit.excerpt}"
    share = _measure_share(topic, opening)
    is_named = all(word in _fold_text(topic) for word in _extract_stems(page.title))
    if hit.certain or is_named or share > 0.5:
        return 1.0
    body = " ".join(section.text for section in page.sections)
    return 1.0 if _measure_share(topic, f"{opening} {body}") == 1 else share


def _join_opening(page: EncyclopediaArticle) -> str:
    return f"{page.title} {page.description} {page.summary}"


def _measure_share(topic: str, text: str) -> float:
    """Return the share of the topic's words that a text has, from 0 to 1."""
    words, content = _extract_stems(topic), _fold_text(text)
    return sum(word in content for word in words) / len(words)


def _extract_stems(text: str) -> list[str]:
    """Return the folded beginnings of a topic's longer words, so that inflected forms match.

    Short words are left out unless they are in upper case. Without others, the topic is one word.
    """
    words = [w for w in re.findall(r"\w+", text) if len(w) > 3 or (len(w) > 1 and w.isupper())]
    stems = (_fold_text(word) for word in words or [text])
    return [stem[: max(4, len(stem) - 2)] for stem in stems]


def _fold_text(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))


def _collect_sections(pages: list[EncyclopediaArticle]) -> list[ResearchSection]:
    main, *related_pages = pages
    sections = [
        ResearchSection(title=section.title, text=shorten(section.text, MAX_SECTION_CHARACTERS))
        for section in main.sections
        if section.title.casefold() not in _LIST_HEADINGS
    ][: MAX_SECTIONS - len(related_pages)]
    sections += [
        ResearchSection(title=page.title, text=shorten(page.summary, MAX_SECTION_CHARACTERS))
        for page in related_pages
    ]
    return sections


def _build_request(topic: str, text: str) -> TextRequest:
    rule, material = fence_text(text)
    return TextRequest(
        prompt=f"Summarise the material on {topic} in at most 150 words.\n\n{material}",
        system=f"Use only what the material says, in its own language. {rule}",
        max_tokens=SYNTHESIS_TOKENS,
    )


def _synthesize(request: TextRequest) -> Flow[tuple[str | None, str]]:
    """Request the synthesis; return it and "", or None and a warning if there is none.

    A failure is no error, because the facts are useful without the synthesis.
    """
    try:
        reply = yield from request_operation(request)
    except (ProviderError, WorkError) as error:
        if error.code is ErrorCode.REPLAY_MISS:
            raise  # a replay must be complete, or fail and name the missing request
        return None, f"There is no synthesis: {error.code.name}."
    text = clean(reply.text)
    if reply.finish == "filtered" or not text:
        return None, "There is no synthesis: the model did not answer."
    return text, ""


def estimate_synthesis(fields: ResearchInput) -> TextRequest | None:
    """Build a synthesis request with material of usual length, or None if it is not requested."""
    return (
        _build_request(fields.topic, "x" * ASSUMED_MATERIAL_CHARACTERS)
        if fields.synthesize
        else None
    )


CAPABILITY = Capability(
    id="research.gather",
    title="Gather facts",
    description="Looks a topic up in an encyclopedia and tells what it says, with sources.",
    input_model=ResearchInput,
    output_model=ResearchOutput,
    flow=gather_facts,
    operation=TextRequest,
    operation_required=False,
    produces="application/json",
    estimate=estimate_synthesis,
    keywords=(
        "facts", "fact", "research", "about", "summary of", "look up", "background", "sources",
        "information on", "explain", "what is", "history of", "encyclopedia",
    ),
)  # fmt: skip
