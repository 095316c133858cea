"""The planner's second half: what was read becomes nodes, edges and fields."""

from dataclasses import replace

import pytest

from tests.planning.sample_capabilities import (
    BUILT_IN,
    EVERY,
    SPEECH,
    Prompt,
    SpokenAudio,
    build_view,
    declare_capability,
    find_node,
)
from toolkit.capabilities import load_capabilities
from toolkit.planning.capability_graph import CapabilityGraph
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.planning.planner import PlanDraft, plan_reading
from toolkit.planning.reading.objective_reading import (
    Measure,
    ObjectiveReading,
    RequestedOutput,
    UnavailableAct,
)
from toolkit.plugins import Capability

ART = "art_01hzy3v7k8m9n0p1q2r3s4t5v6"
REAL = tuple(load_capabilities())
R, L, S, P, C, V = (
    "research.gather", "llm.generate", "speech.generate", "image.generate", "composition.layout",
    "voice.clone",
)  # fmt: skip


def plan(
    *requests: RequestedOutput,
    capabilities: tuple[Capability, ...] = REAL,
    reading: ObjectiveReading | None = None,
) -> PlanDraft:
    """Plan what was read, with every provider connected; see that the plan has no faults."""
    view = build_view(capabilities)
    read = replace(reading or ObjectiveReading("en", topic="tea"), requests=requests)
    everyone = frozenset().union(*view.providers.values())
    graph = CapabilityGraph(view.capabilities, everyone, view.providers)
    draft = plan_reading("the objective", read, graph)
    rules = PlanRules({c.id: c for c in capabilities})
    assert not draft.nodes or find_plan_faults(draft.nodes, draft.deliverables, rules) == []
    return draft


def text(wording: str = "a text about tea", **more: object) -> RequestedOutput:
    """A text that is asked for."""
    return replace(RequestedOutput("text", "text", topic="tea", wording=wording), **more)  # type: ignore[arg-type]


def edges(draft: PlanDraft) -> set[tuple[str, str]]:
    """The capabilities at both ends of every edge."""
    made_by = {node.id: node.capability for node in draft.nodes}
    return {(made_by[up], node.capability) for node in draft.nodes for up in node.depends_on}


def test_a_join_is_an_edge() -> None:
    """Given a recording of a text, then the text is made first and both are handed over."""
    draft = plan(text(), RequestedOutput("speech", "mp3", topic="tea", inputs=(0,)))
    assert edges(draft) == {(L, S)}
    assert draft.deliverables == ("copy", "narration")
    assert find_node(draft, S).input == {}


def test_what_nobody_named_is_made() -> None:
    """Given a recording or a card of nothing said, then its words are written first."""
    draft = plan(RequestedOutput("speech", "podcast", topic="tea", wording="a podcast about tea"))
    assert edges(draft) == {(L, S)}
    assert draft.deliverables == ("narration",)
    assert "a podcast about tea" in str(find_node(draft, L).input["objective"])
    draft = plan(RequestedOutput("card", "card", topic="tea", wording="a card about tea"))
    assert edges(draft) == {(L, C)}
    assert find_node(draft, C).input == {"title": "Tea"}


def test_quoted_words_are_used_as_they_are() -> None:
    """Given words to be spoken or shown, then no text is written."""
    spoken = plan(RequestedOutput("speech", "audio", literal="Mind the gap"))
    assert [node.input for node in spoken.nodes] == [{"text": "Mind the gap"}]
    shown = plan(RequestedOutput("card", "card", literal="Sold out", literal_is_title=True))
    assert [node.input for node in shown.nodes] == [{"title": "Sold out"}]
    long = "Sold out until the next batch of sourdough on Friday at seven. " * 2
    shown = plan(RequestedOutput("card", "card", topic="bread", literal=long))
    assert [node.input for node in shown.nodes] == [{"title": "Bread", "body": long}]


def test_facts_are_optional_where_a_text_rests_on_them() -> None:
    """Given facts for a text, then it is written without them if it must; alone, they are due."""
    draft = plan(RequestedOutput("research", topic="tea", is_delivered=False), text(inputs=(0,)))
    assert edges(draft) == {(R, L)}
    assert find_node(draft, R).optional
    assert not find_node(draft, L).optional
    assert edges(plan(text(needs_facts=True))) == {(R, L)}
    assert edges(plan(text())) == set()
    alone = plan(RequestedOutput("research", "facts", topic="tea"))
    assert [node.optional for node in alone.nodes] == [False]
    shown_of_facts = (
        RequestedOutput("research", topic="tea", is_delivered=False),
        RequestedOutput("card", topic="tea", inputs=(0,)),
    )
    shown = plan(*shown_of_facts)
    assert [node.optional for node in shown.nodes] == [True, False, False]
    untold = ObjectiveReading("en", topic="tea", banned=frozenset({"text"}))
    shown = plan(*shown_of_facts, reading=untold)
    assert [node.optional for node in shown.nodes] == [False, False]


