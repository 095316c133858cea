"""Kinds of capabilities, recognized by metadata; the planner finds the makers of a kind by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from toolkit.contract.base import JsonObject
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
    """Return the part of an objective that fills a field: its `x-role`, or one by its name."""
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
    """Return the field of a capability that has a role, if there is one."""
    fields = capability.input_model.model_fields.items()
    return next((name for name, info in fields if get_field_role(name, info) == role), None)


def find_instructed_field(capability: Capability) -> str | None:
    """Find the field of the instruction, to which words can be added."""
    return find_role_field(capability, "objective") or find_role_field(capability, "prompt")


def is_field_valid(capability: Capability, fields: JsonObject, name: str) -> bool:
    """Check whether an input field has a value that the capability's schema accepts."""
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

    A plugin that writes haiku on a topic has the types of a researcher. It is none, because it
    claims no word of research.
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
