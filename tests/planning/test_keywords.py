"""The keyword planner: objectives that become graphs, and objectives that need a question."""

import time

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

R, L, S, P, C, V = (
    "research.gather", "llm.generate", "speech.generate", "image.generate", "composition.layout",
    "voice.clone",
)  # fmt: skip
ART = "art_01hzy3v7k8m9n0p1q2r3s4t5v6"
LIMIT_S = 0.05  # of 10,000 characters
# Objectives in each language of the planner, and the capabilities of their plans.
SHAPES = [
    ("A poem about tea", [L]),
    ("Write a haiku about rain, then read it aloud", [L, S]),
    ("A picture of a lighthouse at dusk", [P]),
    ("A social card about tidal power", [L, C]),
    ("A social card about tea with a picture", [P, L, C]),
    ("Research the history of tea and write a summary", [R, L]),
    ("Facts about honey bees", [R]),
    ('Say "Mind the step" as an MP3', [S]),
    (f"Clone the voice in {ART}", [V]),
    ("Translate 'good morning' into German", [L]),
    ("Summarize: Tides rise twice a day. Mills used them.", [L]),
    ("What is photosynthesis?", [L]),
    ("A poem about tea. I'll send it myself.", [L]),
    ("I keep a tiny shop. Write a slogan about tea.", [L]),
    ('A card about tea. Title: "Tea at four"', [C]),
    ("A lighthouse made of bread, seed 7", [P]),
    ("Ein Gedicht über den Herbst", [L]),
    ("Zeichne einen Igel", [P]),
    ("Un poème sur la mer", [L]),
    ("Dessine un chat", [P]),
    ("Un poema sobre el mar", [L]),
    ("Una poesia sul mare", [L]),
    ("Um poema sobre o mar", [L]),
    ("海についての詩を書いてください", [L]),
    ("写一首关于大海的诗", [L]),
    ("اكتب قصيدة عن البحر", [L]),
]


def plan(objective: str, *plugins: Capability, constraints: Constraints | None = None) -> PlanDraft:
    """Plan an objective for an account with all connections."""
    capabilities = [*load_capabilities(), *plugins]
    every = frozenset({"every"})
    view = PlannerView(capabilities, every, {capability.id: every for capability in capabilities})
    return make_plan(objective, constraints or Constraints(), view)


@pytest.mark.parametrize(("objective", "capability_ids"), SHAPES)
def test_plans_a_known_objective(objective: str, capability_ids: list[str]) -> None:
    """Given an objective with known clauses only, then the plan has their capabilities."""
    draft = plan(objective)
    assert draft.question is None
    assert sorted(node.capability for node in draft.nodes) == sorted(capability_ids)
    assert draft.missing == ()
    assert draft.reading.understood == 1


# The expectations of a text, by its objective; None asks a question.
MEASURES = [
    ("A poem about tea in three sentences", {"sentences": [3, 3]}),
    ("A story about tea, about 150 words", {"words": [120, 180]}),
    ("A story about tea of at most 100 words", {"words": [0, 100]}),
    ("A story about tea, at least 100 words", {"words": [100, None]}),
    ("A story about tea, 50 to 60 words", {"words": [50, 60]}),
    ("A caption about tea, under 280 characters", {"characters": [0, 280]}),
    ("Five slogans about tea", {"items": 5}),
    ("3 tips on brewing tea", {"items": 3}),
    ("A poem about tea in French", {"language": "fr"}),
    ("A poem about French cheese", {}),
    ("A list of teas as JSON", {"format": "json"}),
    ("A story about tea with two examples", {}),
    ("Three poems about tea, two sentences each", None),
    ("Explain tea in 100 words and in 200 words", {}),
    ("Ein Text über Tee in drei Sätzen", {"sentences": [3, 3]}),
    ("Ein Gedicht über Tee auf Französisch", {"language": "fr"}),
    ("Un texte sur le thé, 100 mots maximum", {"words": [0, 100]}),
    ("Un poème sur le thé en anglais", {"language": "en"}),
    ("Un texto sobre el té, al menos 100 palabras", {"words": [100, None]}),
    ("Un poema sobre el té en inglés", {"language": "en"}),
    ("Un testo sul tè, massimo 100 parole", {"words": [0, 100]}),
    ("Una poesia sul tè in inglese", {"language": "en"}),
    ("Um texto sobre o chá, no máximo 100 palavras", {"words": [0, 100]}),
    ("Um poema sobre o chá em inglês", {"language": "en"}),
    ("お茶についての文章を100字以内で書いてください", {"characters": [0, 100]}),
    ("お茶についての詩を英語で書いてください", {"language": "en"}),
    ("写一篇关于茶的文章，一百五十字左右", {"characters": [120, 180]}),
    ("用英语写一首关于茶的诗", {"language": "en"}),
    ("اكتب نصا عن الشاي من 100 كلمة", {"words": [80, 120]}),
    ("اكتب قصيدة عن البحر بالفرنسية", {"language": "fr"}),
]


@pytest.mark.parametrize(("objective", "measures"), MEASURES)
def test_expects_the_measures_of_a_text(objective: str, measures: dict[str, object] | None) -> None:
    """Given a measure of a whole text, then its node expects this measure."""
    draft = plan(objective)
    if measures is None:
        assert draft.question is not None
        return
    expect = find_node(draft, L).expect
    assert (expect.model_dump(exclude_unset=True) if expect else {}) == measures


@pytest.mark.parametrize(
    "objective",
    [
        "Hoover the stairs",
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
            st.sampled_from([objective for objective, _ in SHAPES]),
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
