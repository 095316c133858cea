"""Inputs of planned nodes: the parts of a reading, put into the fields that they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from toolkit.contract.base import JsonObject
from toolkit.planning.capability_graph import CapabilityGraph
from toolkit.planning.capability_kinds import find_role_field, get_field_role, is_caller_supplied
from toolkit.planning.field_values import describe_fields, fill_measured_fields, fit_value
from toolkit.planning.prompts import (
    Purpose,
    add_topic,
    cut_join,
    estimate_tokens,
    has_content,
    write_brief,
)
from toolkit.planning.reading.objective_reading import Measure, ObjectiveReading, RequestedOutput
from toolkit.plugins import Capability

MAX_TITLE_CHARS = 80
_EDGE_CHARS = " \t\r\n\"'“”„«»‘’()[]{}.,;:!?-–—*#`"
_ARTICLES = frozenset({"the", "a", "an"})


class Unplannable(Exception):  # noqa: N818 - not an error: it sends the planner another way
    """Raised when no input for a capability can be built from the objective."""


@dataclass(frozen=True, slots=True)
class FilledInput:
    """What the objective itself fills of a node's input.

    Attributes:
        given: the fields.
        left: the measures that belong to no field: to a text, these are in its brief.
    """

    given: JsonObject
    left: tuple[Measure, ...] = ()


@dataclass
class NodeInputBuilder:
    """Builder of the node inputs of one plan.

    Attributes:
        notes: sentences on what could not be taken over as it was asked for.
    """

    objective: str
    reading: ObjectiveReading
    graph: CapabilityGraph
    notes: dict[str, None] = field(default_factory=dict)

    def fill_from_request(
        self, capability: Capability, request: RequestedOutput, purpose: Purpose, variant: str = ""
    ) -> FilledInput:
        """Fill the fields that a request itself fills, given the node's purpose."""
        fields = capability.input_model.model_fields
        measured, left = fill_measured_fields(capability, request.measures, self.notes)
        given: JsonObject = {k: v for k, v in measured.items() if v is not None}
        wording = cut_join(request.wording.strip(), self.reading.language)
        unsaid = replace(request, measures=left, wording=wording)
        artifact_ids = list(request.artifact_ids)
        for name in sorted(fields, key=lambda n: not is_caller_supplied(n, fields[n])):
            info = fields[name]
            if name in given:
                continue
            value = self._fill_field(capability, name, info, unsaid, purpose, artifact_ids, variant)
            if value:
                given[name] = shorten_to_field(value, info)
        given |= self._fill_language(capability, given, request)
        given |= _fill_tokens(capability, given, left)
        given |= _fill_seed(capability, given, variant)
        given |= _fill_body(capability, given, request)
        if self.graph.free_only:
            given = _disable_paid_option(capability, given)
        return FilledInput(given, left)

    def _fill_field(
        self,
        capability: Capability,
        name: str,
        info: FieldInfo,
        request: RequestedOutput,
        purpose: Purpose,
        artifact_ids: list[str],
        variant: str,
    ) -> str | None:
        role = get_field_role(name, info)
        taken = capability.accepts.get(name)
        if taken is not None and taken.mode == "artifact":
            return artifact_ids.pop(0) if artifact_ids else None
        if role == "text":
            return self._choose_text(capability, name, request)
        if role is None or (taken is not None and not info.is_required()):
            return None
        if role == "objective":
            return write_brief(self.reading, self._word(request), purpose, variant)
        if role == "prompt":
            topic = self._find_topic(request)
            return topic if purpose == "part" else add_topic(request.wording.strip(), topic)
        if role == "title":
            return self._choose_title(request, name)
        return self._find_topic(request)

    def _word(self, request: RequestedOutput) -> RequestedOutput:
        """Give a request whose words were not told apart those of the whole objective."""
        return request if request.wording.strip() else replace(request, wording=self.objective)

    def has_topic(self, request: RequestedOutput) -> bool:
        """Tell whether a request says more than what is to be made."""
        return bool(request.topic or self.reading.topic or self._find_rest(request))

    def _find_topic(self, request: RequestedOutput) -> str:
        topic = request.topic or self.reading.topic or self._find_rest(request)
        return topic or request.wording or request.phrase or " ".join(self.objective.split())

    def _find_rest(self, request: RequestedOutput) -> str:
        """Find what the words of a request say besides the name of what is to be made."""
        before, _, after = request.wording.partition(request.phrase or request.wording)
        rest = " ".join(f"{before} {after}".split()).strip(_EDGE_CHARS)
        return rest if has_content(rest, self.reading.language) else ""

    def _choose_text(
        self, capability: Capability, name: str, request: RequestedOutput
    ) -> str | None:
        """Choose the text for a field: the objective's own words, or its topic."""
        if request.literal:
            return request.literal
        if not capability.input_model.model_fields[name].is_required():
            return None
        written = any(name in self.graph.find_filled(c, capability) for c in self.graph.available)
        return None if written else self._find_topic(request)

    def _choose_title(self, request: RequestedOutput, name: str) -> str:
        literal = request.literal
        if literal and (request.literal_is_title or len(literal) <= MAX_TITLE_CHARS):
            return literal
        return format_title(self._find_topic(request) if name != "name" else self._name(request))

    def _name(self, request: RequestedOutput) -> str:
        return request.topic or request.phrase or self.reading.topic or "voice"

    def _fill_language(
        self, capability: Capability, given: JsonObject, request: RequestedOutput
    ) -> JsonObject:
        """Fill the field for a language: the one asked for, else that of the objective."""
        field_ = describe_fields(capability.input_model).get("language")
        code = request.language or self.reading.language
        if field_ is None or "language" in given or code == field_.get("default"):
            return {}
        return {"language": code}

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


