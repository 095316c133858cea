"""Articles of the encyclopedia as text, and a ZIM file as a source."""

import sys
from pathlib import Path

import pytest

from tests.capabilities.conftest import CapabilityDrive
from toolkit.capabilities._encyclopedia._html import to_sections, to_text
from toolkit.capabilities._encyclopedia._source import ArticleSection
from toolkit.capabilities.research_gather import CAPABILITY
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import ProviderError

ARTICLE = """<html><head><title>x</title><style>p{}</style></head><body><h1>Tidal power</h1>
<div class="hatnote">Not to be confused</div><p>Tidal power is power<br/>taken from
<b>tides</b>.<sup class="reference">[1]</sup></p><script>steal()</script>
<h2>Uses<span class="mw-editsection">edit</span></h2><p>Tide mills ground grain.</p>
<table><tr><td>figures</td></tr></table><h3>Old</h3><ul><li>One</li><li>Two</li></ul>
<h2>Empty</h2></body></html>"""


def test_reads_an_article_in_sections() -> None:
    """Given an article's HTML, then its text has sections, without scripts, tables and notes."""
    assert to_sections(ARTICLE) == (
        "Tidal power is power\ntaken from tides.",
        (ArticleSection("Uses", "Tide mills ground grain.\nOne\nTwo"),),
    )


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a &lt;b&gt; &amp; c", "a <b> & c"),
        ("<p>one<p>two", "one\ntwo"),
        ("<table><tr><td>x</table>y", "y"),
        ("<script>x", ""),
        ("</p></div>tail", "tail"),
        ("<math><mi>x</mi></math>z<img src=x onerror=y>", "z"),
        ("<h2>only", ""),
        ("a<sup/>b", "ab"),
    ],
)
def test_reads_text_of_any_html(html: str, text: str) -> None:
    """Given valid or broken HTML, then the words outside silent elements are kept."""
    assert to_text(html) == text


def test_reads_deeply_nested_html() -> None:
    """Given 200,000 nested elements, then the text is read without a stack overflow."""
    assert to_text("<div>" * 200_000 + "end") == "end"


def test_names_the_extra_for_zim_files(
    drive: CapabilityDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a ZIM file and no libzim, then the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "libzim.reader", None)
    with pytest.raises(ProviderError, match=r"capability-toolkit\[zim\]") as caught:
        drive(CAPABILITY, {"topic": "Tides"}, services={"zim": "/nowhere/x.zim"})
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_UNAVAILABLE, False)


@pytest.fixture
def zim(tmp_path: Path) -> Path:
    """A small ZIM file with an article, a redirect to it, and a disambiguation page."""
    writer = pytest.importorskip("libzim.writer", reason="the extra `zim` is not installed")

    class Page(writer.Item):  # type: ignore[misc,name-defined]
        def __init__(self, path: str, title: str, html: str) -> None:
            super().__init__()
            self._facts = path, title, html

        def get_path(self) -> str:
            return self._facts[0]

        def get_title(self) -> str:
            return self._facts[1]

        def get_mimetype(self) -> str:
            return "text/html"

        def get_contentprovider(self) -> object:
            return writer.StringProvider(self._facts[2])

        def get_hints(self) -> dict[object, int]:
            return {writer.Hint.FRONT_ARTICLE: True}

    path = tmp_path / "small.zim"
    with writer.Creator(path).config_indexing(True, "eng") as creator:
        creator.set_mainpath("Tidal_power")
        creator.add_item(Page("Tidal_power", "Tidal power", ARTICLE))
        creator.add_item(Page("Mercury", "Mercury", "<p id='disambigbox'>Mercury may be</p>"))
        hints = {writer.Hint.FRONT_ARTICLE: True}
        creator.add_redirection("Tide_energy", "Tide energy", "Tidal_power", hints)
        creator.add_metadata("Source", "https://en.wikipedia.org")
        creator.add_metadata("License", "CC BY-SA 4.0")
    return path


@pytest.mark.parametrize("topic", ["Tidal power", "tidal power", "Tide energy", "grain mills"])
def test_finds_a_topic_in_a_zim_file(drive: CapabilityDrive, zim: Path, topic: str) -> None:
    """Given a title, a redirect or words, then the article is found without a request."""
    result = drive(CAPABILITY, {"topic": topic}, services={"zim": str(zim)}, has_operation=False)
    assert result.output["source_kind"] == "zim"
    url = "https://en.wikipedia.org/wiki/Tidal_power"
    source = {"title": "Tidal power", "url": url, "license": "CC BY-SA 4.0"}
    assert result.output["sources"] == [source]
    assert drive.requests == []


@pytest.mark.parametrize("topic", ["Mercury", "volcanoes"])
def test_reports_that_a_zim_file_lacks_a_topic(
    drive: CapabilityDrive, zim: Path, topic: str
) -> None:
    """Given a topic that only a disambiguation page has, or none, then the job fails."""
    with pytest.raises(ProviderError, match="nothing on"):
        drive(CAPABILITY, {"topic": topic}, services={"zim": str(zim)}, has_operation=False)


def test_hides_the_path_of_a_broken_zim_file(drive: CapabilityDrive, tmp_path: Path) -> None:
    """Given a broken ZIM file, then the error names the file without its folder."""
    pytest.importorskip("libzim.reader", reason="the extra `zim` is not installed")
    broken = tmp_path / "broken.zim"
    broken.write_bytes(b"not a zim file" * 99)
    with pytest.raises(ProviderError, match=r"`broken\.zim` cannot be opened") as caught:
        drive(CAPABILITY, {"topic": "Tides"}, services={"zim": str(broken)})
    assert str(tmp_path) not in caught.value.message
