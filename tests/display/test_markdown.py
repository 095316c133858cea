"""Markdown of models and files as HTML, checked by an independent HTML parser."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hostile_texts import KNOWN_SHAPES, PAYLOADS, STRUCTURE
from toolkit.display.records.markdown import MAX_MARKDOWN_CHARACTERS, render_markdown

ELEMENTS = {
    "div", "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "hr", "br",
    "em", "strong", "s", "table", "thead", "tbody", "tr", "th", "td", "pre", "code", "span", "a",
}  # fmt: skip
ATTRIBUTES = {
    "div": {"class"},
    "a": {"href", "title", "rel", "target"},
    "ol": {"start"},
    "th": {"style"},
    "td": {"style"},
}
SIDES = ("left", "center", "right")
TEXTS = st.lists(
    st.one_of(st.sampled_from(STRUCTURE), st.sampled_from(PAYLOADS), st.text(max_size=8)),
    max_size=30,
).map("".join)


class Page(HTMLParser):
    """The elements and the text of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Record some text."""
        self.text += data

    def handle_comment(self, data: str) -> None:
        """Record a comment, a declaration or a processing instruction."""
        self.elements.append(("comment", {}))

    handle_decl = handle_pi = unknown_decl = handle_comment


def check_page(html: str) -> Page:
    """Parse a page, and check that its elements, attributes and links are allowed."""
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag in ELEMENTS, (tag, html)
        assert attributes.keys() <= ATTRIBUTES.get(tag, set()), (tag, attributes, html)
        assert urlsplit(attributes.get("href") or "http:").scheme in ("http", "https", "mailto")
        assert attributes.get("class") in (None, "toolkit-text")
        assert attributes.get("style") in (None, *(f"text-align:{side}" for side in SIDES))
    return page


@given(TEXTS)
def test_emits_allowed_elements_only(text: str) -> None:
    """Given any text of Markdown, then its HTML has only allowed elements, attributes and links."""
    check_page(render_markdown(text))


@pytest.mark.parametrize("text", KNOWN_SHAPES)
def test_shows_misread_shapes_as_text(text: str) -> None:
    """Given shapes that parsers misread, then HTML in them is text."""
    page = check_page(render_markdown(text))
    assert text.count("<img") == page.text.count("<img")


@given(st.sampled_from(PAYLOADS))
def test_shows_html_as_text(payload: str) -> None:
    """Given HTML or a rejected link amid words, then a reader sees the original text."""
    page = check_page(render_markdown(f"```\n{payload}\n```" if "```" not in payload else payload))
    assert "```" in payload or payload in page.text


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("# A\n\nb **c** _d_ ~~e~~ `f`", ["h1", "p", "strong", "em", "s", "code"]),
        ("- a\n3. b", ["ul", "li", "ol", "li"]),
        ("> a\n\n---", ["blockquote", "p", "hr"]),
        ("|a|\n|-|\n|b|", ["table", "thead", "tr", "th", "tbody", "tr", "td"]),
        ("```python\nx < 1\n```", ["pre", "code"]),
    ],
)
def test_formats_markdown(text: str, elements: list[str]) -> None:
    """Given Markdown, then the HTML has the matching elements."""
    assert [tag for tag, _ in check_page(render_markdown(text)).elements] == ["div", *elements]


@pytest.mark.parametrize(
    ("text", "href", "words"),
    [
        ("[a](https://a.test/b?c=d&e)", "https://a.test/b?c=d&e", "a"),
        ("<https://a.test>", "https://a.test", "https://a.test"),
        ("[a](mailto:b@a.test)", "mailto:b@a.test", "a"),
        ("![a *b*](http://a.test/1.png)", "http://a.test/1.png", "a b"),
        ("[![a](http://b.test/1.png)](http://a.test)", "http://a.test", "a"),
    ],
)
def test_renders_links_and_pictures_as_links(text: str, href: str, words: str) -> None:
    """Given a link or a picture, then there is one link, which shows its address."""
    page = check_page(render_markdown(text))
    links = [attributes for tag, attributes in page.elements if tag == "a"]
    assert [(link["href"], link["title"]) for link in links] == [(href, href)]
    assert page.text.strip() == words


@pytest.mark.parametrize("url", ["javascript:f()", "data:text/html,a", "file:///a", "/api", "a.md"])
def test_renders_other_schemes_as_text(url: str) -> None:
    """Given a link with another scheme or none, then it is text."""
    page = check_page(render_markdown(f"[a]({url}) ![b]({url}) <{url}>"))
    assert "a" not in [tag for tag, _ in page.elements]
    assert url in page.text


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("so $a_1 + b_1 * c$ and $5 or $6", "$a_1 + b_1 * c$"),
        (r"so \(a_1 < b_1\)", r"\(a_1 < b_1\)"),
        ("$$\na\n= b\n$$", "$$\na\n= b\n$$"),
        ("so $$a_1 * b_1 * c$$", "$$a_1 * b_1 * c$$"),
    ],
)
def test_leaves_formulas_to_the_front_end(text: str, formula: str) -> None:
    """Given a formula, then it has an element of its own, and prices open no formula."""
    html = render_markdown(text)
    page = check_page(html)
    assert formula in page.text
    assert html.count(">$<") == (2 if "$5" in text else 0)


@pytest.mark.parametrize(
    "formula",
    [r"\href{javascript:f()}{x}", r"\def\frac{x}", r"\let\frac\sum", r"\style{color:red}{x}"],
)
def test_shows_unsafe_formulas_as_code(formula: str) -> None:
    """Given a formula that links, styles or defines, then it is shown and not typeset."""
    for markdown in (f"${formula}$", rf"\({formula}\)", f"$$\n{formula}\n$$"):
        page = check_page(render_markdown(markdown))
        assert "code" in [tag for tag, _ in page.elements]
        assert formula in page.text


def test_cuts_a_long_text_with_a_count() -> None:
    """Given a text over the limit, then its end says how many characters are left out."""
    text = "a" * (MAX_MARKDOWN_CHARACTERS + 7)
    assert check_page(render_markdown(text)).text.endswith("… and 7 characters more")
