"""Every handle and collection shows itself: in a line, in a bundle, as a table, as JSON."""

import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from toolkit import Client, Workflow
from toolkit.contract.workflows import Node
from toolkit.settings import Settings

AREAS = (
    "agents", "api_keys", "artifacts", "capabilities", "compute", "connections", "endpoints",
    "plans", "providers", "runs", "storage", "tasks", "templates", "usage", "workflows",
)  # fmt: skip
LISTS = (*AREAS, "gpus", "jobs", "models", "variables")
DRAWN = ("draft", "workflow", "plan", "lineage")
KINDS = (
    *DRAWN, "billing", "blocked_task", "connection_test", "facts", "failed_run", "failed_workflow",
    "image", "review", "route", "run", "sound", "task", "text", "timeline",
    *(f"{name}[0]" for name in LISTS if name not in ("artifacts", "plans", "workflows")),
)  # fmt: skip
# Parts of dictionaries, lists and empty values as `str` writes them.
PYTHON = ("{'", "[{", "['", "{}", "None", "True", "False")
FACE = {
    "image": "image/png",
    **dict.fromkeys((*DRAWN, "failed_workflow", "timeline"), "image/svg+xml"),
}


def draft() -> Workflow:
    """A workflow with a branch, not submitted."""
    flow = Workflow("<card> of $1")
    facts = flow.add("facts", "research.gather", topic="Tidal power")
    copy = flow.add("copy", "text.generate", objective="A $20 teaser", depends_on=[facts])
    speech = flow.add("speech", "speech.generate", text="Tides turn.", depends_on=[copy])
    flow.add("card", "composition.layout", title="Tidal power", depends_on=[facts, copy, speech])
    return flow


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Each kind of handle and list, of one engine in the sandbox."""
    folder: Path = tmp_path_factory.mktemp("things")
    client = Client.local(settings=Settings(data_dir=folder, sandbox=True))
    flow = draft()
    workflow = client.workflows.submit(flow).wait(progress=False)
    task = client.tasks.create("A social card about tea").wait(progress=False)
    run = client.runs.create("llm.generate", {"objective": "Tea"}).wait(progress=False)
    lost = Workflow("lost", max_retries=1)
    lost.add("facts", "research.gather", topic="qqqzzz")
    failed_run = client.runs.create("research.gather", {"topic": "qqqzzz"})
    blocked = client.tasks.create("Clone a voice from nothing").wait(progress=False, check=False)
    artifacts = {node.id: client.artifacts.get(node.artifact_id or "") for node in workflow}
    client.api_keys.create(name="spare")
    client.agents.create("baker", "A card about {topic}")
    client.compute.create("easel", client.catalog.gpus()[0].id)
    client.storage.create("weights", 20)
    client.templates.create("worker", "example/worker:1")
    client.endpoints.create("studio")
    singles = {
        "draft": flow,
        "workflow": workflow,
        "timeline": workflow.timeline(),
        "failed_workflow": client.workflows.submit(lost).wait(progress=False, check=False),
        "run": run,
        "failed_run": failed_run.wait(progress=False, check=False),
        "task": task,
        "review": task.review,
        "blocked_task": blocked,
        "plan": client.plans.create("A social card about tea"),
        "route": client.route("llm.generate", {"objective": "Tea"}),
        "image": artifacts["card"],
        "text": artifacts["copy"],
        "facts": artifacts["facts"],
        "sound": artifacts["speech"],
        "lineage": artifacts["card"].lineage(),
        "billing": client.billing.get(),
        "connection_test": client.connections.test(client.connections.list()[0].id),
        "client": client,
    }
    lists = {
        **{area: getattr(client, area).list() for area in AREAS},
        "gpus": client.catalog.gpus(),
        "jobs": client.jobs.list(limit=3),
        "models": client.catalog.models(),
        "variables": client.connections.discover(),
    }
    yield singles | lists | {f"{name}[0]": items[0] for name, items in lists.items()}
    client.close()


def bundle_of(thing: Any) -> dict[str, Any]:
    """Return the mime bundle of a thing without its metadata."""
    bundle = thing._repr_mimebundle_(include=None, exclude=None)
    return bundle[0] if isinstance(bundle, tuple) else bundle


@pytest.mark.parametrize("kind", KINDS + LISTS)
def test_every_handle_and_list_shows_itself(things: dict[str, Any], kind: str) -> None:
    """Given a handle or list, then its line is short, its bundle is rich, and its data is plain."""
    thing = things[kind]
    line = repr(thing)
    assert line.startswith("<")
    assert line.endswith(">")
    assert len(line) < 200
    assert "object at 0x" not in line
    bundle = bundle_of(thing)
    assert bundle["text/plain"] == line
    for text in (line, html.unescape(bundle.get("text/html", ""))):
        assert not any(mark in text for mark in PYTHON), text
    assert FACE.get(kind, "text/html") in bundle
    assert ("text/html" in bundle) != ("image/svg+xml" in bundle or "image/png" in bundle)
    frame = thing.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) > 0
    assert json.loads(json.dumps(thing.to_dict()))


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_completes_ids(things: dict[str, Any], kind: str) -> None:
    """Given a list, then each id that it completes belongs to an item."""
    many = things[kind]
    ids = many._ipython_key_completions_()
    assert all(many[id_].id == id_ for id_ in ids)
    assert bool(ids) == (kind not in ("usage", "variables"))
    assert len(list(many)) == len(many) == len(many.to_frame())


@pytest.mark.parametrize("kind", DRAWN)
def test_a_graph_has_pictures_mermaid_and_networkx(things: dict[str, Any], kind: str) -> None:
    """Given a graph, then pictures, mermaid and networkx have its nodes; `[id]` returns a node."""
    graph = things[kind]
    ids = graph._ipython_key_completions_()
    assert graph.picture() == bundle_of(graph)["image/svg+xml"]
    assert list(graph.to_networkx()) == ids
    assert all(isinstance(graph[id_], Node) and id_ in graph.picture() for id_ in ids)
    assert graph.to_mermaid().count(" --> ") == graph.to_networkx().number_of_edges() > 0
    with pytest.raises(KeyError):
        graph["nobody"]


def test_charts_are_drawn_on_given_axes(things: dict[str, Any]) -> None:
    """Given axes, then each chart is drawn on them."""
    for kind in (*DRAWN, "timeline"):
        axes = Figure().subplots()
        assert things[kind].plot(ax=axes) is axes.figure, kind
        assert axes.has_data() or axes.artists or axes.patches, kind
    assert things["timeline"].plot()._repr_png_().startswith(b"\x89PNG")


def test_a_timeline_orders_nodes_by_dependency(things: dict[str, Any]) -> None:
    """Given a finished workflow, then nodes run after their dependencies, along a critical path."""
    frame = things["timeline"].to_frame().set_index("node")
    assert frame.index[0] == "facts"
    assert (frame["ready_s"] <= frame["start_s"]).all()
    assert (frame["start_s"] <= frame["end_s"]).all()
    assert frame.loc["card", "ready_s"] == frame.loc["speech", "end_s"]
    assert set(frame.index[frame["critical"]]) == {"facts", "copy", "speech", "card"}


def test_an_artifact_shows_its_content(things: dict[str, Any]) -> None:
    """Given an image, a sound, a text and facts, then each is shown or played in place."""
    assert bundle_of(things["image"])["image/png"]
    assert "<audio controls" in bundle_of(things["sound"])["text/html"]
    assert "data:audio/mpeg;base64," in bundle_of(things["sound"])["text/html"]
    assert "<pre" in bundle_of(things["text"])["text/html"]
    assert "<table" in bundle_of(things["facts"])["text/html"]


def test_an_area_completes_the_ids_of_records_it_read(things: dict[str, Any]) -> None:
    """Given a record that was read or made, then its area completes its id, and `[id]` reads it."""
    client, run = things["client"], things["run"]
    assert run.id in client.runs._ipython_key_completions_()
    assert client.runs[run.id].id == run.id
    assert client.capabilities["llm.generate"].title


def test_completes_capability_names_from_the_start(tmp_path: Path) -> None:
    """Given a client that has read nothing yet, then the names of capabilities complete."""
    with Client.local(tmp_path) as client:
        assert "speech.generate" in client.capabilities._ipython_key_completions_()


def test_a_list_shows_its_total_and_cost(things: dict[str, Any]) -> None:
    """Given more items than are shown, then the line has their total, and the shown items' cost."""
    line = repr(things["jobs"])
    total = things["jobs"].total
    assert total > len(things["jobs"]) == 3
    assert line.startswith(f"<{total} jobs; the first 3: ")
    assert "$" in line
    assert "… and" in bundle_of(things["models"])["text/html"] or len(things["models"]) <= 25
