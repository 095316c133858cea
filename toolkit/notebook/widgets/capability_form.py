"""`CapabilityForm`: a capability as a form, and the result of running it."""

from html import escape
from typing import TYPE_CHECKING, cast, get_args

import ipywidgets
import traitlets

from toolkit.client import Client, Run
from toolkit.contract.base import JsonObject
from toolkit.contract.choices import OptimizeFor
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.jobs import Options
from toolkit.contract.money import format_usd
from toolkit.contract.run_options import RunOptions
from toolkit.notebook import widget_html
from toolkit.notebook.schema_form import NOT_GIVEN, SchemaForm
from toolkit.notebook.widget_base import (
    Panel,
    Work,
    follow_events,
    make_button,
    make_labelled,
    make_row,
)

if TYPE_CHECKING:
    import pandas as pd

CHOSEN_APART = ("provider", "optimize_for")  # options with a separate control


class CapabilityForm(Panel):
    """A form from a capability's schema that runs the capability and shows the result.

    Args:
        client: the client that runs the capability.
        name: `name` or `name@version`.

    Attributes:
        form: the fields, as `form.fields["text"].control`.
        provider, optimize_for: routing controls of the run.
        options: the other options of a run, folded at first.
        preview, start, stop: the buttons.
        status: the state of the last run; empty before the first.
        run: the last run; None before the first.
        result: the result of the last run.

    Raises:
        RequestError: `NOT_FOUND` if there is no such capability.
    """

    status = traitlets.Unicode("")

    def __init__(self, client: Client, name: str) -> None:
        capability = client.capabilities.get(name)
        record = capability.record
        self._client = client
        self.capability = capability
        self.run: Run | None = None
        self.form = SchemaForm(record.input_schema, lambda text: self.show_message(text))
        providers = record.source.routing.allowed_connections
        allowed = [(NOT_GIVEN, None), *((provider, provider) for provider in providers)]
        policies = [(NOT_GIVEN, None), *((policy, policy) for policy in get_args(OptimizeFor))]
        self.provider = make_labelled(ipywidgets.Dropdown, "provider", options=allowed)
        self.optimize_for = make_labelled(ipywidgets.Dropdown, "optimize for", options=policies)
        self.options = SchemaForm(_make_options_schema(), lambda text: self.show_message(text))
        folded = ipywidgets.Accordion([self.options], titles=("More options",))
        self.preview = make_button(
            "Preview", "Show the provider and the expected cost", self._start_preview
        )
        self.start = make_button("Run", f"Run {record.id}", self._start_run, "primary")
        self.stop = make_button("Cancel", "Cancel the run", self._cancel_run, "warning")
        self.stop.disabled = True
        self.result = ipywidgets.HTML()
        title = f"<h4>{escape(record.title)}</h4>"
        about = f'<p class="tk-quiet">{escape(record.description)} ({escape(self.name)})</p>'
        routing = [self.provider, self.optimize_for] if len(allowed) > 1 else []
        super().__init__(
            ipywidgets.HTML(title + about),
            self.form,
            *routing,
            folded,
            make_row(self.preview, self.start, self.stop),
            self.result,
        )

    @property
    def name(self) -> str:
        """The name and version of the capability, as `name@version`."""
        return f"{self.capability.record.id}@{self.capability.record.version}"

    def table(self) -> "pd.DataFrame":
        """Return the last run as a table of one row; empty before the first."""
        from toolkit.display.records.data_frame import to_data_frame

        return to_data_frame([] if self.run is None else [self.run.record])

    def snapshot(self) -> str:
        """Return the input and the result, for a saved notebook."""
        return f"<p>{escape(repr(self))}</p>{self.result.value}"

    def __repr__(self) -> str:
        return f"<CapabilityForm {self.name}{f': {self.run!r}' if self.run is not None else ''}>"

    def collect_options(self) -> RunOptions:
        """Collect the chosen options; options without a choice are None or missing."""
        routing = {"provider": self.provider.value, "optimize_for": self.optimize_for.value}
        return cast("RunOptions", {**routing, **self.options.read_values()})

    def _read_input(self) -> dict[str, object] | None:
        """Read the input from the form; show a message and return None if it cannot be read."""
        try:
            self.options.read_values()
            return self.form.read_values()
        except ValueError as error:
            self.show_message(str(error))
            return None

    def _start_preview(self) -> None:
        values = self._read_input()
        if values is not None:
            self._start_request(lambda: self._show_route(values))

    def _show_route(self, values: dict[str, object]) -> None:
        route = self._client.route(self.name, values, **self.collect_options())
        cost = format_usd(route.record.estimated_cost_usd)
        provider = f"{route.provider} ({route.model})" if route.provider else "this machine's CPU"
        self.show_message(f"The provider would be {provider}, at about {cost}.", fault=False)

    def _start_run(self) -> None:
        values = self._read_input()
        if values is not None:
            self.start.disabled = True
            self._start_request(lambda: self._submit_run(values))

    def _submit_run(self, values: dict[str, object]) -> None:
        run = self._client.runs.create(self.name, values, **self.collect_options())
        self.run = run
        self.result.value = ""
        self._show_run(run)
        self._background.start_feed(lambda: self._follow_run(run))

    def _start_request(self, work: Work) -> None:
        self._background.start_action(lambda: self._try_request(work))

    def _try_request(self, work: Work) -> None:
        """Send a request; show the faults that the service finds next to their fields."""
        self.form.mark_faults({})
        self.options.mark_faults({})
        try:
            work()
        except RequestError as error:
            faults = {d.path.removeprefix("input.").split(".")[0]: d.message for d in error.details}
            self.form.mark_faults(faults)
            by_path = {detail.path: detail.message for detail in error.details}
            self.options.mark_faults({p.removeprefix("options."): m for p, m in by_path.items()})
            elsewhere = error.code is not ErrorCode.INVALID_REQUEST
            self.show_message(
                str(error) if elsewhere or not faults else "Correct the marked fields first."
            )
        finally:
            self.start.disabled = self.run is not None and not self.run.done

    def _follow_run(self, run: Run) -> None:
        for event in follow_events(run, self._background.closed):
            if event is None:
                self._show_run(run)
            else:
                word = event.type.partition(".")[2]
                by = event.data.get("provider")
                self.show_message(f"{word}{f', {by}' if by else ''}", fault=False)
        self._show_run(run)
        if run.done:
            self.result.value = self._render_result(run)

    def _show_run(self, run: Run) -> None:
        self.status = run.status
        self.start.disabled, self.stop.disabled = not run.done, run.done
        if run.done and run.error is not None:
            self.show_message(f"{run.error.code}: {run.error.message}")

    def _render_result(self, run: Run) -> str:
        record = run.record
        facts: dict[str, object] = {
            "status": record.status,
            "provider": record.provider,
            "model": record.model,
            "cost_usd": record.cost_usd,
            "took": f"{record.latency_ms} ms" if record.latency_ms is not None else None,
        }
        body = widget_html.render_facts(facts)
        if record.artifact_id:
            body += widget_html.render_artifact(run.artifact())
        if record.output is not None:
            as_json = widget_html.render_json(record.output)
            body += f"<details><summary>Output as JSON</summary>{as_json}</details>"
        return body

    def _cancel_run(self) -> None:
        run = self.run
        if run is not None:
            self._background.start_action(lambda: self._show_run(run.cancel()))


def _make_options_schema() -> JsonObject:
    schema = Options.model_json_schema()
    properties = {
        name: member for name, member in schema["properties"].items() if name not in CHOSEN_APART
    }
    return {**schema, "properties": properties}
