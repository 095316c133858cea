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

KINDS = (
    "capability", "connection", "connection_test", "discovered", "provider", "route", "run", "job",
    "draft", "workflow", "failed_workflow", "failed_run", "blocked_task", "timeline", "plan",
    "task", "review", "image", "text", "facts", "sound",
    "lineage", "usage", "billing", "agent", "endpoint", "compute", "storage", "template", "gpu",
    "model", "key",
)  # fmt: skip
LISTS = (
    "capabilities", "connections", "variables", "providers", "runs", "jobs", "workflows", "tasks",
    "plans", "artifacts", "endpoints", "computes", "storages", "templates", "gpus", "models",
    "agents", "usages", "keys",
)  # fmt: skip
DRAWN = ("draft", "workflow", "plan", "lineage")
# As `str` writes a dictionary, a list of them, and what stands for nothing.
PYTHON = ("{'", "[{", "['", "{}", "None", "True", "False")
FACE = {
    "image": "image/png", "sound": "text/html", "timeline": "image/svg+xml",
    **dict.fromkeys((*DRAWN, "failed_workflow"), "image/svg+xml"),
}  # fmt: skip


def draft() -> Workflow:
    """A workflow with a branch, not submitted."""
    flow = Workflow("<card> of $1")
    facts = flow.add("facts", "research.gather", topic="Tidal power")
    copy = flow.add("copy", "text.generate", objective="A $20 teaser", depends_on=[facts])
    said = flow.add("said", "speech.generate", text="Tides turn.", depends_on=[copy])
    flow.add("card", "composition.layout", title="Tidal power", depends_on=[facts, copy, said])
    return flow


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """One of each kind, of one engine in the sandbox."""
    folder: Path = tmp_path_factory.mktemp("shown")
    client = Client.local(settings=Settings(data_dir=folder, sandbox=True))
    flow = draft()
    done = client.workflows.submit(flow).wait(progress=False)
    task = client.tasks.create("A social card about tea").wait(progress=False)
    run = client.runs.create("llm.generate", {"objective": "Tea"}).wait(progress=False)
    lost = Workflow("lost", max_retries=1)
    lost.add("facts", "research.gather", topic="qqqzzz")
    blocked = client.tasks.create("Clone a voice from nothing").wait(progress=False, check=False)
    made = {node.id: client.artifacts.get(node.artifact_id or "") for node in done}
    client.api_keys.create(name="spare")
    client.agents.create("baker", "A card about {topic}")
    pod = client.compute.create("easel", client.catalog.gpus()[0].id)
    volume = client.storage.create("weights", 20)
    template = client.templates.create("worker", "example/worker:1")
    endpoint = client.endpoints.create("studio")
    connections, discovered = client.connections.list(), client.connections.discover()
    yield {
        "capability": client.capabilities.get("llm.generate"),
        "connection": connections[0],
        "connection_test": client.connections.test(connections[0].id),
        "discovered": discovered[0],
        "provider": client.providers.list()[0],
        "route": client.route("llm.generate", {"objective": "Tea"}),
        "run": run,
        "job": client.jobs.list()[0],
        "draft": flow,
        "workflow": done,
        "timeline": done.timeline(),
        "failed_workflow": client.workflows.submit(lost).wait(progress=False, check=False),
        "failed_run": client.runs.create("research.gather", {"topic": "qqqzzz"}).wait(
            progress=False, check=False
        ),
        "blocked_task": blocked,
        "plan": client.plans.create("A social card about tea"),
        "task": task,
        "review": task.review,
        "image": made["card"],
        "text": made["copy"],
        "facts": made["facts"],
        "sound": made["said"],
        "lineage": made["card"].lineage(),
        "usage": client.usage.list()[0],
        "billing": client.billing.get(),
        "agent": client.agents.list()[0],
        "endpoint": endpoint,
        "compute": pod,
        "storage": volume,
        "template": template,
        "gpu": client.catalog.gpus()[0],
        "model": client.catalog.models()[0],
        "key": client.api_keys.list()[0],
        "capabilities": client.capabilities.list(),
        "connections": connections,
        "variables": discovered,
        "providers": client.providers.list(),
        "runs": client.runs.list(),
        "jobs": client.jobs.list(limit=3),
        "workflows": client.workflows.list(),
        "tasks": client.tasks.list(),
        "plans": client.plans.list(),
        "artifacts": client.artifacts.list(),
        "endpoints": client.endpoints.list(),
        "computes": client.compute.list(),
        "storages": client.storage.list(),
        "templates": client.templates.list(),
        "gpus": client.catalog.gpus(),
        "models": client.catalog.models(),
        "agents": client.agents.list(),
        "usages": client.usage.list(),
        "keys": client.api_keys.list(),
        "client": client,
    }
    client.close()


