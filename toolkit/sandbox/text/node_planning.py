"""Planning of a small graph of capabilities, for a prompt whose schema asks for nodes."""

import json
import re
from typing import Any

from toolkit.sandbox.text.prompts import ParsedPrompt
from toolkit.sandbox.text.prose import capitalize_first

_CAPABILITY_NAME = re.compile(r"\b[a-z]+\.[a-z_]+(?:@\d+)?\b")
_IMAGE = re.compile(r"\b(?:image|picture|illustrat\w+|card|poster|photo|cover|visual)\b", re.I)
_AUDIO = re.compile(r"\b(?:audio|speech|spoken|podcast|voice|narrat\w+|read aloud)\b", re.I)
_CARD = re.compile(r"\b(?:card|layout|poster|cover|social)\b", re.I)


def plan_nodes(ask: ParsedPrompt, prompt: str, options: list[str]) -> list[dict[str, Any]]:
    """Plan nodes in order, each with a capability that the schema or the prompt offers."""
    offered = [str(one) for one in options] or list(dict.fromkeys(_CAPABILITY_NAME.findall(prompt)))
    planned: list[dict[str, Any]] = []

    def add(base: str, name: str, given: dict[str, Any], after: list[str]) -> str | None:
        capability = next((one for one in offered if one.split("@")[0] == base), None)
        if capability is None:
            return None
        known = {node["id"] for node in planned}
        after = [one for one in after if one in known]
        planned.append({"id": name, "capability": capability, "input": given, "depends_on": after})
        return name

    asked = ask.objective
    add("research.gather", "gather", {"topic": ask.topic}, [])
    written = add("llm.generate", "write", {"objective": asked}, ["gather"])
    if written is None:
        add("text.generate", "write", {"objective": asked}, ["gather"])
    if _IMAGE.search(asked):
        picture = f"{capitalize_first(ask.topic)}, wide view, soft light, clean composition"
        add("image.generate", "picture", {"prompt": picture}, [])
    if _AUDIO.search(asked):
        add("speech.generate", "speak", {"text": f"{capitalize_first(ask.topic)}."}, ["write"])
    if _CARD.search(asked):
        add(
            "composition.layout",
            "layout",
            {"title": capitalize_first(ask.topic)},
            ["write", "picture"],
        )
    if not planned and offered:
        first = {"id": "step", "capability": offered[0], "input": {}, "depends_on": []}
        planned.append(first)
    return planned


def merge_node(blank: Any, node: dict[str, Any]) -> Any:
    """Put a node into the schema's shape: the plan's values replace those filled in."""
    if not isinstance(blank, dict):
        return blank
    merged = dict(blank)
    for key, value in node.items():
        if key not in blank:
            continue
        if key == "input" and isinstance(blank[key], str):
            value = json.dumps(value)  # strict schemas cannot hold free objects
        elif key == "input" and isinstance(blank[key], dict) and blank[key]:
            value = {**blank[key], **{k: v for k, v in value.items() if k in blank[key]}}
        merged[key] = value
    return merged
