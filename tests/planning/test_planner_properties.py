"""The planner: what holds of the plan of any objective at all."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.planning.sample_capabilities import ALL, EVERY, plan
from toolkit.contract.base import JsonObject
from toolkit.contract.workflows import NodeCreate
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


def _wrong(made: Capability, given: JsonObject) -> set[object]:
    """The fields that are missing, and whatever else is wrong under a name that no field has."""
    try:
        made.input_model.model_validate(given, strict=True)
    except ValidationError as error:
        return {e["loc"][0] if e["type"] == "missing" else str(e) for e in error.errors()}
    return set()


@settings(max_examples=250)
@given(objectives, subsets, connections)
def test_any_plan_is_sound(
    objective: str, capabilities: list[Capability], connected: frozenset[str]
) -> None:
    """Given any objective, capabilities and connections, then the plan could be submitted."""
    draft = plan(objective, capabilities, connected)
    known = {c.id: c for c in capabilities}
    seen: dict[str, str] = {}
    assert len(draft.nodes) <= 50
    for node in draft.nodes:
        NodeCreate(
            id=node.id, capability=node.capability, input=node.input, depends_on=node.depends_on
        )
        assert node.id not in seen
        assert set(node.depends_on) <= set(seen), "dependencies come first, so there is no cycle"
        made = known[node.capability]
        yielded = [known[seen[up]].produces for up in node.depends_on]
        filled = {
            f for f, take in made.accepts.items() if any(take.matches(media) for media in yielded)
        }
        assert _wrong(made, node.input) <= filled
        seen[node.id] = node.capability
    assert set(draft.deliverables) <= set(seen)
    assert draft.nodes or draft.missing_capabilities or draft.question
    assert draft == plan(objective, capabilities, connected)


@settings(max_examples=20)
@given(st.integers(min_value=1, max_value=400))
def test_a_long_objective_takes_no_long_time(times: int) -> None:
    """Given the longest objectives that are let in, then they are planned like any other."""
    draft = plan(("a card about tea with an image and " * times)[:10_000])
    assert 0 < len(draft.nodes) <= 50
