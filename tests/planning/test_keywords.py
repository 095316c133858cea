"""The keyword planner: which objectives become which graphs, and which are asked about."""

import math
import statistics
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.sample_capabilities import Prompt, WrittenText, declare_capability, find_node
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
LONGEST_S = 0.05  # of 10,000 characters
# Objectives of every language that the planner knows, and what their plans are made of.
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


def plan(objective: str, *more: Capability, constraints: Constraints | None = None) -> PlanDraft:
    """Plan an objective for an account that has connected all there is."""
    capabilities = [*load_capabilities(), *more]
    every = frozenset({"every"})
    view = PlannerView(capabilities, every, {one.id: every for one in capabilities})
    return make_plan(objective, constraints or Constraints(), view)


@pytest.mark.parametrize(("objective", "made"), SHAPES)
def test_an_objective_becomes_its_graph(objective: str, made: list[str]) -> None:
    """Given an objective of which every clause is known, then the plan makes what it asks for."""
    draft = plan(objective)
    assert draft.question is None
    assert sorted(node.capability for node in draft.nodes) == sorted(made)
    assert draft.missing == ()
    assert draft.reading.understood == 1


# What a text has to come to, by its objective.
MEASURES = [
    ("A poem about tea in three sentences", {"sentences": [3, 3]}),
    ("A story about tea, about 150 words", {"words": [120, 180]}),
    ("A 150-word story about tea", {"words": [120, 180]}),
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
    ("Ein Text über Tee, höchstens 100 Wörter", {"words": [0, 100]}),
    ("Ein Gedicht über Tee auf Französisch", {"language": "fr"}),
    ("Un texte sur le thé en trois phrases", {"sentences": [3, 3]}),
    ("Un texte sur le thé, 100 mots maximum", {"words": [0, 100]}),
    ("Un poème sur le thé en anglais", {"language": "en"}),
    ("Un texto sobre el té en tres frases", {"sentences": [3, 3]}),
    ("Un texto sobre el té, al menos 100 palabras", {"words": [100, None]}),
    ("Un poema sobre el té en inglés", {"language": "en"}),
    ("Un testo sul tè in tre frasi", {"sentences": [3, 3]}),
    ("Un testo sul tè, massimo 100 parole", {"words": [0, 100]}),
    ("Una poesia sul tè in inglese", {"language": "en"}),
    ("Um texto sobre o chá em três frases", {"sentences": [3, 3]}),
    ("Um texto sobre o chá, no máximo 100 palavras", {"words": [0, 100]}),
    ("Um poema sobre o chá em inglês", {"language": "en"}),
    ("お茶についての文章を100字以内で書いてください", {"characters": [0, 100]}),
    ("お茶についての詩を英語で書いてください", {"language": "en"}),
    ("写一篇关于茶的文章，一百五十字左右", {"characters": [120, 180]}),
    ("用英语写一首关于茶的诗", {"language": "en"}),
    ("اكتب نصا عن الشاي في ثلاث جمل", {"sentences": [3, 3]}),
    ("اكتب نصا عن الشاي من 100 كلمة", {"words": [80, 120]}),
    ("اكتب قصيدة عن البحر بالفرنسية", {"language": "fr"}),
]


@pytest.mark.parametrize(("objective", "measures"), MEASURES)
def test_a_text_is_measured(objective: str, measures: dict[str, object] | None) -> None:
    """Given a sure measure of a text, then its node expects it; a measure of a part counts not."""
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
        "Something nice, please",
        "A recipe for soup, and have it framed",
        "For each of Ely, Lincoln and Durham: a card",
        "Translate this",
        "Translate the contract",
        "Put my rant about scooters on a wall",
        "A story zorb about tea",
        "Write a poem about tea for each of my aunts",
        f"Make the colours of {ART} warmer",
        "",
    ],
)
def test_a_clause_that_is_not_known_makes_a_question(objective: str) -> None:
    """Given a clause that nobody knows, then nothing is planned, and the question quotes it."""
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
def test_what_nothing_here_makes_is_missing(objective: str, missing: str) -> None:
    """Given an act that no capability does, then the plan names it, and has no text about it."""
    draft = plan(objective)
    assert draft.missing_capabilities == (missing,)
    assert draft.nodes == []


