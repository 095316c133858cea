"""The operations on work: requests, plans and reviews, and results."""

from typing import Any

from toolkit.contract.agents import Agent, AgentCreate
from toolkit.contract.artifacts import Artifact, Lineage
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Job, JobCreate
from toolkit.contract.maps import MapCreate, MapRecord, MapRowNumbers, MapRowPage, MapRows
from toolkit.contract.operations.definitions import ApiOperation, ApiResource
from toolkit.contract.operations.queries import EventsQuery
from toolkit.contract.operations.work_queries import (
    MapsQuery,
    RunsQuery,
    TasksQuery,
    WorkflowsQuery,
)
from toolkit.contract.plans import Plan, PlanCreate
from toolkit.contract.runs import Route, Run, RunCreate
from toolkit.contract.tasks import ReviewCreate, Task, TaskCreate, TaskResume
from toolkit.contract.workflows import WorkflowCreate, WorkflowFork, WorkflowRecord

_ACCEPT = "Submit the work. `Prefer: wait=N` waits up to N seconds for its end before answering."
_READ = (
    "Read the record. `Prefer: wait=N` waits up to N seconds for the end of the work"
    " before answering."
)

_AGENTS = ApiResource(
    "/v1/agents", "Named objectives with limits, for repeated runs.", Prefix.AGENT
)
AGENTS_CREATE = _AGENTS.define_create(
    AgentCreate,
    Agent,
    "Register a version of an agent; `POST /v1/runs` with `target: agent` runs it.",
    ErrorCode.NOT_FOUND,
    ErrorCode.CONFLICT,
    ErrorCode.CAPABILITY_UNAVAILABLE,
)
AGENTS_LIST = _AGENTS.define_list(Agent)
AGENTS_READ = _AGENTS.define_read(Agent)
AGENTS_DELETE = _AGENTS.define_delete(Agent, "Delete an agent. Its runs stay.")

_ARTIFACTS = ApiResource(
    "/v1/artifacts",
    "The results of jobs and the uploads of callers: records and bytes.",
    Prefix.ARTIFACT,
)
# A handler gets an upload in the server's own form: a section of a file on its disk.
ARTIFACTS_CREATE: ApiOperation[Any, Artifact] = ApiOperation(
    _ARTIFACTS,
    "create",
    "POST",
    "",
    Artifact,
    "Upload a file as multipart, in the field `file`. Its media type is detected from its bytes.",
    status=201,
    uploads=True,
)
ARTIFACTS_LIST = _ARTIFACTS.define_list(Artifact)
ARTIFACTS_READ = _ARTIFACTS.define_read(Artifact, "Read the record of an artifact.")
ARTIFACTS_DELETE = _ARTIFACTS.define_delete(
    Artifact, "Delete an artifact with its bytes. The job that made it stays.", ErrorCode.CONFLICT
)
ARTIFACTS_LINEAGE: ApiOperation[None, Lineage] = ApiOperation(
    _ARTIFACTS,
    "lineage",
    "GET",
    "/{id}/lineage",
    Lineage,
    "List the jobs and artifacts that an artifact came from.",
    scope="read",
)
# A handler returns the record; the transport reads the bytes as it sends them.
ARTIFACTS_CONTENT: ApiOperation[None, Artifact] = ApiOperation(
    _ARTIFACTS,
    "content",
    "GET",
    "/{id}/content",
    Artifact,
    "Read the bytes of an artifact, or a range of them.",
    scope="read",
    form="bytes",
)

_JOBS = ApiResource(
    "/v1/jobs", "The executions of capabilities, including jobs on a compute.", Prefix.JOB
)
JOBS_CREATE = _JOBS.define_create(
    JobCreate,
    Job,
    _ACCEPT,
    ErrorCode.NOT_FOUND,
    ErrorCode.CREDENTIALS_MISSING,
    ErrorCode.PROVIDER_NOT_ALLOWED,
    ErrorCode.BUDGET_EXCEEDED,
    status=202,
    holds=True,
)
JOBS_LIST = _JOBS.define_list(Job)
JOBS_READ = _JOBS.define_read(Job, _READ, holds=True)
JOBS_CANCEL = _JOBS.define_action(
    "cancel",
    Job,
    "Cancel a job that is no part of a workflow or task. A job that has ended is"
    " returned unchanged.",
    ErrorCode.CONFLICT,
)
JOBS_EVENTS = _JOBS.define_events()

