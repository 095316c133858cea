"""The planner: which objectives become which graphs."""

import pytest

from tests.planning.sample_capabilities import (
    ALL,
    BUILT_IN,
    CAPTION,
    DRAWING,
    EVERY,
    FACTS,
    LLM,
    SPEECH,
    TRANSLATE,
    Prompt,
    Topic,
    WrittenText,
    declare_capability,
    find_node,
    find_sinks,
    plan,
)
from toolkit.capabilities import load_capabilities
from toolkit.contract.plans import Constraints
from toolkit.plugins import Capability, InputBinding

R, L, S, P, C = (
    "research.gather", "llm.generate", "speech.generate", "image.generate", "composition.layout",
)  # fmt: skip
ART = "art_01hzy3v7k8m9n0p1q2r3s4t5v6"

# objective, capabilities, final capability, topic
SHAPES = [
    ("a social card with a spoken summary about tidal power", {L, S, C}, C, "tidal power"),
    ("A social card about tidal power", {L, C}, C, "tidal power"),
    ("A social card about the history of tea, please", {L, C}, C, "the history of tea"),
    ("One line on tidal power", {L}, L, "tidal power"),
    ("What is tidal power?", {L}, L, "tidal power"),
    ("Explain how tides work", {L}, L, "how tides work"),
    ("Write a 20-word teaser about tidal power", {L}, L, "tidal power"),
    ("A summary of image compression", {L}, L, "image compression"),
    ("A summary about the history of video games", {L}, L, "the history of video games"),
    ("How do I make a video game?", {L}, L, "video game"),
    ("A card about salt and pepper and an illustration", {L, C, P}, C, "salt and pepper"),
    ("a card with an illustration about bees", {L, C, P}, C, "bees"),
    ("A card about bees with a drawing", {L, C, P}, C, "bees"),
    ("a social card about tides with a photo of a turbine", {L, C, P}, C, "tides"),
    ("a card about the image of women in art", {L, C}, C, "the image of women in art"),
    ("An illustration for a social card about bees", {L, C, P}, C, "bees"),
    ("An image of a lighthouse", {P}, P, "a lighthouse"),
    ("Draw a picture of the moon, please", {P}, P, "the moon"),
    ("Generate an image of a lighthouse and put it on a card", {L, C, P}, C, "a lighthouse"),
    ("A podcast about bees", {L, S}, S, "bees"),
    ("Create an MP3 of about 80 words on photosynthesis", {L, S}, S, "photosynthesis"),
    ("A summary of the water cycle as audio", {L, S}, S, "the water cycle"),
    ("Write a summary of tides and read it aloud", {L, S}, S, "tides"),
    ("A narration on solar energy together with a card", {L, S, C}, S, "solar energy"),
    ("Research tidal power and write a summary", {R, L}, L, "tidal power"),
    ("Research on tidal power", {R}, R, "tidal power"),
    ("Explain tidal power in a social card", {L, C}, C, "tidal power"),
    ("A card that explains tidal power for children", {L, C}, C, "tidal power"),
    ("Social card: tidal power", {L, C}, C, "tidal power"),
    ("tidal power social card", {L, C}, C, "tidal power"),
    ("Three cards about tea", {L, C}, C, "tea"),
    ("A card with a poem about autumn", {L, C}, C, "autumn"),
    ("A card with facts about tea", {R, L, C}, C, "tea"),
    ("An article about “Moby Dick”", {L}, L, "Moby Dick"),
    ("Eine Karte über Gezeitenkraft", {L, C}, C, "Gezeitenkraft"),
    ("A podcast about bees in French", {L, S}, S, "bees"),
    ('Say "Hello, world" as audio', {S}, S, None),
    ("Write a poem", {L}, L, None),
]


