"""One example of each body and resource, for the OpenAPI document: records of the contract."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from toolkit.contract.account import (
    Account,
    AccountCreate,
    AccountCreated,
    ApiKey,
    CallerAccount,
    CallerKey,
    KeyCreate,
    KeyCreated,
    KeyRotate,
)
from toolkit.contract.agents import Agent, AgentCreate
from toolkit.contract.annotations import WorkAnnotate
from toolkit.contract.artifacts import Artifact, Lineage, LineageJob
from toolkit.contract.base import Request
from toolkit.contract.billing import PLATFORM, Billing, BillingLine
from toolkit.contract.capabilities import (
    CapabilityRecord,
    JobForm,
    Source,
    SourceProvider,
    SourceRouting,
)
from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.compute import Compute, ComputeCreate
from toolkit.contract.connections import (
    Connection,
    ConnectionCreate,
    ConnectionShare,
    ConnectionTest,
)
from toolkit.contract.endpoints import Endpoint, EndpointCreate
from toolkit.contract.events import Event
from toolkit.contract.health import Health, Provider
from toolkit.contract.ids import Prefix
from toolkit.contract.jobs import Attempt, Candidate, Job, JobCreate, Routing
from toolkit.contract.maps import (
    MapCreate,
    MapRecord,
    MapRow,
    MapRowNumbers,
    MapRowPage,
    MapRows,
    RowCounts,
)
from toolkit.contract.plans import Constraints, CostRange, Plan, PlanCreate, PlanNode
from toolkit.contract.row_templates import digest_row
from toolkit.contract.runs import Route, Run, RunCreate
from toolkit.contract.storage import Storage, StorageCreate
from toolkit.contract.tasks import Criteria, Review, ReviewCreate, Task, TaskCreate, TaskResume
from toolkit.contract.templates import Template, TemplateCreate
from toolkit.contract.usage import UsageLine
from toolkit.contract.workflows import (
    Node,
    NodeCreate,
    WorkflowCreate,
    WorkflowFork,
    WorkflowRecord,
)

_CREATED_AT = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)
_COMPLETED_AT = datetime(2026, 11, 20, 8, 30, 2, tzinfo=UTC)
_TOPIC: dict[str, object] = {"topic": "Tidal power"}
_TEMPLATE: dict[str, object] = {"topic": "{name}"}
_TITLE: dict[str, object] = {"title": "Tidal power"}
_OBJECTIVE = "A social card about tidal power"


_VARIABLE = "MINIMAX_API_KEY"


def _make_id(prefix: Prefix) -> str:
    return f"{prefix}_01m7xrhddbvq3n2zjx4fe01326"


_CPU_CANDIDATE = Candidate(
    provider="cpu", reason="needs no connection", score=1.0, estimated_cost_usd=0.0
)
_ROUTING = Routing(policy="default", candidates=[_CPU_CANDIDATE])
_JOB = Job(
    id=_make_id(Prefix.JOB),
    capability="research.gather@1",
    input=_TOPIC,
    status="completed",
    run_id=_make_id(Prefix.RUN),
    output={"title": "Tidal power", "summary": "Power from the tides."},
    artifact_id=_make_id(Prefix.ARTIFACT),
    estimated_cost_usd=0.0,
    cost_usd=0.0,
    cost_source="metered",
    routing=_ROUTING,
    attempts=[
        Attempt(
            n=1, status="completed", started_at=_CREATED_AT, ended_at=_COMPLETED_AT, cost_usd=0.0
        )
    ],
    latency_ms=2000,
    queue_ms=3,
    created_at=_CREATED_AT,
    started_at=_CREATED_AT,
    completed_at=_COMPLETED_AT,
)
_REVIEW = Review(
    decision="pass",
    score=0.94,
    criteria=Criteria(objective_alignment=0.9, technical_success=1.0, output_completeness=1.0),
    issues=[],
)
_ACCOUNT = Account(id=_make_id(Prefix.ACCOUNT), email="ada@example.org", created_at=_CREATED_AT)
_KEY = ApiKey(
    id=_make_id(Prefix.KEY), last4="3f9a", scopes=["read", "write"], created_at=_CREATED_AT
)
_ARTIFACT = Artifact(
    id=_make_id(Prefix.ARTIFACT),
    media_type="text/plain",
    size_bytes=9,
    sha256="8e0b1d4a7f0c" + "0" * 52,
    filename=f"{_make_id(Prefix.ARTIFACT)}.txt",
    created_at=_CREATED_AT,
)
_LINEAGE_JOB = LineageJob(
    id=_make_id(Prefix.JOB),
    capability="research.gather@1",
    run_id=_make_id(Prefix.RUN),
    artifact_id=_make_id(Prefix.ARTIFACT),
    completed_at=_COMPLETED_AT,
)
_MODELS: tuple[BaseModel, ...] = (
    AccountCreate(email="ada@example.org"),
    CallerAccount(
        **dict(_ACCOUNT),
        key=CallerKey(
            id=_make_id(Prefix.KEY), name="nightly", last4="Xy4z", scopes=["read", "write"]
        ),
    ),
    AccountCreated(**dict(_ACCOUNT), api_key="sk_live_shown_only_once"),
    KeyCreate(scopes=["read", "write"], max_cost_usd_per_day=5.0),
    _KEY,
    KeyCreated(**dict(_KEY), api_key="sk_live_shown_only_once"),
    ConnectionCreate(provider="minimax", connection_type="environment", secret_ref=_VARIABLE),
    Connection(
        id=_make_id(Prefix.CONNECTION),
        provider="minimax",
        connection_type="environment",
        secret_ref=_VARIABLE,
        created_at=_CREATED_AT,
    ),
    ConnectionShare(accounts=[_make_id(Prefix.ACCOUNT)]),
    ConnectionTest(
        connection_id=_make_id(Prefix.CONNECTION),
        provider="minimax",
        resolved=True,
        accepted=True,
        took_ms=180,
    ),
    CapabilityRecord(
        id="research.gather",
        name="research.gather",
        title="Research",
        version="1",
        description="Looks a topic up in a public encyclopedia.",
        estimated_cost=False,
        input_schema={"type": "object", "required": ["topic"]},
        output_schema={"type": "object", "required": ["title"]},
        job=JobForm(type="research"),
        source=Source(
            providers=[SourceProvider(requires_connection=None)],
            routing=SourceRouting(
                allowed_connections=["minimax"], policy="default", default_provider=None
            ),
        ),
        input={"topic": "string"},
        output={"title": "string"},
        targets=["capability"],
    ),
    RunCreate(target="capability", name="research.gather", version="1", input=_TOPIC),
    Run.model_validate({**_JOB.model_dump(), "id": _JOB.run_id, "job_id": _JOB.id}),
    Route(
        capability="research.gather@1",
        policy="default",
        candidates=[_CPU_CANDIDATE],
        provider="cpu",
        estimated_cost_usd=0.0,
    ),
    JobCreate(
        type="image",
        compute_id=_make_id(Prefix.COMPUTE),
        input={"prompt": "a lighthouse at dusk", "steps": 20},
    ),
    _JOB,
    Event(
        n=1,
        resource_id=_make_id(Prefix.RUN),
        type="run.queued",
        at=_CREATED_AT,
        data={"id": _make_id(Prefix.RUN)},
    ),
    ComputeCreate(name="easel", gpu_type="NVIDIA GeForce RTX 4090"),
    Compute(
        id=_make_id(Prefix.COMPUTE),
        name="easel",
        status="ready",
        gpu_type="NVIDIA GeForce RTX 4090",
        cost_per_hour_usd=0.69,
        created_at=_CREATED_AT,
    ),
    EndpointCreate(name="studio", workers_max=2),
    Endpoint(
        id=_make_id(Prefix.ENDPOINT),
        name="studio",
        status="ready",
        gpu_ids="ADA_24",
        workers_min=0,
        workers_max=2,
        created_at=_CREATED_AT,
    ),
    _ARTIFACT,
    WorkflowCreate(
        name="card",
        max_retries=1,
        nodes=[
            NodeCreate(id="facts", capability="research.gather", input=_TOPIC),
            NodeCreate(
                id="card", capability="composition.layout", input=_TITLE, depends_on=["facts"]
            ),
        ],
    ),
    WorkAnnotate(tags=["first-try"], note="Too formal."),
    WorkflowFork(from_node="card", overrides={"card": {"title": "Power from the tides"}}),
    WorkflowRecord(
        id=_make_id(Prefix.WORKFLOW),
        name="card",
        nodes=[
            Node(id="facts", capability="research.gather@1", input=_TOPIC),
            Node(id="card", capability="composition.layout@1", input=_TITLE, depends_on=["facts"]),
        ],
        max_retries=1,
        created_at=_CREATED_AT,
    ),
    MapCreate(
        capability="research.gather",
        input=_TEMPLATE,
        max_cost_usd=0.5,
        rows=[{"name": "Tidal power"}, {"name": "Wind power"}],
    ),
    MapRows(rows=[{"name": "Wave power"}]),
    MapRowNumbers(numbers=[2], last_end=2),
    MapRecord(
        id=_make_id(Prefix.MAP),
        capability="research.gather@1",
        input=_TEMPLATE,
        max_cost_usd=0.5,
        status="completed",
        row_counts=RowCounts(total=2, completed=2),
        estimated_cost_usd=0.0,
        created_at=_CREATED_AT,
        started_at=_CREATED_AT,
        completed_at=_COMPLETED_AT,
    ),
    MapRowPage(
        rows=[
            MapRow(
                row=0,
                n=1,
                digest=digest_row({"name": "Tidal power"}),
                status="completed",
                job_id=_make_id(Prefix.JOB),
                output={"title": "Tidal power", "summary": "Power from the tides."},
                cost_usd=0.0,
                latency_ms=2000,
            )
        ],
        is_last=True,
    ),
    PlanCreate(objective=_OBJECTIVE, constraints=Constraints(max_cost_usd=0.5)),
    Plan(
        id=_make_id(Prefix.PLAN),
        objective=_OBJECTIVE,
        nodes=[PlanNode(id="research", capability="research.gather", input=_TOPIC)],
        deliverables=["research"],
        estimated_cost_usd=CostRange(low=0.0, high=0.0),
        rationale="A card needs facts.",
        created_at=_CREATED_AT,
    ),
    TaskCreate(objective=_OBJECTIVE, constraints=Constraints(optimize_for="balanced")),
    Task(
        id=_make_id(Prefix.TASK),
        objective=_OBJECTIVE,
        status="completed",
        plan_id=_make_id(Prefix.PLAN),
        workflow_id=_make_id(Prefix.WORKFLOW),
        workflow_ids=[_make_id(Prefix.WORKFLOW)],
        final_artifact_id=_make_id(Prefix.ARTIFACT),
        review=_REVIEW,
        reviews=[_REVIEW],
        cost_usd=0.0,
        created_at=_CREATED_AT,
        completed_at=_COMPLETED_AT,
    ),
    Provider(
        id="minimax",
        label="V4",
        title="MiniMax",
        operations=["speech", "text"],
        capabilities=["llm.generate", "speech.generate"],
        conventional_variable="MINIMAX_API_KEY",
        connected=True,
    ),
    Health(version="1.0.0"),
    KeyRotate(overlap_s=3600),
    StorageCreate(name="models", size_gb=50),
    Storage(
        id=_make_id(Prefix.STORAGE),
        name="models",
        status="ready",
        size_gb=50,
        data_center="EU-RO-1",
        created_at=_CREATED_AT,
    ),
    TemplateCreate(name="worker", image="example/worker:1"),
    Template(
        id=_make_id(Prefix.TEMPLATE),
        name="worker",
        status="ready",
        image="example/worker:1",
        created_at=_CREATED_AT,
    ),
    Gpu(
        id="NVIDIA GeForce RTX 4090",
        provider="runpod",
        name="RTX 4090",
        pool="ADA_24",
        memory_gb=24,
        prices_per_hour_usd={"secure": 0.69},
    ),
    CatalogModel(
        id="minimax/speech-2.6-hd",
        provider="minimax",
        model="speech-2.6-hd",
        kind="speech",
        default=True,
        prices_usd={"characters": 0.0001},
        as_of="2026-11-20",
    ),
    AgentCreate(
        name="card-maker",
        objective="A social card about {topic}",
        constraints=Constraints(max_cost_usd=0.5),
        capabilities=["research.gather", "llm.generate", "composition.layout"],
    ),
    Agent(
        id=_make_id(Prefix.AGENT),
        name="card-maker",
        version="1",
        objective="A social card about {topic}",
        parameters=["topic"],
        constraints=Constraints(max_cost_usd=0.5),
        capabilities=["research.gather", "llm.generate", "composition.layout"],
        created_at=_CREATED_AT,
    ),
    UsageLine(
        day=_CREATED_AT.date(),
        capability="llm.generate@1",
        provider="minimax",
        jobs=12,
        calls=13,
        cost_usd=0.0184,
        latency_ms=15300,
    ),
    Billing(
        month="2026-11",
        lines=[
            BillingLine(billed_by="minimax", title="MiniMax", calls=13, cost_usd=0.0184),
            BillingLine(billed_by=PLATFORM, title="This service, self-hosted"),
        ],
        total_usd=0.0184,
    ),
    ReviewCreate(decision="retry", issues=["It is too long."], constraints={"max_tokens": 120}),
    TaskResume(answer="It is about tidal power."),
    Lineage(id=_make_id(Prefix.ARTIFACT), jobs=[_LINEAGE_JOB], artifacts=[_ARTIFACT]),
)


def _dump_model(model: BaseModel) -> dict[str, Any]:
    """Dump a model as on the wire; bodies omit fields that have their default."""
    brief = isinstance(model, Request)
    return model.model_dump(mode="json", by_alias=True, exclude_unset=brief)


# By the name of the model, which is the name of its schema.
EXAMPLES: dict[str, Any] = {type(model).__name__: _dump_model(model) for model in _MODELS}
EXAMPLE_REQUEST_ID = _make_id(Prefix.REQUEST)
