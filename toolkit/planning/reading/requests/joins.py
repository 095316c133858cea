"""The pass that ties mentions together: what is made from what, across clauses and sentences."""

from collections.abc import Sequence

from toolkit.planning.reading.capability_names import CapabilityNames
from toolkit.planning.reading.requests.mentions import TRANSFORMING_ACTS, Mention


def link_mentions(
    mentions: Sequence[Mention], names: CapabilityNames, literal_places: Sequence[int]
) -> list[Mention]:
    """Tie each mention to those that it is made from.

    Args:
        mentions: what is asked for, in order.
        names: says what can be made from what.
        literal_places: tokens where quoted words stand, which need no earlier mention.
    """
    kept = _drop_repeated(_merge_questions(list(mentions)), literal_places)
    kept = _put_script_first(_put_first(kept, names), literal_places)
    for here, mention in enumerate(kept):
        earlier = kept[:here]
        has_literal = _has_literal(mention, kept[here + 1 :], literal_places)
        for source in _choose_sources(mention, earlier, names, has_literal):
            _add_input(mention, source)
        if mention.join == "with":
            _attach_part(mention, [*reversed(earlier), *kept[here + 1 :]], names)
    _lend_voice(kept)
    for mention in kept:
        if mention.kind == "research" and any(mention in one.inputs for one in kept):
            mention.is_delivered = False
    return kept


def _has_literal(mention: Mention, later: Sequence[Mention], places: Sequence[int]) -> bool:
    end = later[0].clause if later and later[0].clause > mention.start else 10**9
    return any(mention.clause <= place < end for place in places)


def _merge_questions(mentions: list[Mention]) -> list[Mention]:
    """Merge a question with the text that answers it: `What is a quasar? Two sentences.`"""
    kept: list[Mention] = []
    question: Mention | None = None
    for mention in mentions:
        if mention.is_question and question is not None and question in kept:
            question.topics += mention.topics
            continue
        if mention.is_question:
            question = mention
        elif question is not None and _lacks_topic(mention) and mention.kind == "research":
            # What is looked up comes before the answer.
            mention.topics = list(question.topics)
            kept.insert(kept.index(question), mention)
            continue
        elif question is not None and mention.kind == "text" and _answers(mention):
            mention.topics = [*question.topics, *mention.topics]
            mention.clause = min(mention.clause, question.clause)
            mention.needs_facts = mention.needs_facts or question.needs_facts
            mention.refers = mention.refers_to not in {None, "text"}
            kept.remove(question)
            question = None
        kept.append(mention)
    return kept


def _drop_repeated(mentions: list[Mention], literal_places: Sequence[int]) -> list[Mention]:
    """Drop verbs that only say again what is asked for: `a story, just tell it`, `record it`."""
    kept: list[Mention] = []
    for mention in mentions:
        kinds = {one.kind for one in kept}
        plain = mention.refers or not (mention.form or mention.topics or literal_places)
        spoken = mention.kind == "speech" and plain and "speech" in kinds
        bare = not (mention.form or mention.topics or mention.refers or mention.language)
        written = mention.kind == "text" and bare and mention.act not in {None, *TRANSFORMING_ACTS}
        # "Write to Ann. Word it kindly": the pronoun stands for what is written.
        written = written or (mention.act == "write" and mention.refers and not mention.form)
        if not (spoken and "text" not in kinds) and not (written and "text" in kinds):
            kept.append(mention)
    return kept


def _put_first(mentions: list[Mention], names: CapabilityNames) -> list[Mention]:
    """Put what is to be made first before what is made of it: `Record it. Write it first.`"""
    for mention in [one for one in mentions if one.is_earlier or _checks(one, mentions)]:
        before = mentions[: mentions.index(mention)]
        takers = [one for one in before if names.can_feed(mention.kind, one.kind)]
        if not takers or (mention.kind == "text" and all(one.kind == "text" for one in takers)):
            continue
        mentions.remove(mention)
        if all(one.kind != mention.kind for one in before):
            mentions.insert(mentions.index(takers[0]), mention)
            mention.refers = False
            for taker in takers:
                _add_input(taker, mention)
    return mentions


def _put_script_first(mentions: list[Mention], literal_places: Sequence[int]) -> list[Mention]:
    """Take a text that only its name asks for, after a speech without one, for its script."""
    for here in range(1, len(mentions)):
        speech, text = mentions[here - 1], mentions[here]
        is_script = text.kind == "text" and text.act is None and _lacks_topic(text)
        is_bare = speech.kind == "speech" and not (speech.refers or speech.inputs)
        is_first = not literal_places and all(one.kind != "text" for one in mentions[:here])
        if is_script and is_bare and is_first and text.count == 1:
            mentions[here - 1], mentions[here] = text, speech
            text.refers = False
            _add_input(speech, text)
    return mentions


