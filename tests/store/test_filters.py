"""Filters of lists return the same as a scan in Python, with and without an index."""

import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.store.conftest import Execute
from tests.store.rows import make_row
from tests.support.database_pool import execute_sql
from toolkit.contract.base import format_rfc3339
from toolkit.contract.ids import Prefix, make_earliest_id
from toolkit.contract.operations.work_queries import WorkFilter
from toolkit.store import (
    RUN_LIST,
    TASK_LIST,
    WORKFLOW_LIST,
    AccountScope,
    AllAccounts,
    Change,
    DeleteRow,
    ReadScope,
    Store,
    UpdateRow,
    list_search,
    schema,
    text_index,
)
from toolkit.store.sqlite import writes
from toolkit.store.work_lists import WorkList

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
RUN_COUNT, OTHER_COUNT = 690, 400
PAGE = 40
ACCOUNTS = ("acc_ada", "acc_grace")
SCOPES: tuple[ReadScope, ...] = (*map(AccountScope, ACCOUNTS), AllAccounts())
TEXTS = (
    "On Tides", "Straße", "STRASSE", "ﬁne ﬂow", "İstanbul", "istanbul", "\u212aelvin", "潮汐發電",
    "汐", "能源 and every wind", 'say "hi" / bye', "back\\slash", "😀 smile", "tab\tnew\nline",
    "ΣΊΣΥΦΟΣ", "e\u0301tude", "étude", "ǅ", "x", "",
)  # fmt: skip
QUERIES = (
    "tides", "TIDES", "strasse", "ß", "ss", "fine", "i̇s", "istanbul", "k", "kelvin", "潮汐", "潮",
    "汐", "汐發", "能源", "every wind", 'y "h', "/", "\\", "k\\s", "😀", "\n", "new\nl", "σίσ",
    "é", "e\u0301t", "ǆ", "on tides straße", "objective", "zzz", "no such thing at all", "17",
    "number 200",
)  # fmt: skip
STATUSES = ("completed", "failed", "cancelled", "queued")


@dataclass(frozen=True, slots=True)
class Record:
    """A run, workflow or task as the oracle sees it."""

    prefix: Prefix
    number: int
    account_id: str
    status: str
    capability: str
    provider: str | None
    cost_usd: float | None
    texts: tuple[str, ...]
    tags: tuple[str, ...] = field(default=())
    late: bool = False

    @property
    def at(self) -> datetime:
        """When the work was requested."""
        seconds = 30 if self.late else 0
        return BEGIN + timedelta(minutes=self.number, seconds=seconds)

    @property
    def id(self) -> str:
        """Its id in a list."""
        return make_earliest_id(self.prefix, self.at)

    def fits(self, query: WorkFilter) -> bool:
        """Return whether a filter selects the record."""
        name, cost = query.capability, self.cost_usd
        lowest, highest = query.min_cost_usd, query.max_cost_usd
        return all(
            (
                name is None or self.capability == name or self.capability.startswith(f"{name}@"),
                query.provider in (None, self.provider),
                query.status in (None, self.status),
                set(query.tags) <= set(self.tags),
                query.since is None or self.at >= query.since,
                query.until is None or self.at < query.until,
                lowest is None or (cost is not None and cost >= lowest),
                highest is None or (cost is not None and cost <= highest),
                query.text is None
                or any(query.text.casefold() in text.casefold() for text in self.texts),
            )
        )

    def make_doc(self) -> str:
        """Make its document."""
        objective, *more_texts = self.texts
        output = {"text": "zzz \x00 \\u0000"}  # PostgreSQL's JSON types refuse a NUL
        doc: dict[str, Any] = {"cost_usd": self.cost_usd, "output": output}
        if self.prefix is Prefix.RUN:
            doc["input"] = {"objective": objective, "more": [{"of": more_texts}, 5, None]}
        elif self.prefix is Prefix.WORKFLOW:
            doc |= {"name": objective, "nodes": [{"input": {"of": text}} for text in more_texts]}
        else:
            doc["objective"] = objective
        return json.dumps(doc, ensure_ascii=False)

    def insert(self) -> list[Change]:
        """Return the changes that write the record."""
        owned = {"account_id": self.account_id, "created_at": format_rfc3339(self.at)}
        row: dict[str, object] = {**owned, "status": self.status, "doc": self.make_doc()}
        changes: list[Change] = []
        if self.prefix is Prefix.RUN:
            changes.append(make_row("roots", self.id, kind="run", **owned))
            row |= {"run_id": self.id, "capability": self.capability, "provider": self.provider}
        if self.prefix is not Prefix.TASK:
            row["root_id"] = self.id
        changes.append(make_row(self.table, self.row_id, **row))
        if self.tags:
            changes.append(make_row("annotations", self.id, tags=json.dumps(self.tags), **owned))
        return changes

    @property
    def table(self) -> str:
        """The table of its row."""
        return {Prefix.RUN: "jobs", Prefix.WORKFLOW: "workflows"}.get(self.prefix, "tasks")

    @property
    def row_id(self) -> str:
        """The id of its row."""
        return self.id.replace("run_", "job_")


