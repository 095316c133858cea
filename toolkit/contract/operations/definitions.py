"""The class of an operation of `/v1`, and of a resource that defines operations of usual form."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel

from toolkit.contract.annotations import WorkAnnotate
from toolkit.contract.choices import Scope
from toolkit.contract.errors import ErrorCode
from toolkit.contract.events import Event
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.contract.operations.queries import EventsQuery, OperationQuery, PageQuery
from toolkit.contract.operations.work_queries import WorkQuery

In = TypeVar("In")
Out = TypeVar("Out")
B = TypeVar("B", bound=BaseModel)
R = TypeVar("R", bound=BaseModel)
Method = Literal["GET", "POST", "DELETE"]
AnswerForm = Literal["record", "page", "events", "bytes"]

# The operations of a key with the scope `work`: work, and its results by their ids.
_WORK_TAGS = frozenset({"artifacts", "jobs", "maps", "plans", "runs", "tasks", "workflows"})
_WORK_VERBS = frozenset(
    {
        *("cancel", "content", "create", "events", "fork", "lineage", "read", "resume", "retry"),
        *("rows_create", "rows_list"),
    }
)
_CATALOG_OPERATIONS = frozenset(
    {"account_read", "capabilities_list", "capabilities_read", "providers_list"}
)


@dataclass(frozen=True, eq=False)
class ApiOperation(Generic[In, Out]):
    """One operation: its handler's input (`In`) and result (`Out`), and the form on the wire.

    Attributes:
        resource: resource of the operation.
        verb: action of the operation; `list`, `read`, `create`, `cancel`, `delete` and `events`
            work alike for every resource.
        below: path below the collection's, with `{id}` as the id of a record.
        answer: model in the envelope.
        summary: one sentence on the operation's effect.
        own_errors: codes that `errors` adds to the codes derived from the other attributes.
        scope: scope that a key needs; None if no key is needed.
        form: envelope: one record, a page of them, events as a list or a stream, or bytes.
        status: status of success.
        body: model of the request's body; None without a body.
        may_omit_body: whether the body may be left out, which means an empty object.
        query: kind of the query; None without a query.
        holds: whether `Prefer: wait=N` holds the answer.
        shows_key: whether the answer shows a new key, so that it is never stored.
        uploads: whether the body is a file, as multipart.
        needs_store: whether it cannot be answered without the store.
    """

    resource: "ApiResource"
    verb: str
    method: Method
    below: str
    answer: type[BaseModel]
    summary: str
    own_errors: tuple[ErrorCode, ...] = ()
    _: KW_ONLY
    scope: Scope | None = "write"
    form: AnswerForm = "record"
    status: int = 200
    body: type[BaseModel] | None = None
    may_omit_body: bool = False
    query: type[OperationQuery] | None = None
    holds: bool = False
    shows_key: bool = False
    uploads: bool = False
    needs_store: bool = True

    @cached_property
    def id(self) -> str:
        """The path and the verb, such as `runs_create`."""
        words = self.resource.path.removeprefix("/v1/").replace("/", "_")
        return f"{words}_{self.verb}"

    @cached_property
    def path(self) -> str:
        """The whole path, with `{id}` as the id of a record."""
        return self.resource.path + self.below

    @property
    def replays(self) -> bool:
        """True if its answer is stored under the request's `Idempotency-Key`, for a repeat.

        Reading and deleting are idempotent anyway. An answer that shows a new key is never stored.
        """
        return self.method == "POST" and not self.shows_key

    @cached_property
    def is_work(self) -> bool:
        """True if a key that has only the scope `work` may request it."""
        is_own_work = self.resource.tag in _WORK_TAGS and self.verb in _WORK_VERBS
        return is_own_work or self.id in _CATALOG_OPERATIONS

    @cached_property
    def errors(self) -> tuple[ErrorCode, ...]:
        """Every error code with which a request for it can be rejected."""
        keyed = (ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN)
        replayed = (ErrorCode.IDEMPOTENCY_CONFLICT, ErrorCode.PAYLOAD_TOO_LARGE)
        sent = (ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.UNSUPPORTED_MEDIA_TYPE)
        return (
            *(ErrorCode.INVALID_REQUEST, ErrorCode.RATE_LIMITED, ErrorCode.INTERNAL),
            *(sent if self.body is not None or self.uploads else ()),
            *self.own_errors,
            *(keyed if self.scope is not None else ()),
            *((ErrorCode.NOT_FOUND,) if "{" in self.path else ()),
            *((ErrorCode.UNAVAILABLE,) if self.needs_store else ()),
            *(replayed if self.replays else ()),
        )


@dataclass(frozen=True, eq=False)
class ApiResource:
    """A resource of `/v1`, and the shapes of its operations.

    Attributes:
        path: path of its collection.
        about: one sentence on everything under the heading.
        prefix: kind of its ids.
        name_pattern: pattern of its ids if they are names.
        heading: heading in documents, if it differs from the name.
    """

    path: str
    about: str
    prefix: Prefix | None = None
    name_pattern: str | None = None
    heading: str | None = None

    @cached_property
    def name(self) -> str:
        """The name of its service in the engine: the last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def tag(self) -> str:
        """The heading that it has in documents: `heading`, or else its name."""
        return self.heading or self.name

    @property
    def id_pattern(self) -> str | None:
        """The regular expression of its ids; None if it has no ids."""
        return self.name_pattern if self.prefix is None else build_id_pattern(self.prefix)

    def define_list(
        self,
        answer: type[R],
        summary: str = "List the records, newest first.",
        *,
        scope: Scope = "read",
    ) -> ApiOperation[PageQuery, Sequence[R]]:
        """Define the operation that lists all records, page by page."""
        return ApiOperation(
            self, "list", "GET", "", answer, summary, scope=scope, form="page", query=PageQuery
        )

    def define_filtered_list(
        self, answer: type[R], query: type[WorkQuery]
    ) -> ApiOperation[WorkQuery, Sequence[R]]:
        """Define the operation that lists work page by page, with a filter in its query."""
        return ApiOperation(
            self,
            "list",
            "GET",
            "",
            answer,
            "List the records that match all filters of the query, newest first.",
            scope="read",
            form="page",
            query=query,
        )

    def define_annotate(self, answer: type[R]) -> ApiOperation[WorkAnnotate, R]:
        """Define the operation that changes a record's tags and note."""
        return ApiOperation(
            self,
            "annotate",
            "POST",
            "/{id}/annotate",
            answer,
            "Change the tags or the note, in any state. Omitted fields stay unchanged.",
            body=WorkAnnotate,
        )

    def define_read(
        self,
        answer: type[R],
        summary: str = "Read a record by its id.",
        *,
        scope: Scope = "read",
        holds: bool = False,
    ) -> ApiOperation[None, R]:
        """Define the operation that reads a record by its id."""
        return ApiOperation(self, "read", "GET", "/{id}", answer, summary, scope=scope, holds=holds)

    def define_create(
        self,
        body: type[B],
        answer: type[R],
        summary: str,
        *errors: ErrorCode,
        status: int = 201,
        holds: bool = False,
    ) -> ApiOperation[B, R]:
        """Define the operation that creates a record, or accepts work."""
        return ApiOperation(
            self,
            "create",
            "POST",
            "",
            answer,
            summary,
            errors,
            status=status,
            body=body,
            holds=holds,
        )

    def define_delete(
        self, answer: type[R], summary: str, *errors: ErrorCode, scope: Scope = "write"
    ) -> ApiOperation[None, R]:
        """Define the operation that deletes a record by its id."""
        return ApiOperation(self, "delete", "DELETE", "/{id}", answer, summary, errors, scope=scope)

    def define_action(
        self, verb: str, answer: type[R], summary: str, *errors: ErrorCode, status: int = 200
    ) -> ApiOperation[None, R]:
        """Define an operation without a body that acts on one record, such as `cancel`."""
        return ApiOperation(
            self, verb, "POST", f"/{{id}}/{verb}", answer, summary, errors, status=status
        )

    def define_events(self) -> ApiOperation[EventsQuery, Sequence[Event]]:
        """Define the operation that lists or streams the events of a record."""
        return ApiOperation(
            self,
            "events",
            "GET",
            "/{id}/events",
            Event,
            "List the events after a number, waiting while there are none; or stream them.",
            scope="read",
            form="events",
            query=EventsQuery,
        )
