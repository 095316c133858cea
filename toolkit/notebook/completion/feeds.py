"""Feeds of completion: data of a client's service, read without keeping a person waiting."""

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from toolkit.client import AsyncClient, Client
from toolkit.contract.errors import ToolkitError
from toolkit.display.records.schema import list_fields
from toolkit.display.text import format_size, truncate_line

AnyClient = Client | AsyncClient
WAIT_S = 0.035  # seconds that a completion waits for a running read at most
FIRST_WAIT_S = 1.0  # the same, while no data has been read yet
# Seconds; 0 for other lists.
FRESH_S = {"/capabilities": 60.0, "/providers": 60.0, "/catalog/models": 60.0}
MAX_RECORDS = 20
MAX_ABOUT_CHARACTERS = 48
_MAIN_FIELDS = ("objective", "prompt", "text", "topic", "title", "name")


class Proposal(NamedTuple):
    """A text that a completion offers to insert."""

    text: str
    about: str = ""


class _Reading:
    """One list of a service: the last version read, and the running read of the next."""

    def __init__(self) -> None:
        self.items: Sequence[Mapping[str, Any]] = ()
        self.read_at = float("-inf")
        self._thread: threading.Thread | None = None

    def get(
        self, read: Callable[[], Sequence[Mapping[str, Any]]], fresh_s: float
    ) -> Sequence[Mapping[str, Any]]:
        """Return the list, read again if it is not fresh and the read takes only a moment.

        A slower read goes on in the background; the next call returns its result.
        """
        if time.monotonic() - self.read_at < fresh_s:
            return self.items
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._read, args=(read,), name="toolkit-completion", daemon=True
            )
            self._thread.start()
        self._thread.join(WAIT_S if self.read_at > float("-inf") else FIRST_WAIT_S)
        return self.items

    def _read(self, read: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        try:
            self.items = read()
        except (ToolkitError, RuntimeError):
            return  # keep completing from the last answer while the service is away
        self.read_at = time.monotonic()


class ClientFeed:
    """The data of one client's service: capabilities, providers, and the newest records.

    Each list is read again at each completion, except the lists of `FRESH_S`.
    """

    def __init__(self, client: AnyClient) -> None:
        self._client = client
        self._readings: dict[str, _Reading] = {}

    def list_capabilities(self) -> Sequence[Mapping[str, Any]]:
        """List the capabilities, as records."""
        return self._list("/capabilities", {})

    def list_providers(self) -> list[Proposal]:
        """List the providers, connected providers first."""
        providers = sorted(self._list("/providers", {}), key=lambda row: not row.get("connected"))
        return [
            Proposal(str(row["id"]), "connected" if row.get("connected") else "not connected")
            for row in providers
        ]

    def list_models(self) -> Sequence[Mapping[str, Any]]:
        """List the models of the catalogue, as records."""
        return self._list("/catalog/models", {})

    def list_records(self, path: str) -> list[Proposal]:
        """List the newest records of a resource, each with a description."""
        records = self._list(path, {"limit": MAX_RECORDS})
        return [Proposal(str(row["id"]), describe_record(row)) for row in records if row.get("id")]

    def list_tags(self, path: str) -> list[Proposal]:
        """List the tags of the newest records of a resource, the newest first."""
        records = self._list(path, {"limit": MAX_RECORDS})
        tags = dict.fromkeys(str(tag) for record in records for tag in record.get("tags") or ())
        return [Proposal(tag) for tag in tags]

    def list_nodes(self, workflow_id: str) -> list[Proposal]:
        """List the nodes of a workflow that is among the newest; otherwise, return no proposals."""
        if not workflow_id:
            return []
        for workflow in self._list("/workflows", {"limit": MAX_RECORDS}):
            if workflow.get("id") == workflow_id:
                return [
                    Proposal(str(node["id"]), f"{node['capability']} {node['status']}")
                    for node in workflow.get("nodes", ())
                ]
        return []

    def _list(self, path: str, query: Mapping[str, str | int]) -> Sequence[Mapping[str, Any]]:
        reading = self._readings.setdefault(path, _Reading())
        return reading.get(lambda: self._read(path, query), FRESH_S.get(path, 0.0))

    def _read(self, path: str, query: Mapping[str, str | int]) -> Sequence[Mapping[str, Any]]:
        client = self._client
        if isinstance(client, Client):
            page: Any = client.read(path, query, max_wait_s=0.0)
        elif client.access.data_dir is not None:  # a local engine works with any event loop
            page = asyncio.run(client.read(path, query, max_wait_s=0.0))
        else:
            key = client.access.api_key
            secret = None if key is None else key.get_secret_value()
            with Client(client.access.base_url, secret, max_retries=0) as twin:
                page = twin.read(path, query, max_wait_s=0.0)
        items: Sequence[Mapping[str, Any]] = page["items"]
        return items


_FEEDS: "weakref.WeakKeyDictionary[Any, ClientFeed]" = weakref.WeakKeyDictionary()


def find_feed(client: AnyClient) -> ClientFeed:
    """Find the feed of a client; the feed lives as long as the client."""
    feed = _FEEDS.get(client)
    if feed is None:
        feed = _FEEDS[client] = ClientFeed(weakref.proxy(client))
    return feed


def describe_record(record: Mapping[str, Any]) -> str:
    """Describe a record in a few words.

    >>> describe_record({"capability": "llm.generate@1", "status": "completed",
    ...                  "input": {"objective": "A line on tides"}})
    'llm.generate completed: A line on tides'
    """
    fields = record.get("input") or {}
    main = next((fields[name] for name in _MAIN_FIELDS if fields.get(name)), None)
    title = main or record.get("objective") or record.get("name") or record.get("secret_ref")
    words = [
        str(record.get("capability") or record.get("media_type") or "").partition("@")[0],
        str(record.get("provider") or "") if "secret_ref" in record else "",
        format_size(record["size_bytes"]) if isinstance(record.get("size_bytes"), int) else "",
        str(record.get("status") or ""),
    ]
    about = " ".join(word for word in words if word)
    line = f"{about}: {title}" if about and title else str(title or about)
    return shorten(line)


def describe_model(record: Mapping[str, Any]) -> str:
    """Describe the price and the abilities of a model.

    >>> describe_model({"prices_usd": {"input_tokens": 2e-6, "output_tokens": 1e-5},
    ...                 "abilities": ["images", "tools"]})
    '2/10 USD per 1M tokens, images, tools'
    """
    prices = record.get("prices_usd") or {}
    words = [f"{usd:g} USD per {unit}" for unit, usd in prices.items()][:1]
    if "input_tokens" in prices:
        rates = (prices.get(unit, 0.0) * 1e6 for unit in ("input_tokens", "output_tokens"))
        words = [f"{'/'.join(f'{rate:.6g}' for rate in rates)} USD per 1M tokens"]
    return shorten(", ".join([*words, *record.get("abilities", ())]))


def shorten(about: str) -> str:
    """Shorten a description to the space that the list of completions has."""
    return truncate_line(about, MAX_ABOUT_CHARACTERS)


def list_field_proposals(capability: Mapping[str, Any]) -> list[Proposal]:
    """List the fields of a capability's input, each with its type and its default."""
    return [
        Proposal(str(row["field"]), describe_field(row))
        for row in list_fields(capability.get("input_schema") or {})
        if "." not in str(row["field"])
    ]


def describe_field(row: Mapping[str, object]) -> str:
    """Describe the type and the default of a field.

    >>> describe_field({"type": "integer", "required": False, "default": "1"})
    'integer = 1'
    """
    default = f" = {row['default']}" if row["default"] else ""
    kind = f"{row['type']}{', required' if row['required'] else default}"
    return shorten(kind)


def list_field_values(capability: Mapping[str, Any], name: str) -> list[Proposal] | None:
    """List the values of a field with few choices; return None for other fields.

    A field for an artifact has the empty list: its values are the account's artifacts.
    """
    properties = (capability.get("input_schema") or {}).get("properties", {})
    field = properties.get(name)
    if field is None:
        return None
    for variant in [field, *field.get("anyOf", ())]:
        if "enum" in variant:
            default = field.get("default")
            return [
                Proposal(str(choice), "the default" if choice == default else "")
                for choice in variant["enum"]
            ]
        if str(variant.get("pattern", "")).startswith("^art_"):
            return []
    return None
