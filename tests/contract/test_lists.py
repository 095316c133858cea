"""Lists that read their pages: sums, tables and counts cover all records."""

from pathlib import Path

import pytest

from toolkit import Client
from toolkit.client import AsyncClient
from toolkit.contract.errors import RequestError

COUNT = 60
LEADING = [
    "id", "capability", "status", "provider", "model", "cost_usd", "latency_ms", "created_at",
]  # fmt: skip


def create_runs(client: Client, count: int) -> None:
    """Create runs with the tag `tides`, and one without."""
    for n in range(count):
        client.runs.create("llm.generate", {"objective": f"On tide {n}"}, tags=["tides"])
    client.runs.create("llm.generate", {"objective": "On salt"})
    for run in client.runs:
        run.wait(progress=False)


def test_a_sum_covers_all_pages(client: Client) -> None:
    """Given more runs than a page, then counts, sums and tables of a tag cover them all."""
    create_runs(client, COUNT)
    (salt,) = client.runs.list(q="salt")
    cost = client.usage.list(["capability"])[0].record.cost_usd - salt.record.cost_usd
    runs = client.runs.list(tag="tides")
    assert repr(runs).startswith(f"<{COUNT} runs; the first 50: $")
    assert f"… and {COUNT - 25} more" in runs._repr_html_()
    assert runs.total == len(runs) == COUNT
    assert runs.cost_usd == pytest.approx(cost)
    assert len({run.id for run in runs}) == COUNT
    frame = client.runs.list(tag="tides").to_frame()
    assert len(frame) == COUNT
    assert frame["cost_usd"].sum() == pytest.approx(cost)
    assert repr(runs) == f"<{COUNT} runs, {repr(runs).rpartition(', ')[2]}"
    assert len(client.runs.list()) == len(list(client.runs)) == COUNT + 1


def test_a_table_has_flat_columns(client: Client) -> None:
    """Given runs, then a table has leading columns, then inputs and outputs, without dicts."""
    create_runs(client, 1)
    frame = client.runs.list().to_frame()
    columns = list(frame.columns)
    assert columns[:8] == LEADING
    assert columns[8:10] == ["input.objective", "output.text"]
    assert not {"input", "output", "options", "routing", "attempts", "usage"} & set(columns)
    assert not [name for name in columns if isinstance(frame[name][0], dict)]
    assert frame["output.usage.output_tokens"][0] > 0
    empty = client.runs.list(tag="nobody-has-it").to_frame()
    assert list(empty.columns)[:8] == LEADING
    assert set(empty) <= set(columns)


async def test_the_async_client_reads_all_pages(tmp_path: Path) -> None:
    """Given more runs than a page, then the async client awaits counts, items, sums and tables."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        for n in range(COUNT):
            await client.runs.create("llm.generate", {"objective": f"On tide {n}"}, tags=["tides"])
        ids = [run.id async for run in client.runs]
        for run_id in ids:
            await (await client.runs.get(run_id)).wait(progress=False)
        runs = client.runs.list(tag="tides")
        assert repr(runs) == "<runs, to be awaited>"
        with pytest.raises(TypeError, match="await the list first"):
            bool(runs)
        assert await runs is runs
        assert runs
        assert repr(runs).startswith(f"<{COUNT} runs; the first 50")
        assert (runs.total, await runs.count()) == (COUNT, COUNT)
        assert [run.id async for run in runs] == ids
        assert [run.id async for run in client.runs.list(55, tag="tides")] == ids[:55]
        frame = await client.runs.list(tag="tides").to_frame()
        assert len(frame) == COUNT
        assert await runs.cost_usd == pytest.approx(frame["cost_usd"].sum())
        assert [(await runs[-1]).id, (await runs[ids[3]]).id] == [ids[-1], ids[3]]
        assert [run.id for run in await runs[50:55]] == ids[50:55]
        assert len(await client.runs.list(tag="tides").to_dict()) == COUNT
        with pytest.raises(RequestError, match="limit"):
            await client.runs.list(0)
