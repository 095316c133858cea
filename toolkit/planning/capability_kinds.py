"""Kinds of capabilities, recognized by metadata, and the capabilities that make each kind."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from toolkit.contract.base import JsonObject
from toolkit.contract.plans import Missing
from toolkit.plugins import Capability

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


@dataclass(frozen=True, slots=True)
class CapabilityKind:
    """A kind of thing that objectives ask for, and the features of a capability that makes it.

    Attributes:
        conventional_id: capability id to name if no capability makes the kind.
        media: pattern of the media type that it produces.
        role: role of the field that takes the request.
        words: words of which its keywords, id or title include at least one.
    """

    conventional_id: str
    media: str
    role: str
    words: frozenset[str]


KINDS: Mapping[str, CapabilityKind] = {
    "text": CapabilityKind(
        "llm.generate", "text/*", "objective", frozenset({"text", "copy", "write"})
    ),
    "image": CapabilityKind(
        "image.generate", "image/*", "prompt", frozenset({"image", "picture", "illustration"})
    ),
    "speech": CapabilityKind(
        "speech.generate", "audio/*", "text", frozenset({"speech", "spoken", "speak", "narration"})
    ),
    "card": CapabilityKind("composition.layout", "image/*", "title", frozenset({"card"})),
    "research": CapabilityKind(
        "research.gather", "*/*", "topic", frozenset({"research", "facts", "encyclopedia"})
    ),
    "clone": CapabilityKind("voice.clone", "*/*", "reference", frozenset({"clone", "cloning"})),
}


def get_field_role(name: str, info: FieldInfo) -> str | None:
    """Return the part of an objective that fills a field, such as `topic`, or None.

    The schema of the field names it as `x-role`; otherwise, a required field has it as its name.
    """
    extra = info.json_schema_extra
    role = extra.get("x-role") if isinstance(extra, dict) else None
    if isinstance(role, str):
        return role if role in _ROLES else None
    return _ROLES_BY_NAME.get(name) if info.is_required() else None


def is_planned(info: FieldInfo) -> bool:
    """Check whether a planner may fill a field; others are for callers (`x-planned`)."""
    extra = info.json_schema_extra
    return not isinstance(extra, dict) or extra.get("x-planned") is not False


def find_role_field(capability: Capability, role: str) -> str | None:
    """Return the name of the input field of a capability that has a role, or None."""
    fields = capability.input_model.model_fields.items()
    return next((name for name, info in fields if get_field_role(name, info) == role), None)


def find_instructed_field(capability: Capability) -> str | None:
    """Find the input field to which instructions can be added; return None without one."""
    return find_role_field(capability, "objective") or find_role_field(capability, "prompt")


def is_field_valid(capability: Capability, fields: JsonObject, name: str) -> bool:
    """Check whether a capability has an input field, and its schema accepts the field's value."""
    if name not in capability.input_model.model_fields:
        return False
    try:
        capability.input_model.model_validate(fields, strict=True)
    except ValidationError as error:
        return all(not e["loc"] or e["loc"][0] != name for e in error.errors(include_url=False))
    return True


def is_caller_supplied(name: str, info: FieldInfo) -> bool:
    """Check whether only the caller can supply a field, such as a recording of their voice."""
    extra = info.json_schema_extra
    role = extra.get("x-role") if isinstance(extra, dict) else None
    return role == "reference" or name.startswith("reference")


def find_makers(capabilities: Sequence[Capability]) -> dict[str, list[Capability]]:
    """Find the makers of each kind: capabilities of the right type and role that claim its words.

    So a plugin that writes haiku on a topic is no researcher: it has the same types, but it claims
    no word of research.
    """
    makers = {}
    for kind, shape in KINDS.items():
        alike = [c for c in capabilities if _is_alike(c, shape)]
        claiming = [c for c in alike if shape.words & _collect_claims(c)]
        # If no capability claims the kind, capabilities without any keywords may make it.
        makers[kind] = claiming or [c for c in alike if not c.keywords]
    return makers


def _is_alike(capability: Capability, shape: CapabilityKind) -> bool:
    fields = capability.input_model.model_fields
    if shape.role == "reference":
        has_field = any(is_caller_supplied(name, info) for name, info in fields.items())
    else:
        has_field = find_role_field(capability, shape.role) is not None
    return (
        has_field
        and capability.status == "available"
        and fnmatchcase(capability.produces, shape.media)
    )


def _collect_claims(capability: Capability) -> set[str]:
    words = {*capability.id.lower().split("."), *capability.title.lower().split()}
    return words.union(*(keyword.lower().split() for keyword in capability.keywords))


class CapabilityIndex:
    """The capabilities that a planner may use, found by the kind of thing that they make."""

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
        """The maker of each kind: the first that can run now, or else the first; aliases last."""
        by_need = {
            kind: sorted(makers, key=lambda c: (c.alias_of in self._by_id, not self.is_usable(c)))
            for kind, makers in self._able.items()
        }
        return {kind: makers[0] for kind, makers in by_need.items() if makers}

    @cached_property
    def _kinds_by_id(self) -> dict[str, str]:
        return {maker.id: kind for kind, able in self._able.items() for maker in able}

    def find_maker(self, kind: str) -> Capability | None:
        """Find a capability by the kind of thing that it makes, or by its id, or return None."""
        return self._makers.get(kind) or self._by_id.get(kind)

    def find_kind(self, capability: Capability) -> str:
        """Find the kind that a capability makes; returns its id if it makes no known kind."""
        return self._kinds_by_id.get(capability.id, capability.id)

    def is_usable(self, capability: Capability) -> bool:
        """Check whether a capability can run: with a connected vendor and a budget, or for free."""
        if not capability.needs_connection:
            return True
        return not self.free_only and self.is_connected(capability)

    def is_connected(self, capability: Capability) -> bool:
        """Check whether a vendor that serves a capability is connected."""
        return bool(self._providers.get(capability.id, frozenset()) & self._connected)

    def list_missing_providers(self, capability: Capability) -> list[str]:
        """List vendors that a capability could use, its default first; none if one is connected."""
        if self.is_connected(capability):
            return []
        default = capability.default_provider
        return sorted(self._providers.get(capability.id, ()), key=lambda v: (v != default, v))

    def find_missing(self, capabilities: Iterable[Capability]) -> list[Missing]:
        """List capabilities that need a vendor and have none connected, with those to choose."""
        unconnected = {
            c.id: c for c in capabilities if c.needs_connection and not self.is_connected(c)
        }
        return [
            Missing(capability=c.id, any_of=self.list_missing_providers(c))
            for c in unconnected.values()
        ]

    def list_keywords(self) -> dict[str, str]:
        """List the keywords of capabilities that make no known kind, with their ids."""
        candidates = [c for c in self.available if self.find_kind(c) == c.id and c.alias_of is None]
        return {keyword.lower(): c.id for c in candidates for keyword in c.keywords}