def make_record(
    prefix: Prefix, number: int, chance: random.Random, *, late: bool = False
) -> Record:
    """Make a record with random values."""
    texts = [*chance.choices(TEXTS, k=2), f"number {number}"]
    chance.shuffle(texts)
    if prefix is Prefix.TASK:
        texts = [" ".join(texts)]
    is_rare = number % 90 == 7
    is_run = prefix is Prefix.RUN
    return Record(
        prefix,
        number,
        ACCOUNTS[chance.random() < 0.2],
        "failed" if is_rare else chance.choices(STATUSES, (90, 0, 5, 5))[0],
        f"{'rare.draw' if is_rare else 'llm.generate'}@{chance.choice('12')}" if is_run else "",
        ("rare" if is_rare else chance.choice(["one", "two", None])) if is_run else None,
        3.5 if is_rare else chance.choice([None, 0, 0.001, 0.00125, 0.0149, chance.random()]),
        tuple(texts),
        tuple(chance.sample(["a", "b", "c"], chance.randint(0, 2))),
        late,
    )


def list_filters(prefix: Prefix) -> Iterator[WorkFilter]:
    """List each filter by itself, and some combinations."""
    for status in STATUSES:
        yield WorkFilter(status=status)
    if prefix is Prefix.RUN:
        for name in ("llm.generate", "llm.generate@2", "rare.draw", "rare.draw@1", "llm", "none"):
            yield WorkFilter(capability=name)
        for name in ("one", "rare", "none"):
            yield WorkFilter(provider=name)
        yield WorkFilter(provider="one", capability="llm.generate", status="cancelled")
    for lowest, highest in (
        (0, None), (3.5, None), (4, None), (0.5, None), (0.00124, None), (None, 0), (None, 0.001),
        (None, 0.00125), (0.001, 0.0149), (0.2, 0.21), (0.9, 0.1),
    ):  # fmt: skip
        yield WorkFilter(min_cost_usd=lowest, max_cost_usd=highest)
    yield WorkFilter(tags=("a",))
    yield WorkFilter(tags=("b", "a"), status="completed")
    yield WorkFilter(since=BEGIN + timedelta(minutes=RUN_COUNT - 50))
    yield WorkFilter(until=BEGIN + timedelta(minutes=100))
    middle = BEGIN + timedelta(minutes=RUN_COUNT // 2)
    yield WorkFilter(since=middle, until=middle + timedelta(minutes=30))
    for text in QUERIES:
        yield WorkFilter(text=text)
    for text in ("tides", "汐", "ss"):
        yield WorkFilter(text=text, status="failed")
        yield WorkFilter(text=text, tags=("c",), min_cost_usd=0.1)
        yield WorkFilter(text=text, since=middle, until=middle + timedelta(hours=3))


LISTS: tuple[tuple[Prefix, WorkList], ...] = (
    (Prefix.RUN, RUN_LIST),
    (Prefix.WORKFLOW, WORKFLOW_LIST),
    (Prefix.TASK, TASK_LIST),
)


async def check_lists(store: Store, records: list[Record], *, only_texts: bool = False) -> None:
    """Compare two pages of every list and filter, or only text filters, with the records."""
    for prefix, work in LISTS:
        newest_first = sorted(
            (record for record in records if record.prefix is prefix),
            key=lambda record: record.id,
            reverse=True,
        )
        for query in list_filters(prefix):
            if only_texts and query.text is None:
                continue
            fitting = [record for record in newest_first if record.fits(query)]
            for scope in SCOPES:
                owned = [
                    record.id
                    for record in fitting
                    if isinstance(scope, AllAccounts) or record.account_id == scope.account_id
                ]
                rows = await store.list_work(work, scope, query, PAGE, None)
                assert [row["listed_id"] for row in rows] == owned[:PAGE], (query, scope)
                if len(owned) <= PAGE:
                    continue
                before = owned[PAGE - 1]
                rows = await store.list_work(work, scope, query, PAGE, before)
                assert [row["listed_id"] for row in rows] == owned[PAGE : 2 * PAGE], query


async def write_records(store: Store, records: list[Record]) -> None:
    """Write new records."""
    for first in range(0, len(records), 500):
        batch = records[first : first + 500]
        await store.write([change for record in batch for change in record.insert()])


@pytest.fixture(autouse=True)
def _make_lists_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits, so that a search of these records needs several slices."""
    monkeypatch.setattr(list_search, "SLICE_ROWS", 50)
    monkeypatch.setattr(text_index, "MAX_CANDIDATES", 150)


@pytest.fixture
def records() -> list[Record]:
    """Many runs and some workflows and tasks of two accounts."""
    chance = random.Random(20_261_127)
    runs = [make_record(Prefix.RUN, number, chance) for number in range(RUN_COUNT)]
    prefixes = (Prefix.WORKFLOW, Prefix.TASK)
    return runs + [
        make_record(prefix, n, chance) for prefix in prefixes for n in range(OTHER_COUNT)
    ]


@pytest.fixture
async def store(tmp_path: Path, url: str | None, records: list[Record]) -> AsyncIterator[Store]:
    """A store with the records."""
    opened = await Store.open(tmp_path, database=url)
    await write_records(opened, records)
    yield opened
    await opened.close()


async def test_finds_the_same_as_a_scan(store: Store, records: list[Record]) -> None:
    """Given changed, late and deleted records, then each filter finds the same as a scan."""
    chance = random.Random(1)
    late = [make_record(Prefix.RUN, n, chance, late=True) for n in range(5, RUN_COUNT, 100)]
    await write_records(store, late)
    new = [make_record(Prefix.RUN, RUN_COUNT + n, chance) for n in range(100)]
    await write_records(store, new)
    changed = []
    for old in [*records[3::40], *late[:2]]:
        cost_usd = make_record(old.prefix, old.number, chance).cost_usd
        record = replace(old, status="failed", cost_usd=cost_usd)
        changed.append(record)
        values = {"status": record.status, "doc": record.make_doc()}
        await store.write([UpdateRow(old.table, old.row_id, values)])
    ids = {record.id for record in changed}
    records = [record for record in [*records, *late, *new] if record.id not in ids] + changed
    deleted = records[::50]
    await store.write([DeleteRow(record.table, record.row_id) for record in deleted])
    await check_lists(store, [record for record in records if record not in deleted])


async def test_counts_the_same_as_a_scan(
    store: Store, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given few enough records to read, then each filter counts the same as a scan."""
    monkeypatch.setattr(list_search, "COUNTED_DOCUMENTS", RUN_COUNT)
    for prefix, work in LISTS:
        for query in (WorkFilter(), *list_filters(prefix)):
            accounts = [
                record.account_id
                for record in records
                if record.prefix is prefix and record.fits(query)
            ]
            for scope in SCOPES:
                is_all = isinstance(scope, AllAccounts)
                count = len(accounts) if is_all else accounts.count(scope.account_id)
                assert await store.count_work(work, scope, query) == count, (
                    query,
                    scope,
                )


async def test_finds_records_without_index_entries(
    store: Store, records: list[Record], execute: Execute
) -> None:
    """Given an engine that wrote records without the index, then a search finds them."""
    for table in ("jobs", "workflows", "tasks"):
        ids = ", ".join(f"'{r.row_id}'" for r in records if r.table == table and r.number % 3)
        execute(f"UPDATE {table} SET text_number = NULL WHERE id IN ({ids})")
        execute(f"DELETE FROM input_texts WHERE id IN ({ids})")
    await check_lists(store, records, only_texts=True)


async def test_deletes_texts_with_their_records(
    store: Store, records: list[Record], execute: Execute
) -> None:
    """Given deleted records, then the index has only the texts of the other records."""
    assert execute("SELECT count(*) FROM input_texts") == [(len(records),)]
    deleted = [record for record in records if record.number < 300]
    await store.write([DeleteRow(record.table, record.row_id) for record in deleted])
    ids = {row_id for (row_id,) in execute("SELECT id FROM input_texts")}
    assert ids == {record.row_id for record in records if record.number >= 300}
    query = WorkFilter(text="number 200")
    assert not await store.list_work(RUN_LIST, AllAccounts(), query, PAGE, None)


async def test_finds_any_part_of_a_very_long_text(store: Store, records: list[Record]) -> None:
    """Given an input with more terms than the index takes, then any part of it is found."""
    characters = "".join(chr(0x4E00 + n % 20_000) + chr(0x3400 + n // 5) for n in range(30_000))
    long = replace(records[0], late=True, texts=("first words", characters, "last words"))
    await write_records(store, [long])
    for text in ("first words", characters[20_000:20_010], characters[-5:], "ast word"):
        query, scope = WorkFilter(text=text), AccountScope(long.account_id)
        rows = await store.list_work(RUN_LIST, scope, query, PAGE, None)
        assert [row["listed_id"] for row in rows] == [long.id], text


@pytest.mark.sqlite("FTS5 is an extension of SQLite")
async def test_finds_texts_without_fts5(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a build of SQLite without FTS5, then a search reads the records."""
    for module in (text_index, writes, schema):
        monkeypatch.setattr(module, "list_sqlite_schema", lambda: ())
    monkeypatch.setattr(schema, "build_newest_schema", schema.build_newest_schema.__wrapped__)
    store = await Store.open(tmp_path)
    await write_records(store, records)
    await check_lists(store, records, only_texts=True)
    await store.close()
    assert not execute_sql(tmp_path, None, "SELECT 1 FROM sqlite_master WHERE name = 'input_texts'")


SMALL, LARGE = 2_600, 26_000
MAX_GROWTH = 4.0  # of tenfold records
RARE = (
    WorkFilter(status="failed"), WorkFilter(provider="rare"), WorkFilter(capability="rare.draw"),
    WorkFilter(min_cost_usd=3.5), WorkFilter(text="nowhere"), WorkFilter(text="無"),
    WorkFilter(text="e", status="queued"), WorkFilter(until=BEGIN),
)  # fmt: skip


@pytest.mark.sqlite("the CPU of this process; that of a server: benchmarks.large_lists")
async def test_a_rare_filter_reads_few_records(tmp_path: Path) -> None:
    """Given ten times the records, then a filter with few results takes about the same CPU."""
    seconds: dict[int, list[float]] = {}
    for size in (SMALL, LARGE):
        chance = random.Random(size)
        store = await Store.open(tmp_path / str(size))
        plain = replace(make_record(Prefix.RUN, 1, chance), status="completed", provider="one")
        plain = replace(plain, capability="x@1", cost_usd=0.1, texts=("every", "one"), tags=())
        await write_records(store, [replace(plain, number=n) for n in range(size)])
        seconds[size] = [await _measure_cpu(store, query, plain.account_id) for query in RARE]
        await store.close()
    growth = [large / small for small, large in zip(seconds[SMALL], seconds[LARGE], strict=True)]
    assert max(growth) < MAX_GROWTH, growth


async def _measure_cpu(store: Store, query: WorkFilter, account_id: str) -> float:
    """Return the lowest CPU of several searches, in seconds."""
    seconds = []
    for _ in range(5):
        began = time.process_time()
        assert not await store.list_work(RUN_LIST, AccountScope(account_id), query, PAGE, None)
        seconds.append(time.process_time() - began)
    return min(seconds)
