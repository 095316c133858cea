"""The answer to the planner's request: a few connected nodes, chosen by words."""

import re
import textwrap
from typing import Any

from toolkit.sandbox.text.prompts import UNKNOWN_TOPIC, parse_prompt
from toolkit.sandbox.text.reading import load_knowledge
from toolkit.sandbox.text.sentences import capitalize_first

# The beginning of the planner's system prompt.
PLANNER = "You plan work for a service that runs graphs of capabilities"
_OBJECTIVE = re.compile(r"<(objective-[0-9a-f]+)>\n(.*?)\n</\1>", re.S)
_MAX_QUOTE = 300  # characters


def write_plan(user: str) -> dict[str, Any]:
    """Write a plan of the objective that a request contains."""
    match = _OBJECTIVE.search(user)
    objective = " ".join(match.group(2).split()) if match else ""
    topic = parse_prompt("", objective).topic
    if topic == UNKNOWN_TOPIC:
        question = "What is it to be about?"
        return {"nodes": [], "deliverables": [], "missing": [], "question": question}
    texts = {"topic": topic, "Topic": capitalize_first(topic), "objective": objective}
    nodes: list[dict[str, Any]] = []
    for row in load_knowledge()["nodes"]:
        if not re.search(row["asked"], objective, re.I | re.X):
            continue
        fields = {name: text.format(**texts) for name, text in row["input"].items()}
        node = {
            "id": row["id"],
            "capability": row["capability"],
            "input": [{"field": name, "value": value} for name, value in fields.items()],
            "depends_on": [node["id"] for node in nodes if node["id"] in row["takes"]],
            "optional": False,
            "quote": textwrap.shorten(objective, _MAX_QUOTE, placeholder=""),
            "expect": [],
        }
        nodes.append(node)
    sources = {source for node in nodes for source in node["depends_on"]}
    deliverables = [node["id"] for node in reversed(nodes) if node["id"] not in sources]
    return {"nodes": nodes, "deliverables": deliverables, "missing": [], "question": ""}
