"""`CapabilityForm`: a capability as a form, and the result of running it."""

from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from toolkit.client import Client
from toolkit.client._sync.areas.runs import Run
from toolkit.contract.capabilities import Capability as CapabilityRecord
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.display.text import money
from toolkit.notebook import pieces
from toolkit.notebook.forms import NOT_GIVEN, Form
from toolkit.notebook.panel import Panel, button, labelled, row
from toolkit.notebook.threads import Work, follow

if TYPE_CHECKING:
    import pandas as pd

POLICIES = ("balanced", "cost", "latency", "quality")


class CapabilityForm(Panel):
    """A form from a capability's schema that runs it and shows the result.

    Args:
        client: the client that runs it.
        name: `name` or `name@version`.

    Attributes:
        form: the fields, as `form.fields["text"].control`.
        provider, optimize_for: how the run may be routed.
        preview, start, stop: the buttons.
        status: the state of the last run; empty before the first.
        run: the last run; none before the first.
        result: the result of the last run.

    Raises:
        RequestError: `NOT_FOUND`.
    """

    status = traitlets.Unicode("")

    def __init__(self, client: Client, name: str) -> None:
        capability = client.capabilities.get(name)
        record = capability.record
        self._client = client
        self.capability = capability
        self.run: Run | None = None
        self.form = Form(record.input_schema, lambda told: self.tell(told))
        allowed = [(NOT_GIVEN, None), *((one, one) for one in _providers(record))]
        policies = [(NOT_GIVEN, None), *((one, one) for one in POLICIES)]
        self.provider = labelled(ipywidgets.Dropdown, "provider", options=allowed)
        self.optimize_for = labelled(ipywidgets.Dropdown, "optimize for", options=policies)
        self.preview = button("Preview", "Who would serve it and what it would cost", self._route)
        self.start = button("Run", f"Run {record.id}", self._start, "primary")
        self.stop = button("Cancel", "Cancel the run", self._stop, "warning")
        self.stop.disabled = True
        self.result = ipywidgets.HTML()
        title = f"<h4>{escape(record.title)}</h4>"
        about = f'<p class="tk-quiet">{escape(record.description)} ({escape(self.name)})</p>'
        routing = [self.provider, self.optimize_for] if len(allowed) > 1 else []
        super().__init__(
            ipywidgets.HTML(title + about),
            self.form,
            *routing,
            row(self.preview, self.start, self.stop),
            self.result,
        )

    @property
    def name(self) -> str:
        """`name@version`."""
        return f"{self.capability.record.id}@{self.capability.record.version}"

    def table(self) -> "pd.DataFrame":
        """Return the last run as a table of one row; empty before the first."""
        from toolkit.display.frames import frame

        return frame([] if self.run is None else [self.run.record])

    def snapshot(self) -> str:
        """Return the input and the result, for a saved notebook."""
        return f"<p>{escape(repr(self))}</p>{self.result.value}"

    def __repr__(self) -> str:
        return f"<CapabilityForm {self.name}{f': {self.run!r}' if self.run is not None else ''}>"

    def _options(self) -> dict[str, Any]:
        return {"provider": self.provider.value, "optimize_for": self.optimize_for.value}

    def _input(self) -> dict[str, object] | None:
        """Read the input from the form; none, with a message, where it cannot be read."""
        try:
            return self.form.read()
        except ValueError as error:
            self.tell(str(error))
            return None

    def _route(self) -> None:
        given = self._input()
        if given is not None:
            self._background.act(lambda: self._tried(lambda: self._preview(given)))

    def _preview(self, given: dict[str, object]) -> None:
        route = self._client.route(self.name, given, **self._options())
        cost = money(route.record.estimated_cost_usd)
        who = f"{route.provider} ({route.model})" if route.provider else "this machine's CPU"
        self.tell(f"It would be served by {who}, for about {cost}.", fault=False)

    def _start(self) -> None:
        given = self._input()
        if given is not None:
            self.start.disabled = True
            self._background.act(lambda: self._tried(lambda: self._run(given)))

    def _run(self, given: dict[str, object]) -> None:
        run = self._client.runs.create(self.name, given, **self._options())
        self.run = run
        self.result.value = ""
        self._show(run)
        self._background.feed(lambda: self._follow(run))

    def _tried(self, work: Work) -> None:
        """Send a request; what the service finds wrong is shown beside the field."""
        self.form.mark({})
        try:
            work()
        except RequestError as error:
            faults = {d.path.removeprefix("input.").split(".")[0]: d.message for d in error.details}
            self.form.mark(faults)
            elsewhere = error.code is not ErrorCode.INVALID_REQUEST
            self.tell(str(error) if elsewhere or not faults else "Mend what is marked first.")
        finally:
            self.start.disabled = self.run is not None and not self.run.done

    def _follow(self, run: Run) -> None:
        for event in follow(run, self._background.closed):
            if event is None:
                self._show(run)
            else:
                word = event.type.partition(".")[2]
                by = event.data.get("provider")
                self.tell(f"{word}{f', {by}' if by else ''}", fault=False)
        self._show(run)
        if run.done:
            self.result.value = self._result(run)

    def _show(self, run: Run) -> None:
        self.status = run.status
        self.start.disabled, self.stop.disabled = not run.done, run.done
        if run.done and run.error is not None:
            self.tell(f"{run.error.code}: {run.error.message}")

    def _result(self, run: Run) -> str:
        record = run.record
        told: dict[str, object] = {
            "status": record.status,
            "provider": record.provider,
            "model": record.model,
            "cost_usd": record.cost_usd,
            "took": f"{record.latency_ms} ms" if record.latency_ms is not None else None,
        }
        shown = pieces.facts(told)
        if record.artifact_id:
            shown += pieces.artifact(self._client.artifacts.get(record.artifact_id))
        if record.output is not None:
            shown += (
                f"<details><summary>Output as JSON</summary>{pieces.data(record.output)}</details>"
            )
        return shown

    def _stop(self) -> None:
        run = self.run
        if run is not None:
            self._background.act(lambda: self._show(run.cancel()))


def _providers(record: CapabilityRecord) -> list[str]:
    return record.source.routing.allowed_connections
