"""The registry of capabilities, of the vendors that can serve each, and of their schemas."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import EntryPoints, entry_points
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from toolkit.contract.capabilities import (
    CapabilityRecord,
    JobForm,
    Source,
    SourceProvider,
    SourceRouting,
)
from toolkit.contract.errors import Detail, ErrorCode, RequestError, build_not_found
from toolkit.contract.jobs import FROM_ARTIFACTS
from toolkit.contract.suggestions import suggest_name, truncate_text
from toolkit.planning.graph_faults import find_input_faults
from toolkit.plugins import Capability, Vendor

ROUTING_POLICY = (
    "the default provider while it is well, else the best of the other allowed connections"
)


class Registry:
    """A registry of capabilities, in order, and of the vendors that serve them.

    No list names the connections of a capability: it allows every vendor that offers the operation
    that the capability needs.

    Attributes:
        by_name: each capability, by its id (the newest version) and by `id@version`.
    """

    def __init__(self, capabilities: Iterable[Capability], vendors: Mapping[str, Vendor]) -> None:
        self._by_id: dict[str, dict[str, Capability]] = {}
        for capability in capabilities:
            self._by_id.setdefault(capability.id, {})[capability.version] = capability
        # Every node of every workflow is looked up several times.
        self.by_name: dict[str, Capability] = {
            bare: self._find_newest(versions) for bare, versions in self._by_id.items()
        }
        for versions in self._by_id.values():
            self.by_name |= {capability.name: capability for capability in versions.values()}
        self.vendors = dict(vendors)

    @classmethod
    def load(cls, extra: Sequence[Capability] = ()) -> "Registry":
        """Load the capabilities and vendors: built-in, from entry points, and `extra`."""
        from toolkit.capabilities import load_capabilities
        from toolkit.vendors import load_vendors

        # Before Python 3.12, it is of another class with the same method.
        installed = cast("EntryPoints", entry_points())
        return cls([*load_capabilities(installed), *extra], load_vendors(installed))

    @property
    def local_variables(self) -> frozenset[str]:
        """The conventional variables of servers that need no key."""
        return frozenset(v.variable for v in self.vendors.values() if v.is_local)

    def list_newest(self) -> list[Capability]:
        """List the newest available version of each capability, in registry order."""
        newest = (self._find_newest(versions) for versions in self._by_id.values())
        return [capability for capability in newest if capability.status == "available"]

    @staticmethod
    def _find_newest(versions: Mapping[str, Capability]) -> Capability:
        available = [c for c in versions.values() if c.status == "available"] or versions.values()
        return max(available, key=lambda c: (len(c.version), c.version))

    def find(self, name: str, version: str | None = None) -> Capability:
        """Find the capability called `name` or `name@version`, by default its newest version.

        A version that is only planned counts only if the capability has no available version.

        Raises:
            RequestError: `NOT_FOUND` for an unknown id or version, `INVALID_REQUEST` when name
                and version disagree; `CAPABILITY_UNAVAILABLE` comes from `require` alone.
        """
        if version is None and name in self.by_name:
            return self.by_name[name]
        bare, separator, suffix = name.partition("@")
        if separator and version is not None and suffix != version:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "The name and the version disagree; give the version once.",
                details=[Detail("version", "differs from the version in name")],
            )
        versions = self._by_id.get(bare)
        target = suffix if separator else version
        if versions is None or (target is not None and target not in versions):
            raise self._explain_unknown(name if target is None or separator else f"{name}@{target}")
        return versions[target] if target is not None else self._find_newest(versions)

    def _explain_unknown(self, name: str) -> RequestError:
        """Make the error that there is no such capability, or no such version of it."""
        bare, _, version = name.partition("@")
        versions = self._by_id.get(bare)
        hint = suggest_name(bare, self._by_id)
        if versions is not None:
            hint = f"`{bare}` has version {', '.join(versions)}, not {truncate_text(version)}"
        error = build_not_found("capability", name)
        hint = f": {hint}" if hint else ""
        return RequestError(error.code, f"{error.message.removesuffix('.')}{hint}.")

    def require(self, name: str, version: str | None = None) -> Capability:
        """Find a capability to run, like `find`; refuse one that is only planned.

        Raises:
            RequestError: also `CAPABILITY_UNAVAILABLE`.
        """
        capability = self.find(name, version)
        if capability.status != "available":
            raise RequestError(
                ErrorCode.CAPABILITY_UNAVAILABLE, f"`{capability.name}` is planned, not available."
            )
        return capability

    def find_vendors(self, capability: Capability) -> list[Vendor]:
        """Find the vendors that can serve a capability, in order of the specification's labels.

        Empty for a capability that never calls a vendor.
        """
        return (
            self._vendors_by_operation.get(capability.operation, []) if capability.operation else []
        )

    @cached_property
    def _vendors_by_operation(self) -> dict[type, list[Vendor]]:
        vendors = sorted(
            self.vendors.values(), key=lambda v: (v.label is None, v.label or "", v.id)
        )
        vendors_by_operation: dict[type, list[Vendor]] = {}
        for vendor in vendors:
            for operation in vendor.operations:
                vendors_by_operation.setdefault(operation, []).append(vendor)
        return vendors_by_operation

    def to_records(self) -> list[CapabilityRecord]:
        """Return the contract's record of every capability version, in registry order."""
        return [self.to_record(c) for versions in self._by_id.values() for c in versions.values()]

    def to_record(self, capability: Capability) -> CapabilityRecord:
        """Make the record of a capability that the API shows."""
        vendors = [vendor.id for vendor in self.find_vendors(capability)]
        providers = [SourceProvider(requires_connection=vendor) for vendor in vendors]
        if not capability.needs_connection:
            providers = [SourceProvider(requires_connection=None)]
        required = capability.needs_connection
        return CapabilityRecord(
            id=capability.id,
            name=capability.id,
            title=capability.title,
            version=capability.version,
            description=capability.description,
            status=capability.status,
            async_=True,
            estimated_cost=capability.operation is not None,
            input_schema=_make_schema(capability.input_model),
            output_schema=_make_schema(capability.output_model),
            job=JobForm(type=capability.type_of_job),
            source=Source(
                providers=providers,
                routing=SourceRouting(
                    allowed_connections=vendors,
                    policy=ROUTING_POLICY if vendors else "this machine's CPU",
                    default_provider=capability.default_provider if required else None,
                    model_kind=capability.operation.kind if capability.operation else None,
                ),
            ),
            input=_describe_fields(capability.input_model),
            output=_describe_fields(capability.output_model),
            targets=vendors if required else ["cpu"],
            accepts=sorted({m for binding in capability.accepts.values() for m in binding.media}),
            yields=capability.produces,
        )


