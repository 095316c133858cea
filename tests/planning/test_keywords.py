"""The keyword planner: objectives that become graphs, and objectives that need a question."""

import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.sample_capabilities import declare_text_capability, find_node
from toolkit.capabilities import load_capabilities
from toolkit.contract.plans import Constraints
from toolkit.planning.keywords.planner import make_plan
from toolkit.planning.keywords.words import CODES, load_vocabulary
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.plugins import Capability, InputBinding

L, S, P, C, T = (
    "llm.generate", "speech.generate", "image.generate", "composition.layout", "speech.transcribe",
)  # fmt: skip
ART = "art_01hzy3v7k8m9n0p1q2r3s4t5v6"
LIMIT_S = 0.05  # of 10,000 characters
OBJECTIVES = tomllib.loads(Path(__file__).with_name("objectives.toml").read_text("utf-8"))


def plan(objective: str, *plugins: Capability, constraints: Constraints | None = None) -> PlanDraft:
    """Plan an objective for an account with all connections."""
    capabilities = [*load_capabilities(), *plugins]
    every = frozenset({"every"})
    view = PlannerView(capabilities, every, {capability.id: every for capability in capabilities})
    return make_plan(objective, constraints or Constraints(), view)


@pytest.mark.parametrize("objective", OBJECTIVES["capabilities"])
def test_plans_a_known_objective(objective: str) -> None:
    """Given an objective with known clauses only, then the plan has their capabilities."""
    draft = plan(objective)
    assert draft.question is None
    capability_ids = OBJECTIVES["capabilities"][objective]
    assert sorted(node.capability for node in draft.nodes) == sorted(capability_ids)
    assert draft.missing == ()
    assert draft.reading.understood == 1


@pytest.mark.parametrize("objective", OBJECTIVES["measures"])
def test_expects_the_measures_of_a_text(objective: str) -> None:
    """Given a measure of a whole text, then its node expects this measure."""
    expect = find_node(plan(objective), L).expect
    measures = expect.model_dump(exclude_unset=True) if expect else {}
    for limits in measures.values():
        if isinstance(limits, list) and limits[-1] is None:
            limits.pop()  # TOML has no value for a range without an upper end
    assert measures == OBJECTIVES["measures"][objective]


@pytest.mark.parametrize(
    "objective",
    [
        "Hoover the stairs",
        "Three poems about tea, two sentences each",
        "A card about tides. Then zorble the blips.",
        "A recipe for soup, and have it framed",
        "For each of Ely, Lincoln and Durham: a card",
        "Translate this",
        "Put my rant about scooters on a wall",
        "A story zorb about tea",
        f"Make the colours of {ART} warmer",
        "",
    ],
)
def test_an_unknown_clause_becomes_a_question(objective: str) -> None:
    """Given an unknown clause, then nothing is planned, and the draft has a question."""
    draft = plan(objective)
    assert draft.nodes == []
    assert draft.question is not None
    assert "Planned by keywords" in draft.question
    assert "Connect a text provider" in draft.question


@pytest.mark.parametrize(
    ("objective", "missing"),
    [
        ("A video of cats", "video.generate"),
        ("Send a poem about tea to my aunt", "email.send"),
        ("Ein Video über Katzen", "video.generate"),
    ],
)
def test_names_a_missing_capability(objective: str, missing: str) -> None:
    """Given an objective that no capability fulfils, then the plan names a missing capability."""
    draft = plan(objective)
    assert draft.missing_capabilities == (missing,)
    assert draft.nodes == []


def test_prompts_are_phrases_of_the_objective() -> None:
    """Given parts of an objective, then each prompt is a whole phrase with the topic."""
    draft = plan("A story about bees, with cover art")
    prompt = str(find_node(draft, P).input["prompt"])
    assert prompt == "cover art for: A story about bees"
    assert str(find_node(draft, L).input["objective"]) == "A story about bees"


