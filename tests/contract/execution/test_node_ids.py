"""Ids of nodes: 1 to 255 characters, whatever real pipelines call their steps."""

import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from toolkit import Client, RequestError, Workflow

pytestmark = [pytest.mark.embedded, pytest.mark.sqlite("other tests have its statements")]

# As the tools that people come from name their steps, and what breaks those who paste ids.
IDS = {
    "argo": "loop-maps(0:image:debian,tag:9.1)",
    "airflow": "section_1.task-1[2026-11-22T00:00:00+00:00]",
    "dbt": "model.jaffle_shop.stg_customers.v2",
    "galaxy": "Select first lines on data 1 (tabular)",
    "snakemake": "rule map_reads: results/mapped/{sample}.bam",
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
    "one character": "x",
    "python": "def",
    "prototype": "__proto__",
    "yaml": "no: [yes]",
    "mermaid": 'end"] --> n0; subgraph',
    "percent": "%2F%00%s{0}",
    "lines of their own": "a\u2028b\u2029c",
    "no character": "a\ufffeb",
    "accents": "Überprüfung café",
    "chinese": "生成图像",
    "arabic": "تقرير نهائي",
    "emoji": "👩‍👩‍👧 🚀",
    "255 characters": "s" * 255,
    "255 wide characters": "図" * 255,
}
NOT_IDS = {
    "empty": "",
    "256 characters": "s" * 256,
    "a line break": "a\nb",
    "a line break at the end": "a\n",
    "an escape": "a\x1b[2Jb",
    "a NUL": "a\0b",
    "delete": "a\x7f",
    "a control character above ASCII": "a\x85b",
}


def chain(ids: list[str], **last: object) -> dict[str, Any]:
    """A body whose nodes each depend on the one before."""
    nodes: list[dict[str, Any]] = []
    for node_id in ids:
        node = {"id": node_id, "capability": "research.gather", "input": {"topic": "Tea"}}
        nodes.append({**node, "depends_on": [nodes[-1]["id"]] if nodes else []})
    nodes[-1].update(last)
    return {"name": "ids", "nodes": nodes}


def test_every_id_runs_and_is_shown(client: Client) -> None:
    """Given a chain of such ids, then it runs, is drawn, told, and tells what each was given."""
    ids = list(IDS.values())
    told: list[str] = []
    run = client.workflows.create(chain(ids))
    done = run.wait(progress=False)
    assert [(node.id, node.status) for node in done.nodes] == [(i, "completed") for i in ids]
    assert done.record.sink_artifact_ids == {ids[-1]: done.final_artifact_id}
    for before, node in zip([None, *done.nodes], done.nodes, strict=False):
        given = client.jobs.get(str(node.job_id)).record.input.get("from_artifacts")
        assert given == (None if before is None else {before.id: before.artifact_id})
    for event in done.events():
        told += [str(event.data["node_id"])] if "node_id" in event.data else []
    assert set(told) == set(ids)
    assert list(done.to_frame()["id"]) == ids
    for picture in (done.picture(), done.timeline().picture()):
        drawn = ET.fromstring(picture)
        assert not list(drawn.iter("{http://www.w3.org/2000/svg}script"))
        assert picture.count("<title>") >= 1
    mermaid = done.to_mermaid()
    assert mermaid.count("-->") == len(ids) - 1
    assert "<script" not in mermaid
    for figure in (done.plot(), done.timeline().plot()):
        page = io.BytesIO()
        figure.savefig(page, format="png")
        assert page.getvalue().startswith(b"\x89PNG")
    lineage = client.artifacts.get(done.final_artifact_id).lineage()
    assert {job.node_id for job in lineage.jobs} == set(ids)
    assert "<script>" not in str([lineage._repr_mimebundle_(), done._repr_mimebundle_()])