def validate_input(
    capability: Capability,
    raw_input: Mapping[str, object],
    fillable: frozenset[str],
    path: str,
    optional_fields: frozenset[str] = frozenset(),
) -> BaseModel | None:
    """Check an input against a capability's schema; fields that upstream fills may be missing.

    Args:
        fillable: fields that upstream nodes fill.
        path: path of the input in the request, for the faults.
        optional_fields: fields that only optional nodes can fill. They must not be missing, as
            such a node may fail.

    Returns:
        the input as the capability's model, or None while such a field is missing.

    Raises:
        RequestError: `INVALID_REQUEST` with the path of each fault.
    """
    if FROM_ARTIFACTS in raw_input:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"`{FROM_ARTIFACTS}` follows from depends_on: leave it out of the input.",
            details=[Detail(f"{path}.{FROM_ARTIFACTS}", "is set by the service alone")],
        )
    try:
        return capability.input_model.model_validate(raw_input, strict=True)
    except ValidationError:
        faults = find_input_faults(capability, raw_input, fillable, path, optional_fields)
    if faults:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The input does not match the schema of `{capability.name}`.",
            details=faults,
        )
    return None


def find_max_length(model: type[BaseModel], field: str) -> int | None:
    """Find the maximum length of a text in characters, or of a list; None means no limit."""
    limits = (getattr(rule, "max_length", None) for rule in model.model_fields[field].metadata)
    return next((limit for limit in limits if isinstance(limit, int)), None)


@cache
def _make_schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(mode="validation")


def _describe_fields(model: type[BaseModel]) -> dict[str, object]:
    """Describe a schema in the older, flat form: a line for each field."""
    properties: dict[str, Any] = _make_schema(model).get("properties", {})
    return {
        name: str(doc.get("description") or doc.get("type") or "any")
        for name, doc in properties.items()
    }
