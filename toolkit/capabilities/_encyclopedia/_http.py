"""The encyclopedia over its public HTTP API (vendor page, "Wikipedia"), as sans-IO flows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TypeGuard
from urllib.parse import quote

import httpx

from toolkit.capabilities._encyclopedia._fetch import fetch_response
from toolkit.capabilities._encyclopedia._html import from_extract, to_text
from toolkit.capabilities._encyclopedia._source import (
    ArticleSection,
    EncyclopediaArticle,
    SearchHit,
)
from toolkit.capabilities._text import clean
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Flow, ProviderError
from toolkit.plugins.json_reader import read_json

_PUBLIC_HOST = re.compile(r"[a-z-]+\.(wikipedia\.org)")
PUBLIC_LICENSE = "CC BY-SA 4.0"


def build_user_agent(contact: str) -> str:
    """Build the User-Agent of a request, as the encyclopedia's policy asks.

    Args:
        contact: the operator's email address or web page.

    >>> build_user_agent("ops@example.org").startswith("capability-toolkit/")
    True
    """
    try:
        release = version("capability-toolkit")
    except PackageNotFoundError:  # run from a source tree that was never installed
        release = "0"
    sender = clean(contact).replace("\n", " ") or "research.gather; self-hosted"
    return f"capability-toolkit/{release} ({sender}) httpx/{httpx.__version__}"


@dataclass(frozen=True)
class HttpEncyclopedia:
    """An encyclopedia at a base URL; Wikipedia has a host for each language."""

    address: str
    language: str = "en"
    contact: str = ""
    kind: str = field(default="http", init=False)

    @property
    def base_url(self) -> str:
        """The base URL, in the requested language if the host names a language."""
        url = httpx.URL(self.address)
        public = _PUBLIC_HOST.fullmatch(url.host)
        if public:
            url = url.copy_with(host=f"{self.language}.{public[1]}")
        return str(url).rstrip("/")

    def search(self, topic: str, limit: int) -> Flow[list[SearchHit]]:
        """Search for articles on a topic, best first."""
        query = httpx.QueryParams({"q": topic, "limit": str(limit)})
        body = yield from self._fetch_json(f"/w/rest.php/v1/search/page?{query}")
        pages = body.get("pages") if body else None
        hits = (
            [_parse_hit(item, topic) for item in pages if isinstance(item, dict)]
            if _is_list(pages)
            else []
        )
        return [hit for hit in hits if hit.key]

    def read_article(
        self, hit: SearchHit, *, with_sections: bool
    ) -> Flow[EncyclopediaArticle | None]:
        """Read an article; returns None if it is missing or a disambiguation."""
        key = quote(hit.key.replace(" ", "_"), safe="")
        body = yield from self._fetch_json(f"/api/rest_v1/page/summary/{key}")
        if body is None or body.get("type") == "disambiguation":
            return None
        title = _get_text(body, "title") or hit.title
        page = EncyclopediaArticle(
            title=title,
            url=self._find_url(body, title),
            summary=_get_text(body, "extract"),
            description=_get_text(body, "description"),
            license=PUBLIC_LICENSE
            if _PUBLIC_HOST.fullmatch(httpx.URL(self.base_url).host)
            else None,
        )
        if not with_sections:
            return page if page.summary else None
        lead, sections = yield from self._fetch_extract(title)
        summary = page.summary or lead
        if not summary:
            return None
        return EncyclopediaArticle(
            page.title, page.url, summary, sections, page.description, page.license
        )

    def _fetch_extract(self, title: str) -> Flow[tuple[str, tuple[ArticleSection, ...]]]:
        query = httpx.QueryParams(
            {
                "action": "query", "prop": "extracts", "explaintext": "1", "redirects": "1",
                "titles": title, "format": "json", "formatversion": "2",
            }
        )  # fmt: skip
        body = yield from self._fetch_json(f"/w/api.php?{query}")
        answer = body.get("query") if body else None
        pages = answer.get("pages") if isinstance(answer, dict) else None
        first = pages[0] if _is_list(pages) and pages else None
        extract = first.get("extract") if isinstance(first, dict) else None
        return from_extract(extract if isinstance(extract, str) else "")

    def _fetch_json(self, path: str) -> Flow[dict[str, object] | None]:
        """Fetch a JSON object; returns None for 404."""
        headers = {
            "user-agent": build_user_agent(self.contact),
            "accept": "application/json",
            "accept-encoding": "gzip",
            "accept-language": self.language,
        }
        response = yield from fetch_response(self.base_url + path, headers)
        if response.status_code == 404:
            return None
        try:
            value = read_json(response.content)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ProviderError(
                ErrorCode.PROVIDER_BAD_RESPONSE, "The encyclopedia's answer is not a JSON object."
            )
        return value

    def _find_url(self, summary: Mapping[str, object], title: str) -> str:
        urls = summary.get("content_urls")
        desktop = urls.get("desktop") if isinstance(urls, dict) else None
        page = desktop.get("page") if isinstance(desktop, dict) else None
        if isinstance(page, str) and re.match(r"https?://[^\s<>\"']{1,2000}$", page):
            return page
        return f"{self.base_url}/wiki/{quote(title.replace(' ', '_'))}"


def _parse_hit(item: Mapping[str, object], topic: str) -> SearchHit:
    title = _get_text(item, "title")
    titles = {_normalize_title(title), _normalize_title(_get_text(item, "matched_title"))} - {""}
    return SearchHit(
        key=_get_text(item, "key") or title,
        title=title,
        excerpt=f"{to_text(_get_text(item, 'excerpt'))} {_get_text(item, 'description')}".strip(),
        certain=_normalize_title(topic) in titles,
    )


def _normalize_title(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()


def _get_text(record: Mapping[str, object], name: str) -> str:
    value = record.get(name)
    return clean(value) if isinstance(value, str) else ""


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)
