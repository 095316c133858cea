"""What every part of the engine is given: one value, made once when the engine opens."""

import json
import logging
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

from toolkit.contract.connections import Connection
from toolkit.contract.errors import ErrorCode, RequestError, not_found
from toolkit.contract.ids import Prefix, is_id
from toolkit.contract.jobs import Options
from toolkit.engine.allowance import Allowances
from toolkit.engine.backends import Backends
from toolkit.engine.grants import Grants
from toolkit.engine.health import Condition
from toolkit.engine.lanes import Lanes
from toolkit.engine.offers import models_offered
from toolkit.engine.quota import Quotas
from toolkit.engine.reach import Reach
from toolkit.engine.slots import Slots
from toolkit.engine.telemetry import Observer, Unobserved
from toolkit.plugins import Capability, Model, Vendor
from toolkit.store import Row, Store, Update

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Core(Reach):
    """The engine's shared parts.

    Attributes:
        reproducible: whether the same work is to be routed alike in every process: what calls took
            and how many failed is then not weighed.
        making: ids of what this process is having made or deleted at a GPU cloud.
        observer: who is told of workflows, jobs and calls.
    """

    store: Store
    grants: Grants
    slots: Slots
    lanes: Lanes
    allowances: Allowances
    quotas: Quotas
    draining: bool = False
    reproducible: bool = False
    observer: Observer = field(default_factory=Unobserved)
    making: set[str] = field(default_factory=set)

    async def backends(self, account_id: str, capability: Capability, options: Options) -> Backends:
        """What the router weighs for a capability and an account, as of now.

        At an endpoint or a pod that the options name, its vendor is asked by the connection that
        rented it, unless they pin another one.
        """
        vendors = self.registry.backends(capability)
        kind = capability.operation.kind if capability.operation else ""
        pool = await self.connection_pool(account_id)
        place = await self._find_place(account_id, options)
        pinned = options.provider is not None and is_id(options.provider, Prefix.CONNECTION)
        if place is not None and not pinned:
            try:
                connection = await self.find_renter(place)
                pool[connection.provider] = [connection]
            except RequestError:
                # Another key may be another account's at the vendor, where it would not be there.
                pool = {p: some for p, some in pool.items() if not self._rents(p)}
        states = {one.id: self._condition(one) for some in pool.values() for one in some}
        return Backends(
            vendors=vendors,
            models={vendor.id: self.models(vendor, kind) for vendor in vendors},
            pool=pool,
            states=states,
            rate=None if place is None else _rate_of(place),
        )

    def _condition(self, connection: Connection) -> Condition:
        condition = self.lanes.of(connection).condition()
        condition = replace(condition, overbilled=frozenset(connection.overbilled))
        return replace(condition, latency={}, error_rate=None) if self.reproducible else condition

    async def connections(self, account_id: str) -> dict[str, Connection]:
        """The newest connection an account has at each vendor."""
        return {p: pool[0] for p, pool in (await self.connection_pool(account_id)).items()}

    async def connection_pool(self, account_id: str) -> dict[str, list[Connection]]:
        """The connections an account has at each vendor, the newest first."""
        rows = await self.store.find("connections", account_id=account_id, deleted=False)
        found: dict[str, list[Connection]] = {}
        for row in reversed(rows):
            connection = Connection.model_validate_json(str(row["doc"]))
            self.lanes.of(connection, row["health"])
            found.setdefault(connection.provider, []).append(connection)
        return found

    async def _find_place(self, account_id: str, options: Options) -> Row | None:
        """The row of the endpoint or the pod that options name, if the account has it."""
        named = (("endpoints", options.endpoint_id), ("compute", options.compute_id))
        table, place_id = next((one for one in named if one[1] is not None), ("", None))
        row = None if place_id is None else await self.store.get(table, place_id)
        known = row is not None and row["account_id"] == account_id and row["status"] != "deleted"
        return row if known else None

    async def find_renter(self, place: Row) -> Connection:
        """The connection by which something was rented; once deleted, one by an equal pointer.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        made_by = await self.store.get("connections", str(place["connection_id"]))
        if made_by is None:
            raise RequestError(
                ErrorCode.CREDENTIALS_MISSING,
                "Connect its vendor again, by the pointer it was made by.",
            )
        connection = Connection.model_validate_json(str(made_by["doc"]))
        if not made_by["deleted"]:
            self.lanes.of(connection, made_by["health"])
            return connection
        pointer = (connection.connection_type, connection.secret_ref)
        pool = await self.connection_pool(str(place["account_id"]))
        for other in pool.get(connection.provider, ()):
            if (other.connection_type, other.secret_ref) == pointer:
                return other
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING,
            f"Connect {connection.provider} again, by the same pointer.",
        )

    def _rents(self, provider: str) -> bool:
        vendor = self.registry.vendors.get(provider)
        return vendor is not None and bool(vendor.infrastructure)

    async def judge_model(self, connection_id: str, model: str) -> None:
        """Have a model that billed more than its bound used under no budget, in any process."""
        row = await self.store.get("connections", connection_id)
        if row is not None:
            connection = Connection.model_validate_json(str(row["doc"]))
            connection.overbilled = sorted({*connection.overbilled, model})
            log.warning("%s billed more for %s than its bound", connection.provider, model)
            await self.save_connection(connection)

    async def save_connection(self, connection: Connection) -> None:
        """Write a connection down as it stands now."""
        changed = Update("connections", connection.id, {"doc": connection.model_dump_json()})
        await self.store.write([changed])

    async def cloud(self, account_id: str, kind: str) -> tuple[Vendor, Connection]:
        """The vendor that offers a kind of infrastructure, and the account's connection to it.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        offering = [v for v in self.registry.vendors.values() if kind in v.infrastructure]
        connections = await self.connections(account_id)
        for vendor in offering:
            if vendor.id in connections:
                return vendor, connections[vendor.id]
        names = ", ".join(vendor.id for vendor in offering)
        raise RequestError(
            ErrorCode.CREDENTIALS_MISSING, f"This needs a connection: register {names}."
        )

    async def owned(self, table: str, word: str, account_id: str, record_id: str) -> Row:
        """The row of something that an account has at a GPU cloud.

        Raises:
            RequestError: `NOT_FOUND`, for one that was deleted too.
        """
        row = await self.store.get(table, record_id)
        if row is None or row["account_id"] != account_id or row["status"] == "deleted":
            raise not_found(word, record_id)
        return row

    def models(self, vendor: Vendor, kind: str) -> list[Model]:
        """What a vendor may be asked for, the default first: the operator's choice, else all."""
        return models_offered(vendor, kind, self.settings.vendors.get(vendor.id))

    async def secret(self, connection: Connection) -> str:
        """What a connection's pointer leads to, if its account may go there.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        granted = await self.grants.of_connection(connection.id)
        return await self.resolver.resolve(
            connection.connection_type, connection.secret_ref, granted
        )

    @cached_property
    def services(self) -> dict[str, str]:
        """Base URLs of public services, and the ZIM file if there is one, by name."""
        services = {"encyclopedia": self.settings.encyclopedia_url}
        if self.settings.contact:
            services["contact"] = self.settings.contact
        if self.settings.zim_path is not None:
            services["zim"] = str(self.settings.zim_path)
        return services


def _rate_of(place: Row) -> Decimal | None:
    """US dollars a second of a worker at an endpoint, by the price it had when it was made."""
    told = json.loads(str(place["doc"])).get("price_per_hour_usd")
    return None if told is None else Decimal(str(told)) / 3600
