"""The `encyclopedia` wire: search, summaries, extracts, redirects and the User-Agent rule."""

import httpx
import pytest

from toolkit.sandbox.text.library import load_articles

SEARCH = "/encyclopedia/w/rest.php/v1/search/page"
SUMMARY = "/encyclopedia/api/rest_v1/page/summary"
API = "/encyclopedia/w/api.php"


def test_articles_are_complete() -> None:
    """There are at least 36 topics, each with a summary and three sections."""
    topics = [article for article in load_articles() if not article.disambiguation]
    assert len(topics) >= 36
    for article in topics:
        assert article.description
        assert len(article.sections) >= 3
        assert 2 <= article.summary.count(". ") + 1 <= 4, article.title


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("tidal energy", "Tidal power"),
        ("Tidal power", "Tidal power"),
        ("solar panels", "Solar energy"),
        ("bees", "Honey bee"),
        ("how plants make food", "Photosynthesis"),
        ("northern lights", "Aurora"),
        ("jupyter notebook", "Notebook interface"),
        ("Mercury", "Mercury"),
    ],
)
async def test_search_ranks_the_right_article_first(
    anonymous: httpx.AsyncClient, query: str, title: str
) -> None:
    """Titles count before synonyms, and both before words in the text."""
    reply = await anonymous.get(SEARCH, params={"q": query, "limit": 3})
    pages = reply.json()["pages"]
    assert 1 <= len(pages) <= 3
    assert pages[0]["title"] == title
    assert pages[0]["key"] == title.replace(" ", "_")
    assert {"id", "excerpt", "description", "thumbnail"} <= set(pages[0])


async def test_search_marks_matches_and_checks_parameters(anonymous: httpx.AsyncClient) -> None:
    """Excerpts are HTML with marks, a nonsense query finds nothing, a bad one is 400."""
    reply = await anonymous.get(SEARCH, params={"q": "tidal", "limit": 1})
    assert '<span class="searchmatch">' in reply.json()["pages"][0]["excerpt"]
    assert (await anonymous.get(SEARCH, params={"q": "zzqx"})).json() == {"pages": []}
    assert (await anonymous.get(SEARCH)).status_code == 400
    assert (await anonymous.get(SEARCH, params={"q": "a", "limit": "x"})).status_code == 400


async def test_summary(anonymous: httpx.AsyncClient) -> None:
    """A summary has title, extract, type and address."""
    body = (await anonymous.get(f"{SUMMARY}/Tidal_power")).json()
    assert body["title"] == "Tidal power"
    assert body["type"] == "standard"
    assert body["extract"].startswith("Tidal power turns")
    assert body["content_urls"]["desktop"]["page"].endswith("/Tidal_power")


async def test_summary_redirects(anonymous: httpx.AsyncClient) -> None:
    """A synonym is redirected to its article."""
    reply = await anonymous.get(f"{SUMMARY}/Tidal_energy")
    assert (reply.status_code, reply.headers["location"]) == (302, "Tidal_power")
    followed = await anonymous.get(f"{SUMMARY}/Tidal_energy", follow_redirects=True)
    assert followed.json()["title"] == "Tidal power"


async def test_disambiguation_and_unknown(anonymous: httpx.AsyncClient) -> None:
    """A name of several things says so, and an unknown one is problem+json."""
    assert (await anonymous.get(f"{SUMMARY}/Mercury")).json()["type"] == "disambiguation"
    unknown = await anonymous.get(f"{SUMMARY}/Nothing_Such")
    assert unknown.status_code == 404
    assert unknown.headers["content-type"] == "application/problem+json"
    assert unknown.json()["title"] == "Not found."


async def test_extracts(anonymous: httpx.AsyncClient) -> None:
    """The plain text of an article has its sections; redirects and gaps are told."""
    query: dict[str, str] = {"action": "query", "prop": "extracts", "format": "json"}
    query["explaintext"] = "1"
    titles = "tidal_energy|Nothing such"
    reply = await anonymous.get(API, params={**query, "titles": titles, "redirects": "1"})
    found = reply.json()["query"]
    assert found["normalized"] == [{"from": "tidal_energy", "to": "Tidal energy"}]
    assert found["redirects"] == [{"from": "Tidal energy", "to": "Tidal power"}]
    page = next(page for page in found["pages"].values() if "missing" not in page)
    assert "== How it works ==" in page["extract"]
    assert any("missing" in page for page in found["pages"].values())
    modern = await anonymous.get(
        API, params={**query, "titles": "Tea", "formatversion": "2", "exintro": "1"}
    )
    assert "==" not in modern.json()["query"]["pages"][0]["extract"]


async def test_list_search_and_faults(anonymous: httpx.AsyncClient) -> None:
    """The older search works, and its faults are HTTP 200 with an error."""
    query = {"action": "query", "list": "search", "format": "json"}
    reply = await anonymous.get(API, params={**query, "srsearch": "tidal power", "srlimit": "2"})
    assert reply.json()["query"]["search"][0]["title"] == "Tidal power"
    for params in (query, {**query, "srsearch": "x", "srlimit": "x"}, {"action": "fly"}):
        failed = await anonymous.get(API, params=params)
        assert failed.status_code == 200
        assert failed.json()["error"]["code"]


@pytest.mark.parametrize("agent", ["", "python-httpx/0.28.1", "curl/8.1"])
async def test_user_agent_is_required(anonymous: httpx.AsyncClient, agent: str) -> None:
    """A request that does not name its maker is refused."""
    for path in (SEARCH, f"{SUMMARY}/Tea", API):
        reply = await anonymous.get(path, headers={"User-Agent": agent})
        assert reply.status_code == 403
