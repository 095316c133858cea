"""The `encyclopedia` wire: search, summaries and extracts in the shape of Wikipedia's HTTP API."""

import html
import re
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute

from toolkit.sandbox.json_http import JsonObject, RefusalError, build_checked_routes
from toolkit.sandbox.state import SandboxState, get_request_digest
from toolkit.sandbox.text.library import Article, index_titles, normalize_title, search_articles
from toolkit.sandbox.text.sentences import extract_content_words, extract_stems, stem_word

# Default agents of libraries do not name the tool or its maker, as the policy asks.
_GENERIC_AGENT = re.compile(
    r"^(?:python-(?:httpx|requests|urllib)|aiohttp|urllib|curl|wget|go-http-client|java|okhttp|"
    r"node|axios|python/\S* aiohttp)[\w./ -]*$",
    re.I,
)


def build_routes(_: SandboxState) -> list[BaseRoute]:
    """Build the routes of the encyclopedia's paths."""
    return build_checked_routes(
        _check_user_agent,
        (
            ("GET", "/w/rest.php/v1/search/page", _search_pages),
            ("GET", "/api/rest_v1/page/summary/{title:path}", _get_summary),
            ("GET", "/w/api.php", _run_action),
        ),
    )


def _check_user_agent(request: Request) -> None:
    agent = request.headers.get("user-agent", "").strip()
    if not agent or _GENERIC_AGENT.match(agent):
        text = "Set a User-Agent that names your tool and a way to contact you."
        raise RefusalError(f"{text} Its form is name/version (contact).", 403)


def _build_excerpt(article: Article, query: str) -> str:
    stems = extract_stems(query)
    sentences = re.split(r"(?<=[.!?])\s+", article.extract.replace("\n", " "))
    sentence = max(sentences, key=lambda s: len(stems & extract_stems(s)))[:240]

    def mark(match: re.Match[str]) -> str:
        word = html.escape(match.group())
        is_match = (
            extract_content_words(match.group()) and stem_word(match.group().lower()) in stems
        )
        return f'<span class="searchmatch">{word}</span>' if is_match else word

    parts = re.split(r"(\w+)", sentence)
    return "".join(re.sub(r"^\w+$", mark, p) if p.isalnum() else html.escape(p) for p in parts)


async def _search_pages(request: Request) -> Response:
    query = request.query_params.get("q", "").strip()
    limit = request.query_params.get("limit", "50")
    if not query or not limit.isdigit() or not 1 <= int(limit) <= 100:
        wrong = "q" if not query else "limit"
        body = {"httpCode": 400, "httpReason": "Bad Request", "failureCode": "missingparam"}
        body["messageTranslations"] = {"en": f"The parameter '{wrong}' is missing or out of range"}
        return JSONResponse(body, 400)
    return JSONResponse(
        {"pages": [_build_hit(article, query) for article in search_articles(query, int(limit))]}
    )


def _build_hit(article: Article, query: str) -> JsonObject:
    entry = index_titles().get(normalize_title(query))
    redirected = entry is not None and entry[1] and entry[0] is article
    return {
        "id": article.page_id,
        "key": article.key,
        "title": article.title,
        "excerpt": _build_excerpt(article, query),
        "matched_title": query if redirected else None,
        "anchor": None,
        "description": article.description,
        "thumbnail": None,
    }


async def _get_summary(request: Request) -> Response:
    raw = str(request.path_params["title"])
    entry = index_titles().get(normalize_title(raw))
    if entry is None:
        body = {
            "type": "https://mediawiki.org/wiki/HyperSwitch/errors/not_found",
            "title": "Not found.",
            "method": "get",
            "detail": "Page or revision not found.",
            "uri": f"/page/summary/{quote(raw)}",
        }
        return JSONResponse(body, 404, {"content-type": "application/problem+json"})
    article, redirects = entry
    if redirects or raw.replace(" ", "_") != article.key:
        # The vendor's redirect is relative to the title, which also suits a mounted path.
        return RedirectResponse(quote(article.key), status_code=302)
    return JSONResponse(_build_summary(article, get_request_digest(request)))


def _build_summary(article: Article, digest: str) -> JsonObject:
    address = f"https://sandbox.invalid/wiki/{quote(article.key)}"
    page = {"page": address, "revisions": f"{address}?action=history"}
    return {
        "type": "disambiguation" if article.disambiguation else "standard",
        "title": article.title,
        "displaytitle": f'<span class="mw-page-title-main">{html.escape(article.title)}</span>',
        "namespace": {"id": 0, "text": ""},
        "titles": {"canonical": article.key, "normalized": article.title},
        "pageid": article.page_id,
        "lang": "en",
        "dir": "ltr",
        "revision": str(1_200_000_000 + article.page_id),
        "tid": f"{digest[:8]}-{digest[8:12]}-11f1-8000-{digest[12:24]}",
        "timestamp": "2026-11-20T00:00:00Z",
        "description": article.description,
        "description_source": "local",
        "content_urls": {"desktop": page, "mobile": page},
        "extract": article.summary,
        "extract_html": f"<p>{html.escape(article.summary)}</p>",
    }


async def _run_action(request: Request) -> Response:
    """Answer a query for extracts as plain text, in format version 2, which follows redirects."""
    query = request.query_params
    if query.get("format") != "json" or query.get("formatversion") != "2":
        return _make_error("badvalue", "Only format=json with formatversion=2 is simulated.")
    if query.get("action") != "query" or query.get("prop") != "extracts":
        return _make_error("badvalue", "Only action=query with prop=extracts is simulated.")
    pages: list[JsonObject] = []
    normalized, redirects = [], []
    for raw in query.get("titles", "").split("|")[:20]:
        title = raw.replace("_", " ").strip()
        title = title[:1].upper() + title[1:]
        if title != raw:
            normalized.append({"from": raw, "to": title})
        article, redirected = index_titles().get(normalize_title(title), (None, False))
        if article is None or (not redirected and article.title != title):
            pages.append({"ns": 0, "title": title, "missing": True})
            continue
        if redirected:
            redirects.append({"from": title, "to": article.title})
        text = {"title": article.title, "extract": article.extract}
        pages.append({"pageid": article.page_id, "ns": 0, **text})
    results: JsonObject = {"pages": pages}
    if normalized:
        results["normalized"] = normalized
    if redirects:
        results["redirects"] = redirects
    return JSONResponse({"batchcomplete": True, "query": results})


def _make_error(code: str, info: str) -> Response:
    body = {"error": {"code": code, "info": info}, "servedby": "sandbox"}
    return JSONResponse(body, headers={"MediaWiki-API-Error": code})
