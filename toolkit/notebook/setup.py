"""`ProviderSetup`: the connected vendors, and a form to connect more by a secret's name."""

import os
import re
from html import escape
from typing import TYPE_CHECKING

import ipywidgets
import traitlets

from toolkit.client import Client
from toolkit.client._sync.areas.connections import Connection
from toolkit.contract.connections import is_variable, looks_like_a_key
from toolkit.contract.health import Provider
from toolkit.notebook import pieces
from toolkit.notebook.forms import guarded
from toolkit.notebook.panel import Panel, button, labelled, row

if TYPE_CHECKING:
    import pandas as pd

_LIKELY = re.compile(r"(KEY|TOKEN|SECRET|CREDENTIALS?)(_|$)", re.I)
# Beginnings of keys that a variable's name does not have: text is checked at each letter typed,
# and a key must be cleared before it is complete.
_BEGINNINGS = re.compile(r"^(sk-|sk_(live|test)|rpa_|xi-|AIza|AKIA|ASIA|eyJ|ghp_|gsk_|bearer\s)")
KINDS = [
    ("variable of the environment", "environment"),
    ("AWS Secrets Manager", "aws_secrets_manager"),
]
COLUMNS = ("provider", "title", "state", "variable", "unlocks")


class VendorRow(ipywidgets.HBox):
    """The row of one vendor: its state, and its buttons.

    Attributes:
        state: in words.
        use, test, remove: the buttons.
    """

    def __init__(self, panel: "ProviderSetup", vendor: str) -> None:
        self.state = ipywidgets.HTML(layout={"flex": "1 1 22em"})
        self.use = button("Fill in", f"Fill in the form for {vendor}", lambda: panel._fill(vendor))
        self.test = button("Test", f"Test the connection of {vendor}", lambda: panel._test(vendor))
        self.remove = button(
            "Remove", f"Remove the connection of {vendor}", lambda: panel._remove(vendor)
        )
        for one in (self.use, self.test, self.remove):
            one.layout.min_width = "6em"
        super().__init__([self.state, self.use, self.test, self.remove])


