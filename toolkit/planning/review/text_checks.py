"""Checks of texts."""

import re
from collections.abc import Iterator

from toolkit.contract.base import JsonObject
from toolkit.planning import lexicon
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review import text_measures
from toolkit.planning.review.evidence import Evidence, Inspection, NodeCheck, is_field_valid
from toolkit.planning.review.issues import Remedy, ReviewIssue
from toolkit.planning.tokens import find_word_count

_CREATIVE_FORM = re.compile(
    r"\b(?:" + "|".join(map(re.escape, sorted(lexicon.CREATIVE_FORMS))) + r")s?\b", re.I
)


def check_emptiness(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that there is a text."""
    if not (look.item.text or "").strip():
        name = look.item.node.id
        yield ReviewIssue(name, "output_completeness", 1.0, "The text is empty.", is_blocking=True)


def check_truncation(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that the model said all that it had to say."""
    item = look.item
    if (item.output or {}).get("finish_reason") != "length":
        return
    changes: JsonObject = {}
    fields = item.capability.input_model.model_fields
    if "max_tokens" in fields:
        now = item.node.input.get("max_tokens", fields["max_tokens"].default)
        doubled = now * 2 if isinstance(now, int) else 0
        if is_field_valid(
            item.capability, {**item.node.input, "max_tokens": doubled}, "max_tokens"
        ):
            changes = {"max_tokens": doubled}
    yield ReviewIssue(
        item.node.id,
        "output_completeness",
        0.7,
        "The text is cut off.",
        is_blocking=True,
        remedy=Remedy.RERUN if changes else Remedy.NONE,
        changes=changes,
    )


def check_length(look: Inspection) -> Iterator[ReviewIssue]:
    """Check the number of words, where the brief has one."""
    item, text = look.item, look.item.text or ""
    asked, has = find_word_count(_read_instruction(item)), text_measures.count_words(text)
    if not asked or has is None or not text.strip():
        return
    slack = max(5.0, 0.5 * asked)
    if abs(has - asked) <= slack:
        return
    far = has > 3 * asked + 10 or has < asked / 3 - 2
    yield ReviewIssue(
        item.node.id,
        "objective_alignment",
        0.6 if far else 0.2,
        f"The text has {has} words, not about {asked}.",
        is_blocking=far,
        instruction=f"Keep to about {asked} words.",
    )


def check_topic(look: Inspection) -> Iterator[ReviewIssue]:
    """Check that a text speaks of its topic."""
    item, text, topic = look.item, look.item.text or "", look.topic
    share = text_measures.measure_topic_share(topic, text) if text.strip() else None
    if share is None or share >= look.thresholds.topic_share:
        return
    name, message = item.node.id, f"The text hardly speaks of `{topic}`."
    written = find_role_field(item.capability, "objective") is not None
    source = item.upstream_text or ""
    related = text_measures.shares_terms(text, source) if source else False
    if share > 0 or related or not written or _CREATIVE_FORM.search(_read_instruction(item)):
        yield ReviewIssue(name, "objective_alignment", 0.3, message)
        return
    instruction = f"Mention {topic} by name."
    if instruction in _read_instruction(item):
        instruction = f"Write of nothing but {topic}."
    message = f"The text does not speak of `{topic}`."
    yield ReviewIssue(
        name, "objective_alignment", 0.9, message, is_blocking=True, instruction=instruction
    )


TEXT_CHECKS: tuple[NodeCheck, ...] = (check_emptiness, check_truncation, check_length, check_topic)


def _read_instruction(item: Evidence) -> str:
    """Return the instruction that a node was given to write."""
    field = find_role_field(item.capability, "objective")
    return str(item.node.input.get(field, "")) if field is not None else ""
