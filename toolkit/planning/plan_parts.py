"""Parts of a plan that nobody named, and why each node is there; `PlanBuilder` makes them."""

from dataclasses import replace

from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.prompts import Purpose
from toolkit.planning.reading.objective_reading import RequestedOutput
from toolkit.plugins import Capability

MAX_QUOTED_CHARS = 120


def choose_purpose(consumer: Capability) -> Purpose:
    """Return the purpose of a text, by the capability that takes it."""
    if consumer.produces.startswith("audio/"):
        return "speak"
    return "show" if find_role_field(consumer, "title") is not None else "part"


def make_part(request: RequestedOutput, kind: str) -> RequestedOutput:
    """Make a request for something that another needs without naming it."""
    return replace(request, kind=kind, literal=None, inputs=(), artifact_ids=(), is_delivered=False)


def has_words(request: RequestedOutput) -> bool:
    """Tell whether a request gives the words of a text field itself, such as a body."""
    return any(m.name in {"body", "bullets"} and isinstance(m.value, str) for m in request.measures)


def explain_node(request: RequestedOutput, purpose: Purpose) -> str:
    """Explain why a node is in the plan, by the words that it serves."""
    said = " ".join((request.wording or request.phrase).split())
    if len(said) > MAX_QUOTED_CHARS:
        said = said[:MAX_QUOTED_CHARS].rpartition(" ")[0] + "…"
    lead = {
        "deliver": "Asked for",
        "asked": "Asked for, as a part",
        "speak": "Writes what is spoken",
        "show": "Writes what stands on it",
        "part": "Makes what the next node takes",
    }[purpose]
    return f"{lead}: “{said}”." if said else f"{lead}."
