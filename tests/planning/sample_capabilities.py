"""The built-in capabilities for the tests of planner and reviewer, and capabilities of plugins."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from toolkit.capabilities import load_capabilities
from toolkit.contract.base import Record, Request
from toolkit.contract.plans import PlanNode
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.plugins import (
    Call,
    Capability,
    CloneRequest,
    EmbedRequest,
    Flow,
    ImageRequest,
    RerankRequest,
    Result,
    SpeechRequest,
    TextRequest,
    TranscribeRequest,
)

BACKENDS = {
    EmbedRequest: frozenset({"openai"}),
    RerankRequest: frozenset({"openai"}),
    TranscribeRequest: frozenset({"openai"}),
    TextRequest: frozenset({"openai", "minimax"}),
    SpeechRequest: frozenset({"minimax"}),
    CloneRequest: frozenset({"minimax"}),
    ImageRequest: frozenset({"runpod"}),
}
BUILT_IN = tuple(load_capabilities())
DRAWING, FACTS, CARD, LLM, SPEECH = (
    next(capability for capability in BUILT_IN if capability.id == name)
    for name in (
        "image.generate", "research.gather", "composition.layout", "llm.generate",
        "speech.generate",
    )
)  # fmt: skip


class Prompt(Request):
    """A prompt."""

    prompt: str = Field(min_length=1, max_length=1000, json_schema_extra={"x-role": "prompt"})


class WrittenText(Record):
    """A text."""

    text: str


def _flow(call: Call[Any]) -> Flow[Result]:
    raise NotImplementedError("these tests run no plan")
    yield


def declare_text_capability(name: str, *keywords: str, **options: Any) -> Capability:
    """Declare a capability that makes a text from a prompt, and that never runs."""
    return Capability(
        id=name, title=name, description=name, input_model=Prompt, output_model=WrittenText,
        flow=_flow, produces="text/plain", keywords=keywords, **options,
    )  # fmt: skip


def build_view(capabilities: Sequence[Capability] = BUILT_IN) -> PlannerView:
    """Build the view that an account with all connections plans with."""
    backends = {
        c.id: BACKENDS[c.operation] if c.operation and c.needs_connection else frozenset()
        for c in capabilities
    }
    return PlannerView(capabilities, frozenset({"minimax", "openai", "runpod"}), backends)


def find_node(draft: PlanDraft, name: str) -> PlanNode:
    """Return the only node of a capability."""
    (node,) = [node for node in draft.nodes if node.capability == name]
    return node
