"""Checks of research: articles on their topic pass, and useless results do not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.planning.review.facts import (
    OPENINGS,
    build_research,
    gather_good,
    list_articles,
    write_output,
)
from toolkit.planning.review.evidence import Evidence, Inspection, ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.sandbox.text.library import load_articles

TEA = next(article for article in list_articles() if article.title == "Tea")


def find_issues(evidence: Evidence) -> list[ReviewIssue]:
    """Find the issues of research."""
    return check_node(Inspection(evidence, "facts"))


def change(language: str | None = None, topic: str = "tea", **changes: object) -> Evidence:
    """Gather facts on tea, with changes of the output."""
    output = write_output(topic, TEA.title, TEA.summary, TEA.sections, "en")
    return build_research(topic, {**output, **changes}, language)


def list_meanings(language: str, title: str, summary: str) -> Evidence:
    """Gather a disambiguation page."""
    return build_research(title, write_output(title, title, summary, (), language), language)


BLANK = [{"title": "History", "text": "…"}, {"title": "Culture", "text": "[to be fetched]"}]
SPOILED: dict[str, tuple[Callable[[], Evidence], str]] = {
    "no address": (lambda: change(sources=[{"title": "Tea", "url": ""}]), "sources"),
    "words for an address": (
        lambda: change(sources=[{"title": "Tea", "url": "see above"}]), "sources"),
    "one source twice": (
        lambda: change(sources=2 * [{"title": "Tea", "url": "https://en.wikipedia.org/wiki/Tea"}]),
        "sources"),
    "mark-up": (
        lambda: change(summary=f"{TEA.summary}<ref>Smith</ref> {{{{cite book}}}}"), "substance"),
    "a file": (lambda: change(sources=[{"title": "Tea", "url": "file:///tmp/tea"}]), "sources"),
    "placeholders": (lambda: change(summary="n/a", sections=BLANK, text=""), "substance"),
    "nothing": (lambda: change(summary="", sections=[], text=""), "substance"),
    "an error": (lambda: change(title="404 Not Found", summary="The page is gone."), "substance"),
    "a wall": (lambda: change(summary="Please enable JavaScript and cookies."), "substance"),
    "bees": (lambda: change(topic="honey bees"), "subject"),
    "a company of that name": (
        lambda: change(topic="pine forest", title="Forest (company)",
                       summary=f"Forest is a maker of shoes. {TEA.summary}"), "subject"),
    "English for Italian": (lambda: change("it"), "fact_language"),
    "a title with disambiguation": (lambda: change(title="Tea (disambiguation)"), "meanings"),
    "English meanings": (
        lambda: list_meanings("en", "Java", "Java may refer to an island, a language, a coffee."),
        "meanings"),
    "German meanings": (lambda: list_meanings("de", "Bank", "Bank steht für:"), "meanings"),
    "French meanings": (
        lambda: list_meanings("fr", "Mercure", "Mercure peut désigner une planète, un métal."),
        "meanings"),
    "Spanish meanings": (
        lambda: list_meanings("es", "Mercurio", "Mercurio puede referirse a un planeta."),
        "meanings"),
    "Arabic meanings": (lambda: list_meanings("ar", "عين", "عين قد تشير إلى عدة أمور"), "meanings"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_blocks_useless_research(name: str) -> None:
    """Given useless research, then the check of its defect blocks it."""
    make, check = SPOILED[name]
    assert check in {issue.check for issue in find_issues(make()) if issue.is_blocking}


def test_passes_good_facts() -> None:
    """Given 500 articles in ten languages, whole and in short, then at most 5 are blocked."""
    blocked = [
        (seed, issue.message)
        for seed in range(500)
        for issue in find_issues(gather_good(seed))
        if issue.is_blocking
    ]
    assert len({seed for seed, _ in blocked}) <= 5, blocked


def test_blocks_every_disambiguation_page() -> None:
    """Given the sandbox's pages that only list articles, then each is blocked."""
    pages = [article for article in load_articles() if article.disambiguation]
    assert pages
    for page in pages:
        evidence = list_meanings("en", page.title, page.summary)
        assert "meanings" in {issue.check for issue in find_issues(evidence)}


@pytest.mark.parametrize(("language", "topic", "title", "summary"), OPENINGS)
def test_blocks_facts_in_another_language(
    language: str, topic: str, title: str, summary: str
) -> None:
    """Given facts in a language, when English was requested, then the facts are blocked."""
    evidence = build_research(topic, write_output(topic, title, summary * 2, (), language), "en")
    assert "fact_language" in {issue.check for issue in find_issues(evidence)}


def test_passes_the_meaning_of_an_abbreviation() -> None:
    """Given a first sentence that explains an abbreviation, then the article passes."""
    summary = "ARD steht für Arbeitsgemeinschaft der öffentlich-rechtlichen Rundfunkanstalten."
    assert find_issues(list_meanings("de", "ARD", summary)) == []


def test_requires_no_web_address_of_a_file() -> None:
    """Given facts from a file of articles, then their sources need no web address."""
    sources = [{"title": "Tea", "url": "zim://wikipedia/A/Tea"}]
    assert find_issues(change(source_kind="zim", sources=sources)) == []


def test_compares_no_words_of_different_scripts() -> None:
    """Given a topic in another script than its article, then their words are not compared."""
    evidence = change()
    node = evidence.node.model_copy(update={"input": {"topic": "緑茶"}})
    assert "subject" not in {issue.check for issue in find_issues(replace(evidence, node=node))}
