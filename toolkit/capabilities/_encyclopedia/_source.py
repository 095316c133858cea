"""The plain values that every encyclopedia source answers with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An article that a search found; `key` is its name in the source.

    Attributes:
        certain: whether the topic is the article's title or another name of it.
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
