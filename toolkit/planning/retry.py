"""The actions of a retry: each node to blame, and the changes with which it runs again."""

from collections.abc import Callable, Mapping, Sequence

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import ErrorCode
from toolkit.contract.tasks import RecommendedAction
from toolkit.planning.capability_kinds import find_instructed_field, find_role_field, is_field_valid
from toolkit.planning.review.evidence import Evidence, ReviewIssue, vary_seed
from toolkit.plugins.fencing import fence_text

# Temporary failures that made nothing: the same call may succeed later.
OUTAGES = frozenset(
    code.name
    for code in (
        ErrorCode.PROVIDER_RATE_LIMITED,
        ErrorCode.PROVIDER_UNAVAILABLE,
        ErrorCode.PROVIDER_TIMEOUT,
        ErrorCode.RATE_LIMITED,
        ErrorCode.UNAVAILABLE,
    )
)
# The reason for running a node again: a review's finding or a person's request.
REGENERATE, ASKED = "regenerate", "retry"
REMARKS_HEAD = "A person looked at the last result and remarked this. Mend it:"
# A small change of speed, if nothing else makes the same speech come out differently.
_SPEED_STEP = 0.05
_SENTENCE_ENDS = tuple(".!?…:;。！？؟")


def make_action(
    item: Evidence, issues: Sequence[ReviewIssue], attempt: int
) -> RecommendedAction | None:
    """Make the action that runs a node again; returns None if nothing is left to change.

    The changes that its issues request come first. Without them, the node gets another seed or an
    instruction, then another provider, because the same request would only cost again. A failure
    that an earlier change did not fix goes to another provider at once.

    Args:
        attempt: number of earlier reviews.
    """
    changes: JsonObject = {}
    for issue in issues:
        changes |= issue.changes
    changes = {
        name: value
        for name, value in changes.items()
        if item.node.input.get(name) != value and _is_valid(item, name, value)
    }
    requests = dict.fromkeys(issue.instruction for issue in issues if issue.instruction)
    instructions = _instruct(item, [text for text in requests if text not in item.instructions])
    provider = None
    if not changes and not instructions and item.error_code not in OUTAGES:
        if not item.has_failed_before:
            changes, instructions = _vary(item, attempt)
        if not changes and not instructions:
            provider = next(iter(item.other_providers), None)
        if not changes and not instructions and provider is None and not item.has_failed_before:
            changes = _vary_speed(item)
        if not changes and not instructions and provider is None:
            return None
    field = find_instructed_field(item.capability)
    if instructions and field is not None:
        changes[field] = add_instructions(item, instructions)
    return RecommendedAction(
        node_id=item.node.id,
        action=REGENERATE,
        constraints=changes,
        instructions=instructions,
        provider=provider,
    )


def make_asked_actions(
    evidence: Sequence[Evidence],
    node_id: str,
    remarks: Sequence[str],
    constraints: JsonObject,
    attempt: int,
) -> list[RecommendedAction]:
    """Make the actions of a retry that a person asks for; empty if nothing would change.

    Without constraints, the actions are for the nearest nodes at or before `node_id` that can take
    the remarks or be changed in another way.

    Args:
        evidence: evidence of all nodes, dependencies before dependents.
        constraints: input members to set on that node.
        attempt: number of earlier reviews.
    """
    items = {item.node.id: item for item in evidence}
    set_on = items[node_id].node.input
    if any(name not in set_on or set_on[name] != value for name, value in constraints.items()):
        instructions = list(remarks) if find_instructed_field(items[node_id].capability) else []
        return [_make_asked(items[node_id], instructions, constraints)]

    def tell(item: Evidence) -> RecommendedAction | None:
        return _make_asked(item, remarks) if find_instructed_field(item.capability) else None

    def change(item: Evidence) -> RecommendedAction | None:
        is_completed = item.status == "completed"
        return make_action(item, (), attempt) if is_completed else _make_asked(item)

    return (_find_nearest(items, node_id, tell) if remarks else []) or _find_nearest(
        items, node_id, change
    )


def tell_remarks(evidence: Sequence[Evidence], action: RecommendedAction) -> RecommendedAction:
    """Add a person's remarks to the node's input in a `retry` action; keep another action as is."""
    item = next(entry for entry in evidence if entry.node.id == action.node_id)
    field = find_instructed_field(item.capability)
    if action.action != ASKED or not item.remarks or field is None:
        return action
    changes = {**action.constraints, field: add_instructions(item, ())}
    return action.model_copy(update={"constraints": changes})


def _make_asked(
    item: Evidence, remarks: Sequence[str] = (), constraints: JsonObject | None = None
) -> RecommendedAction:
    return RecommendedAction(
        node_id=item.node.id,
        action=ASKED,
        constraints=constraints or {},
        instructions=list(remarks),
    )


def _find_nearest(
    items: Mapping[str, Evidence], start: str, make: Callable[[Evidence], RecommendedAction | None]
) -> list[RecommendedAction]:
    """Make actions for the nearest nodes at or before `start` for which `make` returns one.

    Dependencies come first.
    """
    actions: dict[str, RecommendedAction] = {}
    ahead, seen = [start], {start}
    while ahead:
        item = items[ahead.pop()]
        action = make(item)
        if action is not None:
            actions[item.node.id] = action
            continue
        fresh = [up for up in item.node.depends_on if up not in seen]
        seen.update(fresh)
        ahead += fresh
    return [actions[node_id] for node_id in items if node_id in actions]


def add_instructions(item: Evidence, instructions: Sequence[str]) -> str:
    """Compose a node's request from its brief, the instructions of reviews, and a person's remarks.

    The remarks are fenced by tags, because they are not the brief's own words. If the remarks do
    not fit into the field, the oldest are left out.
    """
    field = find_instructed_field(item.capability) or ""
    text = item.brief.rstrip()
    if item.instructions or instructions:
        text += "" if text.endswith(_SENTENCE_ENDS) else "."
    for sentence in [*item.instructions, *instructions]:
        candidate = f"{text} {sentence}"
        text = candidate if _is_valid(item, field, candidate) else text
    remarks = list(item.remarks)
    while remarks:
        listed = "\n".join(f"- {remark}" for remark in remarks)
        candidate = f"{text}\n\n{REMARKS_HEAD}\n{fence_text(listed)[1]}"
        if _is_valid(item, field, candidate):
            return candidate
        del remarks[0]
    return text


def _instruct(item: Evidence, sentences: Sequence[str]) -> list[str]:
    """Return the sentences that can be added to the node's instruction within its limits."""
    field = find_instructed_field(item.capability)
    if field is None:
        return []
    text = str(item.node.input.get(field, item.brief))
    return [sentence for sentence in sentences if _is_valid(item, field, f"{text} {sentence}")]


def _vary(item: Evidence, attempt: int) -> tuple[JsonObject, list[str]]:
    """Return another seed, or an instruction to word the result in another way."""
    if changes := vary_seed(item, attempt):
        return changes, []
    if find_role_field(item.capability, "objective") is None:
        return {}, []
    return {}, _instruct(item, [f"This is attempt {attempt + 2}: word it in another way."])


def _vary_speed(item: Evidence) -> JsonObject:
    """Return a slightly lower speed for speech, or nothing if the node takes no such speed."""
    speed = item.node.input.get("speed", 1.0)
    slower = round(speed - _SPEED_STEP, 2) if isinstance(speed, int | float) else speed
    return {"speed": slower} if _is_valid(item, "speed", slower) else {}


def _is_valid(item: Evidence, name: str, value: object) -> bool:
    return is_field_valid(item.capability, {**item.node.input, name: value}, name)
