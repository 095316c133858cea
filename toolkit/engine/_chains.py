"""The capability graph: capabilities as producers and consumers of media types."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from pydantic.fields import FieldInfo

from toolkit.engine import _lexicon as lex
from toolkit.engine._tokens import phrase_key
from toolkit.plugins import Capability, Take

# Connections that are missing, then nodes: the lower, the better.
Cost: TypeAlias = tuple[float, float]
_NEVER: Cost = (math.inf, math.inf)
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


def field_role(name: str, info: FieldInfo) -> str | None:
    """Return the part of an objective that fills a field: its `x-role`, or one by its name."""
    extra = info.json_schema_extra
    role = extra.get("x-role") if isinstance(extra, dict) else None
    if isinstance(role, str):
        return role if role in _ROLES else None
    return _ROLES_BY_NAME.get(name) if info.is_required() else None


def role_of(capability: Capability, role: str) -> str | None:
    """Return the field of a capability that has a role, if there is one."""
    fields = capability.input_model.model_fields.items()
    return next((name for name, info in fields if field_role(name, info) == role), None)


def shortened(text: str, info: FieldInfo) -> str:
    """Cut a text, between words, to a field's maximum length."""
    limits = (getattr(rule, "max_length", None) for rule in info.metadata)
    longest = next((limit for limit in limits if isinstance(limit, int)), None)
    if longest is None or len(text) <= longest:
        return text
    return text[:longest].rpartition(" ")[0] or text[:longest]


def is_given_only(name: str, info: FieldInfo) -> bool:
    """Tell whether only the caller can supply a field, such as a recording of a person's voice."""
    extra = info.json_schema_extra
    role = extra.get("x-role") if isinstance(extra, dict) else None
    return role == "reference" or name.startswith("reference")


def _names_something(key: tuple[str, ...]) -> bool:
    """Tell whether a keyword is more than a preposition or a question, which any text may have."""
    return bool(key) and key[-1] not in lex.ABOUT and not all(word in lex.FILLER for word in key)


