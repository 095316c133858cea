"""Planning of a small graph of capabilities, for a prompt whose schema asks for nodes."""

import json
import re
from typing import Any

from toolkit.sandbox.text.prompts import UNKNOWN_TOPIC, ParsedPrompt, parse_prompt
from toolkit.sandbox.text.sentences import capitalize_first

_CAPABILITY_NAME = re.compile(r"\b[a-z]+\.[a-z_]+(?:@\d+)?\b")
_IMAGE = re.compile(r"\b(?:image|picture|illustrat\w+|card|poster|photo|cover|visual)\b", re.I)
_AUDIO = re.compile(r"\b(?:audio|speech|spoken|podcast|voice|narrat\w+|read aloud)\b", re.I)
_PICTURE = re.compile(r"\b(?:image|picture|illustrat\w+|photo|drawing)s?\b", re.I)
_FACTS = re.compile(r"\b(?:facts?|research\w*|sources?|history)\b", re.I)
_FENCED = re.compile(r"<(objective-[0-9a-f]+)>\n(.*?)\n</\1>", re.S)
_MAX_QUOTE = 300
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


def asks_for_plan(schema: dict[str, Any]) -> bool:
    """Tell whether a schema is that of a whole plan: nodes, and which of them deliver."""
    return {"nodes", "deliverables"} <= set(schema.get("properties", {}))


def write_plan(user: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Write a whole plan for the objective in a prompt's material, with what its schema offers."""
    fenced = _FENCED.search(user)
    objective = " ".join((fenced[2] if fenced else user).split())
    ask = parse_prompt("", objective)
    items = schema["properties"]["nodes"].get("items", {})
    kinds = [kind.get("properties", {}) for kind in items.get("anyOf", [items])]
    offered = [one for kind in kinds for one in kind.get("capability", {}).get("enum", [])]
    quote = objective[:_MAX_QUOTE].rpartition(" ")[0] if objective[_MAX_QUOTE:] else objective
    if ask.topic == UNKNOWN_TOPIC:
        return _make_plan([], [], [], "What is it to be about?")
    wanted = _list_wanted_nodes(ask)
    nodes: list[dict[str, Any]] = [
        {
            "id": name,
            "capability": capability,
            "input": [{"field": field, "value": value} for field, value in given.items()],
            "depends_on": [up for up in after if wanted.get(up, ("",))[0] in offered],
            "optional": False,
            "quote": quote,
            "expect": [],
        }
        for name, (capability, given, after) in wanted.items()
        if capability in offered
    ]
    made = {one["id"] for one in nodes}
    used = {up for one in nodes for up in one["depends_on"]}
    missing = [
        {"capability": capability, "quote": quote}
        for name, (capability, _, _) in wanted.items()
        if name not in made
    ]
    delivered = [one["id"] for one in reversed(nodes) if one["id"] not in used]
    return _make_plan(nodes, delivered, missing, "")


def _list_wanted_nodes(ask: ParsedPrompt) -> dict[str, tuple[str, dict[str, Any], list[str]]]:
    """List the nodes that an objective needs: capability, input and dependencies by id."""
    wanted: dict[str, tuple[str, dict[str, Any], list[str]]] = {}
    spoken, card, picture = (
        bool(words.search(ask.objective)) for words in (_AUDIO, _CARD, _PICTURE)
    )
    if _FACTS.search(ask.objective):
        wanted["facts"] = ("research.gather", {"topic": ask.topic}, [])
    if picture:
        prompt = f"{capitalize_first(ask.topic)}, wide view, soft light, clean composition"
        wanted["picture"] = ("image.generate", {"prompt": prompt}, [])
    if spoken or card or not picture:
        text = f"A summary of {ask.topic}, in plain sentences" if spoken or card else ask.objective
        wanted["text"] = ("llm.generate", {"objective": text}, ["facts"])
    if spoken:
        wanted["speech"] = ("speech.generate", {}, ["text"])
    if card:
        title = {"title": capitalize_first(ask.topic)}
        wanted["card"] = ("composition.layout", title, ["text", "picture"])
    return wanted


def _make_plan(
    nodes: list[dict[str, Any]], deliverables: list[str], missing: list[Any], question: str
) -> dict[str, Any]:
    return {
        "nodes": nodes,
        "deliverables": deliverables,
        "missing": missing,
        "question": question,
    }