_MAPS = ApiResource(
    "/v1/maps", "One capability for every row of a table, under one budget.", Prefix.MAP
)
MAPS_CREATE = _MAPS.define_create(
    MapCreate,
    MapRecord,
    _ACCEPT,
    ErrorCode.NOT_FOUND,
    ErrorCode.CREDENTIALS_MISSING,
    ErrorCode.PROVIDER_NOT_ALLOWED,
    ErrorCode.CAPABILITY_UNAVAILABLE,
    ErrorCode.BUDGET_EXCEEDED,
    status=202,
    holds=True,
)
MAPS_LIST = _MAPS.define_filtered_list(MapRecord, MapsQuery)
MAPS_READ = _MAPS.define_read(MapRecord, _READ, holds=True)
MAPS_ROWS_CREATE: ApiOperation[MapRows, MapRowNumbers] = ApiOperation(
    _MAPS,
    "rows_create",
    "POST",
    "/{id}/rows",
    MapRowNumbers,
    "Add a page of rows, or the rows of an artifact. A row that the map has already is not added"
    " again; if it failed or was cancelled, it is tried again.",
    (
        ErrorCode.CREDENTIALS_MISSING,
        ErrorCode.PROVIDER_NOT_ALLOWED,
        ErrorCode.CAPABILITY_UNAVAILABLE,
        ErrorCode.BUDGET_EXCEEDED,
    ),
    body=MapRows,
)
MAPS_ROWS_LIST: ApiOperation[EventsQuery, MapRowPage] = ApiOperation(
    _MAPS,
    "rows_list",
    "GET",
    "/{id}/rows",
    MapRowPage,
    "List the rows that ended after a number, in the order of their ends, waiting while there are"
    " none.",
    scope="read",
    query=EventsQuery,
)
MAPS_CANCEL = _MAPS.define_action(
    "cancel", MapRecord, "Cancel a map. A map that has ended is returned unchanged."
)
MAPS_ANNOTATE = _MAPS.define_annotate(MapRecord)
MAPS_EVENTS = _MAPS.define_events()

_PLANS = ApiResource("/v1/plans", "The plans of tasks, without their execution.", Prefix.PLAN)
PLANS_CREATE = _PLANS.define_create(
    PlanCreate,
    Plan,
    "Plan an objective without executing the plan.",
    ErrorCode.NOT_FOUND,
    status=202,
)
PLANS_LIST = _PLANS.define_list(Plan)
PLANS_READ = _PLANS.define_read(Plan)

_RUNS = ApiResource(
    "/v1/runs",
    "Single executions of a capability or an agent, and the routing decision of a run.",
    Prefix.RUN,
)
_ROUTE = ApiResource("/v1/route", _RUNS.about, heading="runs")
# A post that changes nothing, so a key that may only read may send it.
ROUTE_CREATE: ApiOperation[RunCreate, Route] = ApiOperation(
    _ROUTE,
    "create",
    "POST",
    "",
    Route,
    "Return the provider and model that a run would use, and why. Nothing is spent.",
    (
        ErrorCode.NOT_FOUND,
        ErrorCode.PROVIDER_NOT_ALLOWED,
        ErrorCode.TARGET_UNSUPPORTED,
        ErrorCode.CAPABILITY_UNAVAILABLE,
    ),
    scope="read",
    body=RunCreate,
)
RUNS_CREATE = _RUNS.define_create(
    RunCreate,
    Run,
    _ACCEPT,
    ErrorCode.NOT_FOUND,
    ErrorCode.CREDENTIALS_MISSING,
    ErrorCode.PROVIDER_NOT_ALLOWED,
    ErrorCode.TARGET_UNSUPPORTED,
    ErrorCode.CAPABILITY_UNAVAILABLE,
    ErrorCode.BUDGET_EXCEEDED,
    status=202,
    holds=True,
)
RUNS_LIST = _RUNS.define_filtered_list(Run, RunsQuery)
RUNS_READ = _RUNS.define_read(Run, _READ, holds=True)
RUNS_CANCEL = _RUNS.define_action(
    "cancel", Run, "Cancel a run. A run that has ended is returned unchanged."
)
RUNS_ANNOTATE = _RUNS.define_annotate(Run)
RUNS_EVENTS = _RUNS.define_events()

