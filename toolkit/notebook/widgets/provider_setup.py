"""`ProviderSetup`: the connected vendors, and a form to connect more by a secret's name."""

import os
import re
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import ipywidgets
import traitlets

from toolkit.client import Client, Connection
from toolkit.contract.choices import ConnectionType
from toolkit.contract.connections import is_variable_name
from toolkit.contract.health import Provider
from toolkit.contract.key_shapes import looks_like_key
from toolkit.notebook import widget_html
from toolkit.notebook.schema_form import guard_control
from toolkit.notebook.widget_base import Panel, Work, make_button, make_labelled, make_row

if TYPE_CHECKING:
    import pandas as pd

_LIKELY_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|CREDENTIALS?)(_|$)", re.I)
# Beginnings of keys that no variable's name has: text is checked at each letter typed, and a key
# must be cleared before it is complete.
_KEY_BEGINNINGS = re.compile(
    r"^(sk-|sk_(live|test)|rpa_|xi-|AIza|AKIA|ASIA|eyJ|ghp_|gsk_|bearer\s)"
)
SECRET_KINDS = [
    ("environment variable", "environment"),
    ("AWS Secrets Manager", "aws_secrets_manager"),
]
COLUMNS = ("provider", "title", "state", "variable", "unlocks")


class VendorRow(ipywidgets.HBox):
    """The row of a vendor: its state and its buttons.

    Args:
        fill_in: function that fills in the form for the vendor.
        test: function that starts a test of the vendor's connection.
        remove: function that starts to delete the vendor's connections.
    """

    def __init__(self, vendor: str, *, fill_in: Work, test: Work, remove: Work) -> None:
        self.state = ipywidgets.HTML(layout={"flex": "1 1 22em"})
        self.use = make_button("Fill in", f"Fill in the form for {vendor}", fill_in)
        self.test = make_button("Test", f"Test the connection of {vendor}", test)
        self.remove = make_button("Remove", f"Remove the connection of {vendor}", remove)
        for button in (self.use, self.test, self.remove):
            button.layout.min_width = "6em"
        super().__init__([self.state, self.use, self.test, self.remove])


