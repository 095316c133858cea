"""The checks of research: articles on their topic pass, and nothing that helps nobody."""

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
from toolkit.planning.review.evidence import Evidence, Inspection
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.node_checks import check_node
from toolkit.sandbox.text.library import load_articles

TEA = next(article for article in list_articles() if article.title == "Tea")


def find_issues(made: Evidence) -> list[ReviewIssue]:
    """Find what is wrong with research."""
    return check_node(Inspection(made, "facts"))


def change(language: str | None = None, topic: str = "tea", **changes: object) -> Evidence:
    """Gather facts on tea, with some of them changed."""
    output = write_output(topic, TEA.title, TEA.summary, TEA.sections, "en")
    return build_research(topic, {**output, **changes}, language)


def list_meanings(language: str, title: str, summary: str) -> Evidence:
    """Gather a page that only lists meanings of a word."""
    return build_research(title, write_output(title, title, summary, (), language), language)


BLANK = [{"title": "History", "text": "…"}, {"title": "Culture", "text": "[to be fetched]"}]
SPOILED: dict[str, tuple[Callable[[], Evidence], str]] = {
    "no address": (lambda: change(sources=[{"title": "Tea", "url": ""}]), "sources"),
    "no host": (lambda: change(sources=[{"title": "Tea", "url": "https://"}]), "sources"),
    "words for an address": (
        lambda: change(sources=[{"title": "Tea", "url": "see above"}]), "sources"),
    "one source twice": (
        lambda: change(sources=2 * [{"title": "Tea", "url": "https://en.wikipedia.org/wiki/Tea"}]),
        "sources"),
    "mark-up": (
        lambda: change(summary=f"{TEA.summary}<ref>Smith</ref> {{{{cite book}}}}"), "substance"),
    "one part twice": (
        lambda: change(sections=2 * [{"title": "History", "text": TEA.summary[:90]}]), "substance"),
    "a file": (lambda: change(sources=[{"title": "Tea", "url": "file:///tmp/tea"}]), "sources"),
    "placeholders": (lambda: change(summary="n/a", sections=BLANK, text=""), "substance"),
    "nothing": (lambda: change(summary="", sections=[], text=""), "substance"),
    "empty sections": (lambda: change(sections=[*BLANK, *BLANK]), "substance"),
    "an error": (lambda: change(title="404 Not Found", summary="The page is gone."), "substance"),
    "a wall": (lambda: change(summary="Please enable JavaScript and cookies."), "substance"),
    "bees": (lambda: change(topic="honey bees"), "subject"),
    "a company of that name": (
        lambda: change(topic="pine forest", title="Forest (company)",
                       summary=f"Forest is a maker of shoes. {TEA.summary}"), "subject"),
    "English for Italian": (lambda: change("it"), "fact_language"),
    "English for Japanese": (lambda: change("ja"), "fact_language"),
    "a title that says so": (lambda: change(title="Tea (disambiguation)"), "meanings"),
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
def test_spoiled_research_is_found(name: str) -> None:
    """Given research that helps nobody, then the check that it is for blocks it."""
    make, check = SPOILED[name]
    assert check in {issue.check for issue in find_issues(make()) if issue.is_blocking}


def test_few_good_facts_are_blocked() -> None:
    """Given 500 articles in ten languages, whole and in short, then at most 5 are blocked."""
    blocked = [
        (seed, issue.message)
        for seed in range(500)
        for issue in find_issues(gather_good(seed))
        if issue.is_blocking
    ]
    assert len({seed for seed, _ in blocked}) <= 5, blocked


def test_every_list_of_meanings_is_found() -> None:
    """Given the sandbox's pages that only list articles, then each is blocked."""
    pages = [article for article in load_articles() if article.disambiguation]
    assert pages
    for page in pages:
        made = list_meanings("en", page.title, page.summary)
        assert "meanings" in {issue.check for issue in find_issues(made)}


@pytest.mark.parametrize(("language", "topic", "title", "summary"), OPENINGS)
def test_each_language_is_told(language: str, topic: str, title: str, summary: str) -> None:
    """Given facts in one language, when another was asked for, then they are blocked."""
    output = write_output(topic, title, summary * 2, (), language)
    other = "en" if language != "en" else "de"
    assert "fact_language" in {i.check for i in find_issues(build_research(topic, output, other))}


def test_what_a_name_stands_for_is_no_list() -> None:
    """Given a first sentence that says what letters stand for, then it passes."""
    summary = "ARD steht für Arbeitsgemeinschaft der öffentlich-rechtlichen Rundfunkanstalten."
    assert find_issues(list_meanings("de", "ARD", summary)) == []


def test_a_file_of_articles_has_no_addresses() -> None:
    """Given facts from a file, then addresses of the web are not missed."""
    sources = [{"title": "Tea", "url": "zim://wikipedia/A/Tea"}]
    assert find_issues(change(source_kind="zim", sources=sources)) == []


def test_another_script_says_the_same() -> None:
    """Given a topic in other letters than its article, then no words are compared."""
    made = change()
    node = made.node.model_copy(update={"input": {"topic": "緑茶"}})
    assert "subject" not in {issue.check for issue in find_issues(replace(made, node=node))}