@pytest.mark.parametrize(("objective", "expected", "final", "topic"), SHAPES)
def test_an_objective_becomes_its_graph(
    objective: str, expected: set[str], final: str, topic: str | None
) -> None:
    """Given an objective, then the plan has these capabilities, this end and this topic."""
    draft = plan(objective)
    assert {node.capability for node in draft.nodes} == expected
    assert draft.missing_capabilities == draft.missing_connections == ()
    assert {node.id: node.capability for node in draft.nodes}[find_sinks(draft)[-1]] == final
    assert set(draft.deliverables) <= {node.id for node in draft.nodes}
    assert len(draft.deliverables) >= 1
    looked_up = [node.input["topic"] for node in draft.nodes if node.capability == R]
    assert looked_up == ([topic] if R in expected else [])


def test_the_demo_plan_is_readable() -> None:
    """Given the objective of the demo, then every node has its name, its input and its place."""
    draft = plan("a social card with a spoken summary about tidal power")
    assert draft.deliverables == ("card", "narration")
    edges = {node.id: node.depends_on for node in draft.nodes}
    assert edges == {"script": [], "narration": ["script"], "copy": [], "card": ["copy"]}
    inputs = {node.id: node.input for node in draft.nodes}
    assert inputs["card"] == {"title": "Tidal power"}
    assert inputs["narration"] == {}
    assert inputs["script"] == {
        "objective": "a spoken summary about tidal power. In plain sentences."
    }
    assert find_sinks(draft) == ["narration", "card"]
    assert "card" in draft.rationale
    assert all(node.reason for node in draft.nodes)


def test_parts_have_subjects_of_their_own() -> None:
    """Given a photo of one thing on a card about another, then each node has its own."""
    draft = plan("a social card about tides with a photo of a turbine")
    assert find_node(draft, P).input == {"prompt": "a photo of a turbine"}
    assert find_node(draft, C).input == {"title": "Tides"}
    assert find_node(draft, C).depends_on == ["illustration", "copy"]
    assert draft.deliverables == ("card",)


def test_word_counts_go_to_what_they_belong_to() -> None:
    """Given two word counts, when planned, then each is asked of its own text."""
    draft = plan("A spoken summary of about 40 words about tea, and a card with a 12-word headline")
    inputs = {node.id: node.input.get("objective") for node in draft.nodes}
    assert inputs["script"] == "A spoken summary of about 40 words about tea. In plain sentences."
    assert "a 12-word headline" in str(inputs["copy"])
    assert draft.deliverables == ("narration", "card")
    assert find_sinks(draft)[-1] == "narration"


def test_words_in_quotes_are_used_as_they_are() -> None:
    """Given quoted words, then they are the title, or what is said, and not searched for names."""
    assert find_node(plan('A card titled "A video call" about tea'), C).input == {
        "title": "A video call"
    }
    assert find_node(plan("Say “An image of me” as audio"), S).input == {"text": "An image of me"}


@pytest.mark.parametrize("objective", ["A card.", "social card", "Make me a podcast, please"])
def test_what_says_no_subject_is_asked_about(objective: str) -> None:
    """Given a thing that is about something and does not say what, then that is asked."""
    draft = plan(objective)
    assert draft.question
    assert draft.nodes == []


def test_a_language_is_passed_on() -> None:
    """Given a language, then what is written is asked for in it."""
    script = find_node(plan("A podcast about bees in French"), L)
    assert "French" in str(script.input["objective"])


@pytest.mark.parametrize(
    ("objective", "missing", "nodes"),
    [
        ("a video about tides", "video.generate", set()),
        ("Make a song and a card about tea", "music.generate", {L, C}),
        ("Make me a slide deck on volcanoes", "slides.generate", set()),
        ("A pie chart of energy use", "chart.generate", set()),
        ("Clone my voice", "audio.upload", set()),
    ],
)
def test_what_nothing_makes_is_named(objective: str, missing: str, nodes: set[str]) -> None:
    """Given something no capability makes, then the plan says so and keeps what can be made."""
    draft = plan(objective)
    assert draft.missing_capabilities == (missing,)
    assert {node.capability for node in draft.nodes} == nodes
    assert draft.rationale


