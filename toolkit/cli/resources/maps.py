"""The commands of `toolkit maps`, and the command `toolkit map`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from toolkit.cli import options
from toolkit.cli.options import service_command
from toolkit.cli.output import ClientOutput
from toolkit.cli.resource_commands import add_resource_commands, make_group
from toolkit.contract.errors import ErrorCode, WorkError
from toolkit.contract.run_options import RunOptions
from toolkit.input_parsing import parse_fields

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".jsonl", ".parquet")

app = make_group("Tables, each row of which is a job.")
add_resource_commands(
    app,
    "maps",
    ("id", "capability", "status", "cost_incurred_usd", "created_at"),
)


@service_command
def run(
    shell: ClientOutput,
    name: options.Name,
    table: Annotated[Path, Argument(help="Table as .csv, .jsonl or .parquet.")],
    fields: options.Fields = None,
    input_file: options.InputFile = None,
    out: Annotated[
        Path | None, Option(help="Write the table with its results to this file.")
    ] = None,
    concurrency: Annotated[int, Option(min=1, help="Maximum number of rows in progress.")] = 8,
    on_error: Annotated[
        str,
        Option(
            help="stop, continue, or a number of rows that may fail for one reason.",
            autocompletion=lambda: ["stop", "continue"],
        ),
    ] = "stop",
    quiet: options.Quiet = False,
    tag: options.Tags = None,
    note: options.Note = None,
    cascade: Annotated[
        str | None,
        Option(
            help="A cheap and a dear model: tiers, providers or provider/model.",
            autocompletion=lambda: ["economy,premium", "economy,standard", "standard,premium"],
        ),
    ] = None,
    agreement: Annotated[
        float, Option(help="With --cascade: least share of rows with the dear model's label.")
    ] = 0.95,
    *,
    run_options: RunOptions,
) -> None:
    """Run a capability on each row of a table; {column} in a field stands for the row's value.

    --max-cost-usd limits all rows together. The same command continues where it stopped.
    """
    suffix = "" if out is None else _find_suffix(out)
    frame = _read_table(table)
    limit_usd = run_options.pop("max_cost_usd", None)
    failures: Any = int(on_error) if on_error.isdecimal() else on_error
    results = shell.client.map(
        name,
        frame,
        max_cost_usd=limit_usd,
        concurrency=concurrency,
        on_error=failures,
        options=run_options,
        progress=not quiet,
        tags=tag or None,
        note=note,
        cascade=None if cascade is None else _read_pair(cascade),
        agreement=agreement,
        **parse_fields(fields or [], input_file),
    )
    both = frame.join(
        results.rename(columns={name: f"{name}_result" for name in results if name in frame})
    )
    if out is not None:
        _write_table(both, out, suffix)
    elif shell.as_json:
        print(both.to_json(orient="records", lines=True), end="")
    else:
        print(both.to_csv(index=False), end="")
    shell.print_note(f"{results.attrs['map']}: see toolkit maps show {results.attrs['map']}")
    missing = results[results["status"] != "completed"]
    if len(missing):
        first = str(missing["error"].iloc[0])
        code = ErrorCode.__members__.get(first.partition(":")[0], ErrorCode.INVALID_REQUEST)
        message = f"{len(missing)} of {len(results)} rows have no result; the first: {first}"
        raise WorkError(code, message)


def _read_pair(text: str) -> tuple[str, str]:
    cheap, _, dear = text.partition(",")
    if not (cheap and dear) or "," in dear:
        raise BadParameter("--cascade names two models, such as economy,premium")
    return cheap.strip(), dear.strip()


def _find_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise BadParameter(f"{path} must end with {', '.join(SUFFIXES)}")
    return suffix


def _read_table(path: Path) -> "pd.DataFrame":
    import pandas as pd

    suffix = _find_suffix(path)
    if not path.is_file():
        raise BadParameter(f"there is no file {path}")
    try:
        if suffix == ".csv":
            return pd.read_csv(path)
        if suffix == ".jsonl":
            return pd.read_json(path, lines=True)
        return pd.read_parquet(path)
    except (ValueError, ImportError) as error:
        raise BadParameter(f"{path} cannot be read: {error}") from None


def _write_table(frame: "pd.DataFrame", path: Path, suffix: str) -> None:
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path, index=False)