def test_a_prompt_is_the_person_s_own_words() -> None:
    """Given parts of an objective, then each prompt is a whole phrase of it, with the topic."""
    draft = plan("A story about bees, with cover art")
    prompt = str(find_node(draft, P).input["prompt"])
    assert prompt == "cover art for: A story about bees"
    assert str(find_node(draft, L).input["objective"]) == "A story about bees"


def test_fields_are_filled() -> None:
    """Given sizes, numbers and what is not to be seen, then they are fields of the inputs."""
    draft = plan("A watercolour of a lighthouse, 768x512, seed 7, no people")
    given = find_node(draft, P).input
    assert (given["width"], given["height"], given["seed"]) == (768, 512, 7)
    assert given["negative_prompt"] == "people"
    card = find_node(plan("A social card about tea, 1000x500"), C).input
    assert (card["title"], card["width"], card["height"]) == ("Tea", 1000, 500)


def test_words_in_quotes_are_used_as_they_are() -> None:
    """Given quoted words, then they are what is said or shown, and never searched for acts."""
    assert find_node(plan('Say "Send a video" as an MP3'), S).input["text"] == "Send a video"
    assert find_node(plan('A card titled "Open at 9"'), C).input["title"] == "Open at 9"


def test_a_plugin_s_keyword_is_an_act() -> None:
    """Given a capability of its own, then its keyword plans it, behind what it takes."""
    shout = declare_capability(
        "text.shout", Prompt, WrittenText, "text/plain", "shout, shouted",
        accepts={"prompt": InputBinding(("text/*",), "text")},
    )  # fmt: skip
    draft = plan("Write a text about tea, then shout it", shout)
    assert [node.capability for node in draft.nodes] == [L, "text.shout"]
    assert draft.nodes[1].depends_on == [draft.nodes[0].id]
    assert draft.deliverables[-1] == draft.nodes[1].id
    asked = plan("Write a text about tea, then shout it")
    assert (asked.nodes, asked.question is None) == ([], False)


def test_facts_that_a_text_can_do_without_are_optional() -> None:
    """Given facts for a text, then it is written without them if it must be."""
    draft = plan("Research the history of tea and write a summary")
    assert [node.optional for node in draft.nodes] == [True, False]
    assert [node.optional for node in plan("Facts about tea").nodes] == [False]


def test_without_money_a_card_has_no_written_text() -> None:
    """Given a budget of nothing, then what this machine can do alone is planned."""
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
    """Given any text, then its plan can be run, or asks, or names what is missing; always alike."""
    draft = plan(objective)
    assert draft == plan(objective)
    assert draft.nodes or draft.question or draft.missing
    if draft.nodes:
        rules = PlanRules({c.id: c for c in load_capabilities()})
        assert find_plan_faults(draft.nodes, draft.deliverables, rules) == []


@pytest.mark.parametrize("code", CODES)
def test_the_time_is_linear_in_the_length(code: str) -> None:
    """Given words of a language again and again, then the time grows as their number does."""
    words = " ".join(list(load_vocabulary(code).words)[:60]) + " "
    sizes = (1_000, 2_000, 4_000, 10_000)
    took = [measure_best_s((words * (size // len(words) + 1))[:size]) for size in sizes]
    logs = [[math.log(value) for value in values] for values in (sizes, took)]
    assert statistics.linear_regression(*logs).slope <= 1.3
    assert took[-1] < LONGEST_S


def measure_best_s(objective: str) -> float:
    """Measure the CPU time of a plan, the best of some rounds: more if the machine is busy."""
    best = math.inf
    for done in range(1, 21):
        began = time.thread_time()
        plan(objective)
        best = min(best, time.thread_time() - began)
        if done >= 5 and best < LONGEST_S:
            break
    return best