def test_every_id_can_be_forked_and_retried(client: Client) -> None:
    """Given nodes of such ids, when forked from one or all failed, then each is named."""
    ids = list(IDS.values())
    for some in (ids[i : i + 5] for i in range(0, len(ids), 5)):
        star = chain(["first"])
        star["nodes"] += [{**star["nodes"][0], "id": i, "depends_on": ["first"]} for i in some]
        done = client.workflows.create(star).wait(progress=False)
        before = {node.id: node.job_id for node in done.nodes}
        for node_id in some:
            forked = client.workflows.fork(done.id, node_id, {node_id: {"topic": "Salt"}})
            forked.wait(progress=False)
            assert [n.id for n in forked.nodes if n.input["topic"] == "Salt"] == [node_id]
            assert [n.id for n in forked.nodes if n.job_id != before[n.id]] == [node_id]
    lost: dict[str, Any] = {"name": "lost", "nodes": []}
    for node_id in ids:
        nodes = chain([node_id, f"{len(lost['nodes'])} last"])["nodes"]
        nodes[0].update(input={"topic": "zzzz qqqq xxyyzz"})
        lost["nodes"] += nodes
    failed = client.workflows.create(lost).wait(progress=False, check=False)
    for node_id, node in zip(ids, failed.nodes[1::2], strict=True):
        assert node.error is not None
        assert f"`{node_id}`" in node.error.message
    again = client.workflows.retry(failed.id).wait(progress=False, check=False)
    assert [node.id for node in again.nodes] == [node.id for node in failed.nodes]


def test_what_is_no_id_is_refused(client: Client) -> None:
    """Given what is no id of a node, then it is refused wherever a node is named."""
    done = client.workflows.create(chain(["a"])).wait(progress=False)
    task = client.tasks.create("Write about tea").wait(progress=False)
    for name, node_id in NOT_IDS.items():
        doors: list[Callable[[], object]] = [
            partial(client.workflows.create, chain([node_id])),
            partial(client.workflows.create, chain(["a"], depends_on=[node_id])),
            partial(client.workflows.fork, done.id, node_id),
            partial(client.workflows.fork, done.id, "a", {node_id: {"topic": "Salt"}}),
            partial(client.tasks.submit_review, task.id, "retry", node_id=node_id),
        ]
        for door in doors:
            with pytest.raises(RequestError) as refused:
                door()
            assert refused.value.code.name == "INVALID_REQUEST", (name, door)
            assert refused.value.details, (name, door)


def test_from_artifacts_is_the_services_alone(client: Client) -> None:
    """Given an input with `from_artifacts` of the caller's own, then it is refused everywhere."""
    theirs: dict[str, object] = {
        "topic": "Tea",
        "from_artifacts": {"a": "art_01m7xrhddbvq3n2zjx4fe01326"},
    }
    done = client.workflows.create(chain(["a"])).wait(progress=False)
    doors: list[Callable[[], object]] = [
        partial(client.runs.create, "research.gather", theirs),
        partial(client.workflows.create, chain(["a", "b"], input=theirs)),
        partial(client.workflows.fork, done.id, "a", {"a": theirs}),
        partial(client.route, "research.gather", theirs),
    ]
    for door in doors:
        with pytest.raises(RequestError) as refused:
            door()
        assert refused.value.code.name == "INVALID_REQUEST"
        assert any("from_artifacts" in detail.path for detail in refused.value.details)


def test_from_artifacts_stands_in_the_input_alone(client: Client) -> None:
    """Given a dependent node, then its job's input has `from_artifacts`, and the record has not."""
    wf = Workflow("two")
    facts = wf.add("facts", "research.gather", topic="Tea")
    wf.add("copy", "llm.generate", objective="A line", depends_on=[facts], options={"cache": True})
    done = client.workflows.submit(wf).wait(progress=False)
    given = {"facts": done.nodes[0].artifact_id}
    copy = client.jobs.get(str(done.nodes[1].job_id)).to_dict()
    assert copy["input"] == {"objective": "A line", "from_artifacts": given}
    assert "from_artifacts" not in copy
    assert done.nodes[1].input == {"objective": "A line"}
    assert "from_artifacts" not in client.jobs.get(str(done.nodes[0].job_id)).record.input
    listed = {job.id: job.record.input for job in client.jobs.list()}
    assert listed[copy["id"]] == copy["input"]
    again = client.workflows.submit(wf).wait(progress=False)
    assert again.nodes[1].cached_from == copy["id"], "another artifact of equal bytes is equal"
    forked = client.workflows.fork(done.id, "copy").wait(progress=False)
    assert client.jobs.get(str(forked.nodes[1].job_id)).record.input == copy["input"]
