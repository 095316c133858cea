"""A workflow as mermaid text."""

from collections.abc import Sequence

from toolkit.contract.workflows import Node


def format_workflow_mermaid(nodes: Sequence[Node]) -> str:
    """Format a left-to-right flow chart, with quoted node names and generated ids.

    >>> print(format_workflow_mermaid([Node(id="a", capability="x@1")]))
    flowchart LR
        n0["a<br/>x@1"]
    """
    names = {node.id: f"n{i}" for i, node in enumerate(nodes)}
    lines = [
        f'    {names[node.id]}["{_quote(node.id)}<br/>{_quote(node.label)}"]' for node in nodes
    ]
    lines += [
        f"    {names[upstream]} --> {names[node.id]}"
        for node in nodes
        for upstream in node.depends_on
    ]
    return "\n".join(["flowchart LR", *lines])


def _quote(text: str) -> str:
    """Quote a text with `#…;` entities, because mermaid would interpret quotes and brackets."""
    return "".join(c if c.isalnum() or c in " .@_-" else f"#{ord(c)};" for c in text)
