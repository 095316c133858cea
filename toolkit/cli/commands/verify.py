"""The command `toolkit verify`, which checks the answers of connected vendors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from toolkit.cli.stores import AsJson

if TYPE_CHECKING:
    from toolkit.settings import Settings
    from toolkit.verify import Check, Report

DATA_DIR = Path(".toolkit")
CHECK_COLUMNS = (
    "provider", "kind", "result", "model", "expected", "at most", "paid", "usage", "took",
)  # fmt: skip
_MARKS = {"ok": "✓", "differs": "✗", "failed": "✗", "skipped": "·", "planned": "·"}


def verify(
    live: Annotated[
        bool, Option("--live", help="Call the vendors; without it, only list the calls.")
    ] = False,
    max_cost: Annotated[
        float, Option(min=0, help="Spend at most this in all, in US dollars.")
    ] = 0.05,
    clone: Annotated[
        Path | None,
        Option(
            exists=True,
            dir_okay=False,
            readable=True,
            help="Clone a voice of this audio file, too: this makes a voice,"
            " and its cost is not part of --max-cost if its price is not known.",
        ),
    ] = None,
    cassette: Annotated[
        Path | None, Option(help="Save the answers in this file, without secrets.")
    ] = None,
    data_dir: Annotated[Path, Option(help="Data directory with the connections.")] = DATA_DIR,
    sandbox: Annotated[bool, Option("--sandbox", help="Verify the simulated vendors.")] = (False),
    planning: Annotated[
        int | None,
        Option(
            min=1, max=60, help="Instead, plan this number of objectives with the connected model."
        ),
    ] = None,
    seed: Annotated[int, Option(help="Seed of the choice of these objectives.")] = 0,
    report_file: Annotated[Path, Option("--report", help="File for the report on them.")] = Path(
        "planning-report.json"
    ),
    as_json: AsJson = False,
) -> None:
    """Check whether each connected vendor answers as expected, by its cheapest call of each kind.

    With --planning, measure how often the connected language model plans correctly. Exit code 1 if
    a vendor fails or answers otherwise, or if nothing is connected.
    """
    from toolkit.cli.output import escape_controls, print_json
    from toolkit.settings import Settings
    from toolkit.store.data_dir.location import find_database
    from toolkit.verify import verify as ask

    def tell(check: "Check") -> None:
        line = f"{_MARKS[check.result]} {check.provider} {check.kind}: {check.result}"
        typer.echo(escape_controls("; ".join([line, *check.notes])), err=True)

    settings = Settings(data_dir=data_dir)
    if data_dir != DATA_DIR:
        find_database(data_dir)
    settings = settings.model_copy(update={"sandbox": sandbox or settings.sandbox})
    if planning is not None:
        if clone or cassette:
            raise typer.BadParameter("--planning clones no voice and keeps no cassette.")
        budget = max_cost if live else None
        _verify_planning(settings, planning, seed, budget, report_file, as_json=as_json)
        return
    report = ask(
        settings,
        live=live,
        max_cost_usd=max_cost,
        reference_audio=clone,
        cassette=cassette,
        tell=tell,
    )
    if as_json:
        print_json(report.to_dict() | {"sound": report.sound})
    else:
        _print_report(report)
    if not report.sound:
        raise typer.Exit(1)


def _verify_planning(
    settings: "Settings",
    number: int,
    seed: int,
    max_cost: float | None,
    report_file: Path,
    *,
    as_json: bool,
) -> None:
    """Measure how a model plans; without a budget, only list the objectives."""
    import json

    from toolkit.cli.output import escape_controls, print_json
    from toolkit.contract.money import format_usd
    from toolkit.verify.planning import PlannedObjective, load_objectives, measure_planning

    if max_cost is None:
        drawn = load_objectives(number, seed)
        if as_json:
            print_json([row["objective"] for row in drawn])
            return
        for row in drawn:
            typer.echo(escape_controls(f"· {row['objective']}"))
        typer.echo("No vendor was called. With --live, these objectives are planned.")
        return

    def tell(planned: PlannedObjective) -> None:
        mark = "✓" if planned.result == "exact" else "✗"
        line = f"{mark} {planned.result}: {planned.objective} {planned.error}".strip()
        typer.echo(escape_controls(line), err=True)

    report = measure_planning(settings, number, max_cost_usd=max_cost, seed=seed, tell=tell)
    text = json.dumps(report.to_dict(), ensure_ascii=False, indent=1)
    report_file.write_text(text + "\n", encoding="utf-8")
    if as_json:
        print_json(report.to_dict())
    else:
        low, high = report.interval
        paid = f"Paid {format_usd(report.cost_usd)} of {format_usd(max_cost)}."
        typer.echo(
            f"{report.provider} {report.model}: {report.exact} of {len(report.results)} plans exact"
            f" (95 % interval {low:.2f} to {high:.2f})."
        )
        typer.echo(f"{paid} Saved: {report_file}")
    if not report.model:
        raise typer.Exit(1)


def _print_report(report: "Report") -> None:
    from toolkit.cli.output import print_rows

    if report.checks:
        print_rows([_build_row(check) for check in report.checks], CHECK_COLUMNS)
    for check in report.checks:
        if not report.live and check.notes:
            typer.echo(f"· {check.provider} {check.kind}: {'; '.join(check.notes)}")
    for line in _summarize_report(report):
        typer.echo(line)


def _summarize_report(report: "Report") -> list[str]:
    from toolkit.contract.money import format_usd

    lines = []
    if not report.checks:
        lines.append("There are no connections.")
    for vendor in report.connectable:
        lines.append(f"Next: toolkit connections discover --connect {vendor}")
    limit = format_usd(report.max_cost_usd)
    if report.live:
        lines.append(f"Paid {format_usd(report.paid_usd)} of {limit}.")
    elif report.checks:
        bounds = [check.bound_usd or 0 for check in report.checks if check.result == "planned"]
        lines.append(
            f"No vendor was called. With --live, these {len(bounds)} calls may"
            f" cost up to {format_usd(sum(bounds))}; a call that could exceed"
            f" {limit} is not made."
        )
    return lines


def _format_unit(name: str, value: object) -> str:
    return f"{name} {value:g}" if isinstance(value, int | float) else f"{name} {value}"


def _build_row(check: "Check") -> dict[str, Any]:
    from toolkit.contract.money import format_usd

    def dollars(amount: float | None) -> str:
        return "" if amount is None else format_usd(amount)

    return {
        "provider": check.provider,
        "kind": check.kind,
        "result": check.result,
        "model": check.model,
        "expected": dollars(check.expected_usd),
        "at most": dollars(check.bound_usd),
        "paid": dollars(check.paid_usd),
        "usage": ", ".join(_format_unit(name, value) for name, value in check.usage.items()),
        "took": "" if check.latency_ms is None else f"{check.latency_ms} ms",
    }
