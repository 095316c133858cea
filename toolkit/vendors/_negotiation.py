"""Requests to a chat server in the fullest form it accepts; refused fields take another form."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product

from toolkit.contract.choices import Tier
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import Access, Flow, ProviderError, TextRequest
from toolkit.plugins.conversation import REASONING_TOKENS
from toolkit.plugins.pricing import STANDARD_TIER
from toolkit.vendors import _chat
from toolkit.vendors._chat_stream import STREAM_FIELDS
from toolkit.vendors._http import Json, VendorResponse, get_object

CAP_FIELDS = ("max_completion_tokens", "max_tokens")
TIER_FIELD = "service_tier"
# Fields that affect only the price of a call. Without the first, the settings of the account's
# project choose the tier; without the second, OpenAI writes each long prompt to its cache, for a
# quarter of the input's price on top. An exact repetition of a prompt is rare.
BILLING_FIELDS: Json = {
    TIER_FIELD: "default",
    "prompt_cache_options": {"mode": "explicit"},
}
# Ways to ask for JSON, the strictest first; the last sends no field.
_JSON_MODES = ("json_schema", "schema", "json_object", "words")
JSON_NATIVE, JSON_OBJECT_WITH_SCHEMA, JSON_OBJECT, JSON_IN_PROMPT = _JSON_MODES
# Servers that validate with pydantic, such as llama-cpp-python's, answer 500 to refused fields.
_REFUSAL_STATUSES = (400, 422, 500, 501)
_UNSUPPORTED_CODES = ("unsupported_parameter", "unsupported_value", "unknown_parameter")
_UNSUPPORTED_WORDS = re.compile(
    r"not (?:be )?(?:supported|permitted|allowed|accepted)|unsupported|unknown|unrecognized"
    r"|unexpected|extra_forbidden|does(?: not|n't) support|at the same time|mutually exclusive",
    re.IGNORECASE,
)
_FORMAT_WORDS = re.compile(
    r"response_?format|json[_ ]schema|json_object|structured output|grammar", re.IGNORECASE
)
# An unknown type is refused for any schema; other refusals may be about this schema alone.
_TYPE_WORDS = re.compile(r"response_?format['\"., ()]*type|should be 'text'", re.IGNORECASE)
_MAX_REMEMBERED_REFUSALS = 256
# Keywords that strict mode accepts (the vendor's guide to structured outputs).
_STRICT_KEYWORDS = frozenset(
    ("$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items",
     "properties", "required", "title", "type")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RequestForm:
    """A form of a chat request: the optional fields that are sent, and the way to ask for JSON.

    Attributes:
        operation: the requested operation.
        access: access to the server.
        caps: names of the fields that send the limit of output tokens; never empty.
        json: the way to ask for JSON, such as `JSON_NATIVE`.
        temperature: whether the temperature is sent.
        stream: whether a streamed answer is requested.
        billing: names of the `BILLING_FIELDS` that are sent.
    """

    operation: TextRequest
    access: Access
    caps: tuple[str, ...]
    json: str
    temperature: bool
    stream: bool
    billing: tuple[str, ...]

    def build_fields(self) -> Json:
        """Build the body of the request."""
        operation, access = self.operation, self.access
        in_prompt = operation.schema is not None and self.json != JSON_NATIVE
        body = _chat.build_body(operation, access, schema_in_prompt=in_prompt)
        fields = {name: value for name, value in body.items() if name not in CAP_FIELDS}
        fields |= dict.fromkeys(self.caps, operation.output_cap)
        if not self.temperature:
            fields.pop("temperature", None)
        fields |= self._build_reasoning_fields()
        if self.stream:
            fields |= STREAM_FIELDS
        fields |= {name: BILLING_FIELDS[name] for name in self.billing}
        fields |= {**access.dialect.extra, **access.dialect.model_extra.get(access.model, {})}
        if access.tier != STANDARD_TIER and TIER_FIELD in self.billing:
            fields[TIER_FIELD] = access.tier
        shape = self._build_response_format()
        return {**fields, "response_format": shape} if shape else fields

    def _build_reasoning_fields(self) -> Mapping[str, object]:
        levels = self.access.dialect.reasoning
        if self.operation.reasoning is None:
            extra = self.access.dialect.tools_extra if self.operation.tools else {}
            return {**levels.get("unasked", {}), **extra.get(self.access.model, {})}
        effort = choose_effort(self.operation.reasoning_tokens)
        return levels.get(effort, {"reasoning_effort": effort})

    def _build_response_format(self) -> Json | None:
        schema = self.operation.schema
        if schema is None or self.json == JSON_IN_PROMPT:
            return None
        if self.json == JSON_NATIVE:
            definition = {"name": "answer", "strict": fits_strict(schema), "schema": schema}
            return {"type": "json_schema", "json_schema": definition}
        with_schema = {"schema": schema} if self.json == JSON_OBJECT_WITH_SCHEMA else {}
        return {"type": "json_object", **with_schema}

    def weaken(self, field: str, rungs: tuple[str, ...]) -> "RequestForm | None":
        """Return the next form for a server that refuses a field, or None if there is no other."""
        if field == "temperature" and self.temperature:
            return replace(self, temperature=False)
        if field in STREAM_FIELDS and self.stream:
            # A stream without its options reports no usage, so its cost would be unknown.
            return replace(self, stream=False)
        if field in self.billing and not (field == TIER_FIELD and is_tier_firm(self.access)):
            return replace(self, billing=tuple(name for name in self.billing if name != field))
        if field == "response_format" and self.json in rungs[:-1]:
            return replace(self, json=rungs[rungs.index(self.json) + 1])
        if field in self.caps:
            # A request without any limit is never sent: its cost would be unbounded.
            caps = tuple(name for name in self.caps if name != field)
            alternatives = () if caps else tuple(name for name in CAP_FIELDS[1:] if name != field)
            return replace(self, caps=caps or alternatives) if caps or alternatives else None
        return None


def negotiate_request(
    operation: TextRequest, access: Access, ask: Callable[[Json], Flow[VendorResponse]]
) -> Flow[VendorResponse]:
    """Ask in the fullest form that is not known to be refused, and in a lesser form if it is.

    A refused request bills nothing. Once a lesser form has worked, the refusal is recorded for the
    connection and model (`access.refusals`), so that the next call begins with that form.

    Args:
        operation: the requested operation.
        access: access to the server.
        ask: flow that sends a body.

    Returns:
        the first answer that is no refusal, or whose refused field has no other form.
    """
    rungs = _list_json_modes(operation, access)
    form = _choose_first_form(operation, access, rungs)
    refusals: list[str] = []
    while True:
        try:
            answer = yield from ask(form.build_fields())
        except ProviderError as fault:
            if fault.code is not ErrorCode.REPLAY_MISS:
                raise
            return (yield from _find_replay(fault, form, rungs, ask))
        field, note = _parse_refusal(answer, form)
        lesser = form.weaken(field, rungs)
        if lesser is None:
            break
        refusals.append(note)
        form = lesser
    if not answer.is_failure:
        _remember_refusals(access, refusals)
    return answer


@dataclass(frozen=True, slots=True)
class OptionalField:
    """A field that a request can do without.

    Attributes:
        name: name of the field.
        pattern: case-insensitive regular expression of the words that name the field in a refusal.
        memory: note that records a refusal of the field; "" if a refusal says nothing about the
            next request.
    """

    name: str
    pattern: str
    memory: str = ""


def choose_effort(tokens: int) -> str:
    """Return the lowest level of effort that stands for this many tokens of reasoning.

    >>> [choose_effort(tokens) for tokens in (0, 1_024, 2_000, 30_000)]
    ['none', 'low', 'medium', 'high']
    """
    return next((level for level, most in REASONING_TOKENS.items() if tokens <= most), "high")


def make_temperature_field(operation: TextRequest) -> OptionalField:
    """Make the optional field of a temperature; each value has a note of its own."""
    return OptionalField("temperature", "temperature", f"temperature={operation.temperature}")


def _read_refusal(answer: VendorResponse) -> str:
    """Return the error message of an answer with status 400, or "" for any other answer."""
    if answer.status != 400:
        return ""
    body = answer.json()
    words = get_object(body, "error").get("message") or body.get("message")
    return words if isinstance(words, str) else ""


def ask_without_refused_fields(
    optional: Sequence[OptionalField],
    access: Access,
    ask: Callable[[frozenset[str]], Flow[VendorResponse]],
    read_refusal: Callable[[VendorResponse], str] = _read_refusal,
) -> Flow[VendorResponse]:
    """Ask with all optional fields that are not known to be refused, then without refused fields.

    A refused request bills nothing. Refusals are recorded for the connection and the model
    (`access.refusals`) once a request without the refused fields has worked.

    Args:
        optional: fields that may be left out, in the order in which they are left out.
        access: access to the vendor.
        ask: flow that sends the request with the optional fields of the given names.
        read_refusal: function that returns the words of a refusal, or "" for any other answer.
    """
    fields = [field for field in optional if field.memory not in access.refusals]
    refusals: list[str] = []
    while True:
        try:
            answer = yield from ask(frozenset(field.name for field in fields))
        except ProviderError as fault:
            if fault.code is not ErrorCode.REPLAY_MISS:
                raise
            # A cassette holds only the request after a refusal, not the refusal itself.
            for names in list_subsets(tuple(field.name for field in fields))[1:]:
                with suppress(ProviderError):
                    return (yield from ask(frozenset(names)))
            raise
        words = read_refusal(answer)
        refused = next((f for f in fields if re.search(f.pattern, words, re.IGNORECASE)), None)
        if refused is None:
            break
        fields.remove(refused)
        if refused.memory:
            refusals.append(refused.memory)
    if not answer.is_failure:
        _remember_refusals(access, refusals)
    return answer


def is_tier_firm(access: Access) -> bool:
    """Check whether a refusal of the asked service tier is final.

    A vendor's own flex tier is reserved at its price, which no other tier keeps to. Another server
    is asked again without the tier, because its calls are reserved at the standard price.
    """
    return access.tier != STANDARD_TIER and not access.compatible


def list_tier_fields(field: OptionalField, access: Access) -> list[OptionalField]:
    """Return the field of the service tier as a list, empty if a refusal of the tier is final."""
    return [] if is_tier_firm(access) else [field]


def _remember_refusals(access: Access, learned: Sequence[str]) -> None:
    if len(access.refusals) < _MAX_REMEMBERED_REFUSALS:
        access.refusals.update(learned)


def _list_json_modes(operation: TextRequest, access: Access) -> tuple[str, ...]:
    """Return the ways to ask for JSON that the server may know, the strictest first."""
    if operation.schema is None:
        return (JSON_IN_PROMPT,)
    modes = _JSON_MODES[_JSON_MODES.index(access.dialect.json_mode) :]
    unfit: set[str] = set()
    if operation.schema.get("type", "object") != "object":
        unfit = {JSON_OBJECT_WITH_SCHEMA, JSON_OBJECT}  # they ask for an object
    elif not _is_foreign(access):
        unfit = {JSON_OBJECT_WITH_SCHEMA}
    return tuple(mode for mode in modes if mode not in unfit)


def _is_foreign(access: Access) -> bool:
    """Check whether the server may lack fields of OpenAI's API: another's, or set by hand."""
    return access.compatible or not access.dialect.is_original


def _choose_first_form(
    operation: TextRequest, access: Access, rungs: tuple[str, ...]
) -> RequestForm:
    """Return the fullest form that this server is not known to refuse."""
    refusals = access.refusals
    # Other servers may know only the older name, and ignore the fields that they do not know.
    caps = tuple(
        name
        for name in (CAP_FIELDS if _is_foreign(access) else CAP_FIELDS[:1])
        if name not in refusals
    )
    billing = BILLING_FIELDS if access.dialect.is_original else ()
    temperature = not refusals & {"temperature", f"temperature={operation.temperature}"}
    digest = _digest_schema(operation) if len(rungs) > 1 else ""
    modes = [rung for rung in rungs[:-1] if not refusals & {rung, f"{rung}:{digest}"}]
    json_form = modes[0] if modes else rungs[-1]
    return RequestForm(
        operation,
        access,
        caps or CAP_FIELDS[1:],
        json_form,
        temperature,
        stream=operation.stream and not refusals & STREAM_FIELDS.keys(),
        billing=tuple(
            name for name in billing if _note_billing_refusal(name, access.tier) not in refusals
        ),
    )


def _note_billing_refusal(field: str, tier: Tier) -> str:
    """Return the note of a refused billing field; a refused flex tier says nothing of another."""
    return f"{field}={tier}" if field == TIER_FIELD and tier != STANDARD_TIER else field


def _find_replay(
    fault: ProviderError,
    form: RequestForm,
    rungs: tuple[str, ...],
    ask: Callable[[Json], Flow[VendorResponse]],
) -> Flow[VendorResponse]:
    """Replay the request in its other forms until an answer is found, or raise the fault.

    A cassette (a recording) holds only the request after the refusals.
    """
    caps = dict.fromkeys((form.caps, *((name,) for name in CAP_FIELDS), CAP_FIELDS))
    temperatures = (True, False) if form.operation.temperature is not None else (True,)
    billing = list_subsets(tuple(BILLING_FIELDS))
    for json_form, names, temperature, sent in product(rungs, caps, temperatures, billing):
        candidate = replace(form, json=json_form, caps=names, temperature=temperature, billing=sent)
        if candidate != form:
            with suppress(ProviderError):
                return (yield from ask(candidate.build_fields()))
    raise fault


def list_subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """List the subsets of names, the largest first.

    >>> list_subsets(("a", "b"))
    [('a', 'b'), ('a',), ('b',), ()]
    """
    sizes = range(len(names), -1, -1)
    return [subset for size in sizes for subset in combinations(names, size)]


def _parse_refusal(answer: VendorResponse, form: RequestForm) -> tuple[str, str]:
    """Parse the refused field of a failing answer, and the note that records the refusal.

    The field is empty if the answer refuses none, or a field that has no other form.
    """
    if answer.status not in _REFUSAL_STATUSES:
        return "", ""
    body, fields = answer.json(), form.build_fields()
    error = get_object(body, "error")
    code, param = str(error.get("code") or ""), error.get("param")
    words = _extract_error_text(body)
    field = param.partition(".")[0] if isinstance(param, str) else _find_refused_field(words, form)
    weakened = (*CAP_FIELDS, *STREAM_FIELDS, *BILLING_FIELDS, "temperature", "response_format")
    if field not in weakened or field not in fields:
        return "", ""
    if field == "response_format":
        of_type = f"{param} {words}"
        general = code != "invalid_json_schema" and bool(_TYPE_WORDS.search(of_type))
        return field, form.json if general else f"{form.json}:{_digest_schema(form.operation)}"
    if field in form.billing:
        return field, _note_billing_refusal(field, form.access.tier)
    if code not in _UNSUPPORTED_CODES and not _UNSUPPORTED_WORDS.search(words):
        return "", ""  # the value is out of range, and only the caller can change it
    of_value = field == "temperature" and code == "unsupported_value"
    return field, f"temperature={form.operation.temperature}" if of_value else field


def _find_refused_field(words: str, form: RequestForm) -> str:
    """Return the field that a server's message names, or "" if it names none of ours."""
    if "response_format" in form.build_fields() and _FORMAT_WORDS.search(words):
        return "response_format"
    caps = [name for name in form.caps if re.search(rf"\b{name}\b", words)]
    if caps:
        return caps[-1]  # leave out the older name if both are refused together
    if form.stream and "stream_options" in words:
        return "stream_options"
    billing = next((name for name in form.billing if re.search(rf"\b{name}\b", words)), None)
    if billing is not None:
        return billing
    # These are ordinary words, so they count only if they are quoted as a field's name.
    names = ("temperature", *(("stream",) if form.stream else ()))
    return next((name for name in names if re.search(rf"['\"`]{name}['\"`]", words)), "")


