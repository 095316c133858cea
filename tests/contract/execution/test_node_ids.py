"""Ids of nodes: 1 to 255 characters, as other tools name their steps."""

import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.contract.raw_http import UNKNOWN_ULID
from toolkit import Client, RequestError

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

# Names of steps in other tools, and characters that break code which inserts ids unescaped.
IDS = {
    "argo": "loop-maps(0:image:debian,tag:9.1)",
    "airflow": "section_1.task-1[2026-11-22T00:00:00+00:00]",
    "galaxy": "Select first lines on data 1 (tabular)",
    "cwl": "file:///flows/main.cwl#main/step 1/scatter[0]",
    "markup": "</text><script>alert(1)</script>",
    "quotes": "a\"b'c`d\\e",
    "entity": "&amp;&#60;$id",
    "formula": "$x_1^2$ and $\\frac{1}{2}$",
    "path": "../../etc/passwd",
    "dots": "..",
    "space": " ",
    "ends in spaces": "  a  ",
    "device": "NUL",
    "python": "def",
    "prototype": "__proto__",
    "mermaid": 'end"] --> n0; subgraph',
    "percent": "%2F%00%s{0}",
    "line separators": "a\u2028b\u2029c",
    "noncharacter": "a\ufffeb",
    "arabic": "تقرير نهائي",
    "emoji": "👩‍👩‍👧 🚀",
    "255 characters": "s" * 255,
    "255 wide characters": "図" * 255,
}
NOT_IDS = ["", "s" * 256, "a\nb", "a\n", "a\x1b[2Jb", "a\0b", "a\x7f", "a\x85b"]
OTHER_INPUT = {"topic": "Salt"}


def build_chain(ids: list[str], **fields: object) -> dict[str, Any]:
    """Build a workflow whose nodes each depend on the previous; the fields are of the last."""
    nodes: list[dict[str, Any]] = []
    for node_id in ids:
        node = {"id": node_id, "capability": "research.gather", "input": {"topic": "Tea"}}
        nodes.append({**node, "depends_on": [nodes[-1]["id"]] if nodes else []})
    nodes[-1].update(fields)
    return {"name": "ids", "nodes": nodes}


def test_runs_and_shows_every_id(client: Client) -> None:
    """Given a chain of the ids, then it runs, and every view and event has them escaped."""
    ids = list(IDS.values())
    run = client.workflows.create(build_chain(ids)).wait(progress=False)
    assert [(node.id, node.status) for node in run.nodes] == [(i, "completed") for i in ids]
    assert run.record.sink_artifact_ids == {ids[-1]: run.final_artifact_id}
    for upstream, node in zip([None, *run.nodes], run.nodes, strict=False):
        upstream_ids = client.jobs.get(str(node.job_id)).record.input.get("from_artifacts")
        assert upstream_ids == (upstream and {upstream.id: upstream.artifact_id})
    event_ids = {event.data["node_id"] for event in run.events() if "node_id" in event.data}
    assert event_ids == set(ids)
    assert list(run.to_frame()["id"]) == ids
    for picture in (run.picture(), run.timeline().picture()):
        svg = ET.fromstring(picture)
        assert not list(svg.iter("{http://www.w3.org/2000/svg}script"))
        assert picture.count("<title>") >= 1
    mermaid = run.to_mermaid()
    assert mermaid.count("-->") == len(ids) - 1
    assert "<script" not in mermaid
    for figure in (run.plot(), run.timeline().plot()):
        page = io.BytesIO()
        figure.savefig(page, format="png")
        assert page.getvalue().startswith(b"\x89PNG")
    lineage = client.artifacts.get(run.final_artifact_id).lineage()
    assert {job.node_id for job in lineage.jobs} == set(ids)
    assert "<script>" not in str([lineage._repr_mimebundle_(), run._repr_mimebundle_()])


def test_forks_and_retries_every_id(client: Client) -> None:
    """Given nodes with the ids, then each can be forked, and is named when it fails."""
    ids = list(IDS.values())
    star = build_chain(["first"])
    star["nodes"] += [{**star["nodes"][0], "id": i, "depends_on": ["first"]} for i in ids]
    source = client.workflows.create(star).wait(progress=False)
    jobs = {node.id: node.job_id for node in source.nodes}
    for node_id in ids:
        fork = client.workflows.fork(source.id, node_id, {node_id: OTHER_INPUT})
        fork.wait(progress=False)
        assert [n.id for n in fork.nodes if n.input == OTHER_INPUT] == [node_id]
        assert [n.id for n in fork.nodes if n.job_id != jobs[n.id]] == [node_id]
    body: dict[str, Any] = {"name": "failing", "nodes": []}
    for node_id in ids:
        nodes = build_chain([node_id, f"{len(body['nodes'])} last"])["nodes"]
        nodes[0].update(input={"topic": "zzzz qqqq xxyyzz"})
        body["nodes"] += nodes
    failed = client.workflows.create(body).wait(progress=False, check=False)
    for node_id, node in zip(ids, failed.nodes[1::2], strict=True):
        assert node.error is not None
        assert f"`{node_id}`" in node.error.message
    retried = client.workflows.retry(failed.id).wait(progress=False, check=False)
    assert [node.id for node in retried.nodes] == [node.id for node in failed.nodes]


def check_rejected(calls: list[Callable[[], object]], part: str = "") -> None:
    """Check that each call is rejected, with details of which one names a part of a path."""
    for call in calls:
        with pytest.raises(RequestError, match=r"^INVALID_REQUEST:") as error:
            call()
        assert any(part in detail.path for detail in error.value.details), call


def test_rejects_an_invalid_id(client: Client) -> None:
    """Given an invalid id, then every call that names a node is rejected."""
    workflow_id = client.workflows.create(build_chain(["a"])).wait(progress=False).id
    task_id = client.tasks.create("Write about tea").wait(progress=False).id
    for node_id in NOT_IDS:
        check_rejected(
            [
                partial(client.workflows.create, build_chain([node_id])),
                partial(client.workflows.create, build_chain(["a"], depends_on=[node_id])),
                partial(client.workflows.fork, workflow_id, node_id),
                partial(client.workflows.fork, workflow_id, "a", {node_id: OTHER_INPUT}),
                partial(client.tasks.submit_review, task_id, "retry", node_id=node_id),
            ]
        )


def test_rejects_from_artifacts_of_a_caller(client: Client) -> None:
    """Given an input with `from_artifacts`, then every call that takes an input is rejected."""
    input: dict[str, object] = {"topic": "Tea", "from_artifacts": {"a": f"art_{UNKNOWN_ULID}"}}
    workflow_id = client.workflows.create(build_chain(["a"])).wait(progress=False).id
    check_rejected(
        [
            partial(client.runs.create, "research.gather", input),
            partial(client.workflows.create, build_chain(["a", "b"], input=input)),
            partial(client.workflows.fork, workflow_id, "a", {"a": input}),
            partial(client.route, "research.gather", input),
        ],
        "from_artifacts",
    )
