"""The encyclopedia in a ZIM file, for machines without a network (extra `zim`), read by libzim."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from toolkit.capabilities._encyclopedia._html import to_sections
from toolkit.capabilities._encyclopedia._source import (
    ArticleSection,
    EncyclopediaArticle,
    SearchHit,
)
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Flow, ProviderError, run_in_process

if TYPE_CHECKING:
    from libzim.reader import Archive

_DISAMBIGUATION = re.compile(
    r"""(?:id|class)=["'][^"']{0,200}(?:dmbox-disambig|disambigbox|disambiguation)""", re.IGNORECASE
)


@dataclass(frozen=True)
class ZimEncyclopedia:
    """An encyclopedia in a ZIM file, at a path that the operator set."""

    path: str
    kind: str = field(default="zim", init=False)

    @property
    def base_url(self) -> str:
        """The file's name without its path, which is private to the operator."""
        return f"zim:{Path(self.path).name}"

    def search(self, topic: str, limit: int) -> Flow[list[SearchHit]]:
        """Search for articles on a topic, best first."""
        path = os.path.abspath(self.path)
        hits = yield from run_in_process(search_file, path, topic, limit, here=True)
        return [SearchHit(key, title, certain=certain) for key, title, certain in hits]

    def read_article(
        self, hit: SearchHit, *, with_sections: bool
    ) -> Flow[EncyclopediaArticle | None]:
        """Read an article; returns None if it is missing, a disambiguation or without text."""
        path = os.path.abspath(self.path)
        read = yield from run_in_process(read_article_file, path, hit.key, here=True)
        if read is None:
            return None
        summary, sections, facts = read
        return EncyclopediaArticle(
            title=hit.title,
            url=_build_url(facts["Source"], hit.key, self.base_url),
            summary=summary,
            sections=tuple(ArticleSection(*section) for section in sections)
            if with_sections
            else (),
            license=facts["License"] or None,
        )


def search_file(path: str, topic: str, limit: int) -> list[tuple[str, str, bool]]:
    """Search a ZIM file; returns keys, titles and whether the topic is the title, best first.

    Raises:
        ProviderError: `PROVIDER_UNAVAILABLE` if the file cannot be opened.
    """
    archive = _open_archive(path)
    from libzim.search import Query, Searcher
    from libzim.suggestion import SuggestionSearcher

    hits: dict[str, tuple[str, str, bool]] = {}
    for name in dict.fromkeys((topic, topic[:1].upper() + topic[1:])):
        with suppress(KeyError):
            _add_hit(hits, archive, archive.get_entry_by_title(name).path, certain=True)
    paths = list(SuggestionSearcher(archive).suggest(topic).getResults(0, limit))
    if archive.has_fulltext_index:
        matches = Searcher(archive).search(Query().set_query(topic)).getResults(0, limit)
        paths = [*matches, *paths]
    for found_path in paths:
        _add_hit(hits, archive, found_path, certain=False)
    return list(hits.values())[:limit]


def read_article_file(
    path: str, key: str
) -> tuple[str, list[tuple[str, str]], dict[str, str]] | None:
    """Read an article's summary and sections, and the file's `Source` and `License`.

    Returns None if the article is missing, a disambiguation or without text.

    Raises:
        ProviderError: `PROVIDER_UNAVAILABLE` if the file cannot be opened.
    """
    archive = _open_archive(path)
    try:
        item = archive.get_entry_by_path(key).get_item()
    except KeyError:
        return None
    html = bytes(item.content).decode("utf-8", "replace")
    if _DISAMBIGUATION.search(html):
        return None
    lead, sections = to_sections(html)
    # Old files begin with a heading and have no lead.
    summary = lead or (sections[0].text if sections else "")
    if not summary:
        return None
    facts = {name: _read_metadata(archive, name) for name in ("Source", "License")}
    return summary, [(section.title, section.text) for section in sections], facts


def _open_archive(path: str) -> "Archive":
    try:
        from libzim.reader import Archive
    except ImportError:
        raise ProviderError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            "Reading a ZIM file needs libzim: install capability-toolkit[zim].",
            retryable=False,
        ) from None
    try:
        return Archive(Path(path))
    except (RuntimeError, OSError):
        raise ProviderError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            f"The ZIM file `{Path(path).name}` cannot be opened.",
            retryable=False,
        ) from None


def _add_hit(
    hits: dict[str, tuple[str, str, bool]], archive: "Archive", path: str, *, certain: bool
) -> None:
    """Add an article to the hits under its own path, so that two redirects to it count once.

    A file that is not HTML is left out.
    """
    entry = archive.get_entry_by_path(path)
    item = entry.get_item()
    if item.mimetype.partition(";")[0].strip() == "text/html" and item.path not in hits:
        hits[item.path] = item.path, item.title, certain


def _read_metadata(archive: "Archive", name: str) -> str:
    if name not in archive.metadata_keys:
        return ""
    return bytes(archive.get_metadata(name)).decode("utf-8", "replace").strip()[:200]


def _build_url(origin: str, key: str, base_url: str) -> str:
    """Build the article's address on the web, or a `zim:` address if the file names no host."""
    host = re.fullmatch(r"(?:https?://)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)/?", origin, re.IGNORECASE)
    name = re.sub(r"^[AC]/", "", key)
    return f"https://{host[1]}/wiki/{quote(name)}" if host else f"{base_url}/{quote(key)}"
