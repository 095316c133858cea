"""The checks of each connected vendor: the calls, their maximum cost, and their results."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from toolkit.cassettes.yaml_file import RecordedExchange, has_content, read_exchanges
from toolkit.client import Client
from toolkit.contract.errors import ToolkitError
from toolkit.contract.money import format_usd
from toolkit.engine import Registry
from toolkit.settings import Settings
from toolkit.verify.comparison import compare

# The capability for each kind of operation, and the cheapest input for it.
CHEAPEST_REQUESTS: dict[str, tuple[str, dict[str, object]]] = {
    "text": ("llm.generate", {"objective": "Answer with the word ok.", "max_tokens": 256}),
    "speech": ("speech.generate", {"text": "Ok."}),
    "image": ("image.generate", {"prompt": "a dot", "width": 256, "height": 256, "steps": 4}),
    "clone": ("voice.clone", {"name": "verify"}),
    "embedding": ("embed.generate", {"texts": ["ok"]}),
    "rerank": ("text.rerank", {"query": "ok", "documents": ["ok", "no"]}),
    # The check uploads a second of silence.
    "transcription": ("speech.transcribe", {"audio": f"art_{'0' * 26}"}),
}

# A second of silence: 40 frames of an MP3.
SILENCE = (bytes((0xFF, 0xFB, 0x90, 0xC4)) + bytes(413)) * 40
UNPRICED_NOTE = "its price is unknown, so --max-cost does not include it"


@dataclass(slots=True)
class Check:
    """A check of one kind of call at one vendor.

    Attributes:
        result: `planned` before the call; then `ok`, `differs` if the answer is not as expected,
            `failed`, or `skipped` if no call was made.
        expected_usd: estimate of the call.
        bound_usd: maximum cost of the call; reserved before it is made.
        paid_usd: cost of the call.
        usage: billed units and their counts.
        request_id: whether the vendor returned its own id of the call.
        notes: remarks, a line each.
    """

    provider: str
    kind: str
    result: str = "planned"
    model: str | None = None
    expected_usd: float | None = None
    bound_usd: float | None = None
    paid_usd: float | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    request_id: bool | None = None
    latency_ms: int | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """A report of the checks and their results.

    Attributes:
        live: whether calls were made; if not, the report is their plan.
        connectable: unconnected vendors whose conventional variable is set here.
    """

    live: bool
    sandbox: bool
    max_cost_usd: float
    paid_usd: float = 0.0
    checks: list[Check] = field(default_factory=list)
    connectable: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """True if a check ran or is planned, and no check differs or failed."""
        results = {check.result for check in self.checks}
        return bool(results & {"ok", "planned"}) and not results & {"differs", "failed"}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def verify(
    settings: Settings,
    *,
    live: bool = False,
    max_cost_usd: float = 0.05,
    reference_audio: Path | None = None,
    cassette: Path | None = None,
    tell: Callable[[Check], None] = lambda _check: None,
) -> Report:
    """Call each connected vendor once for each kind of operation, within a budget, or only plan so.

    The answers are compared with the sandbox's.

    Args:
        settings: settings of the connections and of the network.
        live: True makes the calls; False sends nothing, and the report is the plan.
        max_cost_usd: maximum total cost of all calls.
        reference_audio: recording of a voice to clone. Cloning creates a voice at the vendor; if
            its price is not known, its cost comes on top of the budget.
        cassette: file that the answers are stored in, without secrets.
        tell: function that is called with each check once it is over.
    """
    report = Report(live=live, sandbox=settings.sandbox, max_cost_usd=max_cost_usd)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="toolkit-verify-")))
        tape = cassette or folder / "live.yaml"
        client = stack.enter_context(_open_client(settings, tape if live else None))
        report.connectable = [
            row.record.provider
            for row in client.connections.discover()
            if row.record.set and not row.record.connected
        ]
        report.checks = list(_plan_checks(client, max_cost_usd, reference_audio is not None))
        if not live:
            return report
        # A separate directory, because the expected answers must not depend on stored results.
        sandbox_settings = settings.model_copy(
            update={"data_dir": folder / "data", "sandbox": True, "vendors": {}}
        )
        simulated = stack.enter_context(_open_client(sandbox_settings, folder / "sandbox.yaml"))
        live_client = _RecordingClient(client, tape, reference_audio)
        sandbox_client = _RecordingClient(simulated, folder / "sandbox.yaml", reference_audio)
        for check in report.checks:
            if check.result == "planned":
                _run_check(check, live_client, sandbox_client, max_cost_usd - report.paid_usd)
                report.paid_usd += check.paid_usd or 0.0
            tell(check)
    return report


@dataclass(slots=True)
class _RecordingClient:
    """A client and the file (cassette) that the answers of vendors to its calls are recorded to."""

    client: Client
    tape: Path
    audio: Path | None

    def run(self, check: Check, room_usd: float | None) -> tuple[Any, list[RecordedExchange]]:
        """Make the call of a check, and return its result and the recorded exchanges."""
        capability, fields = CHEAPEST_REQUESTS[check.kind]
        if check.kind == "clone" and self.audio is not None:
            fields = fields | {"reference_audio": self.client.artifacts.upload(self.audio).id}
        if check.kind == "transcription":
            fields = fields | {"audio": self.client.artifacts.upload(SILENCE).id}
        offset = len(read_exchanges(self.tape)) if has_content(self.tape) else 0
        run = self.client.runs.create(
            capability,
            fields,
            provider=check.provider,
            optimize_for="cost",
            max_cost_usd=room_usd,
            cache=False,
        )
        run.wait(progress=False, check=False)
        answers = read_exchanges(self.tape)[offset:] if has_content(self.tape) else []
        return run.record, answers


def _open_client(settings: Settings, tape: Path | None) -> Client:
    once = settings.model_copy(update={"retries": 0})  # a second try would be a second call
    return Client.local(
        settings=once, cassette=tape, mode="record" if tape else "replay", take_up=False
    )


def _plan_checks(client: Client, max_cost_usd: float, with_clone: bool) -> Iterator[Check]:
    """Yield the checks, each with its maximum cost."""
    for provider in client.providers.list():
        if not provider.record.connected:
            continue
        for kind in CHEAPEST_REQUESTS:
            if kind not in provider.record.operations:
                continue
            check = Check(provider.record.id, kind)
            if kind == "clone" and not with_clone:
                check.result = "skipped"
                check.notes = ["creates a voice at the vendor: runs only with --clone FILE"]
            else:
                _price_check(client, check, max_cost_usd)
            yield check


def _price_check(client: Client, check: Check, max_cost_usd: float) -> None:
    if check.kind == "clone":
        _price_clone(client, check, max_cost_usd)
        return
    capability, fields = CHEAPEST_REQUESTS[check.kind]
    try:
        candidates = client.route(
            capability, fields, provider=check.provider, optimize_for="cost"
        ).record.candidates
    except ToolkitError as error:
        check.result, check.notes = "skipped", [error.message]
        return
    first = next((c for c in candidates if not c.excluded), None)
    if first is None:
        reason = next(
            (c.reason for c in candidates if c.provider == check.provider), "no model serves this"
        )
        check.result, check.notes = "skipped", [reason]
        return
    check.model, check.expected_usd = first.model, first.estimated_cost_usd
    check.bound_usd = first.reservation_usd
    _skip_over_budget(check, max_cost_usd)
    if check.bound_usd is None:
        check.result = "skipped"
        check.notes = [
            "has no known price, so no budget can bound its cost: set it in"
            f" [vendors.{check.provider}] prices"
        ]


def _price_clone(client: Client, check: Check, max_cost_usd: float) -> None:
    """Price one voice by the catalogue, because the sample is not uploaded yet."""
    records = (entry.record for entry in client.catalog.models())
    model = next(m for m in records if (m.provider, m.kind) == (check.provider, check.kind))
    check.model = model.model
    check.expected_usd = check.bound_usd = model.prices_usd.get("voices")
    _skip_over_budget(check, max_cost_usd)
    if check.bound_usd is None:
        check.notes = [UNPRICED_NOTE]  # not skipped: naming a recording requests this call


def _skip_over_budget(check: Check, room_usd: float) -> None:
    """Skip a check whose call may cost more than the rest of the budget."""
    if check.bound_usd is not None and check.bound_usd > room_usd:
        check.result = "skipped"
        check.notes = [
            f"may cost up to {format_usd(check.bound_usd)}, and"
            f" {format_usd(max(room_usd, 0.0))} is left:"
            " raise --max-cost"
        ]


def _run_check(
    check: Check, live_client: _RecordingClient, sandbox_client: _RecordingClient, room_usd: float
) -> None:
    """Run a check, and compare the vendor's answers with the sandbox's answers."""
    _skip_over_budget(check, room_usd)
    if check.result == "skipped":
        return
    started = monotonic()
    try:
        record, answers = live_client.run(check, None if check.bound_usd is None else room_usd)
    except ToolkitError as error:
        check.result, check.notes = "failed", [error.message]
        return
    check.latency_ms = int((monotonic() - started) * 1000)
    check.paid_usd = record.cost_incurred_usd
    check.model = record.model or check.model
    if record.status != "completed":
        fault = record.error
        check.result = "failed"
        check.notes = [f"{fault.code}: {fault.message}" if fault else record.status]
        return
    check.usage = {name: n for name, n in record.usage.items() if name != "simulated"}
    check.request_id = bool(record.attempts and record.attempts[-1].vendor_request_id)
    _, usual = sandbox_client.run(check, None)
    vendor = Registry.load().vendors[check.provider]
    comparison = compare(vendor, check.kind, answers, usual)
    check.notes = [
        *(f"missing: {name}" for name in comparison.missing),
        *(f"changed: {name}" for name in comparison.changed),
        *(f"unknown ending: {name}" for name in comparison.unknown_endings),
    ]
    if check.bound_usd is not None and record.cost_source not in ("metered", "reported"):
        check.notes.append("reports no usage: its cost is an estimate")
    if check.bound_usd is not None and (check.paid_usd or 0) > check.bound_usd:
        check.notes.append(f"cost more than its bound of {format_usd(check.bound_usd)}")
    check.result = "differs" if check.notes else "ok"
    if check.bound_usd is None:
        check.notes.append(UNPRICED_NOTE)
    if not check.request_id:
        check.notes.append("returns no request id")
    if comparison.added:
        check.notes.append("unknown members: " + ", ".join(comparison.added))
