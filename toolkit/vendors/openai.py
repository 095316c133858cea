"""OpenAI (V1), and any server that speaks its chat wire, by base URL: text."""

from contextlib import suppress

from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Flow, TextReply, TextRequest, Vendor, VendorFault, send
from toolkit.vendors import _chat
from toolkit.vendors._http import OUT_OF_CREDIT, Answer, Json, bearer, inner, probed
from toolkit.vendors._prices import models

PATH = "/chat/completions"
# What the request can do without, should a model or server refuse it by name.
_OPTIONAL = ("temperature", "max_completion_tokens", "response_format")
_UNSUPPORTED = ("unsupported_parameter", "unsupported_value", "unknown_parameter")
# The keywords that strict mode is known to take (the vendor's guide to structured outputs).
_STRICT_KEYWORDS = frozenset(
    ("$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items",
     "properties", "required", "title", "type")
)  # fmt: skip


def text(operation: TextRequest, access: Access) -> Flow[TextReply]:
    """Generate text by chat completions.

    Newer models refuse some parameters by name, and older servers do not know the newer names:
    one that is refused is dropped, or said in other words, once.

    Raises:
        VendorFault: as the error table of the vendor's documents has it.
    """
    fields = _chat.body(operation, access.model)
    if operation.schema is not None:
        fields["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "strict": _fits_strict(operation.schema),
                "schema": operation.schema,
            },
        }
    try:
        answer = yield from _asked(access, fields)
    except VendorFault as fault:
        answer = yield from _replayed(fault, access, fields, operation)
    refused = _refused_field(answer)
    if refused in fields:
        answer = yield from _asked(access, _without(refused, fields, operation))
    said = answer.json()
    if answer.failed:
        raise _failure(answer, said)
    return _chat.reply(answer, said, operation)


def probe(access: Access) -> Flow[None]:
    """List the models: free, and only for who has a key.

    Raises:
        VendorFault: `PROVIDER_AUTH_FAILED` when the key is refused.
    """
    answer = yield from probed("openai", access, "/models", bearer(access))
    said = answer.json()
    if answer.failed:
        raise _failure(answer, said)


def _asked(access: Access, fields: Json) -> Flow[Answer]:
    return Answer("openai", access, (yield from send(_chat.request(access, PATH, fields))))


def _replayed(
    fault: VendorFault, access: Access, fields: Json, operation: TextRequest
) -> Flow[Answer]:
    """What a cassette has instead: it holds no refusals, but the request that followed one."""
    if fault.code is ErrorCode.REPLAY_MISS:
        for refused in _OPTIONAL:
            if refused in fields:
                with suppress(VendorFault):
                    return (yield from _asked(access, _without(refused, fields, operation)))
    raise fault


def _refused_field(answer: Answer) -> str:
    """The optional field that a 400 names as the trouble; empty for any other answer."""
    if answer.status != 400:
        return ""
    error = inner(answer.json(), "error")
    field = str(error.get("param")).partition(".")[0]
    # A schema that the vendor cannot take has a code of its own, and fits in the prompt anyway.
    known = error.get("code") in _UNSUPPORTED or field == "response_format"
    return field if known and field in _OPTIONAL else ""


def _without(refused: str, fields: Json, operation: TextRequest) -> Json:
    """The request again, without the field, or with what it says put elsewhere."""
    kept = {name: value for name, value in fields.items() if name != refused}
    if refused == "max_completion_tokens":
        kept["max_tokens"] = operation.max_tokens
    if refused == "response_format":
        asked = _chat.body(operation, fields["model"], schema_in_prompt=True)
        kept["messages"] = asked["messages"]
    return kept


def _failure(answer: Answer, said: Json) -> VendorFault:
    error = inner(said, "error")
    words = error.get("message") or said.get("error") or said.get("message") or said.get("detail")
    spent = "insufficient_quota" in (error.get("code"), error.get("type"))
    return answer.failure(words, verdict=OUT_OF_CREDIT if spent else None)


def _fits_strict(schema: object) -> bool:
    """Whether strict mode takes a schema: every object closed, every property required."""
    if not isinstance(schema, dict) or not _STRICT_KEYWORDS.issuperset(schema):
        return False
    properties, required = inner(schema, "properties"), schema.get("required")
    if schema.get("type") == "object" or properties:
        closed = schema.get("additionalProperties") is False
        if not closed or any(name not in (required or ()) for name in properties):
            return False
    choices = schema.get("anyOf")
    inside = [*properties.values(), *inner(schema, "$defs").values()]
    inside += choices if isinstance(choices, list) else []
    inside += [schema["items"]] if "items" in schema else []
    return all(map(_fits_strict, inside))


VENDOR = Vendor(
    id="openai",
    label="V1",
    title="OpenAI and compatible servers",
    variable="OPENAI_API_KEY",
    base_urls={"api": "https://api.openai.com/v1"},
    operations={TextRequest: text},
    models=models("openai"),
    probe=probe,
)