def test_facts_are_written_up_before_they_are_spoken() -> None:
    """Given a recording of facts, then a text comes between them."""
    draft = plan(
        RequestedOutput("research", topic="tea", is_delivered=False),
        RequestedOutput("speech", "audio", topic="tea", inputs=(0,)),
    )
    assert edges(draft) == {(R, L), (L, S)}


def test_a_made_voice_speaks() -> None:
    """Given a voice of one's own and a text, then both go into the recording."""
    draft = plan(
        RequestedOutput("clone", "my voice", artifact_ids=(ART,), is_delivered=False),
        text(),
        RequestedOutput("speech", "read it", inputs=(1, 0)),
    )
    assert edges(draft) == {(V, S), (L, S)}
    assert find_node(draft, V).input["reference_audio"] == ART


def test_a_missing_upload_is_named() -> None:
    """Given a voice to copy and no recording of it, then the plan says what is missing."""
    draft = plan(RequestedOutput("clone", "my voice"))
    assert draft.missing_capabilities == ("audio.upload",)
    assert draft.nodes == []


def test_a_picture_there_already_goes_on_the_card() -> None:
    """Given a picture's id and a card, then the card shows it."""
    draft = plan(RequestedOutput("card", "card", topic="tea", artifact_ids=(ART,)))
    assert find_node(draft, C).input["image"] == ART


def test_an_artifact_that_nothing_reads_is_not_passed_over() -> None:
    """Given a text on an artifact that no writer takes, then the plan cannot be run as it is."""
    assert plan(text("sum it up", artifact_ids=(ART,))).missing_capabilities == ("artifact.read",)


@pytest.mark.parametrize("kind", ["text", "image"])
def test_variants_are_one_node_each(kind: str) -> None:
    """Given three of a kind, then there are three nodes, and none repeats another."""
    one = RequestedOutput(kind, f"three {kind}s", topic="tea", wording=f"three {kind}s of tea")
    draft = plan(one, one, one)
    assert len(draft.deliverables) == 3
    assert len({str(node.input) for node in draft.nodes}) == 3


def test_a_plan_has_a_limit() -> None:
    """Given more requests than a plan may have nodes, then it stays within them and says so."""
    draft = plan(*(text(f"text {i}") for i in range(60)))
    assert len(draft.nodes) == 50
    assert "at most 50" in draft.rationale


MEASURES = [
    ("image", [("width", 1000), ("height", 504)], {"width": 1000, "height": 504}),
    ("image", [("width", 5000)], {"width": 1536}),
    ("image", [("width", 1001)], {"width": 1000}),
    ("image", [("width", 512), ("shape", "square")], {"width": 512, "height": 512}),
    ("image", [("shape", "square")], {"width": 1024, "height": 1024}),
    ("image", [("shape", "3:4")], {"width": 888, "height": 1184}),
    ("image", [("seed", 7), ("steps", 35)], {"seed": 7, "steps": 35}),
    ("image", [("negative_prompt", "text, border")], {"negative_prompt": "text, border"}),
    ("card", [("theme", "dark")], {"theme": "midnight"}),
    ("card", [("theme", "light"), ("format", "svg")], {"theme": "paper", "format": "svg"}),
    ("card", [("footer", "Sunday")], {"footer": "Sunday"}),
    ("speech", [("pace", 1.5)], {"speed": 1.5}),
    ("speech", [("pace", "slow")], {"speed": 0.8}),
    ("speech", [("speed", 9)], {"speed": 2.0}),
    ("research", [("sources", 4)], {"max_sources": 4}),
    ("research", [("max_sources", 40)], {"max_sources": 5}),
    ("text", [("temperature", 0.2), ("max_tokens", 900)], {"temperature": 0.2, "max_tokens": 900}),
    ("text", [("words", 2000)], {"max_tokens": 8200}),
]


@pytest.mark.parametrize(("kind", "measures", "expected"), MEASURES)
def test_measures_fill_the_fields_they_belong_to(
    kind: str, measures: list[tuple[str, float | str]], expected: dict[str, object]
) -> None:
    """Given measures, then the fields have them, within what their schema takes."""
    asked = RequestedOutput(
        kind, kind, topic="tea", wording=f"{kind} about tea", literal="Tea",
        measures=tuple(Measure(name, value) for name, value in measures),
    )  # fmt: skip
    draft = plan(replace(asked, literal=None) if kind in {"text", "research"} else asked)
    given = draft.nodes[-1].input
    assert {name: given.get(name) for name in expected} == expected


