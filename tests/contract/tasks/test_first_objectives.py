"""First objectives of new users in the sandbox: each task delivers its medium and form."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from toolkit import Client
from toolkit.client import Task

pytestmark = pytest.mark.sqlite("other tests have its statements")

TEXT, FACTS, PICTURE, SOUND = "text/plain", "application/json", "image/png", "audio/mpeg"
Form: TypeAlias = Callable[[str], object]


def has_count(pattern: str, count: int) -> Form:
    """Return a check that a pattern matches so many times."""
    return lambda text: len(re.findall(pattern, text, re.M)) == count


def contains(*words: str) -> Form:
    """Return a check that a text contains all words, in this order."""
    return lambda text: re.search(".*".join(words), text, re.I | re.S)


def has_table(text: str) -> bool:
    """Return whether a text is a Markdown table whose rows are as wide as its head."""
    lines = text.strip().splitlines()
    return len(lines) >= 4 and len({line.count("|") for line in lines}) == 1 and "---" in lines[1]


def is_python(text: str) -> bool:
    """Return whether a text is Python that defines a function."""
    tree = ast.parse(re.sub(r"^```\w*$", "", text, flags=re.M))
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))


LINE, SENTENCE, ITEM = r"^.*\S.*$", r"[.!?](?=\s|$)", r"^(?:[-*•]|\d+[.)])"
IS_PROSE = contains(r"\w+ \w+ \w+ \w+", r"\.\s*$")
HAS_ITEMS = contains(rf"(?m:{ITEM})", rf"(?m:{ITEM})", rf"(?m:{ITEM})")
OBJECTIVES: list[tuple[str, set[str], Form]] = [
    ("Facts about tidal power", {FACTS}, contains("source")),
    ("Three facts about honey bees, with sources", {TEXT}, contains("source")),
    ("What is photosynthesis?", {TEXT}, IS_PROSE),
    ("A summary of wind power in two sentences", {TEXT}, has_count(SENTENCE, 2)),
    ("A 20-word teaser about tea", {TEXT}, lambda text: 1 < len(text.split()) <= 25),
    ("One paragraph about coral reefs", {TEXT}, lambda text: "\n\n" not in text.strip()),
    ("A headline about solar energy", {TEXT}, has_count(LINE, 1)),
    ("A tweet about the moon", {TEXT}, lambda text: 0 < len(text) <= 280),
    ("Write a short text about bridges for a museum sign", {TEXT}, IS_PROSE),
    ("A haiku about the sea", {TEXT}, has_count(LINE, 3)),
    ("A limerick about a cat", {TEXT}, has_count(LINE, 5)),
    ("A four-line poem about rain", {TEXT}, has_count(LINE, 4)),
    ("Five names for a café", {TEXT}, has_count(ITEM, 5)),
    ("A shopping list for pancakes", {TEXT}, HAS_ITEMS),
    ("Pros and cons of remote work", {TEXT}, HAS_ITEMS),
    (
        "A JSON object with name and population of Bern",
        {TEXT},
        lambda text: json.loads(text).keys(),
    ),
    ("A markdown table of three planets with their moons", {TEXT}, has_table),
    ("Python code that reverses a string", {TEXT}, is_python),
    ("A polite email that declines a meeting", {TEXT}, contains("^Subject: ", "Dear ", "regards")),
    ("A cover letter for a job as a gardener", {TEXT}, contains("Dear ", "regards")),
    ("Step-by-step instructions to plant a tree", {TEXT}, HAS_ITEMS),
    ("How do I brew coffee?", {TEXT}, IS_PROSE),
    ("Translate 'good morning' into German", {TEXT}, contains("Guten Morgen")),
    ("Classify the sentiment of: I love this phone", {TEXT}, contains("positive")),
    ("Extract the names from: Anna met Boris in Rome.", {TEXT}, contains("Anna", "Boris")),
    ("Summarize: Tides rise twice a day. Mills used them. Turbines do now.", {TEXT}, IS_PROSE),
    ("How many words are in: the quick brown fox", {TEXT}, contains("4")),
    ("A picture of a lighthouse at dusk", {PICTURE}, bool),
    ("A logo for a coffee shop", {PICTURE}, bool),
    ("A card that says Happy Birthday", {PICTURE}, bool),
    ("A social card about tea with a picture", {PICTURE}, bool),
    ("A spoken audio summary about tidal power", {SOUND}, bool),
    ("Read aloud: Welcome to our museum", {SOUND}, bool),
    ("A podcast intro about space", {SOUND}, bool),
    ("A social card with a spoken summary about wind power", {PICTURE, SOUND}, bool),
    ("A picture of a volcano and a short text about it", {PICTURE, TEXT}, bool),
    ("A text about bread and its audio version", {TEXT, SOUND}, bool),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a new sandbox."""
    with Client.local(tmp_path_factory.mktemp("first"), sandbox=True) as client:
        yield client


@pytest.fixture(scope="module")
def tasks(client: Client) -> dict[str, Task]:
    """The tasks of all objectives, under way."""
    return {objective: client.tasks.create(objective) for objective, _, _ in OBJECTIVES}


@pytest.mark.parametrize(("objective", "media", "has_form"), OBJECTIVES)
def test_delivers_a_first_objective(
    client: Client, tasks: dict[str, Task], objective: str, media: set[str], has_form: Form
) -> None:
    """Given an ordinary objective and no keys, then the results have its medium and form."""
    task = tasks[objective].wait(progress=False)
    artifacts = [client.artifacts.get(id) for id in task.artifact_ids.values()]
    assert {artifact.record.media_type for artifact in artifacts} == media
    for artifact in artifacts:
        if artifact.record.media_type in (TEXT, FACTS):
            text = artifact.content().decode()
            assert has_form(text), text