class Chains:
    """A graph of the capabilities of a view, with the cheapest path to each.

    The cost of a capability is one node more than what its required fields need, found for all
    of them at once by relaxing until nothing changes. Every step costs a node, so that the
    cheapest path to a capability never leads through itself.
    """

    def __init__(
        self,
        capabilities: Sequence[Capability],
        connected: frozenset[str],
        backends: Mapping[str, frozenset[str]],
        free_only: bool = False,
    ) -> None:
        self.all = [c for c in capabilities if c.status == "available"]
        self._by_id = {c.id: c for c in self.all}
        self._planned = [c for c in capabilities if c.status != "available"]
        self._connected = connected
        self._backends = backends
        self.free_only = free_only

    def get(self, capability_id: str) -> Capability | None:
        """Return an available capability by its id."""
        return self._by_id.get(capability_id)

    def usable(self, capability: Capability) -> bool:
        """Tell whether it can run with the connected vendors (and the money allowed)."""
        if not capability.needs_connection:
            return True
        return not self.free_only and self.is_connected(capability)

    def is_connected(self, capability: Capability) -> bool:
        """Tell whether a vendor that serves it is connected."""
        return bool(self._backends.get(capability.id, frozenset()) & self._connected)

    def would_do(self, capability: Capability) -> list[str]:
        """List the vendors whose connection it lacks, its default one first; none if it has one."""
        if self.is_connected(capability):
            return []
        default = capability.default_provider
        return sorted(self._backends.get(capability.id, ()), key=lambda v: (v != default, v))

    @cached_property
    def vocabulary(self) -> dict[tuple[str, ...], str]:
        """The capability id by phrase: keywords first, in registry order, then common names."""
        words: dict[tuple[str, ...], str] = {}
        for capability in [*self.all, *self._planned]:
            for key in filter(_names_something, map(phrase_key, capability.keywords)):
                # Two claim it: the one that can build on the other's result wins.
                earlier = words.setdefault(key, capability.id)
                if capability.alias_of is None and self.fills(earlier, capability.id):
                    words[key] = capability.id
        for common in lex.COMMON:
            maker = self._maker(common)
            for phrase in common.phrases:
                words.setdefault(phrase_key(phrase), maker)
        words.pop((), None)
        return words

    def _maker(self, common: lex.Common) -> str:
        """Find who makes a common deliverable: by type and role, whatever its id."""
        if common.id in self._by_id or not common.media:
            return common.id
        kind = Take((common.media,), "text")
        made = (c for c in self.all if kind.matches(c.yields) and role_of(c, common.role))
        return next((c.id for c in made), common.id)

    def fills(self, producer_id: str, consumer_id: str) -> bool:
        """Tell whether the artifact of one capability can fill a field of another."""
        producer, consumer = self.get(producer_id), self.get(consumer_id)
        if producer is None or consumer is None or producer is consumer:
            return False
        return any(
            take.matches(producer.yields)
            and not is_given_only(field, consumer.input_model.model_fields[field])
            for field, take in consumer.takes.items()
        )

    def needs(self, consumer_id: str, producer_id: str) -> bool:
        """Tell whether a capability requires an artifact of the kind that another produces."""
        producer, consumer = self.get(producer_id), self.get(consumer_id)
        if producer is None or consumer is None or producer is consumer:
            return False
        return any(
            take.form == "artifact" and take.matches(producer.yields)
            for field, take in consumer.takes.items()
            if consumer.input_model.model_fields[field].is_required()
            and not is_given_only(field, consumer.input_model.model_fields[field])
        )

    def writer(self, take: Take | None = None) -> Capability | None:
        """Find the first capability that writes text to an objective, one that can run first."""
        return self._first("objective", take)

    def researcher(self, take: Take | None = None) -> Capability | None:
        """Find the first capability that researches a topic, if it can run now."""
        found = self._first("topic", take)
        return found if found is not None and self.usable(found) else None

    def _first(self, role: str, take: Take | None) -> Capability | None:
        wanted = take or Take(("text/*", "application/json"), "text")
        found = [
            c
            for c in self.all
            if c.alias_of is None
            and wanted.matches(c.yields)
            and role_of(c, role) is not None
            and self._cost[c.id] != _NEVER
            and not self._required_takes(c)
        ]
        return min(found, key=lambda c: not self.usable(c), default=None)

    def cheapest(self, consumer: Capability, field: str) -> Capability | None:
        """Find the producer that fills a field at the least cost; registry order breaks ties."""
        if is_given_only(field, consumer.input_model.model_fields[field]):
            return None
        take = consumer.takes[field]
        found = [
            c
            for c in self.all
            if c is not consumer and take.matches(c.yields) and self._cost[c.id] < _NEVER
        ]
        return min(found, key=lambda c: self._cost[c.id], default=None)

    @cached_property
    def _cost(self) -> dict[str, Cost]:
        costs = {c.id: _NEVER for c in self.all}
        # A path never repeats a capability, so costs converge after as many rounds as there are.
        for _ in self.all:
            before = dict(costs)
            for capability in self.all:
                costs[capability.id] = min(costs[capability.id], self._step(capability, costs))
            if costs == before:
                break
        return costs

    def _step(self, capability: Capability, costs: Mapping[str, Cost]) -> Cost:
        fields = capability.input_model.model_fields
        missing, nodes = 0.0 if self.usable(capability) else 1.0, 1.0
        for field in self._required_takes(capability):
            info = fields[field]
            ways = [
                costs[c.id]
                for c in self.all
                if c is not capability
                and capability.takes[field].matches(c.yields)
                and not is_given_only(field, info)
            ]
            least = min(ways, default=_NEVER)
            if least == _NEVER and field_role(field, info) == "text":
                continue  # its topic can be used as the text
            missing, nodes = missing + least[0], nodes + least[1]
        if any(
            self._is_unfillable(capability, field) for field in capability.input_model.model_fields
        ):
            return _NEVER
        return missing, nodes

    def _required_takes(self, capability: Capability) -> list[str]:
        """List the required fields that the objective does not fill itself."""
        fields = capability.input_model.model_fields
        return [
            name
            for name in capability.takes
            if name in fields
            and fields[name].is_required()
            and field_role(name, fields[name]) in {None, "text"}
        ]

    def _is_unfillable(self, capability: Capability, field: str) -> bool:
        info = capability.input_model.model_fields[field]
        known = field in capability.takes or field_role(field, info) is not None
        return info.is_required() and not known