def test_a_named_artifact_is_used() -> None:
    """Given an artifact's id in the objective, then the field that wants one has it."""
    draft = plan(f"Clone my voice from {ART}")
    assert draft.nodes[0].input["reference_audio"] == ART
    assert draft.missing_capabilities == ()


def test_missing_connections_are_named_default_first() -> None:
    """Given no connections, when speech is asked for, then the vendors that would do are named."""
    draft = plan("A narration about tea", connected=frozenset())
    assert draft.missing_connections == ("minimax", "openai")
    assert draft.missing_capabilities == ()
    assert draft.deliverables == ("narration",)


@pytest.mark.parametrize(
    ("objective", "expected", "final"),
    [
        ("A social card about tidal power", {R, C}, "card"),
        ("A summary of tidal power", {R}, "facts"),
        ("A card with a summary about tidal power", {R, C}, "card"),
    ],
)
def test_facts_stand_in_for_text_without_a_connection(
    objective: str, expected: set[str], final: str
) -> None:
    """Given no LLM connection, when facts can do, then the plan can be run and says why."""
    draft = plan(objective, connected=frozenset())
    assert {node.capability for node in draft.nodes} == expected
    assert draft.missing_connections == ()
    assert draft.deliverables == (final,)
    assert "stands in" in draft.rationale


def test_facts_do_not_stand_in_for_a_poem() -> None:
    """Given no LLM connection, when a poem is asked for, then a connection is."""
    for objective in ("a haiku about tides", "a card with a haiku about tides"):
        draft = plan(objective, connected=frozenset())
        assert draft.missing_connections == ("minimax", "openai")


def test_a_budget_of_nothing_is_planned_for_the_cpu() -> None:
    """Given a budget of 0 and connections, then no node asks a vendor for anything."""
    draft = plan("A social card about tea", constraints=Constraints(max_cost_usd=0))
    assert {node.capability for node in draft.nodes} == {R, C}
    assert find_node(draft, R).input == {"topic": "tea", "synthesize": False}


@pytest.mark.parametrize(
    ("objective", "delivered"),
    [
        ("A caption for an image of a lighthouse", ("make",)),
        ("An image of a lighthouse and a caption", ("illustration", "make")),
        ("A caption about a lighthouse", ("make",)),
    ],
)
def test_a_strangers_capability_is_chained_by_its_types(
    objective: str, delivered: tuple[str, ...]
) -> None:
    """Given a third-party capability that takes an image, then one is made for it."""
    draft = plan(objective, (*BUILT_IN, CAPTION))
    assert draft.deliverables == delivered
    assert find_node(draft, "caption.make").depends_on == ["illustration"]
    assert "a lighthouse" in str(find_node(draft, P).input["prompt"])
    assert find_sinks(draft) == ["make"]


def test_chains_are_as_long_as_their_types_need() -> None:
    """Given only strangers' capabilities, then the plan leads through three of them."""
    notes = declare_capability("notes.find", Topic, WrittenText, "text/x-notes", "notes")
    painter = declare_capability(
        "notes.paint", Prompt, WrittenText, "image/webp", "sketchnote",
        accepts={"prompt": InputBinding(("text/x-notes",), "text")},
    )  # fmt: skip
    draft = plan("alt text about tea", (notes, painter, CAPTION), frozenset())
    assert [node.id for node in draft.nodes] == ["paint", "make"]
    draft = plan("A translation of alt text about tea", (painter, CAPTION, TRANSLATE), frozenset())
    assert [node.id for node in draft.nodes] == ["paint", "make", "translate"]
    assert draft.deliverables == ("translate",)


