"""One objective in nine languages asks for the same."""

import json
from pathlib import Path

import pytest

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.objective_reading import ObjectiveReading
from toolkit.planning.reading.reader import read_objective
from toolkit.planning.reading.words.lexicon import CODES

# Each with its graph: the kinds in order, then from which one another is made.
TRANSLATIONS = json.loads(Path(__file__).with_name("translations.json").read_text("utf-8"))
NAMES = CapabilityNames(kinds=frozenset({"text", "image", "speech", "card", "research", "clone"}))


def describe_graph(reading: ObjectiveReading) -> str:
    """Describe what is asked for, in no order of the words, which differs by language."""
    if reading.unavailable:
        return "blocked"
    kinds = sorted(one.kind for one in reading.requests)
    edges = sorted(
        f"{reading.requests[source].kind}>{one.kind}"
        for one in reading.requests
        for source in one.inputs
    )
    return " ".join([*kinds, *edges])


def order_graph(graph: str) -> str:
    """The same of an expected graph, whose edges have indexes."""
    kinds = [word for word in graph.split() if ">" not in word]
    pairs = [word.split(">") for word in graph.split() if ">" in word]
    return " ".join([*sorted(kinds), *sorted(f"{kinds[int(a)]}>{kinds[int(b)]}" for a, b in pairs)])


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("row", TRANSLATIONS, ids=[one["en"] for one in TRANSLATIONS])
def test_a_translation_asks_for_the_same(row: dict[str, str], code: str) -> None:
    """Given an objective in a language, when it is read, then it asks for what others do."""
    if code not in row:
        pytest.skip("not translated")
    reading = read_objective(row[code], NAMES)
    assert reading.language == code
    assert describe_graph(reading) == order_graph(row["graph"])
