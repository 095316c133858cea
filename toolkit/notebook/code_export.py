"""Render a workflow's body as Python code, and find the faults that the service would find."""

import keyword
import unicodedata
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from toolkit.contract.errors import Detail, RequestError
from toolkit.contract.workflows import FUNCTION_CAPABILITY, NodeCreate, WorkflowCreate
from toolkit.engine import Registry
from toolkit.engine.execution.workflow_graph import check_graph
from toolkit.engine.routing.registry import validate_input
from toolkit.functions.node_capability import make_function_capability
from toolkit.planning.graph_faults import find_fillable_fields
from toolkit.plugins import Capability
from toolkit.settings import Settings


def find_faults(body: Mapping[str, Any], registry: Registry, settings: Settings) -> list[Detail]:
    """Find the faults of a workflow by the same checks as those of the service."""
    try:
        request = WorkflowCreate.model_validate(body)
    except ValidationError as error:
        return [
            Detail(".".join(map(str, fault["loc"])), fault["msg"])
            for fault in error.errors(include_input=False, include_url=False, include_context=False)
        ]
    faults: list[Detail] = []
    try:
        check_graph(request.nodes, max_nodes=settings.max_nodes, max_edges=settings.max_edges)
    except RequestError as error:
        faults += error.details
    return faults + [
        fault
        for i in range(len(request.nodes))
        for fault in _find_input_faults(request, i, registry)
    ]


def _find_input_faults(request: WorkflowCreate, i: int, registry: Registry) -> list[Detail]:
    """Find the faults in the input of one node; fields that upstream nodes fill may be missing."""
    node = request.nodes[i]
    by_id: dict[str, NodeCreate] = {member.id: member for member in request.nodes}
    try:
        capability = _require_capability(registry, node.capability)
        upstream = [by_id[up] for up in node.depends_on if up in by_id]
        certain = [
            _require_capability(registry, up.capability) for up in upstream if not up.optional
        ]
        fillable = find_fillable_fields(capability, certain)
        validate_input(capability, node.input, fillable, f"nodes.{i}.input")
    except RequestError as error:
        return list(error.details) or [Detail(f"nodes.{i}.capability", error.message)]
    return []


def _require_capability(registry: Registry, name: str) -> Capability:
    """Find the capability of a node; the submission checks whether a function is available."""
    return make_function_capability(None) if name == FUNCTION_CAPABILITY else registry.require(name)


def render_python(body: Mapping[str, Any]) -> str:
    """Render a workflow's body as the Python that builds and submits it.

    >>> body = {"name": "w", "nodes": [{"id": "a", "capability": "x@1", "input": {"n": 1}}]}
    >>> print(render_python(body))
    from toolkit import Client, Workflow
    <BLANKLINE>
    client = Client.local(sandbox=True)
    wf = Workflow('w')
    a = wf.add('a', 'x@1', input={'n': 1})
    run = client.workflows.submit(wf).wait()
    """
    retries = body.get("max_retries")
    options = f", max_retries={retries!r}" if retries else ""
    names = _name_variables([node["id"] for node in body["nodes"]])
    lines = [
        "from toolkit import Client, Workflow",
        "",
        "client = Client.local(sandbox=True)",
        f"wf = Workflow({body['name']!r}{options})",
    ]
    for node in sort_nodes(body["nodes"]):
        upstream = ", ".join(names[up] for up in node.get("depends_on", ()))
        callee, arguments = _spell_call(node, names)
        after = f", depends_on=[{upstream}]" if upstream else ""
        after += ", optional=True" if node.get("optional") else ""
        lines.append(f"{names[node['id']]} = wf.add({node['id']!r}, {callee}{after}{arguments})")
    return "\n".join([*lines, "run = client.workflows.submit(wf).wait()"])


def _spell_call(node: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, str]:
    """Render the first argument and the other arguments of a node's `add` call.

    A function is rendered by its name, which the exported code expects to be defined.
    >>> called = {"function": "clean", "arguments": {"n": 1}, "nodes": {"table": "raw"}}
    >>> _spell_call({"capability": "function.call@1", "input": called}, {"raw": "raw_"})
    ('clean', ', n=1, table=raw_')
    """
    fields = node.get("input") or {}
    name = str(fields.get("function", ""))
    words = (name, *fields.get("arguments", {}), *fields.get("nodes", {}))
    # Any other name could be code that a person who runs the export would execute.
    is_named = all(word.isidentifier() and not keyword.iskeyword(word) for word in words)
    if node["capability"] != FUNCTION_CAPABILITY or not is_named:
        return repr(node["capability"]), f", input={fields!r}" if fields else ""
    arguments = {key: repr(value) for key, value in fields.get("arguments", {}).items()}
    for key, source in fields.get("nodes", {}).items():
        many = isinstance(source, list)
        arguments[key] = f"[{', '.join(names[up] for up in source)}]" if many else names[source]
    return name, "".join(f", {key}={value}" for key, value in arguments.items())


def _name_variables(ids: list[str]) -> dict[str, str]:
    """Choose a variable for each node; avoid keywords and names of the surrounding code."""
    variables = {"client", "wf", "run", "Client", "Workflow"}
    names: dict[str, str] = {}
    for node_id in ids:
        # Python normalizes names to this form, so two different spellings may be the same name.
        letters = unicodedata.normalize("NFKC", node_id)
        name = "".join(c if f"a{c}".isidentifier() else "_" for c in letters)
        if not name.isidentifier() or keyword.iskeyword(name):
            name = f"node_{name}"
        while name in variables:
            name += "_"
        variables.add(name)
        names[node_id] = name
    return names


def sort_nodes(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort the nodes so that each follows its dependencies; a cycle comes last."""
    ordered: list[dict[str, Any]] = []
    waiting = list(nodes)
    while waiting:
        ids = {node["id"] for node in ordered}
        ready = [node for node in waiting if ids.issuperset(node.get("depends_on", ()))]
        if not ready:
            return ordered + waiting
        ordered += ready
        waiting = [node for node in waiting if node not in ready]
    return ordered