_TASKS = ApiResource(
    "/v1/tasks", "Objectives that are planned, executed and reviewed.", Prefix.TASK
)
TASKS_CREATE = _TASKS.define_create(
    TaskCreate,
    Task,
    _ACCEPT,
    ErrorCode.NOT_FOUND,
    ErrorCode.BUDGET_EXCEEDED,
    status=202,
    holds=True,
)
TASKS_LIST = _TASKS.define_filtered_list(Task, TasksQuery)
TASKS_READ = _TASKS.define_read(Task, _READ, holds=True)
TASKS_CANCEL = _TASKS.define_action(
    "cancel", Task, "Cancel a task. A task that has ended is returned unchanged."
)
TASKS_RESUME: ApiOperation[TaskResume, Task] = ApiOperation(
    _TASKS,
    "resume",
    "POST",
    "/{id}/resume",
    Task,
    "Resume a blocked task at planning, with the answer to its question.",
    (ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED),
    body=TaskResume,
    may_omit_body=True,
)
TASKS_REVIEWS_CREATE: ApiOperation[ReviewCreate, Task] = ApiOperation(
    _TASKS,
    "reviews_create",
    "POST",
    "/{id}/reviews",
    Task,
    "Record a person's review of a task that has ended: pass it, fail it, or retry part of it.",
    (ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED),
    body=ReviewCreate,
)
TASKS_ANNOTATE = _TASKS.define_annotate(Task)
TASKS_EVENTS = _TASKS.define_events()

_WORKFLOWS = ApiResource(
    "/v1/workflows", "Graphs of capabilities, executed in dependency order.", Prefix.WORKFLOW
)
WORKFLOWS_CREATE = _WORKFLOWS.define_create(
    WorkflowCreate,
    WorkflowRecord,
    _ACCEPT,
    ErrorCode.NOT_FOUND,
    ErrorCode.INVALID_WORKFLOW,
    ErrorCode.CREDENTIALS_MISSING,
    ErrorCode.PROVIDER_NOT_ALLOWED,
    ErrorCode.CAPABILITY_UNAVAILABLE,
    ErrorCode.BUDGET_EXCEEDED,
    status=202,
    holds=True,
)
WORKFLOWS_LIST = _WORKFLOWS.define_filtered_list(WorkflowRecord, WorkflowsQuery)
WORKFLOWS_READ = _WORKFLOWS.define_read(WorkflowRecord, _READ, holds=True)
WORKFLOWS_CANCEL = _WORKFLOWS.define_action(
    "cancel", WorkflowRecord, "Cancel a workflow. A workflow that has ended is returned unchanged."
)
WORKFLOWS_RETRY = _WORKFLOWS.define_action(
    "retry",
    WorkflowRecord,
    "Retry a workflow that did not complete, from its failed nodes. Its id and results stay.",
    ErrorCode.CONFLICT,
    ErrorCode.BUDGET_EXCEEDED,
    status=202,
)
WORKFLOWS_FORK: ApiOperation[WorkflowFork, WorkflowRecord] = ApiOperation(
    _WORKFLOWS,
    "fork",
    "POST",
    "/{id}/fork",
    WorkflowRecord,
    "Run a node and its dependents again, in a new workflow that keeps all other results.",
    (ErrorCode.CREDENTIALS_MISSING, ErrorCode.PROVIDER_NOT_ALLOWED, ErrorCode.BUDGET_EXCEEDED),
    status=202,
    body=WorkflowFork,
)
WORKFLOWS_ANNOTATE = _WORKFLOWS.define_annotate(WorkflowRecord)
WORKFLOWS_EVENTS = _WORKFLOWS.define_events()