def _answers(mention: Mention) -> bool:
    """Tell whether a text says how a question is to be answered: `List seven points.`"""
    lists = mention.act in {"list", "explain", "answer"} and not mention.form
    return _lacks_topic(mention) or (lists and not mention.inputs)


def _checks(mention: Mention, mentions: list[Mention]) -> bool:
    """Tell whether facts are looked up for the text before: `a text on Ann Lee; look her up`."""
    last = mention.kind == "research" and mention.refers and mention.act == "research"
    return last and all(one.kind != "text" for one in mentions[mentions.index(mention) :])


def _lacks_topic(mention: Mention) -> bool:
    return mention.refers or not mention.has_subject


def _add_input(mention: Mention, source: Mention) -> None:
    if source is mention or source in mention.inputs or mention in source.inputs:
        return
    mention.inputs.append(source)


def _choose_sources(
    mention: Mention, earlier: Sequence[Mention], names: CapabilityNames, has_literal: bool
) -> list[Mention]:
    able = [one for one in earlier if names.can_feed(one.kind, mention.kind)]
    if not able:
        return []
    if mention.refers or mention.join == "as":
        return _choose_referred(mention, able)
    own = bool(mention.topics) or has_literal
    match mention.kind:
        case "text":
            research = [one for one in able if one.kind == "research"]
            if research:
                return research[-1:]
            if mention.act in TRANSFORMING_ACTS and not own:
                return [one for one in able if one.kind == "text"][-1:]
            return []
        case "speech":
            texts = [one for one in able if one.kind == "text"]
            if own or not texts:
                return [] if has_literal else _choose_unused_facts(able, earlier)
            return texts[-1:]
        case "card":
            if own:
                return [] if has_literal else _choose_unused_facts(able, earlier)
            return _choose_card_parts(able)
        case "image" | "research" | "clone":
            return []
    return [] if own else able[-1:]


def _choose_referred(mention: Mention, able: Sequence[Mention]) -> list[Mention]:
    if mention.kind == "text" and _repeats_act(mention, able):
        return []
    named = [one for one in able if one.kind == mention.refers_to]
    if mention.join == "as" and not mention.refers:
        last = able[-1]
        if last.is_delivered and last.kind != "research":
            last.is_delivered = False
        return [last]
    if mention.kind == "card":
        parts = _choose_card_parts(able)
        return parts if not named or named[-1] in parts else [*parts, named[-1]]
    if mention.kind == "image" and mention.topics:
        return []
    research = [one for one in able if one.kind == "research"] if mention.kind == "text" else []
    texts = [one for one in able if one.kind == "text"]
    if mention.kind == "text" and mention.act in TRANSFORMING_ACTS and texts:
        return texts[-1:]
    return named[-1:] or research[-1:] or texts[-1:] or list(able[-1:])


def _repeats_act(mention: Mention, able: Sequence[Mention]) -> bool:
    """Tell whether a verb has the object it had before: `explain it to Ann, then explain it to …`.

    Its pronoun stands for that object, and not for the text which was made of it.
    """
    repeats = mention.act is not None and mention.act not in TRANSFORMING_ACTS
    return repeats and not mention.form and any(one.act == mention.act for one in able)


def _choose_unused_facts(able: Sequence[Mention], earlier: Sequence[Mention]) -> list[Mention]:
    """Choose the facts that are looked up and that nothing else is made from yet."""
    used = [source for one in earlier for source in one.inputs]
    return [one for one in able if one.kind == "research" and one not in used][-1:]


def _choose_card_parts(able: Sequence[Mention]) -> list[Mention]:
    """Choose the last text and the last picture; facts only where nothing was written of them."""
    found: list[Mention] = []
    for kind in ("text", "image", "research"):
        of_kind = [one for one in able if one.kind == kind]
        if of_kind and not (kind == "research" and found and found[0].kind == "text"):
            found.append(of_kind[-1])
    return found


def _attach_part(mention: Mention, others: Sequence[Mention], names: CapabilityNames) -> None:
    """Attach what is asked for `with` something: a picture to its card, a voice to its text."""
    for whole in others:
        if names.can_feed(mention.kind, whole.kind) and mention.kind != whole.kind:
            if mention in whole.inputs or whole in mention.inputs:
                return
            whole.inputs.append(mention)
            mention.is_delivered = False
            return
        if names.can_feed(whole.kind, mention.kind) and mention.kind == "speech":
            _add_input(mention, whole)
            return


def _lend_voice(mentions: Sequence[Mention]) -> None:
    """Let what is spoken use the voice that is made: the last one before it, or the next."""
    clones = [one for one in mentions if one.kind == "clone"]
    if not clones:
        return
    for mention in mentions:
        if mention.kind == "speech" and not any(one.kind == "clone" for one in mention.inputs):
            before = [one for one in clones if one.start < mention.start]
            mention.inputs.append((before or clones)[-1 if before else 0])
