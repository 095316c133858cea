"""Inputs of planned nodes: the objective's parts, put into the fields that have a role."""

from pydantic import ValidationError

from toolkit.contract.base import JsonObject
from toolkit.engine._briefs import card_brief, image_brief, spoken_brief, text_brief
from toolkit.engine._chains import Chains, field_role, shortened
from toolkit.engine._topics import title_of, trim
from toolkit.engine._wording import Mention, Wording
from toolkit.plugins import Capability


class Unplannable(Exception):  # noqa: N818 - not an error: it sends the planner another way
    """Raised when no input for a capability can be built from the objective."""


class Inputs:
    """Builder of the node inputs of one plan."""

    def __init__(self, objective: str, wording: Wording, chains: Chains) -> None:
        self._objective = objective
        self._wording = wording
        self._chains = chains

    def given(self, capability: Capability, mention: Mention, purpose: str) -> JsonObject:
        """Return the fields that the objective itself fills, given the node's purpose."""
        given: JsonObject = {}
        for field, info in capability.input_model.model_fields.items():
            role = field_role(field, info)
            taken = capability.takes.get(field)
            value: str | None = None
            if taken is not None and taken.form == "artifact":
                value = next(iter(self._wording.artifact_ids), None)
            elif role == "text":
                value = self._said(capability, field, mention)
            elif role is not None and (taken is None or info.is_required()):
                value = self._in_role(role, mention, purpose)
            if value:
                given[field] = shortened(value, info)
        return self._without_cost(capability, given) if self._chains.free_only else given

    @staticmethod
    def _without_cost(capability: Capability, given: JsonObject) -> JsonObject:
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

    def _said(self, capability: Capability, field: str, mention: Mention) -> str | None:
        """Choose the text for a field: the objective's own words, or its topic."""
        literal = None if self._wording.literal_is_title else self._wording.literal
        if not capability.input_model.model_fields[field].is_required():
            return literal if literal and trim(literal) != mention.topic else None
        take = capability.takes.get(field)
        written = take is not None and any(take.matches(c.yields) for c in self._chains.all)
        return literal if literal or written else mention.topic or self._objective.strip()

    def _in_role(self, role: str, mention: Mention, purpose: str) -> str:
        wording = self._wording
        named = mention.phrase or " ".join(self._objective.split())
        topic = mention.topic or wording.topic or named
        if role == "topic":
            return topic
        if role == "title":
            return (wording.literal if wording.literal_is_title else None) or title_of(topic)
        if role == "prompt":
            return image_brief(mention.phrase, topic)
        return self._brief(mention, topic, purpose)

    def _brief(self, mention: Mention, topic: str, purpose: str) -> str:
        language = self._wording.language
        if purpose == "speak":
            return spoken_brief(mention.phrase, topic, mention.words, language)
        if purpose == "show":
            return card_brief(mention.phrase, topic, mention.words, language)
        if purpose == "deliver" and len(self._wording.mentions) <= 1:
            return self._objective.strip()
        return text_brief(mention.phrase, topic, mention.words, language)

    def valid(self, capability: Capability, given: JsonObject, filled: set[str]) -> JsonObject:
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
