"""Completion inside calls of the client, of its resources and of workflows."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from toolkit.client import AsyncClient, Client, Workflow
from toolkit.contract.operations.index import INDEX
from toolkit.contract.operations.work_queries import (
    RunsQuery,
    TasksQuery,
    WorkflowsQuery,
    WorkQuery,
)
from toolkit.contract.run_options import PROVIDER_LISTS, RUN_OPTIONS, RunOptions
from toolkit.contract.usage import USAGE_GROUPS
from toolkit.notebook.completion.call_sites import CallSite
from toolkit.notebook.completion.feeds import (
    ClientFeed,
    Proposal,
    describe_model,
    find_feed,
    list_field_proposals,
    list_field_values,
    shorten,
)

# Paths of the resources whose records have an id, by the client's attribute name.
PATHS = {
    "api_keys" if row.resource == "keys" else row.resource: row.path[len("/v1") : -len("/{id}")]
    for row in INDEX
    if row.verb == "read" and row.path.endswith("/{id}")
}
_QUERIES: dict[str, type[WorkQuery]] = {
    "runs": RunsQuery,
    "workflows": WorkflowsQuery,
    "tasks": TasksQuery,
}
_COMPARED_PATHS = {"run": "/runs", "wfl": "/workflows", "job": "/jobs"}
# Options whose values are ids of records.
_PLACES = {"endpoint_id": "/endpoints", "compute_id": "/compute"}
_TAKES_RUN = ("runs.create", "route")
_NODE_METHODS = ("job", "artifact", "fork")
_DRAFT = re.compile(r"([^\W\d]\w*)\s*(?::[^=\n]+)?=\s*(?:\w+\.)?Workflow\(")


class CallCompleter:
    """Complete the arguments of a call.

    Args:
        names: variables of the notebook.
        code: text of the cell up to the cursor; this code may not have run yet.
    """

    def __init__(self, names: Mapping[str, Any], code: str) -> None:
        self._names = names
        self._code = code

    def list_proposals(self, site: CallSite) -> list[Proposal] | None:
        """List proposals for a place; return None if the call is not of the toolkit."""
        root, _, member = site.callee.partition(".")
        owner = self._names.get(root)
        if isinstance(owner, Client | AsyncClient):
            return self._complete_client(find_feed(owner), owner, member, site)
        is_draft = owner is None and any(root == name for name in _DRAFT.findall(self._code))
        if isinstance(owner, Workflow) or is_draft:
            return self._complete_draft(root, owner, member, site)
        if is_ours(owner):
            return self._complete_handle(owner, member, site)
        return None

    def _complete_client(
        self, feed: ClientFeed, client: Any, call: str, site: CallSite
    ) -> list[Proposal] | None:
        area, _, method = call.partition(".")
        if call in _TAKES_RUN and site.keyword != "tags":
            return self._complete_run(feed, site)
        if area == "capabilities":
            return self._complete_capabilities(feed, method, site)
        if call == "connections.connect" or (
            call == "connections.create" and is_argument(site, 0, "provider")
        ):
            return feed.list_providers()
        if call == "compare" and site.position in (0, 1):
            return list_comparable(feed, site.texts.get(1 - site.position, ""))
        if method == "list" and site.keyword:
            names = list_capability_names(feed) if site.keyword == "capability" else []
            proposals = complete_filter(feed, area, site.keyword, names)
            if proposals is not None:
                return proposals
        if site.keyword == "tags":
            return complete_filter(feed, area, "tags", [])
        if call == "usage.list" and is_argument(site, 0, "group_by"):
            return [Proposal(name) for name in USAGE_GROUPS]
        if call == "events" and is_argument(site, 0, "resource_id"):
            paths = ("/runs", "/workflows", "/tasks", "/jobs")
            return [proposal for path in paths for proposal in feed.list_records(path)]
        if call == "workflows.fork" and is_argument(site, 1, "from_node"):
            return feed.list_nodes(site.texts.get(0) or site.texts.get("id", ""))
        takes_id = site.is_subscript or (
            method not in ("", "create", "list", "upload", "submit") and is_argument(site, 0, "id")
        )
        if area in PATHS and takes_id:
            return feed.list_records(PATHS[area])
        return complete_arguments(find_attribute(client, call), site)

    def _complete_run(self, feed: ClientFeed, site: CallSite) -> list[Proposal] | None:
        """Complete the arguments of `runs.create` and `route`; return None in any other place."""
        if is_argument(site, 0, "name") and not site.path:
            bare = site.position == 0 and not site.in_string and site.prefix
            return None if bare else list_capability_names(feed)
        capability = find_capability(feed, site.texts.get(0) or site.texts.get("name"))
        if is_argument(site, 1, "input"):
            return complete_fields(feed, capability, site.path, is_key=site.is_key)
        if site.keyword:
            return complete_option(feed, capability, site.keyword)
        if not site.in_string:
            fields = dict.fromkeys(("version", "input", "target", "tags", "note"), "")
            keywords = {**RUN_OPTIONS, **fields}
            return [Proposal(f"{name}=", shorten(words)) for name, words in keywords.items()]
        return None

    def _complete_capabilities(
        self, feed: ClientFeed, method: str, site: CallSite
    ) -> list[Proposal] | None:
        """Complete `client.capabilities`: its names, or the fields of a call; None for others."""
        if site.is_subscript or method == "get":
            return list_capability_names(feed)
        for capability in feed.list_capabilities():
            if str(capability["id"]).replace(".", "_") == method:
                return self._complete_keywords(feed, capability, site, ["version", "options"])
        return None

    def _complete_keywords(
        self,
        feed: ClientFeed | None,
        capability: Mapping[str, Any] | None,
        site: CallSite,
        keywords: Sequence[str],
    ) -> list[Proposal] | None:
        """Complete a call whose keywords are fields of a capability; None for any other value."""
        if site.keyword == "options":
            return complete_options(feed, capability, site.path, is_key=site.is_key)
        if site.keyword == "input":
            return complete_fields(feed, capability, site.path, is_key=site.is_key)
        if site.keyword:
            return complete_fields(feed, capability, (site.keyword,), is_key=False)
        if site.in_string:
            return None
        fields = list_field_proposals(capability) if capability else []
        proposals = [Proposal(f"{field.text}=", field.about) for field in fields]
        return proposals + [Proposal(f"{name}=") for name in keywords]

    def _complete_draft(
        self, name: str, workflow: Workflow | None, method: str, site: CallSite
    ) -> list[Proposal] | None:
        """Complete calls of a workflow that may exist only in this cell; None if nothing fits."""
        nodes = self._list_drafted(name, workflow)
        if site.is_subscript and not method:
            return nodes
        if method != "add":
            return complete_arguments(find_attribute(workflow, method), site)
        feed = find_notebook_feed(self._names)
        if is_argument(site, 1, "capability"):
            if site.prefix and not site.in_string:  # an unquoted word is a function's name
                return self._list_functions(site.prefix) or None
            return list_capability_names(feed)
        if site.keyword == "depends_on":
            node_id = site.texts.get(0) or site.texts.get("id")
            return [node for node in nodes if node.text != node_id]
        if site.position == 0:
            return None
        capability = find_capability(feed, site.texts.get(1) or site.texts.get("capability"))
        keywords = ["depends_on", "input", "options", "optional", "cache"]
        if capability is None and not (site.keyword or site.in_string):
            keywords = self._list_parameters(name) + keywords
        return self._complete_keywords(feed, capability, site, keywords)

    def _list_functions(self, prefix: str) -> list[Proposal]:
        return [
            Proposal(name, "function")
            for name, value in list(self._names.items())
            if name.startswith(prefix) and inspect.isfunction(value)
        ]

    def _list_parameters(self, name: str) -> list[str]:
        """List the parameters of the function passed to a workflow's `add`."""
        called = re.search(
            rf"(?<!\w){re.escape(name)}\.add\(\s*['\"][^'\"]*['\"]\s*,\s*([^\W\d]\w*)\s*,[^()]*\Z",
            self._code,
        )
        function = None if called is None else self._names.get(called[1])
        return list(inspect.signature(function).parameters) if inspect.isfunction(function) else []

    def _list_drafted(self, name: str, workflow: Workflow | None) -> list[Proposal]:
        pattern = re.compile(
            rf"(?<!\w){re.escape(name)}\.add\(\s*['\"]([^'\"]+)['\"]\s*,\s*['\"]([^'\"]+)['\"]"
        )
        capabilities = {} if workflow is None else {node.id: node.capability for node in workflow}
        capabilities |= dict(pattern.findall(self._code))
        return [Proposal(node_id, capability) for node_id, capability in capabilities.items()]

    def _complete_handle(self, owner: Any, method: str, site: CallSite) -> list[Proposal] | None:
        """Complete a handle's calls: a graph's nodes, or a method's arguments; None for others."""
        nodes = getattr(owner, "nodes", None)
        is_graph = isinstance(nodes, list) and all(hasattr(node, "id") for node in nodes)
        if is_graph and (
            (site.is_subscript and not method)
            or (method in _NODE_METHODS and site.keyword in ("", "node_id", "from_node"))
            or (site.keyword == "overrides" and not site.path)
        ):
            return [
                Proposal(node.id, f"{node.capability} {getattr(node, 'status', '')}".strip())
                for node in nodes or ()
            ]
        if is_graph and site.keyword == "overrides":
            node = next(
                (candidate for candidate in nodes or () if candidate.id == site.path[0]), None
            )
            feed = find_notebook_feed(self._names)
            capability = find_capability(feed, None if node is None else node.capability)
            return complete_fields(feed, capability, site.path[1:], is_key=site.is_key)
        return complete_arguments(find_attribute(owner, method), site)