def test_fills_fields_of_inputs() -> None:
    """Given sizes, a seed and an exclusion, then they are fields of the inputs."""
    draft = plan("A watercolour of a lighthouse, 768x512, seed 7, no people")
    fields = find_node(draft, P).input
    assert (fields["width"], fields["height"], fields["seed"]) == (768, 512, 7)
    assert fields["negative_prompt"] == "people"
    card = find_node(plan("A social card about tea, 1000x500"), C).input
    assert (card["title"], card["width"], card["height"]) == ("Tea", 1000, 500)


def test_uses_quoted_words_unchanged() -> None:
    """Given quoted words, then they are the text or the title, and plan no capability."""
    assert find_node(plan('Say "Send a video" as an MP3'), S).input["text"] == "Send a video"
    assert find_node(plan('A card titled "Open at 9"'), C).input["title"] == "Open at 9"


def test_a_transcript_is_of_the_named_or_the_spoken_audio() -> None:
    """Given an audio artifact or a narration before it, then this is what is transcribed."""
    assert find_node(plan(f"Transcribe {ART}"), T).input == {"audio": ART}
    draft = plan('Say "Mind the step" as an MP3, then transcribe it')
    assert find_node(draft, T).depends_on == [find_node(draft, S).id]
    assert draft.deliverables[-1] == find_node(draft, T).id
    assert plan(f"Transcribe {ART}, then write a summary of it").question is not None


def test_plans_a_plugin_by_its_keyword() -> None:
    """Given a plugin's capability, then its keyword plans it after its input."""
    binding = InputBinding(("text/*",), "text")
    shout = declare_text_capability("text.shout", "shout", accepts={"prompt": binding})
    draft = plan("Write a text about tea, then shout it", shout)
    assert [node.capability for node in draft.nodes] == [L, "text.shout"]
    assert draft.nodes[1].depends_on == [draft.nodes[0].id]
    assert draft.deliverables[-1] == draft.nodes[1].id
    draft = plan("Write a text about tea, then shout it")
    assert (draft.nodes, draft.question is None) == ([], False)


def test_facts_for_a_text_are_optional() -> None:
    """Given facts for a text, then they are optional; facts alone are not."""
    draft = plan("Research the history of tea and write a summary")
    assert [node.optional for node in draft.nodes] == [True, False]
    assert [node.optional for node in plan("Facts about tea").nodes] == [False]


def test_plans_only_free_nodes_without_a_budget() -> None:
    """Given a budget of 0, then the plan has only capabilities without a provider."""
    draft = plan("A social card about tea", constraints=Constraints(max_cost_usd=0))
    assert [node.capability for node in draft.nodes] == [C]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(sorted(OBJECTIVES["capabilities"])),
            st.sampled_from([", then ", " and ", '"', "“", ": ", "? ", "\n", " 3 ", " no ", ART]),
            st.text(max_size=12),
        ),
        max_size=6,
    ).map("".join)
)
def test_any_text_is_a_sound_plan_or_a_question(objective: str) -> None:
    """Given any text, then its plan is valid, asks a question or names a missing capability."""
    draft = plan(objective)
    assert draft == plan(objective)
    assert draft.nodes or draft.question or draft.missing
    if draft.nodes:
        rules = PlanRules({c.id: c for c in load_capabilities()})
        assert find_plan_faults(draft.nodes, draft.deliverables, rules) == []


@pytest.mark.parametrize("code", CODES)
def test_plans_the_longest_objective_in_time(code: str) -> None:
    """Given 10,000 characters of a language's words, then a plan takes little CPU time."""
    words = " ".join(list(load_vocabulary(code).words)[:60]) + " "
    objective = (words * 10_000)[:10_000]

    def measure_s() -> float:
        start = time.thread_time()
        plan(objective)
        return time.thread_time() - start

    # A busy machine slows down some plans, so that more than a few may be necessary.
    assert any(measure_s() < LIMIT_S for _ in range(20))
