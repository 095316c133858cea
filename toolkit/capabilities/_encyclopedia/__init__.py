"""The encyclopedia behind `research.gather`: one interface, an HTTP source and a ZIM source."""

from collections.abc import Mapping

from toolkit.capabilities._encyclopedia._http import HttpSource
from toolkit.capabilities._encyclopedia._source import Hit, Page, Section, Source
from toolkit.capabilities._encyclopedia._zim import ZimSource

__all__ = ["Hit", "HttpSource", "Page", "Section", "Source", "ZimSource", "open_source"]


def open_source(services: Mapping[str, str], language: str) -> Source:
    """Open the source that the operator's settings name: a ZIM file where there is one, else HTTP.

    >>> open_source({"encyclopedia": "https://en.wikipedia.org"}, "de").base_url
    'https://de.wikipedia.org'
    """
    if services.get("zim"):
        return ZimSource(services["zim"])
    return HttpSource(services["encyclopedia"], language, services.get("contact", ""))
