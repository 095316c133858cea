"""The capability graph: capabilities as producers and consumers of media types."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from pydantic.fields import FieldInfo

from toolkit.planning import lexicon
from toolkit.planning.tokens import make_phrase_key
from toolkit.plugins import Capability, InputBinding

# Connections that are missing, then nodes: the lower, the better.
PathCost: TypeAlias = tuple[float, float]
_UNREACHABLE: PathCost = (math.inf, math.inf)
_ROLES = ("topic", "objective", "text", "prompt", "title")
_ROLES_BY_NAME = {
    **dict(zip(_ROLES, _ROLES, strict=True)),
    "query": "topic",
    "subject": "topic",
    "instruction": "objective",
    "instructions": "objective",
    "headline": "title",
    "name": "title",
}


def get_field_role(name: str, info: FieldInfo) -> str | None:
    """Return the part of an objective that fills a field: its `x-role`, or one by its name."""
    extra = info.json_schema_extra
    role = extra.get("x-role") if isinstance(extra, dict) else None
    if isinstance(role, str):
        return role if role in _ROLES else None
    return _ROLES_BY_NAME.get(name) if info.is_required() else None


def find_role_field(capability: Capability, role: str) -> str | None:
    """Return the field of a capability that has a role, if there is one."""
    fields = capability.input_model.model_fields.items()
    return next((name for name, info in fields if get_field_role(name, info) == role), None)


def shorten_to_field(text: str, info: FieldInfo) -> str:
    """Cut a text, between words, to a field's maximum length."""
    limits = (getattr(rule, "max_length", None) for rule in info.metadata)
    longest = next((limit for limit in limits if isinstance(limit, int)), None)
    if longest is None or len(text) <= longest:
        return text
    return text[:longest].rpartition(" ")[0] or text[:longest]


def is_caller_supplied(name: str, info: FieldInfo) -> bool:
    """Tell whether only the caller can supply a field, such as a recording of a person's voice."""
    extra = info.json_schema_extra
    role = extra.get("x-role") if isinstance(extra, dict) else None
    return role == "reference" or name.startswith("reference")


def _is_distinctive(key: tuple[str, ...]) -> bool:
    """Tell whether a keyword is more than a preposition or a question, which any text may have."""
    return (
        bool(key)
        and key[-1] not in lexicon.ABOUT_WORDS
        and not all(word in lexicon.FILLER_WORDS for word in key)
    )


