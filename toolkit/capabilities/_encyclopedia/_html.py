"""HTML of articles and search results as plain text in sections; nothing of it is ever run."""

import re
from html.parser import HTMLParser

from toolkit.capabilities._encyclopedia._source import ArticleSection
from toolkit.capabilities._text import clean

MAX_HTML_CHARACTERS = 2_000_000  # characters; the rest is not read

_VOID_ELEMENTS = frozenset(
    {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"}
)
_SILENT_ELEMENTS = frozenset(
    {"audio", "button", "figure", "form", "head", "math", "nav", "noscript", "script", "select",
     "style", "sup", "svg", "table", "template", "textarea", "title", "video"}
)  # fmt: skip
_SILENT_CLASSES = frozenset(
    {"hatnote", "mw-editsection", "navbox", "noprint", "reference", "reflist", "thumb", "toc"}
)
_BLOCK_ELEMENTS = frozenset({"blockquote", "br", "dd", "div", "dt", "li", "p", "section"})
_HEADING_ELEMENTS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


class _ArticleParser(HTMLParser):
    """Collects an article's words, without tables, scripts and the like; `h2` begins a new part."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[tuple[str, list[str]]] = [("", [])]
        self._silent: list[str] = []  # open elements, from the silent element inwards
        self._heading: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID_ELEMENTS:
            if tag == "br":
                self._add("\n")
            return
        classes = set((dict(attrs).get("class") or "").split())
        if self._silent or tag in _SILENT_ELEMENTS or classes & _SILENT_CLASSES:
            self._silent.append(tag)
        elif tag in _HEADING_ELEMENTS:
            self._heading = []
        elif tag in _BLOCK_ELEMENTS:
            self._add("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID_ELEMENTS:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            if tag in self._silent:
                # Elements left open inside an element are closed with it.
                while self._silent.pop() != tag:
                    pass
        elif tag in _HEADING_ELEMENTS and self._heading is not None:
            title = " ".join("".join(self._heading).split())
            self._heading = None
            if tag == "h2":
                self.parts.append((title, []))
        elif tag in _BLOCK_ELEMENTS:
            self._add("\n")

    def handle_data(self, data: str) -> None:
        # A line feed in the source is a space on the page; only blocks break lines.
        self._add(re.sub(r"\s+", " ", data))

    def _add(self, words: str) -> None:
        if not self._silent:
            (self.parts[-1][1] if self._heading is None else self._heading).append(words)


def _parse_parts(html: str) -> list[tuple[str, str]]:
    reader = _ArticleParser()
    reader.feed(html[:MAX_HTML_CHARACTERS])
    reader.close()
    return [(title, _tidy_lines("".join(words))) for title, words in reader.parts]


def _tidy_lines(text: str) -> str:
    lines = (" ".join(line.split()) for line in clean(text).split("\n"))
    return "\n".join(line for line in lines if line)


def to_text(html: str) -> str:
    """Return the words of a piece of HTML.

    >>> to_text('Power of <span class="searchmatch">tides</span> &amp; waves<script>x()</script>')
    'Power of tides & waves'
    """
    return "\n".join(text for _, text in _parse_parts(html) if text)


def to_sections(html: str) -> tuple[str, tuple[ArticleSection, ...]]:
    """Return the lead of an article, which is the text before its first `h2`, and its sections.

    >>> to_sections("<p>Tides turn.</p><h2>Uses</h2><p>Mills.</p>")
    ('Tides turn.', (ArticleSection(title='Uses', text='Mills.'),))
    """
    return _to_article(_parse_parts(html))


def from_extract(extract: str) -> tuple[str, tuple[ArticleSection, ...]]:
    """Return the lead and sections of a plain-text extract, whose headings stand in `==`.

    >>> from_extract("Tides turn.\\n\\n== Uses ==\\nMills.\\n=== Old ===\\nSome.")
    ('Tides turn.', (ArticleSection(title='Uses', text='Mills.\\nSome.'),))
    """
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in clean(extract).split("\n"):
        heading = re.fullmatch(r"(={2,6}) ?(.{1,200}?) ?\1", line.strip())
        if heading is None:
            parts[-1][1].append(line)
        elif heading[1] == "==":
            parts.append((heading[2], []))
    return _to_article([(title, _tidy_lines("\n".join(lines))) for title, lines in parts])


def _to_article(parts: list[tuple[str, str]]) -> tuple[str, tuple[ArticleSection, ...]]:
    (_, lead), *sections = parts
    return lead, tuple(ArticleSection(title, text) for title, text in sections if title and text)
