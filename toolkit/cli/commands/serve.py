"""The command `toolkit serve`, which runs the HTTP server."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from toolkit.cli.errors import REFUSED, find_exit_code
from toolkit.cli.stores import warn_of_password
from toolkit.contract.errors import ErrorCode, RequestError, ToolkitError

if TYPE_CHECKING:
    from toolkit.observability.logs import LogFormat, LogLevel
    from toolkit.sandbox import Faults
    from toolkit.settings import Settings

SWITCH_INTERVAL_S = 0.001
SERVER_PACKAGES = ("prometheus_client", "structlog", "uvicorn")  # packages of the extra `server`


def serve(
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0 picks one.")] = 8000,
    workers: Annotated[
        int, Option(min=1, max=64, help="Processes that serve the port together.")
    ] = 1,
    data_dir: Annotated[Path, Option(help="Data directory.")] = Path(".toolkit"),
    sandbox: Annotated[
        bool, Option("--sandbox", help="Simulated vendors: no keys, no bills.")
    ] = False,
    allow_env: Annotated[
        list[str] | None,
        Option(help="A variable that `environment` pointers may name; repeatable."),
    ] = None,
    allow_secret: Annotated[
        list[str] | None,
        Option(help="A name in AWS Secrets Manager that pointers may name; repeatable."),
    ] = None,
    faults: Annotated[
        Path | None, Option(help="Faults of the sandbox: a TOML file of `fault` tables.")
    ] = None,
    take_up: Annotated[
        bool,
        Option(
            "--take-up",
            help="Resume unfinished work even in a copy of a data directory or database.",
        ),
    ] = False,
    closed_signup: Annotated[
        bool, Option("--closed-signup", help="Only `toolkit account create` opens accounts.")
    ] = False,
    trust_proxy: Annotated[
        list[str] | None, Option(help="Address or network of a trusted reverse proxy; repeatable.")
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        Option(help="Origin of web pages that may send requests (CORS); repeatable."),
    ] = None,
    dispatch: Annotated[
        str | None,
        Option(help="Dask cluster that runs CPU steps, as dask://host:port or tls://host:port."),
    ] = None,
    database: Annotated[
        str | None,
        Option(
            help="PostgreSQL database of the records, as postgresql://user@host/name;"
            " give its password in TOOLKIT_DATABASE, PGPASSWORD or a password"
            " file."
        ),
    ] = None,
    artifact_url: Annotated[
        str | None,
        Option(help="Storage of artifacts' bytes: a folder, or a URL such as s3://bucket/name."),
    ] = None,
    log_format: Annotated[
        Literal["auto", "json", "text"], Option(help="Format of log lines on stderr.")
    ] = "auto",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Option(help="Minimum level of log lines.")
    ] = "info",
    metrics_port: Annotated[
        int | None, Option(min=0, max=65535, help="Port of /metrics for Prometheus.")
    ] = None,
    metrics_host: Annotated[str, Option(help="Address of the metrics port.")] = "127.0.0.1",
    otel_endpoint: Annotated[
        str | None, Option(help="The base URL of an OpenTelemetry collector, for traces.")
    ] = None,
    is_worker: Annotated[bool, Option("--is-worker", hidden=True)] = False,
) -> None:
    """Serve the /v1 contract until SIGTERM or Ctrl-C."""
    _check_extra()
    if not is_worker:
        warn_of_password(database)
    if workers > 1:
        with _log_errors(log_format):
            raise typer.Exit(_run_workers(workers, host, port, metrics_port, log_format, log_level))
    with _log_errors(log_format):
        import asyncio

        from toolkit.engine.concurrency.event_loops import create_event_loop
        from toolkit.local import open_engine
        from toolkit.observability import ObservabilityOptions, observe_server
        from toolkit.server.listening import bind_socket
        from toolkit.server.serve import serve as serve_engine

        settings = _make_settings(
            data_dir=data_dir,
            closed_signup=closed_signup or None,
            trust_proxy=trust_proxy,
            cors_origins=cors_origin,
            dispatch=dispatch,
            database=database,
            artifact_url=artifact_url,
        )
        script = _load_faults(faults)
        update: dict[str, object] = {
            "sandbox": sandbox or faults is not None or settings.sandbox,
            "allow_secrets": settings.allow_secrets | frozenset(allow_secret or ()),
        }
        settings = settings.model_copy(update=update)
        allowed = settings.allow_env | frozenset(allow_env or ())
        options = ObservabilityOptions(
            log_format, log_level, metrics_host, metrics_port, otel_endpoint
        )

        # The loop is often busy, and other threads wait for the interpreter's lock meanwhile.
        sys.setswitchinterval(SWITCH_INTERVAL_S)

        async def run() -> None:
            async with observe_server(options) as watch:
                # First, so that nothing is created and no work resumed if the address is in use.
                listener = bind_socket(host, port, is_shared=is_worker)
                engine = await open_engine(
                    settings,
                    allow_env=allowed,
                    faults=script,
                    observer=watch,
                    take_up=take_up or None,
                )
                await watch.attach_engine(engine)

                def ready(url: str) -> None:
                    watch.log_started(url)
                    _print_ready(url)
                    if engine.is_held:
                        _print_held(settings)

                await serve_engine(
                    engine, host, listener, on_ready=ready, observer=watch, is_worker=is_worker
                )

        with asyncio.Runner(loop_factory=create_event_loop) as runner:
            runner.run(run())


def _run_workers(
    count: int,
    host: str,
    port: int,
    metrics_port: int | None,
    log_format: "LogFormat",
    log_level: "LogLevel",
) -> int:
    """Run several workers on one port until SIGTERM or Ctrl-C; return the exit code of all.

    Raises:
        RequestError: `INVALID_REQUEST` if the system cannot share a port.
        ServiceError: `UNAVAILABLE` if the port is in use.
    """
    import asyncio
    import socket

    from toolkit.observability.logs import configure_logging
    from toolkit.server.listening import bind_socket
    from toolkit.server.worker_group import WorkerGroup, build_commands

    if not hasattr(socket, "SO_REUSEPORT"):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "Several workers need a system whose processes can share a port: use --workers 1.",
        )
    # The first bind is exclusive, because another server of the same user might share the port.
    with bind_socket(host, port) as probe:
        port = probe.getsockname()[1]
    with (
        bind_socket(host, port, is_shared=True),
        configure_logging(sys.stderr, log_format, log_level),
    ):
        commands = build_commands(sys.argv[1:], count, port, metrics_port)
        group = WorkerGroup(commands, lambda: _print_ready(f"http://{host}:{port}"))
        return asyncio.run(group.run())


def _check_extra() -> None:
    """Exit with an install hint if packages that only a server needs are missing."""
    if any(find_spec(name) is None for name in SERVER_PACKAGES):
        print("Serving needs an extra: pip install 'capability-toolkit[server]'", file=sys.stderr)
        raise typer.Exit(REFUSED)


@contextmanager
def _log_errors(log_format: "LogFormat") -> Iterator[None]:
    """Log an error that ends the command and exit, if logs are JSON; otherwise pass it on."""
    try:
        yield
    except (ToolkitError, OSError) as error:
        from toolkit.observability.logs import LogObserver, configure_logging, is_json_format

        if not is_json_format(sys.stderr, log_format):
            raise
        code = error.code.name if isinstance(error, ToolkitError) else ErrorCode.UNAVAILABLE.name
        with configure_logging(sys.stderr, log_format, "error"):
            LogObserver().log_failure("failed", error_code=code, message=str(error))
        raise typer.Exit(find_exit_code(error)) from None


def _make_settings(**options: Any) -> "Settings":
    """Make the settings of the given options; omitted options keep their configured values."""
    from toolkit.settings import Settings

    return Settings(**{name: value for name, value in options.items() if value is not None})


def _load_faults(path: Path | None) -> "Faults | None":
    if path is None:
        return None
    from toolkit.assembly import list_compatible_vendors
    from toolkit.engine import Registry
    from toolkit.sandbox import Faults

    try:
        return Faults.load(
            path, vendors=[vendor.id for vendor in list_compatible_vendors(Registry.load())]
        )
    except (OSError, ValueError) as error:
        raise RequestError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _print_held(settings: "Settings") -> None:
    place = f"{settings.data_dir} is a copy of another data directory"
    if settings.database is not None:
        place = "The database is a copy of another database"
    print(
        f"{place}: its unfinished work is held, and GPU clouds are not touched."
        " Resume the work with --take-up.",
        file=sys.stderr,
        flush=True,
    )


def _print_ready(url: str) -> None:
    """Print the server's address; an unread stdout does not stop the server."""
    try:
        print(f"Serving /v1 on {url} (OpenAPI: {url}/openapi.json). Stop with Ctrl-C.", flush=True)
    except BrokenPipeError:
        # Otherwise the interpreter would try to flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
