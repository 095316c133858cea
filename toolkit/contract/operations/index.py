"""A short index of the operations, for code that runs without pydantic.

Written by `scripts/operations.py` from the table, which defines the operations.
"""

from typing import Final

from toolkit.contract.operations.entry import OperationEntry, matches_path

INDEX: Final = (
    OperationEntry("account", "read", "GET", "/v1/account", False),
    OperationEntry("account", "create", "POST", "/v1/account", False),
    OperationEntry("keys", "list", "GET", "/v1/account/keys", False),
    OperationEntry("keys", "create", "POST", "/v1/account/keys", False),
    OperationEntry("keys", "read", "GET", "/v1/account/keys/{id}", False),
    OperationEntry("keys", "delete", "DELETE", "/v1/account/keys/{id}", False),
    OperationEntry("keys", "rotate", "POST", "/v1/account/keys/{id}/rotate", False),
    OperationEntry("agents", "create", "POST", "/v1/agents", True),
    OperationEntry("agents", "list", "GET", "/v1/agents", False),
    OperationEntry("agents", "read", "GET", "/v1/agents/{id}", False),
    OperationEntry("agents", "delete", "DELETE", "/v1/agents/{id}", False),
    OperationEntry("artifacts", "create", "POST", "/v1/artifacts", True),
    OperationEntry("artifacts", "list", "GET", "/v1/artifacts", False),
    OperationEntry("artifacts", "read", "GET", "/v1/artifacts/{id}", False),
    OperationEntry("artifacts", "delete", "DELETE", "/v1/artifacts/{id}", False),
    OperationEntry("artifacts", "lineage", "GET", "/v1/artifacts/{id}/lineage", False),
    OperationEntry("artifacts", "content", "GET", "/v1/artifacts/{id}/content", False),
    OperationEntry("billing", "read", "GET", "/v1/billing", False),
    OperationEntry("capabilities", "list", "GET", "/v1/capabilities", False),
    OperationEntry("capabilities", "read", "GET", "/v1/capabilities/{id}", False),
    OperationEntry("catalog", "gpus_list", "GET", "/v1/catalog/gpus", False),
    OperationEntry("catalog", "models_list", "GET", "/v1/catalog/models", False),
    OperationEntry("compute", "create", "POST", "/v1/compute", True),
    OperationEntry("compute", "list", "GET", "/v1/compute", False),
    OperationEntry("compute", "read", "GET", "/v1/compute/{id}", False),
    OperationEntry("compute", "delete", "DELETE", "/v1/compute/{id}", False),
    OperationEntry("connections", "create", "POST", "/v1/providers/connections", True),
    OperationEntry("connections", "list", "GET", "/v1/providers/connections", False),
    OperationEntry("connections", "read", "GET", "/v1/providers/connections/{id}", False),
    OperationEntry("connections", "delete", "DELETE", "/v1/providers/connections/{id}", False),
    OperationEntry("connections", "test", "POST", "/v1/providers/connections/{id}/test", True),
    OperationEntry("connections", "trust", "POST", "/v1/providers/connections/{id}/trust", True),
    OperationEntry("connections", "share", "POST", "/v1/providers/connections/{id}/share", True),
    OperationEntry(
        "connections", "share_delete", "DELETE", "/v1/providers/connections/{id}/share", False
    ),
    OperationEntry("endpoints", "create", "POST", "/v1/endpoints", True),
    OperationEntry("endpoints", "list", "GET", "/v1/endpoints", False),
    OperationEntry("endpoints", "read", "GET", "/v1/endpoints/{id}", False),
    OperationEntry("endpoints", "delete", "DELETE", "/v1/endpoints/{id}", False),
    OperationEntry("health", "read", "GET", "/v1/health", False),
    OperationEntry("jobs", "create", "POST", "/v1/jobs", True),
    OperationEntry("jobs", "list", "GET", "/v1/jobs", False),
    OperationEntry("jobs", "read", "GET", "/v1/jobs/{id}", False),
    OperationEntry("jobs", "cancel", "POST", "/v1/jobs/{id}/cancel", True),
    OperationEntry("jobs", "events", "GET", "/v1/jobs/{id}/events", False),
    OperationEntry("maps", "create", "POST", "/v1/maps", True),
    OperationEntry("maps", "list", "GET", "/v1/maps", False),
    OperationEntry("maps", "read", "GET", "/v1/maps/{id}", False),
    OperationEntry("maps", "rows_create", "POST", "/v1/maps/{id}/rows", True),
    OperationEntry("maps", "rows_list", "GET", "/v1/maps/{id}/rows", False),
    OperationEntry("maps", "cancel", "POST", "/v1/maps/{id}/cancel", True),
    OperationEntry("maps", "annotate", "POST", "/v1/maps/{id}/annotate", True),
    OperationEntry("maps", "events", "GET", "/v1/maps/{id}/events", False),
    OperationEntry("plans", "create", "POST", "/v1/plans", True),
    OperationEntry("plans", "list", "GET", "/v1/plans", False),
    OperationEntry("plans", "read", "GET", "/v1/plans/{id}", False),
    OperationEntry("providers", "list", "GET", "/v1/providers", False),
    OperationEntry("route", "create", "POST", "/v1/route", True),
    OperationEntry("runs", "create", "POST", "/v1/runs", True),
    OperationEntry("runs", "list", "GET", "/v1/runs", False),
    OperationEntry("runs", "read", "GET", "/v1/runs/{id}", False),
    OperationEntry("runs", "cancel", "POST", "/v1/runs/{id}/cancel", True),
    OperationEntry("runs", "annotate", "POST", "/v1/runs/{id}/annotate", True),
    OperationEntry("runs", "events", "GET", "/v1/runs/{id}/events", False),
    OperationEntry("storage", "create", "POST", "/v1/storage", True),
    OperationEntry("storage", "list", "GET", "/v1/storage", False),
    OperationEntry("storage", "read", "GET", "/v1/storage/{id}", False),
    OperationEntry("storage", "delete", "DELETE", "/v1/storage/{id}", False),
    OperationEntry("tasks", "create", "POST", "/v1/tasks", True),
    OperationEntry("tasks", "list", "GET", "/v1/tasks", False),
    OperationEntry("tasks", "read", "GET", "/v1/tasks/{id}", False),
    OperationEntry("tasks", "cancel", "POST", "/v1/tasks/{id}/cancel", True),
    OperationEntry("tasks", "resume", "POST", "/v1/tasks/{id}/resume", True),
    OperationEntry("tasks", "reviews_create", "POST", "/v1/tasks/{id}/reviews", True),
    OperationEntry("tasks", "annotate", "POST", "/v1/tasks/{id}/annotate", True),
    OperationEntry("tasks", "events", "GET", "/v1/tasks/{id}/events", False),
    OperationEntry("templates", "create", "POST", "/v1/templates", True),
    OperationEntry("templates", "list", "GET", "/v1/templates", False),
    OperationEntry("templates", "read", "GET", "/v1/templates/{id}", False),
    OperationEntry("templates", "delete", "DELETE", "/v1/templates/{id}", False),
    OperationEntry("usage", "list", "GET", "/v1/usage", False),
    OperationEntry("workflows", "create", "POST", "/v1/workflows", True),
    OperationEntry("workflows", "list", "GET", "/v1/workflows", False),
    OperationEntry("workflows", "read", "GET", "/v1/workflows/{id}", False),
    OperationEntry("workflows", "cancel", "POST", "/v1/workflows/{id}/cancel", True),
    OperationEntry("workflows", "retry", "POST", "/v1/workflows/{id}/retry", True),
    OperationEntry("workflows", "fork", "POST", "/v1/workflows/{id}/fork", True),
    OperationEntry("workflows", "annotate", "POST", "/v1/workflows/{id}/annotate", True),
    OperationEntry("workflows", "events", "GET", "/v1/workflows/{id}/events", False),
)


def find_entry(method: str, path: str) -> OperationEntry | None:
    """Find the operation of a request; returns None for an unknown path or method."""
    matches = (e for e in INDEX if e.method == method and matches_path(e.path, path))
    return next(matches, None)


def list_entries(resource: str) -> list[OperationEntry]:
    """List the operations on a resource; the list is empty for an unknown resource."""
    return [entry for entry in INDEX if entry.resource == resource]
