"""Maps: one capability for every row of a table, under one budget (decisions, "Tables")."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from toolkit.contract.annotations import GivenNote, GivenTags
from toolkit.contract.base import ErrorInfo, JsonObject, Record, Request, Timestamp, Usd
from toolkit.contract.ids import Prefix, build_id_pattern
from toolkit.contract.jobs import Options

MAX_PAGE_ROWS = 1000  # of a request, and of an answer
MAX_TABLE_ROWS = 100_000  # of one artifact
MAX_TABLE_BYTES = 32 * 1024 * 1024  # of an artifact's cells that the templates name, as JSON
MAX_CONCURRENCY = 256
STOP_AFTER = 10  # failures with the same code, after which a map begins no other row
MapStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
RowStatus = Literal["queued", "running", "completed", "failed", "cancelled", "skipped"]
OnError = Literal["stop", "continue"] | int
Rows = Annotated[list[JsonObject], Field(max_length=MAX_PAGE_ROWS)]
TableId = Annotated[
    str,
    Field(
        pattern=build_id_pattern(Prefix.ARTIFACT),
        description="artifact that holds the rows as JSON lines, CSV, Parquet or Arrow, at most"
        " 100,000",
    ),
]


class MapCreate(Request):
    """`POST /v1/maps`."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["rows", "artifact_id"]}})

    capability: str = Field(min_length=1, max_length=128)
    input: JsonObject = Field(
        description="input of the capability for every row; `{column}` in a text stands for the"
        " row's value, and `{{` for a brace"
    )
    options: Options = Options()
    max_cost_usd: Usd | None = Field(
        default=None, description="budget of all rows together, in US dollars"
    )
    on_error: Literal["stop", "continue"] | Annotated[int, Field(ge=1)] = Field(
        default="stop",
        description="`stop` ends the map after 10 rows that fail for the same lasting reason,"
        " a number after that many, `continue` never",
    )
    concurrency: int = Field(
        default=8, ge=1, le=MAX_CONCURRENCY, description="maximum number of rows in progress"
    )
    key: str | None = Field(
        default=None,
        min_length=1,
        max_length=128,
        description="name of your choice: a second request with the same key returns the same map,"
        " with the budget, `on_error` and concurrency of the new request",
    )
    rows: Rows = Field(default=[], description="the first rows, each with its columns")
    artifact_id: TableId | None = None
    tags: GivenTags = []
    note: GivenNote = ""

    @model_validator(mode="after")
    def _check_rows(self) -> "MapCreate":
        if {"rows", "artifact_id"} <= self.model_fields_set:
            raise ValueError("rows and artifact_id exclude each other")
        return self


class MapRows(Request):
    """`POST /v1/maps/{id}/rows`: a page of rows, each with its columns, or an artifact's rows."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["rows"]}, {"required": ["artifact_id"]}]}
    )

    rows: Rows | None = None
    artifact_id: TableId | None = None

    @model_validator(mode="after")
    def _check_rows(self) -> "MapRows":
        is_empty = self.rows is None and self.artifact_id is None
        if is_empty or len(self.model_fields_set) > 1:
            raise ValueError("exactly one of rows and artifact_id is required")
        return self


class MapRowNumbers(Record):
    """The numbers of the given rows, in their order; equal rows have the same number.

    Attributes:
        last_end: number of the last end of a row before the request.
    """

    numbers: list[int]
    last_end: int = 0


class RowCounts(Record):
    """The number of a map's rows, in total and by status.

    Attributes:
        skipped: rows that need no job, because a cell that the input needs is empty.
    """

    total: int = 0
    queued: int = 0
    running: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0


class MapRecord(Record):
    """A map with the state of its rows and its cost.

    Attributes:
        reasons: number of rows without a result, by the code of their error.
        estimated_cost_usd: expected cost of all rows, by the mean of those that have completed;
            null before the first.
        cost_incurred_usd: total paid in US dollars, which the budget counts, with failed attempts.
        error: why rows are left that have not begun.
    """

    id: str
    capability: str
    input: JsonObject
    options: Options = Options()
    max_cost_usd: Usd | None = None
    on_error: OnError = "stop"
    concurrency: int = 8
    key: str | None = None
    status: MapStatus = "queued"
    status_detail: str | None = None
    row_counts: RowCounts = RowCounts()
    reasons: dict[str, int] = {}
    estimated_cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    error: ErrorInfo | None = None
    tags: list[str] = []
    note: str | None = None
    created_at: Timestamp
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None


class MapRow(Record):
    """A row of a map that has ended.

    Attributes:
        row: number of the row, from 0, in the order in which rows were added.
        n: number of its end, from 1, in the order in which rows ended.
        digest: the first 16 bytes of the SHA-256 of its columns as canonical JSON, in base64url.
        cost_usd: cost of its result in US dollars; null if a call's price is unknown.
        cost_incurred_usd: total paid in US dollars, with failed attempts and earlier tries.
        cached: whether the result is that of an earlier, equal job.
    """

    row: int
    n: int
    digest: str
    status: RowStatus
    job_id: str | None = None
    output: JsonObject | None = None
    cost_usd: Usd | None = None
    cost_incurred_usd: Usd = 0.0
    latency_ms: int | None = None
    provider: str | None = None
    model: str | None = None
    cached: bool = False
    error: ErrorInfo | None = None


class MapRowPage(Record):
    """Rows that have ended, in the order of their ends; `after` of the next page is the last `n`.

    Attributes:
        is_last: whether no row ends after these, unless rows are added.
    """

    rows: list[MapRow]
    is_last: bool
