"""Code that a caller may write. Strict mypy checks it, and it never runs."""

from typing import assert_type

import httpx

from toolkit import (
    Agent,
    ApiKey,
    Artifact,
    AsyncClient,
    Client,
    Compute,
    Connection,
    Endpoint,
    Job,
    Plan,
    Run,
    Task,
    Workflow,
    WorkflowRun,
)


def ask(client: Client) -> None:
    """Every handle has a public name."""
    assert_type(client.runs.create("llm.generate", {"objective": "tea"}), Run)
    assert_type(client.runs.create("x", {}, optimize_for="cost", cache=True, deadline_s=5), Run)
    assert_type(client.jobs.create("image", "cmp_1", {}, provider="prv_1").wait(), Job)
    assert_type(client.tasks.create("tea", max_cost_usd=1.0, optimize_for="quality"), Task)
    assert_type(client.tasks.submit_review("tsk_1", "pass"), Task)
    assert_type(client.plans.create("tea"), Plan)
    assert_type(client.plans.create("tea", planner="llm"), Plan)
    assert_type(client.artifacts.get("art_1"), Artifact)
    assert_type(client.connections.create("openai", "environment", "OPENAI_API_KEY"), Connection)
    assert_type(client.compute.get("cmp_1"), Compute)
    assert_type(client.endpoints.get("ep_1"), Endpoint)
    assert_type(client.agents.get("agt_1"), Agent)
    client.usage.list(group_by=["day", "key"])
    assert_type(client.tasks.get("tsk_1").submit_review("pass", score=1.0).resume(), Task)
    assert_type(client.compute.get("cmp_1").delete(), Compute)
    assert_type(client.connections.get("prv_1").share(["acc_1"]).trust(), Connection)
    assert_type(client.api_keys.get("key_1").delete(), ApiKey)
    assert_type(client.runs.get("run_1").wait(timeout=5).artifact(), Artifact)
    assert_type(client.workflows.get("wfl_1").fork("card").job("card"), Job)
    client.api_keys.create(name="nightly", scopes=["read"])


def draw(client: Client) -> None:
    """A workflow takes the options of a run, and so does each node."""
    flow = Workflow("card", optimize_for="balanced", endpoint_id="ep_1")
    facts = flow.add("facts", "research.gather", topic="tea", options={"provider": "openai"})
    flow.add("card", "composition.layout", depends_on=[facts], input={"title": "Tea"})
    assert_type(client.workflows.submit(flow).wait(), WorkflowRun)


def connect() -> None:
    """A client takes an HTTP client and a timeout of httpx."""
    http, timeout = httpx.Client(), httpx.Timeout(5, connect=1)
    with Client("http://team", http_client=http, timeout=timeout, max_retries=0) as client:
        ask(client)
    AsyncClient("http://team", http_client=httpx.AsyncClient(), timeout=None)
