"""The providers of a capability: its vendors, their models and an account's connections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Candidate, Options
from toolkit.engine.health import Condition
from toolkit.plugins import Model, Vendor

# Of one vendor: every job's record shows the connections that were considered.
MAX_CONSIDERED = 20
_WELL = Condition()


@dataclass(frozen=True, slots=True)
class Backends:
    """The vendors, models and connections that the router chooses from.

    Attributes:
        vendors: those that can serve the capability, in catalogue order.
        models: the models that each vendor may be asked for, the default first.
        pool: the connections by vendor that the account may use: its own, the newest first, then
            those that are shared with it.
        states: the health of each connection, by its id.
        failed: the ids of the connections that have failed this job.
        pinned: the id of the only connection that may be used; none where any may.
        rate: US dollars a second of a worker at the endpoint that the options name, if known.
    """

    vendors: Sequence[Vendor]
    models: Mapping[str, Sequence[Model]]
    pool: Mapping[str, Sequence[Connection]]
    states: Mapping[str, Condition] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    pinned: str | None = None
    rate: Decimal | None = None

    def is_connected(self, provider: str) -> bool:
        """Tell whether the account has any connection to a vendor."""
        return bool(self.pool.get(provider))

    def state(self, connection: Connection | None) -> Condition:
        """Return the health of a connection; one that nothing is known of is healthy."""
        return _WELL if connection is None else self.states.get(connection.id, _WELL)

    def without(self, failed: frozenset[str]) -> "Backends":
        """Return the same for a job that some connections have failed: others come next."""
        return replace(self, failed=failed)

    def considered(self, provider: str) -> Sequence[Connection]:
        """Return the connections to a vendor in the order in which they are used.

        One that is pinned comes first. What has failed this job, or may not be called now, comes
        last; of the others, the healthiest comes first. Of equals the account's own come before
        those that are shared with it, and the newest first.
        """
        ranked = sorted(self.pool.get(provider, ()), key=self._rank)
        return ranked[:MAX_CONSIDERED]

    def explain_order(self, connection: Connection) -> str:
        """Explain why another connection of the same vendor comes before this one."""
        first = self.considered(connection.provider)[0]
        better, worse = self._rank(first), self._rank(connection)
        if better[:-1] == worse[:-1] and connection.shared and not first.shared:
            return f"connected; `{first.id}` is your own"
        if better == worse:
            return f"connected; `{first.id}` is newer"
        return f"connected; `{first.id}` is doing better"

    def find(self, candidate: Candidate) -> Connection:
        """Return the connection that a candidate is asked by."""
        pool = self.pool[candidate.provider]
        return next(one for one in pool if one.id == candidate.connection_id)

    def has_spare(self, connection: Connection, options: Options) -> bool:
        """Tell whether another connection of the same vendor is left, where the pin allows it."""
        return options.provider != connection.id and any(
            one.id != connection.id and one.id not in self.failed
            for one in self.pool.get(connection.provider, ())
        )

    def _rank(self, connection: Connection) -> tuple[bool, bool, bool, bool, bool, float, bool]:
        state = self.state(connection)
        return (
            connection.id != self.pinned,
            connection.id in self.failed,
            state.wait_s > 0,
            state.unresolved,
            state.state != "closed",
            state.error_rate or 0.0,
            connection.shared,
        )


def resolve_pin(options: Options, backends: Backends) -> tuple[Options, Backends]:
    """Read a pin of a connection as one of its vendor, who is asked by that connection alone.

    The pin of a connection that the account does not have stays, and nothing fits it.
    """
    for provider, pool in backends.pool.items():
        for connection in pool:
            if options.provider == connection.id:
                pinned = options.model_copy(update={"provider": provider})
                return pinned, replace(backends, pinned=connection.id)
    return options, backends
