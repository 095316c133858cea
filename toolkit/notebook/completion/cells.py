"""Complete cells other than Python: the lines of magics, and workflows in YAML."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from toolkit.contract.choices import PlannerChoice, ReviewMode
from toolkit.contract.run_options import RUN_OPTIONS
from toolkit.contract.usage import USAGE_GROUPS
from toolkit.contract.workflows import NodeCreate, WorkflowCreate
from toolkit.notebook.completion.calls import (
    complete_fields,
    complete_option,
    complete_options,
    find_capability,
    list_capability_names,
)
from toolkit.notebook.completion.feeds import ClientFeed, Proposal, list_field_proposals, shorten

_COMMON = ("no-wait", "quiet", "to")
# The options of each magic, in addition to a run's options.
MAGIC_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "run": (*RUN_OPTIONS, "tag", "note", *_COMMON),
    "task": (
        "plan_only", "optimize_for", "max_cost_usd", "endpoint_id", "compute_id", "planner",
        "review", "tag", "note", *_COMMON,
    ),
    "workflow": ("draw", *_COMMON),
    "connect": ("client", "sandbox", "data_dir", "base_url", "profile", "api_key_env"),
    "capabilities": (),
    "usage": (),
}  # fmt: skip
_MAGIC_LINE = re.compile(r"%{1,2}(\w+)[ \t]+(.*)\Z", re.DOTALL)
_YAML_LINE = re.compile(r"(?P<indent>\s*)(?P<item>-\s+)?(?:(?P<key>[\w.]+)\s*:(?P<value>.*))?\Z")


class Completion(NamedTuple):
    """The completions that fit the place of the cursor."""

    prefix: str
    proposals: Sequence[Proposal]


def complete_magic(
    line: str, feed: ClientFeed | None, names: Mapping[str, Any]
) -> Completion | None:
    """Complete the line of a toolkit magic; return None for any other line.

    Args:
        feed: feed of the notebook's client; None without a client.
    """
    match = _MAGIC_LINE.match(line)
    if match is None or match[1] not in MAGIC_OPTIONS:
        return None
    magic, text = match[1], match[2]
    words = text.split()
    word = "" if text[-1:].isspace() or not words else words.pop()
    before = words[-1] if words else ""
    if before.startswith("--"):
        values = _complete_magic_option(magic, before[2:].replace("-", "_"), words, feed, names)
        if values is not None:
            return Completion(word, values)
    if word.startswith("-"):
        return Completion(word, list(_list_options(magic)))
    positionals = [argument for argument in words if not argument.startswith("-")]
    if magic == "connect":
        return Completion(word, feed.list_providers() if feed else [])
    if magic == "usage":
        return Completion(word, [Proposal(group) for group in USAGE_GROUPS])
    if magic in ("run", "capabilities") and not positionals:
        return Completion(word, list_capability_names(feed))
    if magic == "run":
        return _complete_field(word, find_capability(feed, positionals[0]), feed)
    return Completion(word, list(_list_options(magic)))


def _complete_field(
    word: str, capability: Mapping[str, Any] | None, feed: ClientFeed | None
) -> Completion:
    name, equals, value = word.partition("=")
    if equals:
        values = complete_fields(feed, capability, (name.removesuffix(":"),), is_key=False)
        return Completion(value, values or [])
    fields = list_field_proposals(capability) if capability else []
    proposals = [
        Proposal(field.text + ("=" if field.about.startswith("string") else ":="), field.about)
        for field in fields
    ]
    return Completion(word, [*proposals, *_list_options("run")])


def _complete_magic_option(
    magic: str,
    option: str,
    words: Sequence[str],
    feed: ClientFeed | None,
    names: Mapping[str, Any],
) -> Sequence[Proposal] | None:
    """Complete the value of an option; return None if it takes no value or any value."""
    if option == "planner":
        return [Proposal(word) for word in get_args(PlannerChoice)]
    if option == "review":
        return [Proposal(word) for word in get_args(ReviewMode)]
    if option == "tag" and feed is not None:
        return feed.list_tags(f"/{magic}s")
    if option == "client":
        return [Proposal(name) for name, value in names.items() if type(value).__name__ == "Client"]
    capability = find_capability(feed, words[0]) if magic == "run" and words else None
    return complete_option(feed, capability, option)


def _list_options(magic: str) -> Iterator[Proposal]:
    for name in MAGIC_OPTIONS[magic]:
        yield Proposal(f"--{name.replace('_', '-')}", shorten(RUN_OPTIONS.get(name, "")))


def complete_workflow(text: str, feed: ClientFeed | None) -> Completion | None:
    r"""Complete a workflow in YAML, up to the cursor.

    >>> completion = complete_workflow("nodes:\n  - id: a\n    depends", None)
    >>> [x.text for x in completion.proposals if x.text.startswith("depends")]
    ['depends_on: ']
    """
    *above, line = text.split("\n")
    match = _YAML_LINE.match(line)
    flow = re.search(r"[{\[,][^{}\[\]]*\Z", line.partition(":")[2])
    parents = _find_parents(above, line)
    node = _find_node(above)
    if flow is not None:
        return _complete_flow(line, parents, node, above, feed)
    if match is not None and match["key"]:
        value = match["value"].lstrip()
        path = (*parents, match["key"])
        return Completion(value.strip("\"'"), _list_yaml_values(path, node, above, feed))
    word = line.strip().removeprefix("-").lstrip()
    if parents and parents[-1] == "depends_on":
        return Completion(word, _list_other_nodes(above, node))
    return Completion(word, [*_list_yaml_keys(parents, node, feed)])


def _complete_flow(
    line: str,
    parents: tuple[str, ...],
    node: Mapping[str, str],
    above: Sequence[str],
    feed: ClientFeed | None,
) -> Completion | None:
    """Complete YAML in braces or brackets on one line, such as `depends_on: [a, b]`."""
    key = line.strip().removeprefix("-").strip().partition(":")[0].strip()
    inner = re.split(r"[{\[,]", line)[-1].lstrip()
    name, colon, value = inner.partition(":")
    # The fields that the line sets on its own node, as in `- {id: a, capability: …}`.
    fields = {**node, **dict(re.findall(r"(\w+):\s*[\"']?([\w.@-]+)", line))}
    if "[" in line.rpartition(key)[2] and key == "depends_on":
        return Completion(inner.strip("\"'"), _list_other_nodes(above, fields))
    path = (*parents, key) if key in ("input", "options") else parents
    if colon:
        return Completion(
            value.lstrip().strip("\"'"), _list_yaml_values((*path, name), fields, above, feed)
        )
    return Completion(inner, [*_list_yaml_keys(path, fields, feed)])


def _find_parents(above: Sequence[str], line: str) -> tuple[str, ...]:
    """Find the keys that enclose a line, by its indentation: the outermost first."""
    indent = len(line) - len(line.lstrip())
    parents: list[str] = []
    for text in reversed(above):
        match = _YAML_LINE.match(text)
        if not text.strip() or match is None or not match["key"]:
            continue
        at = len(match["indent"]) + len(match["item"] or "")
        if at < indent or (at == indent and line.lstrip().startswith("-") and not match["item"]):
            parents.insert(0, match["key"])
            indent = len(match["indent"])
        elif match["item"] and len(match["indent"]) < indent:
            indent = len(match["indent"])
    return tuple(parents)


def _find_node(above: Sequence[str]) -> dict[str, str]:
    node: dict[str, str] = {}
    for line in reversed(above):
        match = _YAML_LINE.match(line)
        if match is None or not match["key"]:
            continue
        if match["key"] in ("id", "capability"):
            node.setdefault(match["key"], match["value"].strip().strip("\"'"))
        if match["item"]:
            break
    return node


def _list_other_nodes(above: Sequence[str], node: Mapping[str, str]) -> list[Proposal]:
    """List the ids of the nodes above, except the node that is being written."""
    ids = re.findall(r"(?:-\s*\{?|\{|,\s*)\s*id:\s*[\"']?([^\"'\n,}]+)", "\n".join(above))
    return [Proposal(node_id.strip()) for node_id in ids if node_id.strip() != node.get("id")]


def _list_yaml_keys(
    parents: Sequence[str], node: Mapping[str, str], feed: ClientFeed | None
) -> Iterator[Proposal]:
    if parents and parents[-1] == "options":
        proposals = complete_options(feed, None, (), is_key=True) or []
    elif parents and parents[-1] == "input":
        capability = find_capability(feed, node.get("capability"))
        proposals = complete_fields(feed, capability, (), is_key=True) or []
    else:
        model = NodeCreate if "nodes" in parents else WorkflowCreate
        proposals = [Proposal(name) for name in model.model_fields]
    for proposal in proposals:
        yield Proposal(f"{proposal.text}: ", proposal.about)


def _list_yaml_values(
    path: Sequence[str],
    node: Mapping[str, str],
    above: Sequence[str],
    feed: ClientFeed | None,
) -> Sequence[Proposal]:
    name = path[-1]
    if "input" in path[:-1]:
        capability = find_capability(feed, node.get("capability"))
        return complete_fields(feed, capability, (name,), is_key=False) or []
    if name == "capability":
        return list_capability_names(feed)
    if name == "depends_on":
        return _list_other_nodes(above, node)
    if name in RUN_OPTIONS:
        capability = find_capability(feed, node.get("capability"))
        return complete_option(feed, capability, name) or []
    return [Proposal("true"), Proposal("false")] if name == "optional" else []
