"""The interface of every encyclopedia source, and the plain values it answers with."""

from dataclasses import dataclass
from typing import Protocol

from toolkit.plugins import Flow


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An article that a search found; `key` is how its source names it.

    Attributes:
        certain: the topic is the article's own title, or another name of it.
    """

    key: str
    title: str
    excerpt: str = ""
    certain: bool = False


@dataclass(frozen=True, slots=True)
class ArticleSection:
    """One section of an article, in plain text."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class EncyclopediaArticle:
    """One article, in plain text."""

    title: str
    url: str
    summary: str
    sections: tuple[ArticleSection, ...] = ()
    description: str = ""
    license: str | None = None


class Encyclopedia(Protocol):
    """An encyclopedia that can be searched and read, as sans-IO flows."""

    @property
    def kind(self) -> str:
        """`http` or `zim`."""
        ...

    @property
    def base_url(self) -> str:
        """The address of it; of a ZIM file only its name."""
        ...

    def search(self, topic: str, limit: int) -> Flow[list[SearchHit]]:
        """Search for articles on a topic, best first."""
        ...

    def read_article(self, hit: SearchHit, *, whole: bool) -> Flow[EncyclopediaArticle | None]:
        """Read an article, with sections if `whole`; none for a missing or disambiguation page."""
        ...
