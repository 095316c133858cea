"""`research.gather`: facts on a topic from an encyclopedia; the registry loads it."""

import re
import unicodedata
from dataclasses import dataclass

from pydantic import Field

from toolkit.capabilities._encyclopedia import Hit, Page, Source, open_source
from toolkit.capabilities._text import clean, fenced, shorten
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.plugins import Call, Capability, Flow, Result, TextRequest, VendorFault, operate

MOST_SECTIONS = 12
SUMMARY_CHARACTERS = 2_000
SECTION_CHARACTERS = 1_500
MOST_CANDIDATES = 3  # articles looked at for the main one
LEAST_FIT = 0.3  # the share of a topic's words that a main article must at least speak of
SPARE_HITS = 3  # searched for beyond max_sources, as some will be disambiguation pages
SYNTHESIS_TOKENS = 600
ASSUMED_MATERIAL = 6_000  # characters, for an estimate before anything was read
# Headings of sections that are lists of links or notes, in the languages known here.
_LISTS = frozenset(
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
    """A part of what was found."""

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


@dataclass(frozen=True, slots=True)
class _Findings:
    """The main article, and the facts from all that were read."""

    main: Page
    sections: tuple[ResearchSection, ...]
    summary: str

    @property
    def text(self) -> str:
        parts = [f"{self.main.title}: {self.summary}"]
        parts += [f"{section.title}: {section.text}" for section in self.sections]
        return "\n\n".join(parts)


def gather(call: Call[ResearchInput]) -> Flow[Result]:
    """Look a topic up and tell what the articles say; with an LLM, also in one synthesis.

    Raises:
        VendorFault: `PROVIDER_REJECTED` when the encyclopedia has nothing on the topic.
    """
    given = call.input
    topic = " ".join(clean(given.topic).split())
    source = open_source(call.services, given.language)
    pages, warnings = yield from _read(source, topic, given.max_sources)
    if not pages:
        raise VendorFault(
            ErrorCode.PROVIDER_REJECTED,
            f"The encyclopedia has nothing on `{shorten(topic, 80)}`; try a simpler topic.",
        )
    findings = _findings(pages)
    output: dict[str, object] = {
        "topic": given.topic,
        "title": findings.main.title,
        "summary": findings.summary,
        "sections": [section.model_dump() for section in findings.sections],
        "sources": [{"title": p.title, "url": p.url, "license": p.license} for p in pages],
        "text": findings.text,
        "source_kind": source.kind,
        "warnings": warnings,
    }
    if given.synthesize and call.has_operation:
        output["synthesis"], problem = yield from _synthesis(_request(topic, findings.text))
        warnings += [problem] if problem else []
    return Result(output)


def _read(source: Source, topic: str, most: int) -> Flow[tuple[list[Page], list[str]]]:
    """Read the main article, whole, and the summaries of others on the topic; collect warnings."""
    hits = yield from source.search(topic, most + SPARE_HITS)
    main, fit = yield from _main(source, topic, hits[:MOST_CANDIDATES])
    if main is None:
        return [], []
    pages = [main]
    for hit in hits:
        if len(pages) == most:
            break
        if hit.title in {known.title for known in pages}:
            continue
        if hit.excerpt and _share(topic, f"{hit.title} {hit.excerpt}") < 1:
            continue  # known from the search alone: one request less
        page = yield from source.page(hit, whole=False)
        if page is None or page.title in {known.title for known in pages}:
            continue
        if _share(topic, f"{_opening(page)} {hit.excerpt}") == 1:
            pages.append(page)
    doubt = f"The closest article is `{main.title}`, which may be about something else."
    return pages, [] if fit == 1 else [doubt]


def _main(source: Source, topic: str, hits: list[Hit]) -> Flow[tuple[Page | None, float]]:
    """Find the first article that is on the topic, else the one that comes closest to it."""
    best: Page | None = None
    most = LEAST_FIT
    for hit in hits:
        page = yield from source.page(hit, whole=True)
        if page is None:
            continue
        fit = _fit(topic, hit, page)
        if fit == 1:
            return page, fit
        if fit >= most and (best is None or fit > most):
            best, most = page, fit
    return best, most


def _fit(topic: str, hit: Hit, page: Page) -> float:
    """Rate how surely an article is on the topic: a search finds something for any words."""
    opening = f"{_opening(page)} {hit.excerpt}"
    share = _share(topic, opening)
    named = all(word in _folded(topic) for word in _words(page.title))
    if hit.certain or named or share > 0.5:
        return 1.0
    whole = " ".join(section.text for section in page.sections)
    return 1.0 if _share(topic, f"{opening} {whole}") == 1 else share


def _opening(page: Page) -> str:
    return f"{page.title} {page.description} {page.summary}"


def _share(topic: str, text: str) -> float:
    """Return the share of the topic's words that a text has, from 0 to 1."""
    words, told = _words(topic), _folded(text)
    return sum(word in told for word in words) / len(words)


def _words(text: str) -> list[str]:
    """Return the stems of a topic's words, without the small ones that are in every text."""
    found = [w for w in re.findall(r"\w+", text) if len(w) > 3 or (len(w) > 1 and w.isupper())]
    stems = (_folded(word) for word in found or [text])
    return [stem[: max(4, len(stem) - 2)] for stem in stems]


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))


def _findings(pages: list[Page]) -> _Findings:
    main, *others = pages
    sections = [
        ResearchSection(title=section.title, text=shorten(section.text, SECTION_CHARACTERS))
        for section in main.sections
        if section.title.casefold() not in _LISTS
    ][: MOST_SECTIONS - len(others)]
    sections += [
        ResearchSection(title=page.title, text=shorten(page.summary, SECTION_CHARACTERS))
        for page in others
    ]
    return _Findings(main, tuple(sections), shorten(main.summary, SUMMARY_CHARACTERS))


def _request(topic: str, text: str) -> TextRequest:
    rule, material = fenced(text)
    return TextRequest(
        prompt=f"Summarise the material on {topic} in at most 150 words.\n\n{material}",
        system=f"Use only what the material says, in its own language. {rule}",
        max_tokens=SYNTHESIS_TOKENS,
    )


def _synthesis(request: TextRequest) -> Flow[tuple[str | None, str]]:
    """Ask for the synthesis, or say why there is none: the facts are worth having without it."""
    try:
        reply = yield from operate(request)
    except (VendorFault, WorkError) as error:
        if error.code is ErrorCode.REPLAY_MISS:
            raise  # a replay must be complete, or fail with what it lacks
        return None, f"There is no synthesis: {error.code.name}."
    text = clean(reply.text)
    if reply.finish == "filtered" or not text:
        return None, "There is no synthesis: the model did not answer."
    return text, ""


def estimate(given: ResearchInput) -> TextRequest | None:
    """Build the request for the synthesis, with material of a usual length; none without one."""
    return _request(given.topic, "x" * ASSUMED_MATERIAL) if given.synthesize else None


CAPABILITY = Capability(
    id="research.gather",
    title="Gather facts",
    description="Looks a topic up in an encyclopedia and tells what it says, with sources.",
    input_model=ResearchInput,
    output_model=ResearchOutput,
    flow=gather,
    operation=TextRequest,
    operation_required=False,
    yields="application/json",
    estimate=estimate,
    keywords=(
        "facts", "fact", "research", "about", "summary of", "look up", "background", "sources",
        "information on", "explain", "what is", "history of", "encyclopedia",
    ),
)  # fmt: skip
