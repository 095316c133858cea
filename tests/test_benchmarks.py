"""The load benchmarks, with next to no load: the tests check that they run, not their figures.

`test_figure_guards.py` runs the benchmarks whose figures have a limit.
"""

import asyncio
import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import (
    _page,
    batch,
    filtered_lists,
    gateway,
    install_size,
    large_lists,
    large_workflow,
    live_graph,
    long_day,
    many_clients,
    many_workflows,
    planning,
    postgres,
    progress,
    review,
    server_frameworks,
    shared_limits,
    startup,
    store_growth,
    transfers,
    workers,
)
from benchmarks.__main__ import NAMES, render_table
from benchmarks._planning_lines import read_lines

pytestmark = pytest.mark.usefixtures("fork_programs")


def figures(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    """Return the printed lines by figure."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        assert {"figure", "value", "unit", "floor", "ratio", "limit", "kept"} <= set(line)
    return {str(line["figure"]): line for line in lines}


def test_large_workflow(capsys: pytest.CaptureFixture[str]) -> None:
    """Given two sizes of one shape, then time, memory and growth are reported."""
    large_workflow.main(("fan",), (20, 40), 1)
    lines = figures(capsys)
    assert {"large_workflow.fan.40", "large_workflow.fan.40.memory"} <= set(lines)
    assert "large_workflow.fan.40.growth" in lines


def test_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a short wait, then the CPU share of a kernel that shows progress is reported."""
    monkeypatch.setattr(progress, "CHAINS", 2)
    monkeypatch.setattr(progress, "WARM_S", 0.1)
    progress.main(0.5)
    (line,) = figures(capsys).values()
    assert line["drawn_per_s"] > 0


def test_live_graph(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a short wait and no browser, then the CPU share of the kernel is reported."""
    monkeypatch.setattr(live_graph, "NODES", 40)
    monkeypatch.setattr(live_graph, "WARM_S", 0.1)
    monkeypatch.setattr(live_graph, "find_browser", lambda: None)
    live_graph.main(1, 0.3)
    assert set(figures(capsys)) == {"live_graph.kernel"}


def test_gathers_a_wide_fan_in_groups() -> None:
    """Given more nodes than a node may depend on, then groups gather all within the limit."""
    edges = large_workflow.fan(2_500)
    assert len(edges) == 2_500
    assert max(map(len, edges.values())) <= large_workflow.MOST_UPSTREAM
    assert {up for upstream in edges.values() for up in upstream} == set(edges) - {"n2499"}


def test_many_workflows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given ten workflows at once, then throughput, acceptance, share and memory are reported."""
    monkeypatch.setattr(many_workflows, "ALONE", 3)
    many_workflows.report_figures([asyncio.run(many_workflows.measure(10))], 10)
    lines = figures(capsys)
    names = ("throughput", "accepted_p50", "accepted_p95", "small_run", "overtaken", "memory")
    assert set(lines) == {f"many_workflows.{name}" for name in names}


def test_long_day(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given two short hours, then no work is lost and all figures are reported."""
    monkeypatch.setattr(long_day, "PRUNED_EVERY", 2)
    asyncio.run(long_day.main(2, 0.05))
    lines = figures(capsys)
    names = ("memory", "files", "sockets", "tasks", "lost", "database")
    assert set(lines) == {f"long_day.{name}" for name in names}
    assert lines["long_day.lost"]["value"] == 0


def test_many_clients(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given some clients for a second, then no run is refused, lost or executed twice."""
    monkeypatch.setattr(many_clients, "CLIENTS", 16)
    monkeypatch.setattr(many_clients, "ACCOUNTS", 4)
    monkeypatch.setattr(many_clients, "MOST_GROWTH", 10.0)  # the rest is warm-up
    monkeypatch.setattr(many_clients, "MOST_TIMES_SLOWER", 1e9)  # because the time is so short
    monkeypatch.setattr(many_clients, "ROUNDS", 1)
    assert asyncio.run(many_clients.main(1.0, 0.1)) == 0
    lines = figures(capsys)
    names = (
        "faults", "lost", "doubled", "memory", "throughput", "read_p99", "accept_p99",
        "beside_the_worst",
    )  # fmt: skip
    assert set(lines) == {f"many_clients.{name}" for name in names}
    assert lines["many_clients.lost"]["runs"] > 0  # type: ignore[operator]
    assert lines["many_clients.doubled"]["sent_twice"] > 0  # type: ignore[operator]


def test_shared_limits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given two servers for a second, then rejected calls and the rate of a key are reported."""
    for name, few in {"ENGINES": 2, "CALLERS": 8, "WARM_UP_S": 0.1, "KEY_BURST": 5}.items():
        monkeypatch.setattr(shared_limits, name, few)
    shared_limits.main(0.3)
    reported = {json.loads(line)["figure"] for line in capsys.readouterr().out.splitlines()}
    names = ("refused", "used", "alone.refused", "alone.used", "key_rate")
    assert reported == {f"shared_limits.{name}" for name in names}


def test_startup(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given processes that take no time, then each figure is reported with its floor.

    `test_figure_guards.py` starts the processes themselves.
    """
    for works in (startup.FLOORS, startup.STARTS, startup.CLIENTS):
        for name in works:
            monkeypatch.setitem(works, name, lambda: 0.01)
    startup.main(1)
    names = ("import", "help", "first_run", "client", "async_client", "demo")
    assert set(figures(capsys)) == {f"startup.{name}" for name in names}


def test_finds_all_distributions_of_an_install() -> None:
    """Given two libraries, then the install has the libraries that these need, and no others."""
    names = set(install_size.find_distributions(["httpx", "pydantic"]))
    assert {"httpx", "httpcore", "pydantic", "pydantic-core"} <= names
    assert not {"pandas", "pytest"} & names


def test_finds_the_longest_chain_of_vendors() -> None:
    """Given a node without a vendor, then only the longest chain of the vendors' nodes counts."""
    spans = {
        "a": ("x", "00.000", "01.000", []),
        "b": ("x", "01.000", "03.000", ["a"]),
        "c": (None, "01.000", "10.000", ["a"]),
        "d": ("x", "00.000", "02.500", []),
    }
    minute = "2026-11-20T08:00:"
    nodes: list[dict[str, object]] = [
        {
            "id": name,
            "provider": provider,
            "started_at": f"{minute}{started}Z",
            "completed_at": f"{minute}{completed}Z",
            "depends_on": upstream,
        }
        for name, (provider, started, completed, upstream) in spans.items()
    ]
    never = {"started_at": None, "completed_at": None}
    nodes.append({"id": "e", "provider": "x", "depends_on": ["b"], **never})
    assert startup.find_longest_chain_s(nodes) == 3.0


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page with one table of one stored figure."""
    page = tmp_path / "page.md"
    blocks = "".join(
        f"<!-- begin: {name} -->\n<!-- end: {name} -->\n"
        for name in ("chart", "figures of call", "missed limits")
    )
    page.write_text(f"Before.\n{blocks}After.\n")
    tables = tmp_path / "page.toml"
    tables.write_text(
        '[call]\nbenchmarks = ["gateway"]\n[call.figures]\n"gateway.cpu_ms" = "CPU"\n'
    )
    files = {"PAGE": "page.md", "TABLES": "page.toml", "FIGURES": "f.jsonl", "CHART": "chart.svg"}
    for name, file in files.items():
        monkeypatch.setattr(_page, name, tmp_path / file)
    line = {
        "figure": "gateway.cpu_ms", "value": 1.5, "unit": "ms", "floor": 0.25, "limit": 0.9,
        "kept": False, "rounds": 5, "min": 1.25, "max": 2.0, "peer": 7.5, "peer_name": "LiteLLM",
    }  # fmt: skip
    _page.keep_figures("gateway", [_page.describe_run("gateway", 0.0, 60.0), line])
    return page


def test_writes_the_page_from_the_figures(page: Path) -> None:
    """Given stored figures, when the page is written, then it has them and keeps its prose."""
    assert _page.write_page() == []
    text = page.read_text()
    assert "| CPU | 1.5 ms (1.25–2) | 0.25 | 7.5 (LiteLLM) | 0.9, missed |" in text
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert _page.write_page(check=True) == []


def test_reports_a_page_that_differs_from_the_figures(page: Path) -> None:
    """Given a figure that was edited by hand, then the check reports the page."""
    _page.write_page()
    page.write_text(page.read_text().replace("1.5", "0.5"))
    (differs,) = _page.write_page(check=True)
    assert "page.md differs from" in differs


def test_draws_the_chart_again_only_for_other_figures(page: Path) -> None:
    """Given a chart, then the same figures leave it, and others are reported and drawn."""
    _page.write_page()
    chart = page.with_name("chart.svg")
    first = chart.read_text()
    assert "0.20" in first  # 1.5 ms of LiteLLM's 7.5 ms
    chart.write_text(first + "<!-- by another version of matplotlib -->")
    assert _page.write_page(check=True) == []
    line = next(line for line in _page.read_figures() if "figure" in line)
    run = _page.describe_run("gateway", 0.0, 60.0)
    _page.keep_figures("gateway", [run, {**line, "value": 3.0}])
    assert any("chart.svg differs from" in error for error in _page.write_page(check=True))
    assert _page.write_page() == []
    assert "0.40" in chart.read_text()


def test_lists_missed_limits_of_figures_without_a_row(page: Path) -> None:
    """Given figures that no table has, then the page lists the figures outside their limits."""
    inside = {"figure": "other.x", "value": 1, "unit": "ms", "limit": 2, "kept": True}
    outside = {"figure": "other.y", "value": 3, "unit": "ms", "limit": 2, "kept": False}
    _page.keep_figures("other", [{"benchmark": "other"}, inside, outside])
    assert _page.write_page() == []
    text = page.read_text()
    assert "- `other.y`: 3 ms, limit 2\n" in text
    assert "other.x" not in text


def test_shows_few_figures_with_their_peers_or_floors() -> None:
    """Given the page, then it shows at most 25 figures, each stored with a peer or a floor."""
    figures = {line["figure"]: line for line in _page.read_figures() if "figure" in line}
    names = [name for table in _page.read_tables().values() for name in table["figures"]]
    assert len(names) == len(set(names)) <= 25
    for name in names:
        assert {"peer", "floor"} & set(figures[name]), name


def test_keeps_the_figures_of_other_benchmarks(page: Path) -> None:
    """Given figures of two benchmarks, when one is stored again, then the other's are unchanged."""
    _page.keep_figures("other", [{"benchmark": "other"}, {"figure": "other.x", "value": 1}])
    _page.keep_figures("other", [{"benchmark": "other"}, {"figure": "other.x", "value": 2}])
    values = {line["figure"]: line["value"] for line in _page.read_figures() if "figure" in line}
    assert values == {"gateway.cpu_ms": 1.5, "other.x": 2}


def test_lists_every_benchmark_in_one_table() -> None:
    """Given all benchmarks, then one command runs them, and each figure has a row."""
    modules = {path.stem for path in Path(gateway.__file__).parent.glob("[a-z]*.py")}
    assert modules - {"review_alarms"} == set(NAMES)  # alarms take a quarter of an hour
    table = render_table(
        [
            {"figure": "a", "value": 0.12345, "unit": "ms", "floor": 0, "limit": 1, "kept": True},
            {
                "figure": "b",
                "value": 0.5,
                "unit": "share",
                "at_least": 0.6,
                "kept": False,
                "peer": 2,
            },
        ]
    )
    assert table.splitlines()[2:] == [
        "| a | 0.123 | ms | 0 |  | 1 | yes |",
        "| b | 0.5 | share |  | 2 | ≥ 0.6 | no |",
    ]


def test_transfers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given small artifacts, then the growth of a server is reported for all ways to send them."""
    monkeypatch.setattr(transfers, "READERS", 3)
    monkeypatch.setattr(transfers, "UPLOADS", 3)
    asyncio.run(transfers.main(1_000_000, 0.1, 1))
    names = ("slow_readers", "half_uploads", "uploads", "large_inputs")
    assert set(figures(capsys)) == {f"transfers.{name}" for name in names}


def test_server_frameworks(capsys: pytest.CaptureFixture[str]) -> None:
    """Given a few requests, then the server is reported with FastAPI as its floor."""
    assert asyncio.run(server_frameworks.main(1, 4, 1)) == 0
    names = ("read", "accept", "import", "lines")
    assert set(figures(capsys)) == {f"server_frameworks.{name}" for name in names}


def test_workers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a short load, then the ratio of two workers to one worker is reported."""
    monkeypatch.setattr(workers, "CALLERS", 8)
    workers.report_workers("workers.sqlite", 1, 0.3, [None] * 3)
    (line,) = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert line["value"] == pytest.approx(2 * line["per_s"] / line["apart_per_s"], abs=0.05)


def test_measures_engines_in_separate_processes() -> None:
    """Given two engines and a few runs, then their runs per second are reported."""
    assert postgres.measure_runs_per_s(2, 64, None) > 0


def test_large_lists(capsys: pytest.CaptureFixture[str]) -> None:
    """Given some runs, then the CPU time of a page is reported for each filter."""
    asyncio.run(large_lists.main(1_500, ["sqlite"], 20, 1))
    lines = figures(capsys)
    names = {*large_lists.FILTERS, "fill", "index", "prune", "write"}
    assert set(lines) == {f"large_lists.sqlite.{name}" for name in names}
    assert lines["large_lists.sqlite.text_rare"]["found"] == large_lists.RARE_RUNS


def test_filtered_lists(capsys: pytest.CaptureFixture[str]) -> None:
    """Given some runs, then each filter is reported with SQL as its floor, and others' delay."""
    asyncio.run(filtered_lists.main(1_200, 1))
    lines = figures(capsys)
    assert set(lines) == {f"filtered_lists.{name}" for name in (*filtered_lists.FILTERS, "hold")}
    assert lines["filtered_lists.tag"]["found"] == 1


def test_store_growth(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a few jobs of a kind, then their size and the cost of durability are reported.

    `test_figure_guards.py` measures the texts.
    """
    monkeypatch.delitem(store_growth.JOBS, "llm")
    asyncio.run(store_growth.main(0.02, 1))
    lines = figures(capsys)
    for kind in store_growth.JOBS:
        assert {f"store_growth.bytes.{kind}", f"store_growth.again.{kind}"} <= set(lines)
    assert "store_growth.full_over_normal" in lines


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # papermill's own: it leaves its loop open
def test_batch(capsys: pytest.CaptureFixture[str]) -> None:
    """Given two notebooks, then a batch is reported with papermill's command and API."""
    with warnings.catch_warnings():
        batch.main(rounds=1, notebooks=2, hundred=2)
    lines = figures(capsys)
    names = ("papermill_command", "papermill_api", "notebook", "hundred")
    assert set(lines) == {f"batch.{name}" for name in names}


def test_planning(capsys: pytest.CaptureFixture[str]) -> None:
    """Given one language, then figures of keywords, recorded replies and bounds are reported."""
    planning.main(["--lang", "it", "--split", "work"])
    out = capsys.readouterr().out
    values = {line["figure"]: line["value"] for line in map(json.loads, _list_json(out))}
    assert {"planning.it.exact_of_run", "planning.all.impossible_run", "planning.time"} <= set(
        values
    )
    assert values["planning.replies.exact"] >= 0.99
    assert values["planning.bound.openai"] < 0.05
    assert "| it |" in out


def _list_json(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("{")]


def test_skips_a_model_without_an_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given no address of a model, then the benchmark reports that it skips the model."""
    monkeypatch.delenv("BENCHMARK_BASE_URL", raising=False)
    assert planning.main(["--planner", "llm"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["figure"] == "planning.llm"
    assert "--base-url" in line["skipped"]


def test_planning_shows_no_line_of_the_report_split(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Given `show_failures`, then it prints only lines of the split to work on."""
    lines = read_lines(["de"])
    planning.show_failures([planning.plan_line(line) for line in lines])
    output = capsys.readouterr().err
    assert not [line.id for line in lines if line.split == "report" and line.id in output]
    assert [line.id for line in lines if line.split == "work" and line.id in output]


def test_review(capsys: pytest.CaptureFixture[str]) -> None:
    """Given one kind of artifact, then its shares and times are reported, and then the tables."""
    review.main(["--kind", "research", "--split", "work"])
    out = capsys.readouterr().out
    reported = {json.loads(line)["figure"] for line in out.splitlines() if line.startswith("{")}
    assert {
        "review.hard.spoiled_passed",
        "review.judge.good_failed",
        "review.research.time",
    } <= reported
    assert "| research |" in out
    assert "| disambiguation page |" in out


def test_review_shows_no_line_of_the_report_split(capsys: pytest.CaptureFixture[str]) -> None:
    """Given `show_failures`, then it prints only lines of the split to work on."""
    lines = [*review.read_lines("work", ["research"]), *review.read_lines("report", ["research"])]
    failed = [
        replace(outcome, passes={"checks": bool(outcome.damage)})
        for outcome in review.review_lines(lines)
    ]
    review.show_failures(failed)
    output = capsys.readouterr().err
    assert not [
        outcome.id for outcome in failed if outcome.split == "report" and outcome.id in output
    ]
    assert [outcome.id for outcome in failed if outcome.split == "work" and outcome.id in output]
