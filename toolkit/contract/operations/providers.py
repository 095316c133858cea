"""The operations on means of work: capabilities, catalogue, providers and connections."""

from collections.abc import Sequence

from toolkit.contract.capabilities import CapabilityRecord
from toolkit.contract.catalog import CatalogModel, Gpu
from toolkit.contract.connections import (
    Connection,
    ConnectionCreate,
    ConnectionShare,
    ConnectionTest,
)
from toolkit.contract.errors import ErrorCode
from toolkit.contract.health import Health, Provider
from toolkit.contract.ids import Prefix
from toolkit.contract.operations.definitions import ApiOperation, ApiResource
from toolkit.contract.operations.queries import HealthQuery, UnshareQuery

_CAPABILITY_NAME = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+(@[0-9]+)?$"

_CAPABILITIES = ApiResource(
    "/v1/capabilities",
    "The capabilities, with the schemas of their input and output.",
    name_pattern=_CAPABILITY_NAME,
)
CAPABILITIES_LIST: ApiOperation[None, Sequence[CapabilityRecord]] = ApiOperation(
    _CAPABILITIES,
    "list",
    "GET",
    "",
    CapabilityRecord,
    "List every capability, in registry order.",
    scope="read",
    form="page",
)
CAPABILITIES_READ = _CAPABILITIES.define_read(
    CapabilityRecord, "Read a capability, by `id` or `id@version`."
)

_CATALOG = ApiResource("/v1/catalog", "The GPUs and models that vendors offer, with list prices.")
CATALOG_GPUS_LIST: ApiOperation[None, Sequence[Gpu]] = ApiOperation(
    _CATALOG,
    "gpus_list",
    "GET",
    "/gpus",
    Gpu,
    "List the GPUs of the connected cloud.",
    (ErrorCode.CREDENTIALS_MISSING,),
    scope="read",
    form="page",
)
CATALOG_MODELS_LIST: ApiOperation[None, Sequence[CatalogModel]] = ApiOperation(
    _CATALOG,
    "models_list",
    "GET",
    "/models",
    CatalogModel,
    "List every vendor's models with their list prices.",
    scope="read",
    form="page",
)

_CONNECTIONS = ApiResource(
    "/v1/providers/connections", "Pointers to secrets that the caller keeps.", Prefix.CONNECTION
)
CONNECTIONS_CREATE = _CONNECTIONS.define_create(
    ConnectionCreate,
    Connection,
    "Register a pointer to a secret; an operator may share it at once.",
    ErrorCode.NOT_FOUND,
)
CONNECTIONS_LIST = _CONNECTIONS.define_list(
    Connection, "List the connections, newest first, including connections shared with the account."
)
CONNECTIONS_READ = _CONNECTIONS.define_read(Connection)
CONNECTIONS_DELETE = _CONNECTIONS.define_delete(Connection, "Delete a connection.")
CONNECTIONS_TEST = _CONNECTIONS.define_action(
    "test",
    ConnectionTest,
    "Check whether the pointer resolves, and whether the vendor accepts the key.",
)
CONNECTIONS_TRUST = _CONNECTIONS.define_action(
    "trust", Connection, "Allow models under budgets again that billed more than their reservation."
)
CONNECTIONS_SHARE: ApiOperation[ConnectionShare, Connection] = ApiOperation(
    _CONNECTIONS,
    "share",
    "POST",
    "/{id}/share",
    Connection,
    "Share an operator's connection with other accounts, each with its own bill and limits.",
    (ErrorCode.CONFLICT,),
    scope="admin",
    body=ConnectionShare,
)
CONNECTIONS_UNSHARE: ApiOperation[UnshareQuery, Connection] = ApiOperation(
    _CONNECTIONS,
    "share_delete",
    "DELETE",
    "/{id}/share",
    Connection,
    "Stop sharing a connection, with one account or with all.",
    (ErrorCode.CONFLICT,),
    scope="admin",
    query=UnshareQuery,
)

_HEALTH = ApiResource("/v1/health", "The health of the service.")
HEALTH_READ: ApiOperation[HealthQuery, Health] = ApiOperation(
    _HEALTH,
    "read",
    "GET",
    "",
    Health,
    "Check whether the service is running, or ready for new work. Needs no key.",
    (ErrorCode.UNAVAILABLE,),
    scope=None,
    query=HealthQuery,
    needs_store=False,
)

_PROVIDERS = ApiResource("/v1/providers", "The vendors that can be connected.")
PROVIDERS_LIST: ApiOperation[None, Sequence[Provider]] = ApiOperation(
    _PROVIDERS, "list", "GET", "", Provider, "List the vendor catalogue.", scope="read", form="page"
)
