"""Capabilities for the tests of planner and reviewer: the usual kinds, and some of strangers."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Request
from toolkit.contract.plans import Constraints, PlanNode
from toolkit.planning.keywords.planner import make_plan
from toolkit.planning.plan_draft import PlanDraft, PlannerView
from toolkit.plugins import (
    Call,
    Capability,
    CloneRequest,
    Flow,
    ImageRequest,
    InputBinding,
    Result,
    SpeechRequest,
    TextRequest,
)

ARTIFACT = r"^art_[0-7][0-9a-hjkmnp-tv-z]{25}$"
BACKENDS = {
    TextRequest: frozenset({"openai", "minimax"}),
    SpeechRequest: frozenset({"minimax"}),
    CloneRequest: frozenset({"minimax"}),
    ImageRequest: frozenset({"runpod"}),
}
ALL = frozenset({"minimax", "openai", "runpod"})


def _flow(call: Call[Any]) -> Flow[Result]:
    raise NotImplementedError("plans are made and reviewed here, not run")
    yield


class Topic(Request):
    """A thing to look up."""

    topic: str = Field(min_length=1, max_length=300, json_schema_extra={"x-role": "topic"})
    synthesize: bool = True


class Digest(Record):
    """Facts that were found."""

    title: str
    text: str


class Brief(Request):
    """Something to write."""

    objective: str = Field(min_length=1, max_length=2000, json_schema_extra={"x-role": "objective"})
    context: str = Field(default="", max_length=20_000)
    max_tokens: int = Field(default=256, ge=1, le=1024)


class WrittenText(Record):
    """A text."""

    text: str
    finish_reason: str = "stop"


class Speech(Request):
    """Something to say."""

    text: str = Field(min_length=1, max_length=5000, json_schema_extra={"x-role": "text"})
    speed: float = Field(default=1.0, ge=0.5, le=2)


class SpokenAudio(Record):
    """An MP3."""

    artifact_id: str
    duration_ms: int | None = None


class Prompt(Request):
    """Something to show."""

    prompt: str = Field(min_length=1, max_length=1000, json_schema_extra={"x-role": "prompt"})
    width: int = Field(default=512, ge=64, le=2048)
    height: int = Field(default=512, ge=64, le=2048)
    seed: int | None = Field(default=None, ge=0)


class ShownImage(Record):
    """An image."""

    artifact_id: str
    width: int
    height: int


class Layout(Request):
    """A card."""

    title: str = Field(min_length=1, max_length=300, json_schema_extra={"x-role": "title"})
    body: str = Field(default="", max_length=20_000)
    image: str | None = Field(default=None, pattern=ARTIFACT)
    template: Literal["classic", "quote", "cover"] | None = None
    width: int = Field(default=1200, ge=200, le=4096)
    height: int = Field(default=630, ge=200, le=4096)


class CardPicture(Record):
    """A card's picture."""

    artifact_id: str
    width: int
    height: int
    warnings: list[str]
    missing_glyphs: list[str]
    text_boxes: list[JsonObject]


class Reference(Request):
    """A voice to copy."""

    reference_audio: str = Field(pattern=ARTIFACT)
    name: str = Field(min_length=1, max_length=64)


class Picture(Request):
    """A picture to describe: a stranger's schema, without roles."""

    picture: str = Field(pattern=ARTIFACT)
    style: str = "plain"


class Passage(Request):
    """A text to change: a stranger's schema, without roles."""

    passage: str = Field(min_length=1, max_length=5000)


def declare_capability(
    name: str, given: type[Request], made: type[Record], yields: str, keywords: str, **more: Any
) -> Capability:
    """A capability that is declared and never run."""
    words = tuple(word.strip() for word in keywords.split(",") if word.strip())
    return Capability(
        id=name, title=name, description=name, input_model=given, output_model=made, flow=_flow,
        produces=yields, keywords=words, **more,
    )  # fmt: skip


TEXT = InputBinding(("text/*", "application/json"), "text")
IMAGE = InputBinding(("image/*",), "artifact")
AUDIO = InputBinding(("audio/*",), "artifact")
FACTS = declare_capability(
    "research.gather", Topic, Digest, "application/json", "research, facts, about, history of",
    operation=TextRequest, operation_required=False,
    estimate=lambda given: TextRequest(prompt=given.topic) if given.synthesize else None,
)  # fmt: skip
LLM = declare_capability(
    "llm.generate", Brief, WrittenText, "text/plain",
    "text, summary, teaser, headline, write, explain", operation=TextRequest,
    default_provider="minimax", accepts={"context": TEXT},
)  # fmt: skip
COPY = declare_capability(
    "text.generate", Brief, WrittenText, "text/plain", "copy, summary, teaser",
    operation=TextRequest, default_provider="minimax", accepts={"context": TEXT},
    alias_of="llm.generate",
)  # fmt: skip
SPEECH = declare_capability(
    "speech.generate", Speech, SpokenAudio, "audio/mpeg", "spoken, narration, audio, mp3, podcast",
    operation=SpeechRequest, default_provider="minimax",
    accepts={"text": InputBinding(("text/*",), "text")},
)  # fmt: skip
DRAWING = declare_capability(
    "image.generate", Prompt, ShownImage, "image/png", "image, illustration, photo, picture",
    operation=ImageRequest, default_provider="runpod",
)  # fmt: skip
CARD = declare_capability(
    "composition.layout", Layout, CardPicture, "image/png", "card, social card, poster",
    accepts={"body": TEXT, "image": IMAGE},
)  # fmt: skip
CLONE = declare_capability(
    "voice.clone", Reference, WrittenText, "application/json", "clone, my voice",
    operation=CloneRequest, default_provider="minimax", accepts={"reference_audio": AUDIO},
)  # fmt: skip
CAPTION = declare_capability(
    "caption.make",
    Picture,
    WrittenText,
    "text/plain",
    "caption, alt text",
    accepts={"picture": IMAGE},
)
TRANSLATE = declare_capability(
    "text.translate", Passage, WrittenText, "text/plain", "translation, translate",
    accepts={"passage": InputBinding(("text/*",), "text")},
)  # fmt: skip
BUILT_IN = (DRAWING, FACTS, CARD, LLM, COPY, SPEECH, CLONE)
EVERY = (*BUILT_IN, CAPTION, TRANSLATE)


def build_view(
    capabilities: Sequence[Capability] = BUILT_IN, connected: frozenset[str] = ALL
) -> PlannerView:
    """Build the view that an account with these capabilities and connections plans with."""
    backends = {
        c.id: BACKENDS[c.operation] if c.operation and c.needs_connection else frozenset()
        for c in capabilities
    }
    return PlannerView(capabilities, connected, backends)


def plan(
    objective: str,
    capabilities: Sequence[Capability] = BUILT_IN,
    connected: frozenset[str] = ALL,
    constraints: Constraints | None = None,
) -> PlanDraft:
    """Plan an objective."""
    return make_plan(objective, constraints or Constraints(), build_view(capabilities, connected))


def find_node(draft: PlanDraft, name: str) -> PlanNode:
    """The one node of a capability."""
    (node,) = [node for node in draft.nodes if node.capability == name]
    return node


def find_sinks(draft: PlanDraft) -> list[str]:
    """The nodes that nothing depends on, in order."""
    needed = {up for node in draft.nodes for up in node.depends_on}
    return [node.id for node in draft.nodes if node.id not in needed]
