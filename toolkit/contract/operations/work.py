"""The operations on work: requests, plans and reviews, and results."""

from typing import Any

from toolkit.contract.agents import Agent, AgentCreate
from toolkit.contract.artifacts import Artifact, Lineage
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Job, JobCreate
from toolkit.contract.operations.definitions import ApiOperation, ApiResource
from toolkit.contract.operations.work_queries import RunsQuery, TasksQuery, WorkflowsQuery
from toolkit.contract.plans import Plan, PlanCreate
from toolkit.contract.runs import Route, Run, RunCreate
from toolkit.contract.tasks import ReviewCreate, Task, TaskCreate, TaskResume
from toolkit.contract.workflows import WorkflowCreate, WorkflowFork, WorkflowRecord

_ACCEPT = "Accept one; `Prefer: wait=N` holds the answer for up to N seconds."
_READ = "Read one; `Prefer: wait=N` holds the answer until it has ended, for up to N seconds."

_AGENTS = ApiResource(
    "/v1/agents", "Named objectives with what they may use, to be run again.", Prefix.AGENT
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
AGENTS_DELETE = _AGENTS.define_delete(Agent, "Take one back; its runs stay.")

_ARTIFACTS = ApiResource(
    "/v1/artifacts", "What jobs yield and callers upload: records, and bytes.", Prefix.ARTIFACT
)
# A handler gets an upload in the server's own form: a section of a file on its disk.
ARTIFACTS_CREATE: ApiOperation[Any, Artifact] = ApiOperation(
    _ARTIFACTS,
    "create",
    "POST",
    "",
    Artifact,
    "Upload one as multipart, in the field `file`; its type is told from its bytes.",
    status=201,
    uploads=True,
)
ARTIFACTS_LIST = _ARTIFACTS.define_list(Artifact)
ARTIFACTS_READ = _ARTIFACTS.define_read(Artifact, "Read what is known of one.")
ARTIFACTS_DELETE = _ARTIFACTS.define_delete(
    Artifact, "Delete one with its bytes; the job that made it stays.", ErrorCode.CONFLICT
)
ARTIFACTS_LINEAGE: ApiOperation[None, Lineage] = ApiOperation(
    _ARTIFACTS,
    "lineage",
    "GET",
    "/{id}/lineage",
    Lineage,
    "Tell which jobs and artifacts it came from.",
    scope="read",
)
# A handler returns the record; the transport reads the bytes as it sends them.
ARTIFACTS_CONTENT: ApiOperation[None, Artifact] = ApiOperation(
    _ARTIFACTS,
    "content",
    "GET",
    "/{id}/content",
    Artifact,
    "Read its bytes, or a range of them.",
    scope="read",
    form="bytes",
)

_JOBS = ApiResource("/v1/jobs", "The one unit of execution, and work on a compute.", Prefix.JOB)
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
    "End one asked for alone; one that has ended is answered as it is.",
    ErrorCode.CONFLICT,
)
JOBS_EVENTS = _JOBS.define_events()

_PLANS = ApiResource("/v1/plans", "What a task would do, without doing it.", Prefix.PLAN)
PLANS_CREATE = _PLANS.define_create(
    PlanCreate, Plan, "Plan an objective without doing it.", ErrorCode.NOT_FOUND, status=202
)
PLANS_LIST = _PLANS.define_list(Plan)
PLANS_READ = _PLANS.define_read(Plan)

_RUNS = ApiResource(
    "/v1/runs", "One capability, executed once; and the choice that a run would get.", Prefix.RUN
)
_ROUTE = ApiResource("/v1/route", _RUNS.about, heading="runs")
# A post that changes nothing, so a key that may only read may send it.
ROUTE_CREATE: ApiOperation[RunCreate, Route] = ApiOperation(
    _ROUTE,
    "create",
    "POST",
    "",
    Route,
    "Tell which provider and model a run would take, and why; nothing is spent.",
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
    "cancel", Run, "End a run; one that has ended is answered as it is."
)
RUNS_ANNOTATE = _RUNS.define_annotate(Run)
RUNS_EVENTS = _RUNS.define_events()

_TASKS = ApiResource(
    "/v1/tasks", "An objective that is planned, carried out and reviewed.", Prefix.TASK
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
    "cancel", Task, "End a task; one that has ended is answered as it is."
)
TASKS_RESUME: ApiOperation[TaskResume, Task] = ApiOperation(
    _TASKS,
    "resume",
    "POST",
    "/{id}/resume",
    Task,
    "Take a blocked task back to planning, with the answer to its question.",
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
    "Have a person pass or fail a task that has ended, or run part of it again.",
    (ErrorCode.CONFLICT, ErrorCode.BUDGET_EXCEEDED),
    body=ReviewCreate,
)
TASKS_ANNOTATE = _TASKS.define_annotate(Task)
TASKS_EVENTS = _TASKS.define_events()

_WORKFLOWS = ApiResource(
    "/v1/workflows", "Graphs of capabilities, executed in order of dependence.", Prefix.WORKFLOW
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
    "cancel", WorkflowRecord, "End a workflow; one that has ended is answered as it is."
)
WORKFLOWS_RETRY = _WORKFLOWS.define_action(
    "retry",
    WorkflowRecord,
    "Run one that did not complete again, from its failed nodes on; id and results stay.",
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
    "Run a node and what depends on it again, in a new one that keeps the other results.",
    (ErrorCode.CREDENTIALS_MISSING, ErrorCode.PROVIDER_NOT_ALLOWED, ErrorCode.BUDGET_EXCEEDED),
    status=202,
    body=WorkflowFork,
)
WORKFLOWS_ANNOTATE = _WORKFLOWS.define_annotate(WorkflowRecord)
WORKFLOWS_EVENTS = _WORKFLOWS.define_events()