def test_a_size_belongs_to_what_can_have_it() -> None:
    """Given a size beside a picture that cannot have it, then the card that it is for has it."""
    size = (Measure("width", 1200), Measure("height", 630))
    picture = RequestedOutput("image", topic="tea", is_delivered=False, measures=size)
    draft = plan(picture, RequestedOutput("card", topic="tea", literal="Tea", inputs=(0,)))
    assert find_node(draft, C).input["height"] == 630
    assert "height" not in find_node(draft, P).input


def test_a_value_out_of_reach_is_explained() -> None:
    """Given more pixels than a picture can have, then the plan says what it has instead."""
    asked = RequestedOutput("image", topic="tea", measures=(Measure("width", 5000),))
    assert "1536" in plan(asked).rationale


def test_a_text_keeps_the_words_it_was_asked_for_in() -> None:
    """Given counts and a language, then the brief has the person's words and what they lack."""
    (node,) = plan(text("a 40-word text about tea", measures=(Measure("words", 40),))).nodes
    assert node.input["objective"] == "a 40-word text about tea"
    (node,) = plan(text("forty words on tea", measures=(Measure("words", 40, "at_most"),))).nodes
    assert node.input["objective"] == "forty words on tea. At most 40 words."
    (node,) = plan(text("another about tea", language="fr")).nodes
    assert "Français" in str(node.input["objective"])
    german = ObjectiveReading("de", topic="Tee")
    draft = plan(
        RequestedOutput("speech", "Audio", topic="Tee", wording="ein Audio über Tee"),
        reading=german,
    )
    brief = str(find_node(draft, L).input["objective"])
    assert brief == "ein Audio über Tee. In einfachen Sätzen."


def test_every_node_quotes_the_words_it_serves() -> None:
    """Given a request, then its node and those before it say which words they are for."""
    draft = plan(RequestedOutput("card", "a card", topic="tea", wording="a card about tea"))
    assert all("a card about tea" in node.reason for node in draft.nodes)


def test_what_nothing_can_do_blocks_the_plan_and_the_rest_is_shown() -> None:
    """Given an act that nothing here can do, then it is missing; what can be made is planned."""
    unavailable = (UnavailableAct("email.send", "email it"),)
    draft = plan(text(), reading=ObjectiveReading("en", topic="tea", unavailable=unavailable))
    assert draft.missing_capabilities == ("email.send",)
    assert "email it" in draft.rationale
    assert [node.capability for node in draft.nodes] == [L]


def test_a_stranger_does_what_nothing_else_can() -> None:
    """Given a capability of the name that an act would have, then it is planned with."""
    post = declare_capability("email.send", Prompt, SpokenAudio, "message/rfc822", "")
    unavailable = (UnavailableAct("email.send", "email it"),)
    draft = plan(
        reading=ObjectiveReading("en", topic="tea", unavailable=unavailable),
        capabilities=(*EVERY, post),
    )
    assert draft.missing_capabilities == ()
    assert [node.capability for node in draft.nodes] == ["email.send"]


def test_what_is_banned_is_not_planned() -> None:
    """Given kinds that the objective rules out, then no node makes them, named or not."""
    banned = ObjectiveReading("en", topic="tea", banned=frozenset({"text", "image", "research"}))
    draft = plan(
        RequestedOutput("card", "card", topic="tea"),
        RequestedOutput("image", "picture", topic="tea"),
        reading=banned,
    )
    assert [node.capability for node in draft.nodes] == [C]
    assert edges(plan(text(needs_facts=True), reading=replace(banned, banned=frozenset()))) == {
        (R, L)
    }


def test_a_question_is_all_that_comes_of_nothing() -> None:
    """Given nothing that says what is wanted, then there is a question and no node."""
    draft = plan(reading=ObjectiveReading("en", question="What is the thing?"))
    assert (draft.nodes, draft.question) == ([], "What is the thing?")
    assert plan(reading=ObjectiveReading("en")).question


def test_how_much_was_understood_is_told() -> None:
    """Given words that were not understood, then the plan names them."""
    read = ObjectiveReading("en", topic="tea", understood=0.5, unknown_words=("blorp",))
    draft = plan(text(), reading=read)
    assert (draft.reading.understood, draft.reading.words) == (0.5, ["blorp"])


def test_kinds_are_told_by_metadata() -> None:
    """Given strangers of the right types, then the kinds are made by whoever claims them."""
    say = replace(SPEECH, id="voice.say", keywords=("speech",))
    others = tuple(c for c in BUILT_IN if c.id != S)
    draft = plan(RequestedOutput("speech", literal="Hello"), capabilities=(*others, say))
    assert [node.capability for node in draft.nodes] == ["voice.say"]
    assert plan(RequestedOutput("speech", literal="Hello"), capabilities=others).nodes == []