def shorten_to_field(text: str, info: FieldInfo) -> str:
    """Cut a text, between words, to a field's maximum length."""
    limits = (getattr(rule, "max_length", None) for rule in info.metadata)
    longest = next((limit for limit in limits if isinstance(limit, int)), None)
    if longest is None or len(text) <= longest:
        return text
    return text[:longest].rpartition(" ")[0] or text[:longest]


def format_title(topic: str) -> str:
    """Format a topic as a headline: no leading article, a capital first.

    >>> format_title("the tides of Venice")
    'Tides of Venice'
    """
    topic = " ".join(topic.split()).strip(_EDGE_CHARS) or topic
    first, _, rest = topic.partition(" ")
    text = rest if rest and first.lower() in _ARTICLES else topic
    return text[:1].upper() + text[1:]


def _fill_tokens(
    capability: Capability, given: Mapping[str, object], left: tuple[Measure, ...]
) -> JsonObject:
    """Raise the most tokens of an answer where the length asked for needs more than usual."""
    properties = describe_fields(capability.input_model)
    usual = properties.get("max_tokens", {}).get("default")
    needed = estimate_tokens(left)
    if "max_tokens" in given or not isinstance(usual, int) or needed <= usual:
        return {}
    return {"max_tokens": fit_value(properties["max_tokens"], needed)}


def _fill_seed(capability: Capability, given: Mapping[str, object], variant: str) -> JsonObject:
    """Fill the seed of one of several alike, which would otherwise be one and the same."""
    seed = describe_fields(capability.input_model).get("seed")
    if not variant or seed is None or "seed" in given:
        return {}
    return {"seed": fit_value(seed, float(variant.partition("/")[0]))}


def _fill_body(
    capability: Capability, given: Mapping[str, object], request: RequestedOutput
) -> JsonObject:
    """Fill the running text of what has a headline with quoted words that are none."""
    title, literal = find_role_field(capability, "title"), request.literal
    if title is None or not literal or literal in given.values():
        return {}
    texts = (name for name, binding in capability.accepts.items() if binding.mode == "text")
    return {name: literal for name in texts if name not in given}


def _disable_paid_option(capability: Capability, given: JsonObject) -> JsonObject:
    """Switch off the option that would call a vendor, if the capability has one."""
    if capability.operation is None or capability.operation_required:
        return given
    for name, info in capability.input_model.model_fields.items():
        if info.default is True:
            free = {**given, name: False}
            try:
                value = capability.input_model.model_validate(free, strict=True)
            except ValidationError:
                continue
            if capability.estimate(value) is None:
                return free
    return given