def bundle_of(thing: Any) -> dict[str, Any]:
    """Its mime bundle, without what is said about it."""
    bundle = thing._repr_mimebundle_(include=None, exclude=None)
    return bundle[0] if isinstance(bundle, tuple) else bundle


@pytest.mark.parametrize("kind", KINDS + LISTS)
def test_everything_shows_itself(shown: dict[str, Any], kind: str) -> None:
    """Given any handle or collection, then its line is short, its face is rich, its data plain."""
    thing = shown[kind]
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
def test_a_collection_completes_ids(shown: dict[str, Any], kind: str) -> None:
    """Given a collection, then each id that it completes is one of its items."""
    many = shown[kind]
    ids = many._ipython_key_completions_()
    assert all(many[id_].id == id_ for id_ in ids)
    assert bool(ids) == (kind not in ("usages", "variables"))
    assert len(list(many)) == len(many) == len(many.to_frame())


@pytest.mark.parametrize("kind", DRAWN)
def test_a_graph_is_drawn_and_told_in_every_way(shown: dict[str, Any], kind: str) -> None:
    """Given a graph, then pictures, mermaid and networkx have its nodes, and `[id]` is one."""
    graph = shown[kind]
    ids = graph._ipython_key_completions_()
    assert graph.picture() == bundle_of(graph)["image/svg+xml"]
    assert list(graph.to_networkx()) == ids
    assert all(isinstance(graph[id_], Node) and id_ in graph.picture() for id_ in ids)
    assert graph.to_mermaid().count(" --> ") == graph.to_networkx().number_of_edges() > 0
    with pytest.raises(KeyError):
        graph["nobody"]


def test_charts_go_where_they_are_told(shown: dict[str, Any]) -> None:
    """Given axes, then each chart is drawn on them; without, on a figure that shows itself."""
    for kind in (*DRAWN, "timeline", "usages", "billing"):
        axes = Figure().subplots()
        assert shown[kind].plot(ax=axes) is axes.figure, kind
        assert axes.has_data() or axes.artists or axes.patches, kind
    assert shown["timeline"].plot()._repr_png_().startswith(b"\x89PNG")


def test_a_legend_covers_no_bar(shown: dict[str, Any]) -> None:
    """Given a chart of the costs of some providers, then its legend is beside the bars."""
    figure = shown["usages"].plot()
    figure.draw_without_rendering()
    (axes,) = figure.axes
    legend = axes.get_legend().get_window_extent()

    assert axes.patches
    assert not any(legend.overlaps(bar.get_window_extent()) for bar in axes.patches)


def test_a_timeline_says_what_ran_when(shown: dict[str, Any]) -> None:
    """Given a finished workflow, then nodes run after what they depend on; one way is critical."""
    frame = shown["timeline"].to_frame().set_index("node")
    assert frame.index[0] == "facts"
    assert (frame["ready_s"] <= frame["start_s"]).all()
    assert (frame["start_s"] <= frame["end_s"]).all()
    assert frame.loc["card", "ready_s"] == frame.loc["said", "end_s"]
    assert set(frame.index[frame["critical"]]) == {"facts", "copy", "said", "card"}


def test_each_artifact_shows_what_it_is(shown: dict[str, Any]) -> None:
    """Given a picture, a sound, a text and facts, then each is seen, heard or read in place."""
    assert bundle_of(shown["image"])["image/png"]
    assert "<audio controls" in bundle_of(shown["sound"])["text/html"]
    assert "data:audio/mpeg;base64," in bundle_of(shown["sound"])["text/html"]
    assert "<pre" in bundle_of(shown["text"])["text/html"]
    assert "<table" in bundle_of(shown["facts"])["text/html"]


def test_an_area_completes_the_ids_it_met(shown: dict[str, Any]) -> None:
    """Given what was read or made, then an area completes its id, and `[id]` reads it again."""
    client, run = shown["client"], shown["run"]
    assert run.id in client.runs._ipython_key_completions_()
    assert client.runs[run.id].id == run.id
    assert client.capabilities["llm.generate"].title


def test_names_of_capabilities_complete_from_the_start(tmp_path: Path) -> None:
    """Given a client that has read nothing yet, then the names of capabilities complete."""
    with Client.local(tmp_path) as client:
        assert "speech.generate" in client.capabilities._ipython_key_completions_()


def test_a_list_tells_states_costs_and_what_is_left_out(shown: dict[str, Any]) -> None:
    """Given more than is shown, then the line has the number of all, and the cost of the shown."""
    line = repr(shown["jobs"])
    total = shown["jobs"].total
    assert total > len(shown["jobs"]) == 3
    assert line.startswith(f"<{total} jobs; the first 3: ")
    assert "$" in line
    assert "… and" in bundle_of(shown["models"])["text/html"] or len(shown["models"]) <= 25