def test_the_cheapest_way_avoids_missing_connections() -> None:
    """Given two makers of images, when one lacks its connection, then the other is taken."""
    local = declare_capability("image.local", Prompt, WrittenText, "image/webp", "doodle")
    draft = plan("A caption about tea", (DRAWING, local, CAPTION), frozenset())
    assert {node.capability for node in draft.nodes} == {"image.local", "caption.make"}
    draft = plan("A caption about tea", (DRAWING, local, CAPTION), ALL)
    assert {node.capability for node in draft.nodes} == {P, "caption.make"}


def test_a_circle_of_needs_is_no_plan() -> None:
    """Given two capabilities that need each other's results, then neither is planned."""
    first = declare_capability(
        "a.first", type("A", (Prompt,), {"__annotations__": {"x": str}}), WrittenText,
        "x/one", "one", accepts={"x": InputBinding(("x/two",), "artifact")},
    )  # fmt: skip
    second = declare_capability(
        "a.second", type("B", (Prompt,), {"__annotations__": {"x": str}}), WrittenText,
        "x/two", "two", accepts={"x": InputBinding(("x/one",), "artifact")},
    )  # fmt: skip
    draft = plan("one", (first, second), frozenset())
    assert draft.nodes == []
    assert draft.missing_capabilities


def test_a_stranger_named_like_a_common_thing_makes_it() -> None:
    """Given a third-party video capability, then an objective for a video is planned with it."""
    video = declare_capability("film.shoot", Prompt, WrittenText, "video/mp4", "video, film")
    draft = plan("a video about tides", (*BUILT_IN, video))
    assert [node.id for node in draft.nodes] == ["shoot"]
    assert draft.missing_capabilities == ()


def test_shared_work_is_done_once() -> None:
    """Given two deliverables about one topic, then it is looked up once."""
    draft = plan("Look up tea. Write a summary and a haiku from the facts.")
    assert [node.capability for node in draft.nodes].count(R) == 1
    assert draft.deliverables == ("copy", "copy-2")


def test_a_plan_has_a_limit() -> None:
    """Given a hundred different cards, then the plan stays within 50 nodes and says so."""
    parts = ", ".join(f"a card about subject{i}" for i in range(100))
    draft = plan(f"Make {parts}")
    assert 0 < len(draft.nodes) <= 50
    assert "at most 50" in draft.rationale


def test_a_capability_that_cannot_be_told_anything_is_named() -> None:
    """Given a capability with a required field that nothing fills, then it is named as missing."""
    schema = type("Odd", (Topic,), {"__annotations__": {"count": int}})
    odd = declare_capability("odd.thing", schema, WrittenText, "text/plain", "oddity")
    draft = plan("An oddity about tea", (odd,))
    assert draft.missing_capabilities == ("odd.thing",)
    assert draft.nodes == []


def test_nothing_to_plan_with_is_said() -> None:
    """Given no capabilities at all, then the plan is empty and names what is missing."""
    draft = plan("Explain tidal power", ())
    assert (draft.nodes, draft.missing_capabilities) == ([], ("llm.generate",))


@pytest.mark.parametrize("missing", [LLM, FACTS, SPEECH])
def test_every_capability_can_be_absent(missing: Capability) -> None:
    """Given one capability less, then a plan either does without it or names it."""
    rest = [c for c in EVERY if c is not missing]
    draft = plan("a social card with a spoken summary about tidal power", rest)
    assert missing.id not in {node.capability for node in draft.nodes}
    assert draft.deliverables or draft.missing_capabilities


@pytest.mark.parametrize(("objective", "expected", "final", "topic"), SHAPES)
def test_the_built_in_capabilities_plan_alike(
    objective: str, expected: set[str], final: str, topic: str | None
) -> None:
    """Given the capabilities as they are, then every objective's plan can be run."""
    real = load_capabilities()
    draft = plan(objective, real)
    models = {c.id: c.input_model for c in real}
    assert draft.missing_capabilities == draft.missing_connections == ()
    assert {node.id: node.capability for node in draft.nodes}[find_sinks(draft)[-1]] in {final, P}
    for node in draft.nodes:
        assert set(node.input) <= set(models[node.capability].model_fields)
