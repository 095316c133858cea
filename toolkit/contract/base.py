"""The two kinds of wire model, the envelope around them, and the types they share."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache
from typing import Annotated, Generic, NamedTuple, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic_core import to_json

from toolkit.contract.errors import Detail, ErrorCode, ToolkitError, WorkError, get_error_class

R = TypeVar("R", bound=BaseModel)
# A recursive alias costs pydantic a schema per use; at the JSON edge `object` says as much.
JsonObject: TypeAlias = dict[str, object]


def now() -> datetime:
    """Return the current time in UTC, cut to the milliseconds of the wire."""
    return _make_moment(time.time_ns() // 1_000_000)


@lru_cache(maxsize=16)  # many times are made and written in one millisecond: see `format_rfc3339`
def _make_moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


@lru_cache(maxsize=4096)  # a record is written several times while its times stay the same
def format_rfc3339(moment: datetime) -> str:
    """Write a time as RFC 3339 in UTC with milliseconds.

    >>> format_rfc3339(datetime(2026, 11, 20, 8, 30, tzinfo=UTC))
    '2026-11-20T08:30:00.000Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Timestamp = Annotated[datetime, PlainSerializer(format_rfc3339, return_type=str, when_used="json")]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False, description="US dollars")]


class Request(BaseModel):
    """A body that a caller sends: strict, and unknown fields are rejected."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, hide_input_in_errors=True
    )


class Record(BaseModel):
    """A resource that the service returns: unknown fields are ignored, for later versions."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, ser_json_inf_nan="null")


class SharedRecord(Record):
    """An immutable part that many records refer to as the same object, also in a caller's copies.

    It is written as JSON only once.
    """

    model_config = ConfigDict(frozen=True)

    @cached_property
    def as_json(self) -> bytes:
        """The part as JSON; later reads return the same bytes."""
        return self.model_dump_json(by_alias=True).encode()


class ErrorInfo(Record):
    """An error on the wire, and on the record of work that failed."""

    code: str
    message: str
    details: list[Detail] = []
    request_id: str | None = None

    @classmethod
    def of(cls, error: ToolkitError) -> "ErrorInfo":
        """Convert an exception to its form on the wire."""
        return cls(code=error.code.name, message=error.message, details=list(error.details))

    def to_exception(self, *, of_work: bool = False) -> ToolkitError:
        """Make the exception that a caller catches; an unknown code becomes `INTERNAL`.

        Args:
            of_work: whether it was read on the record of accepted work.
        """
        code = ErrorCode.__members__.get(self.code, ErrorCode.INTERNAL)
        kind = WorkError if of_work else get_error_class(code)
        return kind(code, self.message, details=self.details, request_id=self.request_id)


T = TypeVar("T")


class Envelope(Record, Generic[T]):
    """The envelope of one resource; `id` and `status` are next to `data` if it has them."""

    id: str | None = None
    status: str | None = None
    data: T
    error: ErrorInfo | None = None


def dump_envelope(record: "BaseModel | WrittenRecord") -> bytes:
    """Write a record as `data` of its envelope, with its id, status and error, if it has them."""
    kind = type(record)
    names = kind.model_fields if issubclass(kind, BaseModel) else WrittenRecord._fields
    header = {name: getattr(record, name) for name in ("id", "status") if name in names}
    error = getattr(record, "error", None)
    after = b"" if error is None else b',"error":%s' % to_json(error)
    before = to_json(header)[1:-1] + b"," if header else b""
    return b'{%s"data":%s%s}' % (before, dump_record(record), after)


class RecordDocument(NamedTuple):
    """A record as it passes between threads: its own JSON, and the parts it shares.

    Attributes:
        body: the record as JSON, without the shared parts.
        shared: shared parts, by field name.
    """

    body: bytes
    shared: Mapping[str, SharedRecord]

    @classmethod
    def of(cls, record: "BaseModel | WrittenRecord") -> "RecordDocument":
        """Write one record as JSON, without plain values in between, which would take longer."""
        if isinstance(record, WrittenRecord):
            return record.document
        shared = {
            name: part
            for name in _list_shared_fields(type(record))
            if (part := getattr(record, name)) is not None
        }
        body = record.model_dump_json(by_alias=True, exclude=set(shared) if shared else None)
        return cls(body.encode(), shared)

    def to_json(self) -> bytes:
        """Write the whole record."""
        if not self.shared:
            return self.body
        parts = [b'"%s":%s' % (name.encode(), part.as_json) for name, part in self.shared.items()]
        return b"%s,%s}" % (self.body[:-1], b",".join(parts))

    def parse(self, model: type[R]) -> R:
        """Rebuild the record: only the shared parts are the same objects as in the original."""
        record = model.model_validate_json(self.body)
        for name, part in self.shared.items():
            setattr(record, name, part)
        return record


class WrittenRecord(NamedTuple):
    """A record that was written as JSON without its model, which would take longer.

    Attributes:
        id, status, error: the members of its envelope.
        document: the record.
    """

    id: str
    status: str
    error: ErrorInfo | None
    document: RecordDocument


def dump_record(record: BaseModel | WrittenRecord) -> bytes:
    """Write one record as JSON."""
    return RecordDocument.of(record).to_json()


@cache
def _list_shared_fields(kind: type[BaseModel]) -> tuple[str, ...]:
    """List the fields of a model whose type is a `SharedRecord`, by name."""
    return tuple(
        name
        for name, field in kind.model_fields.items()
        for part in (field.annotation, *get_args(field.annotation))
        if isinstance(part, type) and issubclass(part, SharedRecord)
    )


class Page(Record, Generic[T]):
    """One page of a list, newest first; `count` is the length of `items`."""

    items: list[T]
    count: int
    total: int | None = Field(
        default=None,
        description="number of all records that match, on the first page; null if there are more"
        " than 10,000, if a filter would make the count too slow, for events, and on later pages",
    )
    next_cursor: str | None = None


class PageEnvelope(Record, Generic[T]):
    """The envelope around a page."""

    data: Page[T]


class ErrorEnvelope(Record):
    """The body of every answer outside 2xx."""

    error: ErrorInfo


_encode_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def to_canonical_json(value: object) -> str:
    """Write the canonical JSON of a value: sorted keys, no spaces, for hashes and comparisons.

    >>> to_canonical_json({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return _encode_canonical(value)
