"""The sandbox's own small encyclopedia: loads articles, and finds them by title and words."""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from zlib import crc32

from toolkit.sandbox.text.sentences import (
    extract_content_words,
    extract_stems,
    split_sentences,
    stem_word,
)


@dataclass(frozen=True, slots=True)
class Article:
    """An article; a disambiguation page lists titles in `points_to`."""

    title: str
    description: str
    summary: str
    sections: tuple[tuple[str, str], ...]
    aliases: tuple[str, ...] = ()
    disambiguation: bool = False

    @property
    def key(self) -> str:
        """The title as it stands in a URL."""
        return self.title.replace(" ", "_")

    @property
    def page_id(self) -> int:
        """A stable number for the page."""
        return 1000 + crc32(self.title.encode()) % 9_000_000

    @property
    def extract(self) -> str:
        """The whole article as plain text, headings marked as in the vendor's extracts."""
        parts = [self.summary]
        parts += [f"\n\n== {heading} ==\n{text}" for heading, text in self.sections]
        return "\n".join(parts)


@lru_cache(maxsize=1)
def load_articles() -> tuple[Article, ...]:
    """Load all articles, by title."""
    folder = resources.files("toolkit.sandbox") / "articles"
    found = []
    for entry in folder.iterdir():
        if entry.name.endswith(".toml"):
            raw = tomllib.loads(entry.read_text(encoding="utf-8"))
            found.append(
                Article(
                    title=raw["title"],
                    description=raw["description"],
                    summary=" ".join(raw["summary"].split()),
                    sections=tuple(
                        (part["heading"], " ".join(part["text"].split()))
                        for part in raw.get("sections", [])
                    ),
                    aliases=tuple(raw.get("aliases", ())),
                    disambiguation=raw.get("disambiguation", False),
                )
            )
    return tuple(sorted(found, key=lambda article: article.title))


def normalize_title(title: str) -> str:
    """Normalize a title for comparison: no underscores, case or double spaces."""
    return " ".join(title.replace("_", " ").split()).casefold()


@lru_cache(maxsize=1)
def index_titles() -> dict[str, tuple[Article, bool]]:
    """Index articles by normalized title and alias, with whether that name redirects."""
    names: dict[str, tuple[Article, bool]] = {}
    for article in load_articles():
        for alias in article.aliases:
            names.setdefault(normalize_title(alias), (article, True))
    for article in load_articles():
        names[normalize_title(article.title)] = (article, False)
    return names


@lru_cache(maxsize=1)
def _index_words() -> tuple[tuple[Article, frozenset[str], dict[str, int]], ...]:
    rows = []
    for article in load_articles():
        names = " ".join((article.title, *article.aliases))
        body: dict[str, int] = {}
        for word in extract_content_words(f"{article.description} {article.extract}"):
            body[stem_word(word)] = body.get(stem_word(word), 0) + 1
        rows.append((article, frozenset(extract_stems(names)), body))
    return tuple(rows)


def search_articles(query: str, limit: int) -> list[Article]:
    """Search articles: by an exact title, then by words in titles, then by words in the text."""
    exact = index_titles().get(normalize_title(query))
    wanted = extract_stems(query)
    scored: list[tuple[float, str, Article]] = []
    for article, names, body in _index_words():
        title = extract_stems(article.title)
        score = 12.0 * len(wanted & names) / max(1, len(wanted))
        score += 6.0 * len(wanted & title) / max(1, len(title))
        score += sum(min(body.get(word, 0), 6) / 6 for word in wanted)
        score += 100.0 if exact and exact[0] is article else 0.0
        if score > 0:
            scored.append((-score, article.title, article))
    return [article for _, _, article in sorted(scored, key=lambda row: row[:2])[:limit]]


def look_up_sentences(topic: str) -> list[str]:
    """Look up the sentences on a topic; none unless a title clearly matches."""
    for name in _list_candidate_names(topic):
        found = index_titles().get(name)
        if found and not found[0].disambiguation:
            return list(_split_article(found[0]))
    return []


@lru_cache(maxsize=256)
def _split_article(article: Article) -> tuple[str, ...]:
    """Split an article, which is part of the package and never changes, into its sentences."""
    text = "\n\n".join([article.summary, *(text for _, text in article.sections)])
    return tuple(split_sentences(text))


def _list_candidate_names(topic: str) -> list[str]:
    tokens = re.findall(r"[^\W_]+(?:-[^\W_]+)*", topic.casefold())
    spans = [
        tokens[start : start + size]
        for size in range(min(4, len(tokens)), 0, -1)
        for start in range(len(tokens) - size + 1)
    ]
    names = [" ".join(span) for span in spans]
    return [form for name in names for form in (name, name.removesuffix("s"))]