def find_notebook_feed(names: Mapping[str, Any]) -> ClientFeed | None:
    """Find the feed of a notebook's client (`client`, the magics', or the newest), or None."""
    for name in ("client", "toolkit_client"):
        if isinstance(names.get(name), Client | AsyncClient):
            return find_feed(names[name])
    clients = [value for value in list(names.values()) if isinstance(value, Client | AsyncClient)]
    return find_feed(clients[-1]) if clients else None


def is_ours(owner: object) -> bool:
    """Check whether an object is of this package, so that reading its attributes is safe."""
    return type(owner).__module__.partition(".")[0] == "toolkit"


def is_argument(site: CallSite, position: int, name: str) -> bool:
    """Check whether a place is the argument of a position or a name."""
    return site.keyword == name or (not site.keyword and site.position == position)


def find_attribute(owner: object, path: str) -> object:
    """Follow a dotted path through objects of this package; return None if it leads nowhere."""
    attribute = owner
    for part in filter(None, path.split(".")):
        if not is_ours(attribute) or part.startswith("_"):
            return None
        attribute = getattr(attribute, part, None)
    return attribute


@cache
def _load_built_in() -> tuple[Mapping[str, Any], ...]:
    """Load the capabilities of this installation, for use without a client."""
    from toolkit.engine import Registry

    return tuple(record.model_dump(by_alias=True) for record in Registry.load().to_records())


