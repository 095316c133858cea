"""The encyclopedia over Wikipedia's public HTTP API, as flows of requests with retries."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TypeGuard
from urllib.parse import quote

import httpx

from toolkit.capabilities._encyclopedia._html import from_extract, to_text
from toolkit.capabilities._encyclopedia._source import (
    ArticleSection,
    EncyclopediaArticle,
    SearchHit,
)
from toolkit.capabilities._text import clean
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Flow, ProviderError, pause, send
from toolkit.plugins.json_reader import read_json

_PUBLIC_HOST = re.compile(r"[a-z-]+\.(wikipedia\.org)")
PUBLIC_LICENSE = "CC BY-SA 4.0"
MAX_RETRIES = 2
MAX_REDIRECTS = 3
MAX_WAIT_S = 30.0
FIRST_WAIT_S = 0.5
MIN_LAG_WAIT_S = 5.0  # the least the API asks for when it lags, or limits without saying how long
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_BUSY_CODES = frozenset({"maxlag", "ratelimited", "readonly"})


def build_user_agent(contact: str) -> str:
    """Build the User-Agent of a request, as the encyclopedia's policy asks.

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
        """Read an article; returns None if it is missing, a disambiguation or without summary."""
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
        """Fetch a JSON object, and reject any other answer; returns None for 404."""
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


def fetch_response(address: str, headers: Mapping[str, str]) -> Flow[httpx.Response]:
    """Send a GET to an address, and retry if waiting may help.

    Returns:
        a response with status 200 or 404.

    Raises:
        ProviderError: `PROVIDER_RATE_LIMITED`, `PROVIDER_UNAVAILABLE`, `PROVIDER_REJECTED`, or
            `PROVIDER_BAD_RESPONSE` for a redirect that is not followed.
    """
    url, redirects, tries = httpx.URL(address), 0, 0
    while True:
        fault: ProviderError
        try:
            response = yield from send(httpx.Request("GET", url, headers=dict(headers)))
        except ProviderError as lost:
            # Reading twice does no harm, so an unknown outcome is retried, too.
            fault, wait = lost, FIRST_WAIT_S * 2**tries
        else:
            if response.status_code in _REDIRECT_STATUSES:
                redirects += 1
                url = _follow_redirect(url, response.headers.get("location", ""), redirects)
                continue
            refused = _build_failure(response)
            if refused is None:
                return response
            fault = refused
            wait = FIRST_WAIT_S * 2**tries if fault.retry_after is None else fault.retry_after
        if not fault.retryable or tries == MAX_RETRIES or wait > MAX_WAIT_S:
            raise fault
        tries += 1
        yield from pause(wait, "retrying")


def _follow_redirect(url: httpx.URL, location: str, redirects: int) -> httpx.URL:
    """Return the target of a redirect; reject another host, and more than three redirects."""
    try:
        target = url.join(location)
    except httpx.InvalidURL:
        target = httpx.URL("")
    same = target.host == url.host and (
        (target.scheme, target.port) == (url.scheme, url.port)
        or (url.scheme, target.scheme, target.port) == ("http", "https", None)
    )
    if not location or not same or redirects > MAX_REDIRECTS:
        raise ProviderError(
            ErrorCode.PROVIDER_BAD_RESPONSE,
            f"{url.host} redirects too often or to another host.",
            retryable=False,
        )
    return target


def _build_failure(response: httpx.Response) -> ProviderError | None:
    """Build the error for a response that failed; None for a 404, or a 200 without an API error."""
    status = response.status_code
    after = _parse_retry_after(response.headers.get("retry-after"))
    code, message = ErrorCode.PROVIDER_REJECTED, f"The encyclopedia answered {status}."
    if status in (200, 404):
        error = _read_api_error(response) if status == 200 else None
        if error is None:
            return None
        message = "The encyclopedia refused the query."
        if error in _BUSY_CODES:
            code, message = (
                ErrorCode.PROVIDER_RATE_LIMITED,
                "The encyclopedia is too busy to answer.",
            )
            after = max(after or 0.0, MIN_LAG_WAIT_S)
    elif status == 429:
        code = ErrorCode.PROVIDER_RATE_LIMITED
        message = "The encyclopedia limits the rate of requests."
        after = MIN_LAG_WAIT_S if after is None else after
    elif status >= 500 or status == 408:
        code = ErrorCode.PROVIDER_UNAVAILABLE
    if code is ErrorCode.PROVIDER_REJECTED:
        after = None  # waiting would change nothing
    return ProviderError(code, message, retry_after=after, status=status)


def _read_api_error(response: httpx.Response) -> str | None:
    """Return the code of the error that the action API sends with HTTP 200; None without any."""
    if response.request.url.path.rpartition("/")[2] != "api.php":
        return None
    try:
        body = read_json(response.content)
    except (ValueError, RecursionError):
        return None
    error = body.get("error") if isinstance(body, dict) else None
    return str(error.get("code", "")) if isinstance(error, dict) else None


def _parse_retry_after(value: str | None) -> float | None:
    """Parse a `Retry-After`, seconds or a date, as seconds from now; None if it is neither."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value.strip()[:9])
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
