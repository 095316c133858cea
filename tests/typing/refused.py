"""Code that a caller must not write. Strict mypy reports each of these lines; it never runs."""

import httpx

from toolkit import Client, Workflow


def ask(client: Client) -> None:
    """Literal values and names of parameters are checked."""
    client.runs.create("llm.generate", {}, optimize_for="cheep")  # error: call-overload
    client.runs.create("llm.generate", {}, optimise_for="cost")  # error: call-overload
    client.runs.create("card", {}, target="robot")  # error: call-overload
    client.route("llm.generate", {}, deadline_s="soon")  # error: arg-type
    client.jobs.create("image", "cmp_1", {}, endpoint_id="ep_1")  # error: call-arg
    client.tasks.create("tea", optimize_for="cheep")  # error: arg-type
    client.plans.create("tea", planner="gpt")  # error: arg-type
    client.tasks.submit_review("tsk_1", "maybe")  # error: arg-type
    client.tasks.get("tsk_1").submit_review("maybe")  # error: arg-type
    client.runs.get("run_1").wait(timeout_s=5)  # error: call-arg
    client.connections.create("openai", "enviroment", "X")  # error: arg-type
    client.usage.list(group_by=["month"])  # error: list-item
    client.api_keys.create(name="nightly", scopes=["all"])  # error: list-item


def connect() -> None:
    """A client takes an HTTP client of its own kind."""
    Client("http://team", http_client=httpx.AsyncClient())  # error: arg-type


def draw() -> None:
    """Options of a workflow and its nodes are checked."""
    flow = Workflow("card", optimize_for="cheep")  # error: arg-type
    flow.add("text", "llm.generate", options={"optimize_for": "cheep"})  # error: arg-type
    flow.add("text", "x", options={"providers": "openai"})  # error: arg-type
