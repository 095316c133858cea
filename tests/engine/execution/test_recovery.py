"""What a crash left half written is done again, and what was paid for it is counted."""

from collections.abc import Callable
from pathlib import Path

from tests.support.database_pool import open_rows
from tests.support.timing import wait_until
from toolkit import Client, Workflow
from toolkit.sandbox import Faults


def submit_two(client: Client) -> str:
    """Submit two nodes, one after the other, each by a vendor of its own."""
    workflow = Workflow("tides")
    asked = {"objective": "Write a line on tides."}
    first = workflow.add("first", "llm.generate", asked, options={"provider": "openai"})
    workflow.add(
        "second", "llm.generate", asked, depends_on=[first], options={"provider": "anthropic"}
    )
    return client.workflows.submit(workflow).id


def test_a_document_that_is_ahead_of_its_artifact_is_done_again(
    tmp_path: Path, find_url: Callable[[Path], str | None]
) -> None:
    """Given a node whose document tells of an end that was never written, then it ends once more.

    A document is written as it is then, so a crash between two commits may leave that behind.
    """
    faults = Faults()
    faults.mangle("anthropic", "hang")
    with Client.local(tmp_path, faults=faults) as client:
        work_id = submit_two(client)
        wait_until(lambda: client.workflows.get(work_id)["second"].status == "running")
        paid_usd = client.workflows.get(work_id)["first"].cost_usd or 0.0
    with open_rows(tmp_path, find_url(tmp_path)) as database:
        ended = "(SELECT id FROM jobs WHERE node_id = 'first')"
        database.execute(f"DELETE FROM artifacts WHERE job_id = {ended}")
        database.execute(f"UPDATE jobs SET status = 'running' WHERE id = {ended}")

    with Client.local(tmp_path, sandbox=True) as client:
        work = client.workflows.get(work_id).wait(30, progress=False)
        first = work["first"]
        assert client.artifacts.get(first.artifact_id or "").text() == first.text
        assert work["second"].text
        assert first.cost_incurred_usd >= 2 * paid_usd > 0
