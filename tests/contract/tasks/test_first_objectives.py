"""What a newcomer asks first of the sandbox: each task delivers the right medium and form."""

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


def _split_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def is_any(_: str) -> bool:
    """Accept any text."""
    return True


def is_prose(text: str) -> bool:
    """Return True if it is made of whole sentences."""
    return text.rstrip().endswith(".") and len(text.split()) >= 5


def has_sources(text: str) -> bool:
    """Return True if it names where its facts are from."""
    return "source" in text.casefold()


def has_sentences(count: int) -> Form:
    """Make a check of the number of sentences."""
    return lambda text: len(re.findall(r"[.!?](?=\s|$)", text)) == count


def has_words(most: int) -> Form:
    """Make a check of the most words."""
    return lambda text: 1 < len(text.split()) <= most


def has_lines(count: int) -> Form:
    """Make a check of the number of lines."""
    return lambda text: len(_split_lines(text)) == count


def has_paragraphs(count: int) -> Form:
    """Make a check of the number of paragraphs."""
    return lambda text: len(text.strip().split("\n\n")) == count


def is_short(characters: int) -> Form:
    """Make a check of the most characters."""
    return lambda text: 0 < len(text) <= characters


def has_items(count: int | None = None) -> Form:
    """Make a check of the number of items of a list; without a number, of some."""

    def check(text: str) -> bool:
        items = [one for one in _split_lines(text) if re.match(r"[-*•]|\d+[.)]", one)]
        return len(items) == count if count else len(items) >= 3

    return check


def is_json(text: str) -> object:
    """Return True if it is a JSON object with members."""
    return json.loads(text).keys()


def has_table(text: str) -> bool:
    """Return True if it is a table in Markdown, each row as wide as its head."""
    lines = _split_lines(text)
    return len(lines) >= 4 and len({line.count("|") for line in lines}) == 1 and "---" in lines[1]


def is_python(text: str) -> bool:
    """Return True if Python reads it, and it defines something."""
    tree = ast.parse(re.sub(r"^```\w*$", "", text, flags=re.M))
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))


def is_letter(text: str) -> bool:
    """Return True if it greets a reader first, and takes leave last."""
    return text.index("Dear ") < text.index("regards") and len(_split_lines(text)) >= 4


def is_email(text: str) -> bool:
    """Return True if it is a letter with a subject."""
    return text.startswith("Subject: ") and is_letter(text)


def says(*words: str) -> Form:
    """Make a check of words that are in it."""
    return lambda text: all(word.casefold() in text.casefold() for word in words)


