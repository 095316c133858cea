"""Inputs of planned nodes: the objective's parts, put into the fields that have a role."""

from pydantic import ValidationError

from toolkit.contract.base import JsonObject
from toolkit.planning.capability_graph import CapabilityGraph, get_field_role, shorten_to_field
from toolkit.planning.objective import MentionedOutput, ParsedObjective
from toolkit.planning.prompts import (
    write_card_prompt,
    write_image_prompt,
    write_spoken_prompt,
    write_text_prompt,
)
from toolkit.planning.topics import format_title, trim_topic
from toolkit.plugins import Capability


class Unplannable(Exception):  # noqa: N818 - not an error: it sends the planner another way
    """Raised when no input for a capability can be built from the objective."""


class NodeInputBuilder:
    """Builder of the node inputs of one plan."""

    def __init__(self, objective: str, parsed: ParsedObjective, graph: CapabilityGraph) -> None:
        self._objective = objective
        self._parsed = parsed
        self._graph = graph

    def fill_from_objective(
        self, capability: Capability, mention: MentionedOutput, purpose: str
    ) -> JsonObject:
        """Return the fields that the objective itself fills, given the node's purpose."""
        given: JsonObject = {}
        for field, info in capability.input_model.model_fields.items():
            role = get_field_role(field, info)
            taken = capability.accepts.get(field)
            value: str | None = None
            if taken is not None and taken.mode == "artifact":
                value = next(iter(self._parsed.artifact_ids), None)
            elif role == "text":
                value = self._choose_text(capability, field, mention)
            elif role is not None and (taken is None or info.is_required()):
                value = self._fill_role(role, mention, purpose)
            if value:
                given[field] = shorten_to_field(value, info)
        return self._disable_paid_option(capability, given) if self._graph.free_only else given

    @staticmethod
    def _disable_paid_option(capability: Capability, given: JsonObject) -> JsonObject:
        """Switch off the option that would call a vendor, if the capability has one."""
        if capability.operation is None or capability.operation_required:
            return given
        for field, info in capability.input_model.model_fields.items():
            if info.default is True:
                free = {**given, field: False}
                try:
                    value = capability.input_model.model_validate(free, strict=True)
                except ValidationError:
                    continue
                if capability.estimate(value) is None:
                    return free
        return given

    def _choose_text(
        self, capability: Capability, field: str, mention: MentionedOutput
    ) -> str | None:
        """Choose the text for a field: the objective's own words, or its topic."""
        literal = None if self._parsed.literal_is_title else self._parsed.literal
        if not capability.input_model.model_fields[field].is_required():
            return literal if literal and trim_topic(literal) != mention.topic else None
        binding = capability.accepts.get(field)
        written = binding is not None and any(
            binding.matches(c.produces) for c in self._graph.available
        )
        return literal if literal or written else mention.topic or self._objective.strip()

    def _fill_role(self, role: str, mention: MentionedOutput, purpose: str) -> str:
        parsed = self._parsed
        named = mention.phrase or " ".join(self._objective.split())
        topic = mention.topic or parsed.topic or named
        if role == "topic":
            return topic
        if role == "title":
            return (parsed.literal if parsed.literal_is_title else None) or format_title(topic)
        if role == "prompt":
            return write_image_prompt(mention.phrase, topic)
        return self._write_prompt(mention, topic, purpose)

    def _write_prompt(self, mention: MentionedOutput, topic: str, purpose: str) -> str:
        language = self._parsed.language
        if purpose == "speak":
            return write_spoken_prompt(mention.phrase, topic, mention.words, language)
        if purpose == "show":
            return write_card_prompt(mention.phrase, topic, mention.words, language)
        if purpose == "deliver" and len(self._parsed.mentions) <= 1:
            return self._objective.strip()
        return write_text_prompt(mention.phrase, topic, mention.words, language)

    def drop_invalid_fields(
        self, capability: Capability, given: JsonObject, filled: set[str]
    ) -> JsonObject:
        """Return the input without the optional fields that do not match the schema."""
        fields = capability.input_model.model_fields
        for _ in range(len(given) + 1):
            try:
                capability.input_model.model_validate(given, strict=True)
            except ValidationError as error:
                wrong = {
                    str(e["loc"][0]) if e["loc"] else ""
                    for e in error.errors(include_url=False, include_input=False)
                    if not (e["type"] == "missing" and e["loc"] and e["loc"][0] in filled)
                }
                if not wrong:
                    return given
                if any(name not in given or fields[name].is_required() for name in wrong):
                    break
                given = {name: value for name, value in given.items() if name not in wrong}
            else:
                return given
        raise Unplannable(f"The objective does not say what `{capability.id}` needs to know.")
