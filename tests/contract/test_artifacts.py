"""Artifacts: their lineage, transfer and deletion."""

import os
import tracemalloc
from pathlib import Path

import pytest

from tests.support.timing import wait_until
from toolkit import AsyncClient, Client, RequestError, ServiceError, Workflow

LARGE = b"tea leaves " * 1000


def list_files(data_dir: Path) -> list[Path]:
    """List the files of artifacts."""
    return [path for path in (data_dir / "artifacts").glob("*/*") if path.is_file()]


def test_lineage_leads_to_the_first_job(client: Client) -> None:
    """Given a chain of three nodes, then the lineage of the last artifact has all of them."""
    flow = Workflow("card")
    facts = flow.add("facts", "research.gather", topic="Tea")
    copy = flow.add("copy", "llm.generate", objective="A line on tea", depends_on=[facts])
    flow.add("card", "composition.layout", title="Tea", depends_on=[copy])
    artifact_id = client.workflows.submit(flow).wait().final_artifact_id
    lineage = client.artifacts.lineage(artifact_id)
    assert [job.node_id for job in lineage.jobs] == ["card", "copy", "facts"]
    assert lineage.jobs[0].from_artifacts["copy"] == lineage.jobs[1].artifact_id
    assert [a.id for a in lineage.artifacts] == [job.artifact_id for job in lineage.jobs]
    assert lineage.jobs[1].provider == "minimax"
    assert lineage.record.complete
    assert "3 jobs" in repr(lineage)
    assert list(lineage.to_frame()["node_id"]) == ["card", "copy", "facts"]


def test_lineage_leads_to_an_upload(client: Client) -> None:
    """Given a cloned voice, then its lineage has the uploaded reference."""
    spoken = client.runs.create("speech.generate", {"text": "A longer text on tea. " * 12}).wait()
    reference = client.artifacts.upload(client.artifacts.get(spoken.artifact_id).content())
    assert client.artifacts.lineage(reference.id).jobs == []
    input = {"reference_audio": reference.id, "name": "narrator"}
    clone_id = client.runs.create("voice.clone", input).wait().artifact_id
    lineage = client.artifacts.lineage(clone_id)
    assert lineage.jobs[0].from_artifacts == {"reference_audio": reference.id}
    assert [artifact.id for artifact in lineage.artifacts] == [clone_id, reference.id]


def test_deletes_bytes_with_their_last_record(client: Client, data_dir: Path) -> None:
    """Given two uploads of the same bytes, then the bytes are deleted with the last of them."""
    first, second = client.artifacts.upload(LARGE), client.artifacts.upload(LARGE)
    (path,) = list_files(data_dir)
    os.utime(path, (0, 0))  # stored long ago
    assert client.artifacts.delete(first.id).record.deleted
    assert second.refresh().content() == LARGE
    with pytest.raises(RequestError, match=r"^NOT_FOUND:"):
        client.artifacts.get(first.id)
    assert [artifact.id for artifact in client.artifacts.list()] == [second.id]
    assert second.delete() is second
    assert list_files(data_dir) == []


def test_stores_deleted_bytes_again(client: Client) -> None:
    """Given bytes that were just deleted, when they are uploaded again, then they are there."""
    client.artifacts.delete(client.artifacts.upload(LARGE).id)
    artifact_id = client.artifacts.upload(LARGE).id
    assert client.artifacts.get(artifact_id).content() == LARGE


def test_deletes_no_artifact_of_work_under_way(client: Client) -> None:
    """Given a workflow under way, then the artifacts of its nodes cannot be deleted."""
    flow, upstream = Workflow("long"), []
    for i in range(300):
        upstream = [flow.add(f"n{i}", "llm.generate", objective="Tea", depends_on=upstream)]
    run = client.workflows.submit(flow)
    wait_until(lambda: run.refresh().nodes[0].artifact_id)
    artifact_id = str(run.nodes[0].artifact_id)
    with pytest.raises(RequestError, match=r"^CONFLICT:"):
        client.artifacts.delete(artifact_id)
    run.cancel()
    assert client.artifacts.delete(artifact_id).record.deleted


def test_files_come_and_go_in_pieces(client: Client, tmp_path: Path) -> None:
    """Given a file of 32 MB, then it is uploaded and saved without being in memory at once."""
    source, folder = tmp_path / "leaves.bin", tmp_path / "saved"
    folder.mkdir()
    piece = os.urandom(2**20)
    with source.open("wb") as file:
        for _ in range(32):
            file.write(piece)
    tracemalloc.start()
    try:
        artifact = client.artifacts.upload(source)
        path = artifact.save(folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert artifact.size_bytes == 2**25
    assert path == folder / artifact.filename
    assert path.read_bytes() == source.read_bytes()
    assert peak < 2**24


def test_saves_no_damaged_artifact(client: Client, data_dir: Path, tmp_path: Path) -> None:
    """Given bytes that were damaged in the store, when they are saved, then no file changes."""
    artifact = client.artifacts.upload(LARGE * 200)
    (path,) = list_files(data_dir)
    with path.open("r+b") as file:
        file.seek(1_500_000)
        file.write(b"dust")
    target = tmp_path / artifact.filename
    target.write_text("an earlier file")
    for path in (tmp_path, target):
        with pytest.raises(ServiceError, match="nothing was saved"):
            artifact.save(path, overwrite=True)
    assert target.read_text() == "an earlier file"
    assert [path for path in tmp_path.iterdir() if path.is_file()] == [target]


async def test_the_async_client_transfers_files(async_client: AsyncClient, tmp_path: Path) -> None:
    """Given the async client, then it uploads and saves as the sync client does."""
    source = tmp_path / "leaves.bin"
    source.write_bytes(LARGE * 200)
    artifact = await async_client.artifacts.upload(source)
    path = await artifact.save(tmp_path / "saved.bin")
    assert path.read_bytes() == source.read_bytes()
