"""Lists that page themselves: sums, tables and counts cover all records, and displays say so."""

from pathlib import Path

import pytest

from toolkit import Client
from toolkit.client import AsyncClient
from toolkit.contract.errors import RequestError

MANY = 60
LEADING = [
    "id", "capability", "status", "provider", "model", "cost_usd", "latency_ms", "created_at",
]  # fmt: skip


def _make_runs(client: Client, count: int) -> None:
    for n in range(count):
        client.runs.create("llm.generate", {"objective": f"On tide {n}"}, tags=["tides"])
    client.runs.create("llm.generate", {"objective": "On salt"})
    for run in client.runs:
        run.wait(progress=False)


def test_a_sum_covers_all_runs_with_a_tag(client: Client) -> None:
    """Given more runs than a page has, then counts, sums and tables of a tag cover them all."""
    _make_runs(client, MANY)
    (salt,) = client.runs.list(q="salt")
    paid = client.usage.list(["capability"])[0].record.cost_usd - salt.record.cost_usd

    runs = client.runs.list(tag="tides")
    assert repr(runs).startswith(f"<{MANY} runs; the first 50: $")
    assert f"… and {MANY - 25} more" in runs._repr_html_()
    assert runs.total == len(runs) == MANY
    assert runs.cost_usd == pytest.approx(paid)
    assert len({run.id for run in runs}) == MANY
    frame = client.runs.list(tag="tides").to_frame()
    assert len(frame) == MANY
    assert frame["cost_usd"].sum() == pytest.approx(paid)
    assert repr(runs) == f"<{MANY} runs, {repr(runs).rpartition(', ')[2]}"
    assert len(client.runs.list()) == len(list(client.runs)) == MANY + 1


def test_a_table_has_flat_columns(client: Client) -> None:
    """Given runs, then a table begins with the facts, then inputs and outputs, and has no dicts."""
    _make_runs(client, 1)
    frame = client.runs.list().to_frame()
    columns = list(frame.columns)
    assert columns[:8] == LEADING
    assert columns[8:10] == ["input.objective", "output.text"]
    assert not {"input", "output", "options", "routing", "attempts", "usage"} & set(columns)
    assert not [name for name in columns if isinstance(frame[name][0], dict)]
    empty = client.runs.list(tag="nobody-has-it").to_frame()
    assert list(empty.columns)[:8] == LEADING
    assert set(empty) <= set(columns)


async def test_the_async_client_reads_all_pages(tmp_path: Path) -> None:
    """Given more than a page, then the async client awaits counts, items, sums and tables."""
    async with AsyncClient.local(tmp_path, sandbox=True) as client:
        for n in range(60):
            await client.runs.create("llm.generate", {"objective": f"On tide {n}"}, tags=["tides"])
        ids = [run.id async for run in client.runs]
        for id in ids:
            await (await client.runs.get(id)).wait(progress=False)
        runs = client.runs.list(tag="tides")
        assert repr(runs) == "<runs, to be awaited>"
        with pytest.raises(TypeError, match="await the list first"):
            bool(runs)
        assert await runs is runs
        assert runs
        assert repr(runs).startswith("<60 runs; the first 50")
        assert (runs.total, await runs.count()) == (60, 60)
        assert [run.id async for run in runs] == ids
        assert [run.id async for run in client.runs.list(55, tag="tides")] == ids[:55]
        frame = await client.runs.list(tag="tides").to_frame()
        assert len(frame) == 60
        assert await runs.cost_usd == pytest.approx(frame["cost_usd"].sum())
        assert [(await runs[-1]).id, (await runs[ids[3]]).id] == [ids[-1], ids[3]]
        assert [run.id for run in await runs[50:55]] == ids[50:55]
        assert len(await client.runs.list(tag="tides").to_dict()) == 60
        with pytest.raises(RequestError, match="limit"):
            await client.runs.list(0)