class CapabilityGraph:
    """A graph of the capabilities of a view, with the cheapest path to each.

    The cost of a capability is one node more than what its required fields need, found for all
    of them at once by relaxing until nothing changes. Every step costs a node, so that the
    cheapest path to a capability never leads through itself.
    """

    def __init__(
        self,
        capabilities: Sequence[Capability],
        connected: frozenset[str],
        providers: Mapping[str, frozenset[str]],
        free_only: bool = False,
    ) -> None:
        self.available = [c for c in capabilities if c.status == "available"]
        self._by_id = {c.id: c for c in self.available}
        self._unavailable = [c for c in capabilities if c.status != "available"]
        self._connected = connected
        self._providers = providers
        self.free_only = free_only

    def get(self, capability_id: str) -> Capability | None:
        """Return an available capability by its id."""
        return self._by_id.get(capability_id)

    def is_usable(self, capability: Capability) -> bool:
        """Tell whether it can run with the connected vendors (and the money allowed)."""
        if not capability.needs_connection:
            return True
        return not self.free_only and self.is_connected(capability)

    def is_connected(self, capability: Capability) -> bool:
        """Tell whether a vendor that serves it is connected."""
        return bool(self._providers.get(capability.id, frozenset()) & self._connected)

    def list_missing_providers(self, capability: Capability) -> list[str]:
        """List the vendors whose connection it lacks, its default one first; none if it has one."""
        if self.is_connected(capability):
            return []
        default = capability.default_provider
        return sorted(self._providers.get(capability.id, ()), key=lambda v: (v != default, v))

    @cached_property
    def vocabulary(self) -> dict[tuple[str, ...], str]:
        """The capability id by phrase: keywords first, in registry order, then common names."""
        words: dict[tuple[str, ...], str] = {}
        for capability in [*self.available, *self._unavailable]:
            for key in filter(_is_distinctive, map(make_phrase_key, capability.keywords)):
                # Two claim it: the one that can build on the other's result wins.
                earlier = words.setdefault(key, capability.id)
                if capability.alias_of is None and self.can_fill(earlier, capability.id):
                    words[key] = capability.id
        for common in lexicon.COMMON_DELIVERABLES:
            maker = self._find_producer_id(common)
            for phrase in common.phrases:
                words.setdefault(make_phrase_key(phrase), maker)
        words.pop((), None)
        return words

    def _find_producer_id(self, common: lexicon.CommonDeliverable) -> str:
        """Find who makes a common deliverable: by type and role, whatever its id."""
        if common.id in self._by_id or not common.media:
            return common.id
        kind = InputBinding((common.media,), "text")
        made = (
            c
            for c in self.available
            if kind.matches(c.produces) and find_role_field(c, common.role)
        )
        return next((c.id for c in made), common.id)

    def can_fill(self, producer_id: str, consumer_id: str) -> bool:
        """Tell whether the artifact of one capability can fill a field of another."""
        producer, consumer = self.get(producer_id), self.get(consumer_id)
        if producer is None or consumer is None or producer is consumer:
            return False
        return any(
            binding.matches(producer.produces)
            and not is_caller_supplied(field, consumer.input_model.model_fields[field])
            for field, binding in consumer.accepts.items()
        )

    def requires(self, consumer_id: str, producer_id: str) -> bool:
        """Tell whether a capability requires an artifact of the kind that another produces."""
        producer, consumer = self.get(producer_id), self.get(consumer_id)
        if producer is None or consumer is None or producer is consumer:
            return False
        return any(
            binding.mode == "artifact" and binding.matches(producer.produces)
            for field, binding in consumer.accepts.items()
            if consumer.input_model.model_fields[field].is_required()
            and not is_caller_supplied(field, consumer.input_model.model_fields[field])
        )

    def find_writer(self, binding: InputBinding | None = None) -> Capability | None:
        """Find the first capability that writes text to an objective, one that can run first."""
        return self._find_by_role("objective", binding)

    def find_researcher(self, binding: InputBinding | None = None) -> Capability | None:
        """Find the first capability that researches a topic, if it can run now."""
        found = self._find_by_role("topic", binding)
        return found if found is not None and self.is_usable(found) else None

    def _find_by_role(self, role: str, binding: InputBinding | None) -> Capability | None:
        wanted = binding or InputBinding(("text/*", "application/json"), "text")
        found = [
            c
            for c in self.available
            if c.alias_of is None
            and wanted.matches(c.produces)
            and find_role_field(c, role) is not None
            and self._costs[c.id] != _UNREACHABLE
            and not self._list_required_fields(c)
        ]
        return min(found, key=lambda c: not self.is_usable(c), default=None)

    def find_cheapest_producer(self, consumer: Capability, field: str) -> Capability | None:
        """Find the producer that fills a field at the least cost; registry order breaks ties."""
        if is_caller_supplied(field, consumer.input_model.model_fields[field]):
            return None
        binding = consumer.accepts[field]
        found = [
            c
            for c in self.available
            if c is not consumer
            and binding.matches(c.produces)
            and self._costs[c.id] < _UNREACHABLE
        ]
        return min(found, key=lambda c: self._costs[c.id], default=None)

    @cached_property
    def _costs(self) -> dict[str, PathCost]:
        costs = {c.id: _UNREACHABLE for c in self.available}
        # A path never repeats a capability, so costs converge after as many rounds as there are.
        for _ in self.available:
            before = dict(costs)
            for capability in self.available:
                costs[capability.id] = min(
                    costs[capability.id], self._find_step_cost(capability, costs)
                )
            if costs == before:
                break
        return costs

    def _find_step_cost(self, capability: Capability, costs: Mapping[str, PathCost]) -> PathCost:
        fields = capability.input_model.model_fields
        missing, nodes = 0.0 if self.is_usable(capability) else 1.0, 1.0
        for field in self._list_required_fields(capability):
            info = fields[field]
            ways = [
                costs[c.id]
                for c in self.available
                if c is not capability
                and capability.accepts[field].matches(c.produces)
                and not is_caller_supplied(field, info)
            ]
            least = min(ways, default=_UNREACHABLE)
            if least == _UNREACHABLE and get_field_role(field, info) == "text":
                continue  # its topic can be used as the text
            missing, nodes = missing + least[0], nodes + least[1]
        if any(
            self._is_unfillable(capability, field) for field in capability.input_model.model_fields
        ):
            return _UNREACHABLE
        return missing, nodes

    def _list_required_fields(self, capability: Capability) -> list[str]:
        """List the required fields that the objective does not fill itself."""
        fields = capability.input_model.model_fields
        return [
            name
            for name in capability.accepts
            if name in fields
            and fields[name].is_required()
            and get_field_role(name, fields[name]) in {None, "text"}
        ]

    def _is_unfillable(self, capability: Capability, field: str) -> bool:
        info = capability.input_model.model_fields[field]
        known = field in capability.accepts or get_field_role(field, info) is not None
        return info.is_required() and not known
