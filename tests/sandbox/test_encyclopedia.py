"""The `encyclopedia` wire: search, summaries, extracts and the User-Agent rule."""

import httpx
import pytest

SEARCH = "/encyclopedia/w/rest.php/v1/search/page"
SUMMARY = "/encyclopedia/api/rest_v1/page/summary"
API = "/encyclopedia/w/api.php"


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
    """Given a query, then titles count more than synonyms, and synonyms more than text."""
    reply = await anonymous.get(SEARCH, params={"q": query, "limit": 3})
    pages = reply.json()["pages"]
    assert 1 <= len(pages) <= 3
    assert pages[0]["title"] == title
    assert pages[0]["key"] == title.replace(" ", "_")
    assert {"id", "excerpt", "description", "thumbnail"} <= set(pages[0])


async def test_search_marks_matches_and_checks_parameters(anonymous: httpx.AsyncClient) -> None:
    """Given a search, then excerpts mark the words; a nonsense query finds nothing."""
    reply = await anonymous.get(SEARCH, params={"q": "tidal", "limit": 1})
    assert '<span class="searchmatch">' in reply.json()["pages"][0]["excerpt"]
    assert (await anonymous.get(SEARCH, params={"q": "zzqx"})).json() == {"pages": []}
    assert (await anonymous.get(SEARCH)).status_code == 400
    assert (await anonymous.get(SEARCH, params={"q": "a", "limit": "x"})).status_code == 400


async def test_summarises_an_article_and_redirects_a_synonym(anonymous: httpx.AsyncClient) -> None:
    """Given a synonym, a name of several things or an unknown name, then the answer shows it."""
    redirect = await anonymous.get(f"{SUMMARY}/Tidal_energy")
    assert (redirect.status_code, redirect.headers["location"]) == (302, "Tidal_power")
    article = (await anonymous.get(f"{SUMMARY}/Tidal_power")).json()
    assert (article["title"], article["type"]) == ("Tidal power", "standard")
    assert article["extract"].startswith("Tidal power turns")
    assert article["content_urls"]["desktop"]["page"].endswith("/Tidal_power")
    assert (await anonymous.get(f"{SUMMARY}/Mercury")).json()["type"] == "disambiguation"
    unknown = await anonymous.get(f"{SUMMARY}/Nothing_Such")
    assert (unknown.status_code, unknown.json()["title"]) == (404, "Not found.")
    assert unknown.headers["content-type"] == "application/problem+json"


async def test_extracts_plain_text_with_sections(anonymous: httpx.AsyncClient) -> None:
    """Given titles, then the text has sections, and redirects and gaps are listed."""
    query = {"action": "query", "prop": "extracts", "format": "json", "formatversion": "2"}
    query |= {"explaintext": "1", "redirects": "1"}
    reply = await anonymous.get(API, params={**query, "titles": "tidal_energy|Nothing such"})
    answer = reply.json()["query"]
    assert answer["normalized"] == [{"from": "tidal_energy", "to": "Tidal energy"}]
    assert answer["redirects"] == [{"from": "Tidal energy", "to": "Tidal power"}]
    found, absent = answer["pages"]
    assert "== How it works ==" in found["extract"]
    assert absent["missing"]


async def test_queries_that_are_not_simulated_fail_with_status_200(
    anonymous: httpx.AsyncClient,
) -> None:
    """Given another action or another form, then the answer is a fault with HTTP 200."""
    extracts = {"action": "query", "prop": "extracts", "format": "json", "formatversion": "2"}
    for change in ({"action": "fly"}, {"formatversion": "1"}):
        failed = await anonymous.get(API, params={**extracts, **change})
        assert failed.status_code == 200
        assert failed.json()["error"]["code"]


@pytest.mark.parametrize("agent", ["", "python-httpx/0.28.1", "curl/8.1"])
async def test_requires_a_descriptive_user_agent(anonymous: httpx.AsyncClient, agent: str) -> None:
    """Given a User-Agent that names no contact, then the request is refused."""
    for path in (SEARCH, f"{SUMMARY}/Tea", API):
        reply = await anonymous.get(path, headers={"User-Agent": agent})
        assert reply.status_code == 403
