"""Assembly of an engine: on the network, in the sandbox or on a cassette; checks of GPU clouds."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.engine import Engine, Registry
from toolkit.engine.infrastructure.drift import find_drift
from toolkit.engine.observer import Observer
from toolkit.engine.provider_context import ProviderContext
from toolkit.engine.transport.driver import Driver
from toolkit.engine.transport.network import NetworkTransport
from toolkit.engine.transport.worker_pool import WorkerPool
from toolkit.functions import FunctionTable
from toolkit.plugins import EmbedRequest, TextRequest, TranscribeRequest, Vendor
from toolkit.plugins.compatible import OPENAI_WIRE
from toolkit.secrets import (
    ChainResolver,
    EnvironmentResolver,
    MappingResolver,
    ReportingResolver,
    SecretResolver,
    SecretsManagerResolver,
)
from toolkit.settings import SANDBOX_HOST, SANDBOX_URL, Settings, VendorSettings
from toolkit.store import Row
from toolkit.store.maintenance.upkeep_database import DataDirIssue

if TYPE_CHECKING:
    from toolkit.cassettes import Cassette, CassetteMode, CassetteTransport
    from toolkit.sandbox import CompatibleVendor, Faults


async def open_engine(
    settings: Settings,
    *,
    registry: Registry | None = None,
    allow_env: frozenset[str] | None = None,
    faults: "Faults | None" = None,
    cassette: str | Path | None = None,
    mode: "CassetteMode" = "replay",
    observer: Observer | None = None,
    take_up: bool | None = None,
    read_only: bool = False,
    functions: FunctionTable | None = None,
) -> Engine:
    """Open an engine, on the simulated vendor cloud if the settings ask for the sandbox.

    Args:
        settings: settings, with the place of the data and the addresses of vendors.
        registry: capabilities and vendors, instead of those built in and installed.
        allow_env: variables that `environment` pointers may name. None allows all, as fits a
            process whose only caller is its owner.
        faults: faults to simulate in the sandbox.
        cassette: file that answers are recorded to or replayed from; None for no cassette.
        mode: mode of the cassette: `replay`, `record` or `auto`.
        observer: observer of workflows, jobs, calls and commits; None by default.
        take_up: True resumes unfinished work even in a copy, False none; None follows the settings.
        read_only: only read the records, of all accounts.
        functions: functions of this process that workflows may call; None allows no function.

    Raises:
        ServiceError: `UNAVAILABLE` when the data directory or the cassette cannot be used.
        ValueError: if the mode is unknown.
    """
    registry = registry or Registry.load()
    tape = None
    if cassette is None and mode != "replay":
        raise ValueError(f"mode={mode!r} needs a cassette: set its file with cassette=")
    if cassette is not None:
        from toolkit.cassettes import Cassette  # here and below: with YAML, which most never need

        tape = await asyncio.to_thread(Cassette.open, Path(cassette), mode)
        if tape.answers and not settings.sandbox:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"The cassette `{tape.path.name}` was written by hand, so only the sandbox gives"
                " its answers: open it with sandbox=True, or omit it.",
            )
    transport: httpx.AsyncBaseTransport | None = None
    resolver: SecretResolver
    if settings.sandbox:
        from toolkit import sandbox
        from toolkit.sandbox.transport import AppTransport

        compatible = list_compatible_vendors(registry)
        if tape is not None and tape.answers:
            faults = _add_answers(faults, tape, compatible)
            tape = None  # the simulated vendors give them, just like their own texts
        mounted = sandbox.VENDOR_PATHS | {vendor.id: vendor.path for vendor in compatible}
        settings = apply_sandbox(settings, registry, mounted)
        keys = {registry.vendors[vendor.id].variable: vendor.key for vendor in compatible}
        resolver = MappingResolver(keys | sandbox.SANDBOX_KEYS, registry.local_variables)
        if tape is None or tape.mode != "replay":
            cloud = sandbox.create_app(faults=faults, compatible=compatible)
            transport = SandboxTransport(AppTransport(cloud))
    else:
        is_unrestricted = allow_env is None
        resolver = ChainResolver(
            EnvironmentResolver(allow_env, optional=registry.local_variables),
            SecretsManagerResolver(None if is_unrestricted else settings.allow_secrets),
        )
    if tape is not None:
        transport = _make_cassette_transport(tape, transport)
        resolver = _make_recording_resolver(tape, resolver)
    return await Engine.open(
        settings,
        transport=transport,
        resolver=resolver,
        registry=registry,
        # A replay must call the vendors of the recording, though its calls are faster.
        reproducible=tape is not None,
        observer=observer,
        take_up=take_up,
        read_only=read_only,
        functions=functions,
    )


def list_compatible_vendors(registry: Registry) -> "list[CompatibleVendor]":
    """List the vendors without a simulation of their own whose wire format the sandbox speaks."""
    from toolkit import sandbox

    return [
        _simulate(vendor)
        for vendor in registry.vendors.values()
        if vendor.wire == OPENAI_WIRE and vendor.id not in sandbox.VENDOR_PATHS
    ]


def _simulate(vendor: Vendor) -> "CompatibleVendor":
    from toolkit import sandbox

    dialect, kinds = vendor.dialect, [(model.id, model.kind) for model in vendor.models]
    forms = (dialect.extra, *dialect.model_extra.values(), *dialect.reasoning.values())
    # By the variable: vendors that share one share the key.
    # Cut short, because a key must not contain the names of models: it is removed from answers.
    key = sandbox.SANDBOX_KEYS.get(vendor.variable, f"sandbox-key-{vendor.variable.lower()[:6]}")
    models = tuple(id for id, kind in kinds if kind == TextRequest.kind)
    embedders = tuple(id for id, kind in kinds if kind == EmbedRequest.kind)
    return sandbox.CompatibleVendor(
        id=vendor.id,
        key="" if vendor.is_local else key,
        models=sandbox.LOCAL_MODELS if vendor.is_local else models,
        base_path=httpx.URL(vendor.base_urls["api"]).path.rstrip("/"),
        embeddings=sandbox.LOCAL_EMBEDDERS if vendor.is_local else embedders,
        transcribers=tuple(id for id, kind in kinds if kind == TranscribeRequest.kind),
        names=dialect.names,
        upstream=dialect.upstream,
        reasoning_member=dialect.reasoning_member,
        extra=frozenset(name for form in forms for name in form) - {"reasoning_effort"},
    )


def list_simulated_ids(registry: Registry) -> set[str]:
    """List the ids of the vendors that the sandbox has a wire and a key for.

    Local servers need no key, so they are not among them: a caller connects them, as outside.
    """
    from toolkit import sandbox

    compatible_ids = {vendor.id for vendor in list_compatible_vendors(registry) if vendor.key}
    return compatible_ids | (registry.vendors.keys() & sandbox.VENDOR_PATHS.keys())


async def check_drift(settings: Settings, rows: Mapping[str, Sequence[Row]]) -> list[DataDirIssue]:
    """Compare the resources at the connected GPU clouds with the records of a data directory.

    Only the clouds' conventional variables and the operator's allowed variables are resolved: an
    account's pointer must not have other values sent to a vendor.

    Args:
        settings: settings, with the addresses of vendors.
        rows: rows of `connections`, and of the table of each kind.
    """
    registry = Registry.load()
    usual = {v.variable for v in registry.vendors.values() if v.infrastructure}
    driver = Driver(NetworkTransport, WorkerPool.of(settings), settings.reply_limit_bytes)
    resolver = ChainResolver(
        EnvironmentResolver(settings.allow_env | usual),
        SecretsManagerResolver(settings.allow_secrets),
    )
    reach = ProviderContext(settings=settings, registry=registry, driver=driver, resolver=resolver)
    try:
        return await find_drift(reach, rows)
    finally:
        await driver.aclose()


def _add_answers(
    faults: "Faults | None", tape: "Cassette", compatible: "list[CompatibleVendor]"
) -> "Faults":
    """Add the answers of a hand-made cassette to the sandbox, for its models to give; return it.

    Raises:
        ServiceError: `UNAVAILABLE` for an unknown vendor.
    """
    from toolkit.sandbox import Faults

    faults = Faults() if faults is None else faults
    faults.add_vendors(vendor.id for vendor in compatible)
    try:
        for answer in tape.answers:
            faults.answer(answer.vendor, answer.when, answer.text)
    except ValueError as error:
        raise ServiceError(
            ErrorCode.UNAVAILABLE, f"The cassette `{tape.path.name}`: {error}"
        ) from None
    return faults


def _make_cassette_transport(
    tape: "Cassette", inner: httpx.AsyncBaseTransport | None
) -> "CassetteTransport":
    """Make the cassette's transport, on top of the network's unless it only replays."""
    from toolkit.cassettes import CassetteTransport

    if tape.mode == "replay":
        return CassetteTransport(tape, None)
    return CassetteTransport(tape, inner or NetworkTransport())


def _make_recording_resolver(tape: "Cassette", resolver: SecretResolver) -> SecretResolver:
    """Make a resolver that replays without secrets, and keeps recorded secrets out of the file."""
    from toolkit.cassettes import PLACEHOLDER

    if tape.mode == "replay":
        return ReportingResolver(MappingResolver({}), lambda _: None, PLACEHOLDER)
    missing = PLACEHOLDER if tape.mode == "auto" else None
    return ReportingResolver(resolver, tape.add_secret, missing)


def apply_sandbox(settings: Settings, registry: Registry, mounted: Mapping[str, str]) -> Settings:
    """Return the settings with every service on the sandbox, except services set by hand."""
    update: dict[str, object] = {"vendors": point_vendors_at_sandbox(settings, registry, mounted)}
    if "encyclopedia_url" not in settings.model_fields_set:
        update["encyclopedia_url"] = SANDBOX_URL + mounted["encyclopedia"]
    return settings.model_copy(update=update)


def point_vendors_at_sandbox(
    settings: Settings, registry: Registry, mounted: Mapping[str, str]
) -> dict[str, VendorSettings]:
    """Return vendor settings with each host on the sandbox; hosts set by hand stay."""
    vendors = dict(settings.vendors)
    for vendor in registry.vendors.values():
        vendor_settings = vendors.get(vendor.id, VendorSettings())
        urls = {}
        for host, url in vendor.base_urls.items():
            wire = vendor.id if host == "api" else f"{vendor.id}-{host}"
            if wire in mounted:
                urls[host] = SANDBOX_URL + mounted[wire] + httpx.URL(url).path.rstrip("/")
        vendors[vendor.id] = vendor_settings.model_copy(
            update={"base_urls": {**urls, **vendor_settings.base_urls}}
        )
    return vendors


class SandboxTransport(httpx.AsyncBaseTransport):
    """A transport to the sandbox app in this process, and to the network for all else."""

    def __init__(self, sandbox: httpx.AsyncBaseTransport) -> None:
        self._sandbox = sandbox
        self._network: httpx.AsyncBaseTransport | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the sandbox if it is for the sandbox's host, else to the network."""
        if request.url.host == SANDBOX_HOST:
            return await self._sandbox.handle_async_request(request)
        if self._network is None:
            self._network = NetworkTransport()
        return await self._network.handle_async_request(request)

    async def aclose(self) -> None:
        """Close both transports."""
        await self._sandbox.aclose()
        if self._network is not None:
            await self._network.aclose()
