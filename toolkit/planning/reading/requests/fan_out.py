"""The pass that spells out counts and lists: one request for each, within what a plan holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.planning.reading.objective_reading import Measure
from toolkit.planning.reading.requests.mentions import Mention
from toolkit.planning.reading.spans.lists import ItemList

MAX_REQUESTS = 50


@dataclass(slots=True)
class Copy:
    """One of the requests that a mention stands for.

    Attributes:
        mention: what is asked for.
        number: which of its copies it is.
        item: the tokens of the list's item that it is for.
        value: what that item gives to it, if it is a value.
        inputs: the copies that it is made from.
    """

    mention: Mention
    number: int = 0
    item: tuple[int, int] | None = None
    value: Measure | None = None
    inputs: list["Copy"] = field(default_factory=list)


def fan_out(mentions: Sequence[Mention], lists: Sequence[ItemList]) -> list[Copy]:
    """Make as many copies of each mention as it asks for, and tie them together one by one."""
    items = _assign_lists(mentions, lists)
    counts = {id(one): len(items[id(one)]) or one.count for one in mentions}
    _spread_counts(mentions, counts, items)
    copies: dict[int, list[Copy]] = {}
    made = 0
    for mention in mentions:
        wanted = min(counts[id(mention)], MAX_REQUESTS - made)
        made += max(wanted, 0)
        own = items[id(mention)]
        values = next((o.values for o in lists if o.items is own and mention.kind in o.kinds), ())
        copies[id(mention)] = [
            Copy(
                mention,
                n,
                item=own[n] if n < len(own) else None,
                value=values[n] if n < len(values) else None,
            )
            for n in range(wanted)
        ]
    for mention in mentions:
        for source in mention.inputs:
            _tie(copies[id(mention)], copies.get(id(source), []))
    return [copy for mention in mentions for copy in copies[id(mention)]]


def _assign_lists(
    mentions: Sequence[Mention], lists: Sequence[ItemList]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """Assign each list to the mentions that it counts, or that are made for each of its items."""
    items: dict[int, tuple[tuple[int, int], ...]] = {id(one): () for one in mentions}
    for found in lists:
        size = len(found.items)
        if found.values:
            for mention in _choose_taking(mentions, found):
                items[id(mention)] = items[id(mention)] or found.items
            continue
        counted = [one for one in mentions if one.count == size and size > 1]
        spread = [one for one in mentions if one.each]
        chosen = counted[-1:] if counted and not spread else [*counted, *spread]
        asked = [one for one in mentions if found.end <= one.start < found.scope]
        chosen = asked or chosen
        if not chosen and found.is_each and mentions:
            chosen = [min(mentions, key=lambda one: abs(one.start - found.start))]
        for mention in chosen:
            items[id(mention)] = items[id(mention)] or found.items
    return items


def _choose_taking(mentions: Sequence[Mention], found: ItemList) -> list[Mention]:
    """Choose the mention that takes the values of a list: the last one before them."""
    able = [one for one in mentions if one.kind in found.kinds]
    before = [one for one in able if one.start < found.start]
    return before[-1:] or able[:1]


def _spread_counts(
    mentions: Sequence[Mention],
    counts: dict[int, int],
    items: dict[int, tuple[tuple[int, int], ...]],
) -> None:
    """Spread a count along what is made from each: three poems, read aloud, are three."""
    for mention in mentions:
        if counts[id(mention)] > 1:
            _spread_to_parts(mention, counts, items)
            continue
        for source in mention.inputs:
            many = counts[id(source)]
            if many > 1 and (mention.each or mention.kind in {"speech", "text"}):
                counts[id(mention)] = many
                items[id(mention)] = items[id(source)]
        if mention.each and counts[id(mention)] == 1:
            # "Three haiku, with a picture for each": as many as there are before it.
            earlier = mentions[: mentions.index(mention)]
            each_of = next((one for one in reversed(earlier) if counts[id(one)] > 1), mention)
            counts[id(mention)], items[id(mention)] = counts[id(each_of)], items[id(each_of)]


def _spread_to_parts(
    mention: Mention,
    counts: dict[int, int],
    items: dict[int, tuple[tuple[int, int], ...]],
) -> None:
    """Make the parts of each copy for itself, unless they are asked for by themselves."""
    for source in mention.inputs:
        if counts[id(source)] == 1 and not source.is_delivered and source.kind in {"text", "image"}:
            counts[id(source)] = counts[id(mention)]
            items[id(source)] = items[id(mention)]


def _tie(takers: Sequence[Copy], givers: Sequence[Copy]) -> None:
    """Tie copies one to one where there are as many, and all to all otherwise."""
    if len(takers) == len(givers):
        for taker, giver in zip(takers, givers, strict=True):
            taker.inputs.append(giver)
        return
    for taker in takers:
        taker.inputs += givers