def list_capabilities(feed: ClientFeed | None) -> Sequence[Mapping[str, Any]]:
    """List a client's capabilities, or the installed capabilities without a client."""
    return _load_built_in() if feed is None else feed.list_capabilities()


def list_capability_names(feed: ClientFeed | None) -> list[Proposal]:
    """List the names of capabilities with their titles, then the names with a version."""
    capabilities = list_capabilities(feed)
    bare = dict.fromkeys((str(row["id"]), str(row["title"])) for row in capabilities)
    versioned = ((f"{row['id']}@{row['version']}", str(row["title"])) for row in capabilities)
    return [Proposal(*pair) for pair in (*bare, *versioned)]


def find_capability(feed: ClientFeed | None, name: object) -> Mapping[str, Any] | None:
    """Find a capability by its name, with or without a version."""
    bare = str(name or "").partition("@")[0]
    return next((row for row in list_capabilities(feed) if row["id"] == bare), None)


def complete_fields(
    feed: ClientFeed | None,
    capability: Mapping[str, Any] | None,
    path: Sequence[str],
    *,
    is_key: bool,
) -> list[Proposal] | None:
    """Complete the fields of an input, and values of fields with few choices; else return None."""
    if capability is None:
        return None
    if not path:
        return list_field_proposals(capability) if is_key else None
    if len(path) > 1 or is_key:
        return None
    values = list_field_values(capability, path[0])
    if values == [] and feed is not None:
        return feed.list_records("/artifacts")
    return values


