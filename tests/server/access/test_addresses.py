"""Where vendors are is the operator's to say: no caller can name an address to be asked."""

from typing import Any

from tests.server.route_table import DOCUMENT
from toolkit.engine import Registry

ADDRESSES = ("url", "uri", "host", "address", "webhook", "callback", "proxy", "endpoint_url")


def fields(schema: Any) -> set[str]:
    """The names of all members that a schema has, at any depth."""
    if isinstance(schema, list):
        return set().union(*map(fields, schema))
    if not isinstance(schema, dict):
        return set()
    names = {str(name) for name in schema.get("properties", {})}
    return names.union(*map(fields, schema.values()))


def test_no_body_says_where_a_vendor_is() -> None:
    """Given every body and every capability's input, then none has a member for an address."""
    schemas = DOCUMENT["components"]["schemas"]
    strict = {n: s for n, s in schemas.items() if s.get("additionalProperties") is False}
    taken = {
        body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for path in DOCUMENT["paths"].values()
        for operation in path.values()
        if "application/json" in (body := operation.get("requestBody", {"content": {}}))["content"]
    }
    assert len(taken) >= 12
    assert taken <= set(strict)
    found = {name: fields(schema) for name, schema in strict.items()}
    for capability in Registry.load().list_newest():
        found[capability.name] = fields(capability.input_model.model_json_schema())
        assert capability.input_model.model_config.get("extra") == "forbid"
    assert len(found) > 25
    for name, members in found.items():
        assert not [one for one in members if any(word in one.lower() for word in ADDRESSES)], name
