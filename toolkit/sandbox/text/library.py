"""The sandbox's own small encyclopedia: loads articles, and finds them by title and words."""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from zlib import crc32

from toolkit.sandbox.text.sentences import extract_stems, list_stems, split_sentences


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
        """The title in the form of a URL."""
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
    articles = []
    for entry in folder.iterdir():
        if not entry.name.endswith(".toml"):
            continue
        row = tomllib.loads(entry.read_text(encoding="utf-8"))
        row["summary"] = " ".join(row["summary"].split())
        row["sections"] = tuple(
            (part["heading"], " ".join(part["text"].split())) for part in row.get("sections", [])
        )
        articles.append(Article(**row | {"aliases": tuple(row.get("aliases", ()))}))
    return tuple(sorted(articles, key=lambda article: article.title))


def normalize_title(title: str) -> str:
    """Normalize a title for comparison: no underscores, case or double spaces."""
    return " ".join(title.replace("_", " ").split()).casefold()


@lru_cache(maxsize=1)
def index_titles() -> dict[str, tuple[Article, bool]]:
    """Index articles by normalized title and alias; True marks a name that redirects."""
    articles = load_articles()
    aliases = ((alias, article) for article in reversed(articles) for alias in article.aliases)
    names = {normalize_title(alias): (article, True) for alias, article in aliases}
    return names | {normalize_title(article.title): (article, False) for article in articles}


def search_articles(query: str, limit: int) -> list[Article]:
    """Search articles: by an exact title, then by words in titles, then by words in the text."""
    exact = index_titles().get(normalize_title(query))
    stems = extract_stems(query)
    scores: dict[Article, float] = {}
    for article in load_articles():
        title = extract_stems(article.title)
        names = title | extract_stems(" ".join(article.aliases))
        body = list_stems(f"{article.description} {article.extract}")
        score = 100.0 if exact and exact[0] is article else 0.0
        score += 12.0 * len(stems & names) / max(1, len(stems))
        score += 6.0 * len(stems & title) / max(1, len(title))
        score += sum(min(body.count(word), 6) / 6 for word in stems)
        if score > 0:
            scores[article] = score
    return sorted(scores, key=lambda article: (-scores[article], article.title))[:limit]


def look_up_sentences(topic: str) -> list[str]:
    """Look up the sentences on a topic; the list is empty unless the topic contains a title."""
    tokens = re.findall(r"[^\W_]+(?:-[^\W_]+)*", topic.casefold())
    words = f" {' '.join(tokens)} "
    titles = [
        name
        for name, (article, _) in index_titles().items()
        if not article.disambiguation and (f" {name} " in words or f" {name}s " in words)
    ]
    return list(_split_article(index_titles()[max(titles, key=len)][0])) if titles else []


@lru_cache(maxsize=256)
def _split_article(article: Article) -> tuple[str, ...]:
    """Split an article, which is part of the package and never changes, into its sentences."""
    text = "\n\n".join([article.summary, *(text for _, text in article.sections)])
    return tuple(split_sentences(text))