def complete_options(
    feed: ClientFeed | None,
    capability: Mapping[str, Any] | None,
    path: Sequence[str],
    *,
    is_key: bool,
) -> list[Proposal] | None:
    """Complete the run options in a dictionary; return None if any value is allowed."""
    if not path:
        proposals = [Proposal(name, shorten(words)) for name, words in RUN_OPTIONS.items()]
        return proposals if is_key else None
    return complete_option(feed, capability, path[0])


def complete_option(
    feed: ClientFeed | None, capability: Mapping[str, Any] | None, name: str
) -> list[Proposal] | None:
    """Complete the value of one option of a run; return None if any value is allowed."""
    if name in ("provider", *PROVIDER_LISTS):
        return list_run_providers(feed, capability)
    if name in _PLACES and feed is not None:
        return feed.list_records(_PLACES[name])
    words = _list_option_words().get(name)
    return [Proposal(word) for word in words] if words else None


def list_run_providers(
    feed: ClientFeed | None, capability: Mapping[str, Any] | None
) -> list[Proposal]:
    """List the providers that may serve a capability, connected first; connections; models."""
    if feed is None:
        return []
    providers, models = feed.list_providers(), feed.list_models()
    if capability is not None:
        routing = capability["source"]["routing"]
        allowed = routing["allowed_connections"]
        providers = [provider for provider in providers if provider.text in allowed] or [
            Proposal(a) for a in allowed
        ]
        models = [model for model in models if model["kind"] == routing.get("model_kind")]
    names = {provider.text for provider in providers}
    named = [
        Proposal(f"{model['provider']}/{model['model']}", describe_model(model))
        for model in models
        if model["provider"] in names
    ]
    return [*providers, *feed.list_records(PATHS["connections"]), *named]


def complete_filter(
    feed: ClientFeed, area: str, name: str, capabilities: list[Proposal]
) -> list[Proposal] | None:
    """Complete the value of a filter or of new tags; return None if any value is allowed."""
    if name == "status" and area in _QUERIES:
        return [Proposal(status) for status in _QUERIES[area].STATUSES]
    if name in ("tag", "tags") and area in _QUERIES:
        return feed.list_tags(f"/{area}")
    if name == "provider":
        return feed.list_providers()
    return capabilities if name == "capability" else None


def list_comparable(feed: ClientFeed, other_id: str) -> list[Proposal]:
    """List the records to compare with another record, of the same kind if its kind is known."""
    path = _COMPARED_PATHS.get(other_id.partition("_")[0])
    paths = ("/runs", "/workflows") if path is None else (path,)
    proposals = [proposal for resource in paths for proposal in feed.list_records(resource)]
    return [proposal for proposal in proposals if proposal.text != other_id]


@cache
def _list_option_words() -> dict[str, list[str]]:
    """List the words of each option that takes one of a few words."""
    return {name: list_words(hint) for name, hint in get_type_hints(RunOptions).items()}


def list_words(annotation: object) -> list[str]:
    """List the words that an annotation allows.

    >>> list_words(Literal["a", "b"] | None)
    ['a', 'b']
    """
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    return [word for inner in get_args(annotation) for word in list_words(inner)]


def complete_arguments(called: object, site: CallSite) -> list[Proposal] | None:
    """Complete a call by its signature: allowed words, or argument names; None without any."""
    if not callable(called) or site.path:
        return None
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):
        return None
    parameters: Iterable[inspect.Parameter] = signature.parameters.values()
    keywords = [
        parameter
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if site.keyword or (site.in_string and site.position is not None):
        by_position = [
            parameter for parameter in keywords if parameter.kind is not parameter.KEYWORD_ONLY
        ]
        argument = next(
            (parameter for parameter in keywords if parameter.name == site.keyword), None
        )
        if not site.keyword and site.position is not None and site.position < len(by_position):
            argument = by_position[site.position]
        words = [] if argument is None else list_words(argument.annotation)
        return [Proposal(word) for word in words] or None
    if site.in_string:
        return None
    return [Proposal(f"{parameter.name}=") for parameter in keywords]