class ProviderSetup(Panel):
    """The vendor catalogue, and a form that takes the *name* of a secret, never the secret.

    Args:
        client: the client whose connections are shown and made.

    Attributes:
        rows: the row of each vendor, by its id.
        provider, kind, name, connect: the form.
        connected: the ids of the connected vendors.
    """

    connected = traitlets.List(traitlets.Unicode())

    def __init__(self, client: Client) -> None:
        self._client = client
        self._vendors = {
            provider.record.id: provider.record for provider in client.providers.list()
        }
        self._connections: dict[str, list[Connection]] = {}
        self._tests: dict[str, str] = {}
        self.rows = {
            vendor: VendorRow(
                vendor,
                fill_in=partial(self._fill_form, vendor),
                test=self.make_action(partial(self._test_connection, vendor)),
                remove=self.make_action(partial(self._delete_connection, vendor)),
            )
            for vendor in self._vendors
        }
        self.provider = make_labelled(
            ipywidgets.Dropdown,
            "vendor",
            options=[(vendor.title, vendor.id) for vendor in self._vendors.values()],
        )
        self.kind = make_labelled(ipywidgets.Dropdown, "where the key is", options=SECRET_KINDS)
        self.name = make_labelled(
            ipywidgets.Combobox,
            "name of the secret",
            placeholder="the name of a variable, never the key itself",
            ensure_option=False,
        )
        self.presence = ipywidgets.HTML()
        self.connect = make_button(
            "Connect", "Connect the vendor with this secret", self._start_connect, "primary"
        )
        super().__init__(
            *self.rows.values(),
            ipywidgets.HTML("<h4>Connect a vendor</h4>"),
            self.provider, self.kind, self.name, self.presence, make_row(self.connect),
        )  # fmt: skip
        guard_control(self.name, self.show_message, _is_key)
        self.provider.observe(lambda _: self._fill_form(str(self.provider.value)), "value")
        for control in (self.kind, self.name):
            control.observe(lambda _: self._check_variable(), "value")
        self._read_vendors()
        self._fill_form(str(self.provider.value))

    def table(self) -> "pd.DataFrame":
        """Return the vendors as a table, one row each."""
        import pandas as pd

        return pd.DataFrame(self._collect_facts(), columns=list(COLUMNS))

    def snapshot(self) -> str:
        """Return the vendors and their state, for a saved notebook."""
        return widget_html.render_table(self._collect_facts(), COLUMNS, repr(self)[1:-1])

    def __repr__(self) -> str:
        return f"<ProviderSetup {len(self.connected)} of {len(self._vendors)} vendors connected>"

    def _collect_facts(self) -> list[dict[str, object]]:
        return [
            {
                "provider": vendor.id,
                "title": vendor.title,
                "state": self._describe_state(vendor),
                "variable": vendor.conventional_variable,
                "unlocks": ", ".join(vendor.capabilities),
            }
            for vendor in self._vendors.values()
        ]

    def _describe_state(self, vendor: Provider) -> str:
        if vendor.id in self._tests:
            return self._tests[vendor.id]
        if vendor.id in self._connections:
            return "connected by " + ", ".join(
                c.record.secret_ref for c in self._connections[vendor.id]
            )
        return "connected" if vendor.connected else "not connected"

    def _read_vendors(self) -> None:
        self._vendors = {
            provider.record.id: provider.record for provider in self._client.providers.list()
        }
        self._connections = {}
        for connection in self._client.connections:
            self._connections.setdefault(connection.record.provider, []).append(connection)
        self._show_vendors()

    def _show_vendors(self) -> None:
        self.connected = [vendor.id for vendor in self._vendors.values() if vendor.connected]
        for vendor in self._vendors.values():
            row = self.rows[vendor.id]
            mark = "●" if vendor.connected else "○"
            simulated = " (simulated)" if vendor.sandbox else ""
            row.state.value = (
                f"<b>{mark} {escape(vendor.title)}</b>{simulated}:"
                f" {escape(self._describe_state(vendor))}"
                f'<div class="tk-quiet">for {escape(", ".join(vendor.capabilities))}</div>'
            )
            row.test.disabled = row.remove.disabled = vendor.id not in self._connections

    def _fill_form(self, vendor: str) -> None:
        """Fill in the form for a vendor, and offer names that are set, the usual name first."""
        usual = self._vendors[vendor].conventional_variable
        names = sorted(
            name
            for name in os.environ
            if _LIKELY_SECRET_NAME.search(name) and is_variable_name(name)
        )
        self.name.options = tuple(dict.fromkeys([usual, *names]))
        self.provider.value = vendor
        self.name.value = usual
        self._check_variable()

    def _check_variable(self) -> None:
        """Show whether the variable is set here, without reading its value."""
        name = str(self.name.value)
        if self.kind.value != "environment" or not is_variable_name(name):
            status = ""
        elif self._vendors[str(self.provider.value)].sandbox:
            status = f"{name}: not needed, because the sandbox has its own key"
        else:
            status = f"{name}: {'set' if name in os.environ else 'not set'} in this process"
        self.presence.value = f'<div class="tk-help">{escape(status)}</div>'
        self.connect.disabled = not name

    def _start_connect(self) -> None:
        vendor, name = str(self.provider.value), str(self.name.value)
        kind: ConnectionType = self.kind.value
        if _is_key(name):
            return
        self._background.start_action(lambda: self._create_connection(vendor, kind, name))

    def _create_connection(self, vendor: str, kind: ConnectionType, name: str) -> None:
        warning = self._client.connections.create(vendor, kind, name).warning
        self._tests.pop(vendor, None)
        self._read_vendors()
        if warning is not None:
            self.show_message(f"{vendor} is connected, but {warning}", fault=True)
            return
        unlocked = ", ".join(self._vendors[vendor].capabilities)
        self.show_message(f"{vendor} is connected: it serves {unlocked}.", fault=False)

    def _test_connection(self, vendor: str) -> None:
        test = self._connections[vendor][0].test()
        works = f"works ({test.record.took_ms} ms)"
        error = test.record.error
        self._tests[vendor] = works if test.ok else error.message if error else "not verified"
        self._show_vendors()
        self.show_message(f"{vendor}: {self._tests[vendor]}", fault=not test.ok)

    def _delete_connection(self, vendor: str) -> None:
        for connection in self._connections[vendor]:
            connection.delete()
        self._tests.pop(vendor, None)
        self._read_vendors()
        self.show_message(f"{vendor} is no longer connected.", fault=False)


def _is_key(name: str) -> bool:
    return looks_like_key(name) or _KEY_BEGINNINGS.match(name) is not None
