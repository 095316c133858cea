"""The planner: what holds of the plan of any objective at all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.sample_capabilities import ALL, EVERY, plan
from toolkit.planning.plan_validator import PlanRules, find_plan_faults
from toolkit.plugins import Capability

WORDS = (
    *("a", "an", "the", "card", "social card", "with", "and", "about", "of", "on", "for", "spoken"),
    *("summary", "narration", "image", "photo", "video", "tidal", "power", "tea", "20-word"),
    *("please", "caption", "translation", "research", "write", "it", "aloud", "as", "audio", ","),
    *(".", ":", '"quoted words"', "in French", "poster", "clone", "my voice", "song", "make"),
    *("draw", "🙂", "潮汐", "art_01hzy3v7k8m9n0p1q2r3s4t5v6"),
)
objectives = st.one_of(
    st.text(min_size=1, max_size=200),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=25).map(" ".join),
)
subsets = st.lists(st.sampled_from(EVERY), unique_by=lambda c: c.id, max_size=len(EVERY))
connections = st.sets(st.sampled_from(sorted(ALL))).map(frozenset)


@settings(max_examples=250)
@given(objectives, subsets, connections)
def test_any_plan_is_sound(
    objective: str, capabilities: list[Capability], connected: frozenset[str]
) -> None:
    """Given any objective, capabilities and connections, then the plan could be submitted."""
    draft = plan(objective, capabilities, connected)
    rules = PlanRules({c.id: c for c in capabilities}, banned=draft.banned)
    faults = find_plan_faults(draft.nodes, draft.deliverables, rules) if draft.nodes else []
    assert faults == []
    seen: set[str] = set()
    for node in draft.nodes:
        assert set(node.depends_on) <= seen, "dependencies come first"
        seen.add(node.id)
    assert draft.nodes or draft.missing_capabilities or draft.question
    assert draft == plan(objective, capabilities, connected)


@settings(max_examples=20)
@given(st.integers(min_value=1, max_value=400))
def test_a_long_objective_takes_no_long_time(times: int) -> None:
    """Given the longest objectives that are let in, then they are planned like any other."""
    draft = plan(("a card about tea with an image and " * times)[:10_000])
    assert 0 < len(draft.nodes) <= 50
