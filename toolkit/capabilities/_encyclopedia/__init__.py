"""The encyclopedia behind `research.gather`: one interface, an HTTP source and a ZIM source."""

from collections.abc import Mapping

from toolkit.capabilities._encyclopedia._http import HttpEncyclopedia
from toolkit.capabilities._encyclopedia._source import EncyclopediaArticle, SearchHit
from toolkit.capabilities._encyclopedia._zim import ZimEncyclopedia

__all__ = ["Encyclopedia", "EncyclopediaArticle", "SearchHit", "open_encyclopedia"]

Encyclopedia = HttpEncyclopedia | ZimEncyclopedia


def open_encyclopedia(services: Mapping[str, str], language: str) -> Encyclopedia:
    """Open the source that the operator's settings name: a ZIM file if there is one, else HTTP.

    >>> open_encyclopedia({"encyclopedia": "https://en.wikipedia.org"}, "de").base_url
    'https://de.wikipedia.org'
    """
    if services.get("zim"):
        return ZimEncyclopedia(services["zim"])
    return HttpEncyclopedia(services["encyclopedia"], language, services.get("contact", ""))
