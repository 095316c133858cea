"""Facts about a client: sandbox or live, its account, and the money it has spent."""

from dataclasses import dataclass

from toolkit.contract.money import format_usd
from toolkit.display.records import html


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """The place and the costs of a client; amounts are simulated dollars in the sandbox.

    Attributes:
        sandbox: whether vendors are simulated, so that nothing is billed.
        place: the folder of an engine in this process, or the address of a server.
        account: the email of the account.
        spent_here_usd: total cost of the work that this client has started. None if the key may
            not read it.
        spent_today_usd: total cost of the account's work today, by UTC. None for the same reason.
    """

    sandbox: bool
    place: str
    account: str
    spent_here_usd: float | None
    spent_today_usd: float | None

    @property
    def world(self) -> str:
        """The word for the vendors: `in the sandbox` if they are simulated, else `live`."""
        return "in the sandbox" if self.sandbox else "live"

    def __str__(self) -> str:
        client_cost, today = format_usd(self.spent_here_usd), format_usd(self.spent_today_usd)
        kind = " (simulated)" if self.sandbox else ""
        return (
            f"{self.world}, {self.place}, account {self.account}:"
            f" {client_cost} spent by this client, {today} today{kind}"
        )

    def __repr__(self) -> str:
        return f"<Client {self}>"

    def _repr_html_(self) -> str:
        # In separate cells, because a notebook renders text between two dollar signs as a formula.
        facts = {
            "place": self.place,
            "account": self.account,
            "spent by this client": format_usd(self.spent_here_usd),
            "spent today": format_usd(self.spent_today_usd),
            "dollars": "simulated" if self.sandbox else "as billed, by list prices",
        }
        return html.render_facts(f"Client {self.world}", facts)