def _extract_error_text(body: Json) -> str:
    """Join all error texts of an answer into a single text."""
    error = body.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return " ".join(_iter_error_texts(message or body.get("message") or body.get("detail")))


def _iter_error_texts(error: object) -> Iterator[str]:
    if isinstance(error, str):
        yield error
    elif isinstance(error, list):  # pydantic's rows; `input` is left out, as it holds the prompt
        for row in error:
            if isinstance(row, dict):
                yield f"{row.get('loc')} {row.get('type')} {row.get('msg')}"


def _digest_schema(operation: TextRequest) -> str:
    spelled = json.dumps(operation.schema, sort_keys=True)
    return hashlib.sha256(spelled.encode()).hexdigest()[:16]


def fits_strict(schema: object) -> bool:
    """Check whether strict mode accepts a schema: objects closed, all properties required."""
    if not isinstance(schema, dict) or not _STRICT_KEYWORDS.issuperset(schema):
        return False
    properties, required = get_object(schema, "properties"), schema.get("required")
    if schema.get("type") == "object" or properties:
        closed = schema.get("additionalProperties") is False
        if not closed or any(name not in (required or ()) for name in properties):
            return False
    choices = schema.get("anyOf")
    inside = [*properties.values(), *get_object(schema, "$defs").values()]
    inside += choices if isinstance(choices, list) else []
    inside += [schema["items"]] if "items" in schema else []
    return all(map(fits_strict, inside))