OBJECTIVES: list[tuple[str, set[str], Form]] = [
    ("Facts about tidal power", {FACTS}, has_sources),
    ("Three facts about honey bees, with sources", {TEXT}, has_sources),
    ("Research the history of the lighthouse", {FACTS}, has_sources),
    ("What is photosynthesis?", {TEXT}, is_prose),
    ("A summary of wind power in two sentences", {TEXT}, has_sentences(2)),
    ("Explain glaciers to a child in three sentences", {TEXT}, has_sentences(3)),
    ("A 20-word teaser about tea", {TEXT}, has_words(25)),
    ("One paragraph about coral reefs", {TEXT}, has_paragraphs(1)),
    ("A headline about solar energy", {TEXT}, has_lines(1)),
    ("A slogan for a bakery", {TEXT}, has_lines(1)),
    ("A tweet about the moon", {TEXT}, is_short(280)),
    ("Write a short text about bridges for a museum sign", {TEXT}, is_prose),
    ("A haiku about the sea", {TEXT}, has_lines(3)),
    ("Write a haiku about autumn", {TEXT}, has_lines(3)),
    ("A limerick about a cat", {TEXT}, has_lines(5)),
    ("A four-line poem about rain", {TEXT}, has_lines(4)),
    ("Five names for a café", {TEXT}, has_items(5)),
    ("Three ideas for a birthday party", {TEXT}, has_items(3)),
    ("A shopping list for pancakes", {TEXT}, has_items()),
    ("A list of five uses of recycled glass", {TEXT}, has_items(5)),
    ("Pros and cons of remote work", {TEXT}, has_items()),
    ("Seven questions for a job interview", {TEXT}, has_items(7)),
    ("A JSON object with name and population of Bern", {TEXT}, is_json),
    ("Describe a bicycle as JSON", {TEXT}, is_json),
    ("A table comparing tea and coffee", {TEXT}, has_table),
    ("A markdown table of three planets with their moons", {TEXT}, has_table),
    ("Python code that reverses a string", {TEXT}, is_python),
    ("A Python function that computes the factorial of a number", {TEXT}, is_python),
    ("An invitation email for a summer party", {TEXT}, is_email),
    ("A thank-you note to a colleague", {TEXT}, is_letter),
    ("A polite email that declines a meeting", {TEXT}, is_email),
    ("A cover letter for a job as a gardener", {TEXT}, is_letter),
    ("A recipe for lentil soup", {TEXT}, has_items()),
    ("Step-by-step instructions to plant a tree", {TEXT}, has_items()),
    ("How do I brew coffee?", {TEXT}, is_prose),
    ("A packing list for a week at the sea", {TEXT}, has_items()),
    ("Translate 'good morning' into German", {TEXT}, says("Guten Morgen")),
    ("Translate 'thank you' into French", {TEXT}, says("merci")),
    ("Classify the sentiment of: I love this phone", {TEXT}, says("positive")),
    (
        "Is this review positive or negative? The food was cold.",
        {TEXT},
        says("negative"),
    ),
    ("Extract the names from: Anna met Boris in Rome.", {TEXT}, says("Anna", "Boris")),
    ("Extract the date from this text: The fair opens on 3 May 2027.", {TEXT}, says("3 May 2027")),
    (
        "Summarize: Tides rise twice a day. Mills used them. Turbines do now.",
        {TEXT},
        is_prose,
    ),
    ("How many words are in: the quick brown fox", {TEXT}, says("4")),
    ("A picture of a lighthouse at dusk", {PICTURE}, is_any),
    ("An illustration of a mountain lake", {PICTURE}, is_any),
    ("Generate an image of a red bicycle", {PICTURE}, is_any),
    ("A logo for a coffee shop", {PICTURE}, is_any),
    ("A social card about tidal power", {PICTURE}, is_any),
    ("A card that says Happy Birthday", {PICTURE}, is_any),
    ("A poster for a jazz concert", {PICTURE}, is_any),
    ("A social card about tea with a picture", {PICTURE}, is_any),
    ("A spoken audio summary about tidal power", {SOUND}, is_any),
    ("A narration about the moon", {SOUND}, is_any),
    ("Read aloud: Welcome to our museum", {SOUND}, is_any),
    ("A podcast intro about space", {SOUND}, is_any),
    ("An audio greeting for my voicemail", {SOUND}, is_any),
    ("A social card with a spoken summary about wind power", {PICTURE, SOUND}, is_any),
    ("A picture of a volcano and a short text about it", {PICTURE, TEXT}, is_any),
    ("A text about bread and its audio version", {TEXT, SOUND}, is_any),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client as a newcomer opens it."""
    with Client.local(tmp_path_factory.mktemp("first"), sandbox=True) as made:
        yield made


@pytest.fixture(scope="module")
def tasks(client: Client) -> dict[str, Task]:
    """The tasks of all objectives, under way."""
    return {objective: client.tasks.create(objective) for objective, _, _ in OBJECTIVES}


@pytest.mark.parametrize(("objective", "media", "has_form"), OBJECTIVES)
def test_a_first_objective_is_delivered(
    client: Client, tasks: dict[str, Task], objective: str, media: set[str], has_form: Form
) -> None:
    """Given an ordinary objective and no keys, then what comes out has its medium and its form."""
    task = tasks[objective].wait(progress=False)

    artifacts = [client.artifacts.get(id) for id in task.artifact_ids.values()]
    texts = [one.content().decode() for one in artifacts if one.record.media_type in (TEXT, FACTS)]
    assert {one.record.media_type for one in artifacts} == media
    assert all(has_form(text) for text in texts), texts
