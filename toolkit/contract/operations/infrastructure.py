"""The operations on rented GPU resources: compute, endpoints, storage and templates."""

from toolkit.contract.compute import Compute, ComputeCreate
from toolkit.contract.endpoints import Endpoint, EndpointCreate
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix
from toolkit.contract.operations.definitions import ApiResource
from toolkit.contract.storage import Storage, StorageCreate
from toolkit.contract.templates import Template, TemplateCreate

_COMPUTE = ApiResource("/v1/compute", "GPU pods, rented by the hour.", Prefix.COMPUTE)
COMPUTE_CREATE = _COMPUTE.define_create(
    ComputeCreate,
    Compute,
    "Create a GPU pod.",
    ErrorCode.NOT_FOUND,
    ErrorCode.CONFLICT,
    ErrorCode.CREDENTIALS_MISSING,
)
COMPUTE_LIST = _COMPUTE.define_list(Compute)
COMPUTE_READ = _COMPUTE.define_read(Compute)
COMPUTE_DELETE = _COMPUTE.define_delete(
    Compute, "Delete a GPU pod.", ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING
)

_ENDPOINTS = ApiResource("/v1/endpoints", "Serverless GPU endpoints.", Prefix.ENDPOINT)
ENDPOINTS_CREATE = _ENDPOINTS.define_create(
    EndpointCreate,
    Endpoint,
    "Create a serverless endpoint.",
    ErrorCode.NOT_FOUND,
    ErrorCode.CONFLICT,
    ErrorCode.CREDENTIALS_MISSING,
)
ENDPOINTS_LIST = _ENDPOINTS.define_list(Endpoint)
ENDPOINTS_READ = _ENDPOINTS.define_read(Endpoint)
ENDPOINTS_DELETE = _ENDPOINTS.define_delete(
    Endpoint, "Delete an endpoint.", ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING
)

_STORAGE = ApiResource("/v1/storage", "Network volumes.", Prefix.STORAGE)
STORAGE_CREATE = _STORAGE.define_create(
    StorageCreate, Storage, "Rent a network volume.", ErrorCode.CREDENTIALS_MISSING
)
STORAGE_LIST = _STORAGE.define_list(Storage)
STORAGE_READ = _STORAGE.define_read(Storage)
STORAGE_DELETE = _STORAGE.define_delete(
    Storage, "Delete a volume with all its data.", ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING
)

_TEMPLATES = ApiResource(
    "/v1/templates", "Container images shared between endpoints.", Prefix.TEMPLATE
)
TEMPLATES_CREATE = _TEMPLATES.define_create(
    TemplateCreate, Template, "Create a shared template.", ErrorCode.CREDENTIALS_MISSING
)
TEMPLATES_LIST = _TEMPLATES.define_list(
    Template, "List the templates, newest first, without hidden templates."
)
TEMPLATES_READ = _TEMPLATES.define_read(Template, "Read a template, hidden or shared.")
TEMPLATES_DELETE = _TEMPLATES.define_delete(
    Template, "Delete a shared template.", ErrorCode.CONFLICT, ErrorCode.CREDENTIALS_MISSING
)
