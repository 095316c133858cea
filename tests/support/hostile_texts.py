"""Texts that try to run a script, or to load something, when they are shown.

A script that runs calls `planted`, and every loaded address contains `planted`, so that a page that
shows these texts can count both.
"""

from functools import cache

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

PLANTED_HOST = "http://planted.invalid"
SHORT = "<img src=planted-1 onerror=planted()>"
PAYLOADS = (
    SHORT,
    f'<img src="{PLANTED_HOST}/a.png">',
    "<script>planted()</script>",
    "<svg onload=planted()><image href=planted-2 />",
    "<details open ontoggle=planted()><summary>a</summary></details>",
    '<iframe srcdoc="<script>parent.planted()</script>"></iframe>',
    "<input autofocus onfocus=planted()>",
    f'<style>@import "{PLANTED_HOST}/a.css"; * {{ background: url({PLANTED_HOST}/b.png) }}</style>',
    f"<video src={PLANTED_HOST}/a.mp4 poster=planted-3></video>",
    '<a href="javascript:planted()">a</a>',
    "<p style='background:url(planted-4)' onmouseover=planted()>a</p>",
    f'<link rel=stylesheet href="{PLANTED_HOST}/c.css">',
    "<math><mtext><table><mglyph><style><img src=planted-5 onerror=planted()>",
    f"![a]({PLANTED_HOST}/d.png)",
    "![a](planted-6)",
    "![a][r]",
    f'[r]: {PLANTED_HOST}/e.png "a"',
    "[r]: javascript:planted()",
    "[a][r]",
    "[a](javascript:planted())",
    "[a](java&#115;cript:planted())",
    "[a](JaVaScRiPt&colon;planted())",
    "[a](<\tjavascript:planted()>)",
    "[a](data:text/html,<script>opener.planted()</script>)",
    "[a](vbscript:planted())",
    "[a](planted-7)",
    '[a](http://a.test/"onmouseover="planted())',
    "[![a](planted-8)](javascript:planted())",
    "<javascript:planted()>",
    "<http://a.test/><img src=planted-9 onerror=planted()>",
    r"$\href{javascript:planted()}{a}$",
    rf"\(\style{{background:url({PLANTED_HOST}/f.png)}}{{a}}\)",
    "$$<img src=planted-10 onerror=planted()>$$",
    '```mermaid\nflowchart LR\n  a["<img src=planted-11 onerror=planted()>"]\n'
    '  click a href "javascript:planted()"\n```',
)
STRUCTURE = (
    *"`\\[]()!<>*_~|$#&;\"'\n\t ",
    "``", "```", "````", "~~~", "```js", "``` a`b", "\\`", "\\\\", "![", "](", "[r]: ", "<!--",
    "-->", "<![CDATA[", "]]>", "<?", "?>", "<div>", "</div>", "<pre>", "&lt;", "&#60;", "&#x3c;img",
    "\n\n", "\n    ", "\n\t", "\n> ", "\n- ", "\n1. ", "\n# ", "\n---\n", "  \n",
    "\n|a|b|\n|-|-|\n|",
    "$$", "\\(", "\\)", "\\[", "\\]", "\\begin{align}", "@@0@@", "\x00", "\u2028",
    "\u200b", "\ufeff",
    "word", "words in between",
)  # fmt: skip
# Shapes that ran a script, or loaded a picture, when a regular expression separated code from text.
KNOWN_SHAPES = (
    f"\\`{SHORT}`",
    f"``` a`b\n{SHORT}\n",
    f"`` ` ``![a]({PLANTED_HOST}/d.png)` `",
    f"`a\n![a]({PLANTED_HOST}/d.png)\nb`\n\n![a]({PLANTED_HOST}/d.png)",
    "[a](javascript:planted())",
    "[a](java&#115;cript:planted()) <javascript:planted()>",
)


@cache
def generate_hostile_texts(count: int) -> list[str]:
    """Generate the same `count` documents of Markdown each time, after the known shapes."""
    part = st.one_of(st.sampled_from(STRUCTURE), st.sampled_from(PAYLOADS))
    documents: list[str] = list(KNOWN_SHAPES)

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(part, min_size=2, max_size=24))
    def collect(parts: list[str]) -> None:
        documents.append("".join(parts))

    collect()
    return documents
