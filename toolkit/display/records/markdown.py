"""Render Markdown from a model or a file as HTML that runs and loads nothing.

Each front end has its own Markdown parser, and some run the HTML in it. Therefore a CommonMark
parser reads the text here, and the HTML has only the elements below.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

# The first displayed text imports the parser, because a client may never show any text.
if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_MARKDOWN_CHARACTERS = 40_000
ELEMENTS = frozenset(
    (
        "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "hr", "br", "em",
        "strong", "s", "table", "thead", "tbody", "tr", "th", "td",
    )
)  # fmt: skip
LINK_ELEMENT = "a"
ALIGNMENTS = frozenset(f"text-align:{side}" for side in ("left", "center", "right"))
_ALLOWED_LINK = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x1f]+", re.IGNORECASE)
# MathJax obeys these commands: they link, load, name, or define commands for the whole page.
_FORBIDDEN_TEX = re.compile(
    r"\\(?:href|url|html|class|cssId|style|data|mmlToken|require|include|input|def|gdef|edef|xdef"
    r"|let|futurelet|(?:re)?new|provide|Declare|csname|catcode|special|begingroup|unicode|bbox)",
    re.IGNORECASE,
)
# Opening delimiters of formulas, with their closing delimiters.
_BRACKETS = {"\\(": "\\)", "\\[": "\\]"}


def render_markdown(text: str) -> str:
    r"""Render Markdown as HTML; HTML and pictures in it are shown as text and as links.

    Formulas stay unchanged, so that the front end typesets them.

    >>> render_markdown("*a* <img src=x> [b](javascript:f())")
    '<div class="toolkit-text"><p><em>a</em> &lt;img src=x&gt; [b](javascript:f())</p>\n</div>'
    """
    parser = _make_parser()
    tokens = parser.parse(text[:MAX_MARKDOWN_CHARACTERS])
    surplus = len(text) - MAX_MARKDOWN_CHARACTERS
    end = f"<p>… and {surplus} characters more</p>" if surplus > 0 else ""
    return f'<div class="toolkit-text">{_render_tokens(tokens)}{end}</div>'


def is_allowed_link(url: str) -> bool:
    """Check whether a notebook may follow a link: web pages and mail only.

    >>> [is_allowed_link(url) for url in ("https://a.test", "javascript:f()", "/api", "data:,a")]
    [True, False, False, False]
    """
    return _ALLOWED_LINK.fullmatch(url) is not None


@cache
def _make_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])
    parser.use(
        dollarmath_plugin,
        allow_labels=False, allow_space=False, allow_digits=False, double_inline=True,
    )  # fmt: skip
    parser.inline.ruler.before("escape", "math_brackets", _parse_math_brackets)
    parser.validateLink = is_allowed_link  # type: ignore[method-assign]
    return parser


def _parse_math_brackets(state: "StateInline", silent: bool) -> bool:
    r"""Parse a formula between `\(` and `\)`, or `\[` and `\]`; return False without one."""
    opening = state.src[state.pos : state.pos + 2]
    closing = _BRACKETS.get(opening)
    end = -1 if closing is None else state.src.find(closing, state.pos + 2, state.posMax)
    if end < 0:
        return False
    if not silent:
        token = state.push("math_brackets", "", 0)
        token.content, token.markup = state.src[state.pos + 2 : end], opening
    state.pos = end + 2
    return True


def _render_tokens(tokens: "Sequence[Token]") -> str:
    elements, links = [], 0
    for token in tokens:
        links += token.nesting if token.tag == LINK_ELEMENT else 0
        is_linked_image = token.type == "image" and links > 0  # HTML has no link within a link
        elements.append(_render_alt(token) if is_linked_image else _render_token(token))
    return "".join(elements)


def _render_token(token: "Token") -> str:
    """Render a token; an unknown kind becomes its text."""
    if token.type == "inline":
        return _render_tokens(token.children or ())
    if token.hidden:  # a paragraph of a list without blank lines
        return "\n" if token.nesting < 0 else ""
    match token.type:
        case "code_inline":
            return f"<code>{escape(token.content)}</code>"
        case "code_block" | "fence":
            return f"<pre><code>{escape(token.content)}</code></pre>\n"
        case "image":
            return _render_image(token)
        case "softbreak":
            return "\n"
        case "math_inline" | "math_inline_double" | "math_block" | "math_brackets":
            return _render_math(token)
    end = "\n" if token.block and token.nesting < 1 else ""
    if token.nesting < 0 and token.tag in {*ELEMENTS, LINK_ELEMENT}:
        return f"</{token.tag}>{end}"
    if token.tag in ELEMENTS:
        return f"<{token.tag}{_render_attributes(token)}>{end}"
    if token.tag == LINK_ELEMENT:
        return _render_link_opening(
            str(token.attrGet("href") or ""), str(token.attrGet("title") or "")
        )
    return _escape_text(token.content)


def _render_attributes(token: "Token") -> str:
    """Render the first number of a list or the alignment of a cell; drop other attributes."""
    start, style = token.attrGet("start"), token.attrGet("style")
    if token.tag == "ol" and isinstance(start, int):
        return f' start="{start}"'
    if token.tag in ("th", "td") and style in ALIGNMENTS:
        return f' style="{style}"'
    return ""


def _render_link_opening(url: str, title: str) -> str:
    """Render the start of a link, without its destination unless the destination is allowed."""
    if not is_allowed_link(url):
        return "<a>"
    label = escape(title or url)
    return f'<a href="{escape(url)}" title="{label}" rel="noopener noreferrer" target="_blank">'


def _render_image(token: "Token") -> str:
    """Render a picture as a link, because a request to its server would reveal the reader."""
    opening = _render_link_opening(str(token.attrGet("src") or ""), "")
    return f"{opening}{_render_alt(token)}</a>"


def _render_alt(token: "Token") -> str:
    return _escape_text(_collect_text(token.children or ()) or str(token.attrGet("src") or ""))


def _collect_text(tokens: "Sequence[Token]") -> str:
    return "".join(token.content or _collect_text(token.children or ()) for token in tokens)


def _escape_text(text: str) -> str:
    """Escape a text, so that a lone dollar sign or backslash opens no formula."""
    markup = escape(text)
    return markup.replace("\\", "<span>\\</span>").replace("$", "<span>$</span>")


def _render_math(token: "Token") -> str:
    """Return a formula in its delimiters, or as code if a command in it does more than typeset."""
    opening = token.markup
    formula = f"{opening}{token.content}{_BRACKETS.get(opening, opening)}"
    if _FORBIDDEN_TEX.search(token.content):
        return f"<code>{escape(formula)}</code>"
    element = "p" if token.block else "span"
    return f"<{element}>{escape(formula)}</{element}>"