class ProviderSetup(Panel):
    """The vendor catalogue, and a form that takes the *name* of a secret, never the secret.

    Args:
        client: the client whose connections are shown and made.

    Attributes:
        rows: the row of each vendor, by its id.
        provider, kind, name, connect: the form.
        connected: the ids of the vendors that are connected.
    """

    connected = traitlets.List(traitlets.Unicode())

    def __init__(self, client: Client) -> None:
        self._client = client
        self._vendors = {one.record.id: one.record for one in client.providers.list()}
        self._found: dict[str, list[Connection]] = {}
        self._tests: dict[str, str] = {}
        self.rows = {vendor: VendorRow(self, vendor) for vendor in self._vendors}
        self.provider = labelled(
            ipywidgets.Dropdown,
            "vendor",
            options=[(vendor.title, vendor.id) for vendor in self._vendors.values()],
        )
        self.kind = labelled(ipywidgets.Dropdown, "where the key is", options=KINDS)
        self.name = labelled(
            ipywidgets.Combobox,
            "name of the secret",
            placeholder="the name of a variable, never the key itself",
            ensure_option=False,
        )
        self.presence = ipywidgets.HTML()
        self.connect = button("Connect", "Register this name", self._connect, "primary")
        super().__init__(
            *self.rows.values(),
            ipywidgets.HTML("<h4>Connect a vendor</h4>"),
            self.provider, self.kind, self.name, self.presence, row(self.connect),
        )  # fmt: skip
        guarded(self.name, self.tell, _is_key)
        self.provider.observe(lambda _: self._fill(str(self.provider.value)), "value")
        for control in (self.kind, self.name):
            control.observe(lambda _: self._look(), "value")
        self._read()
        self._fill(str(self.provider.value))

    def table(self) -> "pd.DataFrame":
        """Return the vendors as a table, one row each."""
        import pandas as pd

        return pd.DataFrame(self._facts(), columns=list(COLUMNS))

    def snapshot(self) -> str:
        """Return the vendors and their state, for a saved notebook."""
        return pieces.table(self._facts(), COLUMNS, repr(self)[1:-1])

    def __repr__(self) -> str:
        return f"<ProviderSetup {len(self.connected)} of {len(self._vendors)} vendors connected>"

    def _facts(self) -> list[dict[str, object]]:
        return [
            {
                "provider": vendor.id,
                "title": vendor.title,
                "state": self._state(vendor),
                "variable": vendor.conventional_variable,
                "unlocks": ", ".join(vendor.capabilities),
            }
            for vendor in self._vendors.values()
        ]

    def _state(self, vendor: Provider) -> str:
        if vendor.id in self._tests:
            return self._tests[vendor.id]
        if vendor.id in self._found:
            return "connected by " + ", ".join(c.record.secret_ref for c in self._found[vendor.id])
        return "connected" if vendor.connected else "not connected"

    def _read(self) -> None:
        """Read the vendors, and show them."""
        self._vendors = {one.record.id: one.record for one in self._client.providers.list()}
        self._found = {}
        for connection in self._client.connections:
            self._found.setdefault(connection.record.provider, []).append(connection)
        self._show()

    def _show(self) -> None:
        self.connected = [vendor.id for vendor in self._vendors.values() if vendor.connected]
        for vendor in self._vendors.values():
            shown = self.rows[vendor.id]
            mark = "●" if vendor.connected else "○"
            simulated = " (simulated)" if vendor.sandbox else ""
            shown.state.value = (
                f"<b>{mark} {escape(vendor.title)}</b>{simulated}: {escape(self._state(vendor))}"
                f'<div class="tk-quiet">for {escape(", ".join(vendor.capabilities))}</div>'
            )
            shown.test.disabled = shown.remove.disabled = vendor.id not in self._found

    def _fill(self, vendor: str) -> None:
        """Fill in the form for a vendor; names that are set are offered, the usual one first."""
        usual = self._vendors[vendor].conventional_variable
        here = sorted(name for name in os.environ if _LIKELY.search(name) and is_variable(name))
        self.name.options = tuple(dict.fromkeys([usual, *here]))
        self.provider.value = vendor
        self.name.value = usual
        self._look()

    def _look(self) -> None:
        """Show whether the variable is set here; its value is not read."""
        name = str(self.name.value)
        if self.kind.value != "environment" or not is_variable(name):
            told = ""
        elif self._vendors[str(self.provider.value)].sandbox:
            told = f"{name}: the sandbox has its own"
        else:
            told = f"{name}: {'set' if name in os.environ else 'not set'} in this process"
        self.presence.value = f'<div class="tk-help">{escape(told)}</div>'
        self.connect.disabled = not name

    def _connect(self) -> None:
        vendor, kind, name = (str(c.value) for c in (self.provider, self.kind, self.name))
        if _is_key(name):
            return
        self._background.act(lambda: self._create(vendor, kind, name))

    def _create(self, vendor: str, kind: str, name: str) -> None:
        warning = self._client.connections.create(vendor, kind, name).warning
        self._tests.pop(vendor, None)
        self._read()
        if warning is not None:
            self.tell(f"{vendor} is connected, but {warning}", fault=True)
            return
        unlocked = ", ".join(self._vendors[vendor].capabilities)
        self.tell(f"{vendor} is connected: it serves {unlocked}.", fault=False)

    def _test(self, vendor: str) -> None:
        self._background.act(lambda: self._try(vendor))

    def _try(self, vendor: str) -> None:
        test = self._client.connections.test(self._found[vendor][0].id)
        works = f"works ({test.record.took_ms} ms)"
        error = test.record.error
        self._tests[vendor] = works if test.ok else error.message if error else "not known to work"
        self._show()
        self.tell(f"{vendor}: {self._tests[vendor]}", fault=not test.ok)

    def _remove(self, vendor: str) -> None:
        self._background.act(lambda: self._delete(vendor))

    def _delete(self, vendor: str) -> None:
        for connection in self._found[vendor]:
            self._client.connections.delete(connection.id)
        self._tests.pop(vendor, None)
        self._read()
        self.tell(f"{vendor} is not connected any more.", fault=False)


def _is_key(name: str) -> bool:
    return looks_like_a_key(name) or _BEGINNINGS.match(name) is not None
