"""The `toolkit` command: the demo, the server, and single runs and tasks from a shell."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from toolkit import upkeep
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError

if TYPE_CHECKING:
    from toolkit.sandbox import Faults

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Ask for capabilities, not vendors.",
)

app.command()(upkeep.doctor)
app.command()(upkeep.backup)
app.command()(upkeep.prune)

DataDir = Annotated[Path, typer.Option(help="Where everything is kept.")]
Sandbox = Annotated[bool, typer.Option("--sandbox", help="Simulated vendors: no keys, no bills.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def main() -> None:
    """Run the command line; an error is one line on stderr and exit code 1."""
    try:
        app()
    except ToolkitError as error:
        print(error, file=sys.stderr)
        sys.exit(1)


@app.command()
def demo(
    topic: Annotated[str, typer.Option(help="What the card and the summary are about.")] = (
        "tidal power"
    ),
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("demo-output"),
) -> None:
    """Make a social card with a spoken summary: one objective in, reviewed artifacts out."""
    from toolkit.batch.demo import run_demo

    if not run_demo(topic, out):
        raise typer.Exit(1)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 picks one.")] = 8000,
    data_dir: DataDir = Path(".toolkit"),
    sandbox: Sandbox = False,
    allow_env: Annotated[
        list[str] | None,
        typer.Option(help="A variable that `environment` pointers may name; repeatable."),
    ] = None,
    allow_secret: Annotated[
        list[str] | None,
        typer.Option(help="A name in AWS Secrets Manager that pointers may name; repeatable."),
    ] = None,
    faults: Annotated[
        Path | None, typer.Option(help="What goes wrong in the sandbox: a TOML file of [[fault]].")
    ] = None,
    log_format: Annotated[
        Literal["auto", "json", "text"], typer.Option(help="Of log lines, on stderr.")
    ] = "auto",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="Of log lines.")
    ] = "info",
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Where Prometheus finds /metrics.")
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="The address of that port.")] = "127.0.0.1",
    otel_endpoint: Annotated[
        str | None, typer.Option(help="The base URL of an OpenTelemetry collector, for traces.")
    ] = None,
) -> None:
    """Serve the /v1 contract until SIGTERM or Ctrl-C."""
    from toolkit.local import open_engine
    from toolkit.observability import Watching, watching
    from toolkit.server.serve import serve as serve_engine
    from toolkit.settings import Settings

    settings = Settings(data_dir=data_dir)
    script = _script(faults)
    update: dict[str, object] = {
        "sandbox": sandbox or faults is not None or settings.sandbox,
        "allow_secrets": settings.allow_secrets | frozenset(allow_secret or ()),
    }
    settings = settings.model_copy(update=update)
    allowed = settings.allow_env | frozenset(allow_env or ())
    asked = Watching(log_format, log_level, metrics_host, metrics_port, otel_endpoint)

    async def run() -> None:
        async with watching(asked) as watch:
            engine = await open_engine(settings, allow_env=allowed, faults=script, observer=watch)
            await watch.attach(engine)

            def ready(url: str) -> None:
                watch.started(url)
                _say_ready(url)

            await serve_engine(engine, host, port, on_ready=ready, observer=watch)

    asyncio.run(run())


def _script(path: Path | None) -> "Faults | None":
    if path is None:
        return None
    from toolkit.sandbox import Faults

    try:
        return Faults.load(path)
    except (OSError, ValueError) as error:
        raise RequestError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _say_ready(url: str) -> None:
    print(f"Serving /v1 on {url} (OpenAPI: {url}/openapi.json). Stop with Ctrl-C.", flush=True)


connections_app = typer.Typer(
    no_args_is_help=True, help="The vendors you have keys for; keys stay where they are."
)
app.add_typer(connections_app, name="connections")


@connections_app.command()
def discover(
    connect: Annotated[
        list[str] | None, typer.Option(help="Connect this vendor; repeatable, or `all`.")
    ] = None,
    data_dir: DataDir = Path(".toolkit"),
    as_json: AsJson = False,
) -> None:
    """Show which conventional variables are set here, and connect those you name."""
    from rich.console import Console
    from rich.table import Table

    from toolkit.local import Client

    with Client.local(data_dir) as client:
        found = [row.record for row in client.connections.discover()]
        fresh = [row.provider for row in found if row.set and not row.connected]
        wanted = fresh if connect == ["all"] else connect or []
        if wanted:
            client.connections.connect(*wanted)
            found = [row.record for row in client.connections.discover()]
    if as_json:
        print(json.dumps([row.model_dump(mode="json") for row in found], indent=2))
        return
    table = Table("vendor", "variable", "set here", "connected", box=None)
    for row in found:
        marks = ("yes" if row.set else "no", "yes" if row.connected else "no")
        table.add_row(row.provider, row.variable, *marks)
    Console().print(table)
    if fresh and not wanted:
        print(f"Next: toolkit connections discover --connect {fresh[0]}")


@connections_app.command("test")
def try_connection(
    provider: Annotated[str, typer.Argument(help="A connected vendor.")],
    data_dir: DataDir = Path(".toolkit"),
    sandbox: Sandbox = False,
) -> None:
    """Say whether a vendor's pointer resolves and its key is taken; costs nothing."""
    from toolkit.local import Client

    with Client.local(data_dir, sandbox=sandbox) as client:
        mine = [c for c in client.connections.list(200) if c.record.provider == provider]
        if not mine:
            raise RequestError(ErrorCode.NOT_FOUND, f"`{provider}` is not connected.")
        result = client.connections.test(mine[0].id)
    print(repr(result)[1:-1])
    if not result.ok:
        raise typer.Exit(1)


