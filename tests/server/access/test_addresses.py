"""No caller can name the address of a vendor; only the operator can."""

from typing import Any

from tests.server.route_table import DOCUMENT
from toolkit.engine import Registry

ADDRESSES = ("url", "uri", "host", "address", "webhook", "callback", "proxy", "endpoint_url")


def list_members(schema: Any) -> set[str]:
    """Return the names of all members of a schema, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(list_members, schema))
    if not isinstance(schema, dict):
        return set()
    names = {str(name) for name in schema.get("properties", {})}
    return names.union(*map(list_members, schema.values()))


def test_no_body_has_an_address_of_a_vendor() -> None:
    """Given every body and every capability's input, then no member is an address."""
    schemas = DOCUMENT["components"]["schemas"]
    strict = {n: s for n, s in schemas.items() if s.get("additionalProperties") is False}
    body_names = {
        body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for path in DOCUMENT["paths"].values()
        for operation in path.values()
        if "application/json" in (body := operation.get("requestBody", {"content": {}}))["content"]
    }
    assert len(body_names) >= 12
    assert body_names <= set(strict)
    members = {name: list_members(schema) for name, schema in strict.items()}
    for capability in Registry.load().list_newest():
        members[capability.name] = list_members(capability.input_model.model_json_schema())
        assert capability.input_model.model_config.get("extra") == "forbid"
    assert len(members) > 25
    for owner, names in members.items():
        addresses = [name for name in names if any(word in name.lower() for word in ADDRESSES)]
        assert not addresses, owner
