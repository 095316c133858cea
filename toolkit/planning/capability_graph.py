"""The capability graph: capabilities as producers and consumers of media types."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from toolkit.contract.plans import Missing
from toolkit.planning.capability_kinds import (
    KINDS,
    find_makers,
    find_role_field,
    get_field_role,
    is_caller_supplied,
)
from toolkit.planning.field_values import describe_fields, is_numeric
from toolkit.planning.field_words import collect_field_words
from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.plugins import Capability

# Connections that are missing, then nodes: the lower, the better.
PathCost: TypeAlias = tuple[float, float]
_UNREACHABLE: PathCost = (math.inf, math.inf)


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
        self._connected = connected
        self._providers = providers
        self.free_only = free_only

    @cached_property
    def _able(self) -> dict[str, list[Capability]]:
        return find_makers(self.available)

    @cached_property
    def _makers(self) -> dict[str, Capability]:
        """Who makes each kind: the first that can run now, or else the first, of no alias."""
        by_need = {
            kind: sorted(makers, key=lambda c: (c.alias_of in self._by_id, not self.is_usable(c)))
            for kind, makers in self._able.items()
        }
        return {kind: makers[0] for kind, makers in by_need.items() if makers}

    @cached_property
    def _kinds_by_id(self) -> dict[str, str]:
        return {maker.id: kind for kind, able in self._able.items() for maker in able}

    def find_maker(self, kind: str) -> Capability | None:
        """Find the capability that makes a kind, or the one of that id."""
        return self._makers.get(kind) or self._by_id.get(kind)

    def find_kind(self, capability: Capability) -> str:
        """Find the kind that a capability makes; its id, where that is none of the known ones."""
        return self._kinds_by_id.get(capability.id, capability.id)

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

    def find_missing(self, capabilities: Iterable[Capability]) -> list[Missing]:
        """Find which capabilities lack a connection, each once; no provider where no vendor is."""
        lacking = {c.id: c for c in capabilities if c.needs_connection and not self.is_connected(c)}
        return [
            Missing(capability=c.id, any_of=self.list_missing_providers(c))
            for c in lacking.values()
        ]

    @cached_property
    def names(self) -> CapabilityNames:
        """The names that the capabilities go by in an objective, for the reader."""
        by_kind = {
            kind: found
            for kind in [*KINDS, *self._by_id]
            if (found := self.find_maker(kind)) is not None and self.find_kind(found) == kind
        }
        phrases = {
            keyword.lower(): kind
            for kind, capability in by_kind.items()
            if kind not in KINDS and capability.alias_of is None
            for keyword in capability.keywords
        }
        fields = {
            kind: frozenset(capability.input_model.model_fields)
            for kind, capability in by_kind.items()
        }
        pairs = [
            (first, then, list(self.find_filled(producer, consumer)))
            for first, producer in by_kind.items()
            for then, consumer in by_kind.items()
        ]
        feeds = {(first, then) for first, then, filled in pairs if filled}
        # What a text can be made of reaches whatever a text reaches: it is written up first.
        feeds |= {
            (first, then)
            for first, text in feeds
            for again, then in feeds
            if text == again == "text"
        }
        return CapabilityNames(
            phrases=phrases,
            kinds=frozenset(by_kind),
            fields=collect_field_words(chain.from_iterable(fields.values())),
            fields_by_kind=fields,
            numbers=frozenset(
                name
                for capability in by_kind.values()
                for name, described in describe_fields(capability.input_model).items()
                if is_numeric(described)
            ),
            choices=_collect_choices(by_kind.values()),
            feeds=frozenset(feeds),
            needs=frozenset(
                (then, first)
                for first, then, filled in pairs
                if any(self._needs_artifact(by_kind[then], field) for field in filled)
            ),
        )

    @staticmethod
    def _needs_artifact(consumer: Capability, field: str) -> bool:
        required = consumer.input_model.model_fields[field].is_required()
        return required and consumer.accepts[field].mode == "artifact"

    def find_filled(self, producer: Capability, consumer: Capability) -> Iterator[str]:
        """Find the fields of a capability that the artifact of another fills."""
        for field, binding in consumer.accepts.items():
            if is_caller_supplied(field, consumer.input_model.model_fields[field]):
                continue
            if binding.mode == "text":
                has_text = "text" in producer.output_model.model_fields
                if producer.produces == "application/json" and not has_text:
                    continue
            elif producer.id == consumer.id:
                continue  # a text can be made of a text, a card is not made of a card
            if producer.can_fill(consumer, field):
                yield field

    def find_cheapest_producer(self, consumer: Capability, field: str) -> Capability | None:
        """Find the producer that fills a field at the least cost; registry order breaks ties."""
        found = [
            c
            for c in self.available
            if c is not consumer
            and field in self.find_filled(c, consumer)
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
            ways = [
                costs[c.id]
                for c in self.available
                if c is not capability and field in self.find_filled(c, capability)
            ]
            least = min(ways, default=_UNREACHABLE)
            if least == _UNREACHABLE and get_field_role(field, fields[field]) == "text":
                continue  # its topic can be used as the text
            missing, nodes = missing + least[0], nodes + least[1]
        if any(self._is_unfillable(capability, field) for field in fields):
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

    @staticmethod
    def _is_unfillable(capability: Capability, field: str) -> bool:
        info = capability.input_model.model_fields[field]
        known = field in capability.accepts or get_field_role(field, info) is not None
        return info.is_required() and not known


def _collect_choices(capabilities: Iterable[Capability]) -> dict[str, frozenset[str]]:
    """Collect the values of the fields that take one of a few."""
    found: dict[str, frozenset[str]] = {}
    for capability in capabilities:
        for name, schema in describe_fields(capability.input_model).items():
            values = frozenset(str(one).lower() for one in schema.get("enum", ()))
            if values:
                found[name] = found.get(name, frozenset()) | values
    return found


def is_writer(capability: Capability) -> bool:
    """Tell whether a capability writes to an objective."""
    return find_role_field(capability, "objective") is not None