@app.command()
def capabilities(as_json: AsJson = False) -> None:
    """List what can be asked for, and who serves it."""
    from rich.console import Console
    from rich.table import Table

    from toolkit.engine import Registry

    records = Registry.load().records()
    if as_json:
        print(json.dumps([record.model_dump(mode="json") for record in records], indent=2))
        return
    table = Table("capability", "title", "served by", "yields", box=None)
    for record in records:
        vendors = ", ".join(record.source.routing.allowed_connections) or "this machine"
        table.add_row(f"{record.id}@{record.version}", record.title, vendors, record.yields)
    Console().print(table)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A capability, such as llm.generate.")],
    fields: Annotated[
        list[str] | None, typer.Argument(help="Its input: name=value, or name:=JSON.")
    ] = None,
    data_dir: DataDir = Path(".toolkit"),
    sandbox: Sandbox = False,
    save: Annotated[Path | None, typer.Option(help="Write the artifact to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run one capability and print its output."""
    from toolkit.local import Client

    with Client.local(data_dir, sandbox=sandbox) as client:
        done = client.runs.create(name, _parsed(fields or [])).wait()
        if save is not None and done.artifact_id is not None:
            client.artifacts.get(done.artifact_id).save(save)
        shown = done.to_dict() if as_json else done.output
    print(json.dumps(shown, indent=2, ensure_ascii=False))


@app.command()
def task(
    objective: Annotated[str, typer.Argument(help="What is wanted, in plain words.")],
    max_cost_usd: Annotated[float | None, typer.Option(min=0, help="Spend at most this.")] = None,
    data_dir: DataDir = Path(".toolkit"),
    sandbox: Sandbox = False,
    out: Annotated[Path, typer.Option(help="Where the artifacts go.")] = Path("."),
    as_json: AsJson = False,
) -> None:
    """Plan an objective, run it, review it, and save what it made."""
    from toolkit.local import Client

    with Client.local(data_dir, sandbox=sandbox) as client:
        done = client.tasks.create(objective, max_cost_usd=max_cost_usd).wait()
        out.mkdir(parents=True, exist_ok=True)
        paths = []
        for node_id, artifact_id in done.record.artifact_ids.items():
            artifact = client.artifacts.get(artifact_id)
            suffix = Path(artifact.record.filename).suffix
            paths.append(str(artifact.save(out / f"{node_id}{suffix}")))
        shown = done.to_dict()
    if as_json:
        print(json.dumps({**shown, "paths": paths}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(paths))


def _parsed(fields: list[str]) -> dict[str, Any]:
    """`name=value` is text, `name:=value` is JSON."""
    given: dict[str, Any] = {}
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals:
            raise ToolkitError(ErrorCode.INVALID_REQUEST, f"`{field}` is not name=value.")
        if name.endswith(":"):
            try:
                given[name[:-1]] = json.loads(value)
            except ValueError:
                raise ToolkitError(
                    ErrorCode.INVALID_REQUEST, f"The value of `{name[:-1]}` is not JSON."
                ) from None
        else:
            given[name] = value
    return given
