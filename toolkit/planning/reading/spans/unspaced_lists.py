"""The finder of lists in languages without spaces: `A、B和C各一张`, `A、B、Cそれぞれについて`."""

from toolkit.planning.reading.spans.lists import (
    ItemList,
    find_after_colon,
    find_bulleted,
)
from toolkit.planning.reading.spans.measures import read_quantity
from toolkit.planning.reading.spans.scan import Scan

_MARKS = frozenset({"、", "・", "·"})
_QUOTE_MARKS = "“”「」『』《》‘’\"'"
_ANDS = frozenset("和与與跟及同とや")
_MAX_ITEM = 12  # characters
_PARTICLES = frozenset("の的をにではがへも")
_PREPOSITIONS = frozenset("为為爲给給用以对對是把将將在于於从從")
_ENDS = frozenset("这這那的各每分都等")
_REQUESTS = ("act.", "make", "join.for_each", "polite")
_LEADING = (*_REQUESTS, "about")
_THINGS = ("thing.", "creative", "unavailable.")


def find_unspaced_lists(scan: Scan) -> list[ItemList]:
    """Find the lists of an objective and consume their words, quoted ones among them."""
    found = [*find_bulleted(scan)]
    for start, end in scan.find_sentences():
        one = find_after_colon(scan, start, end)
        if one is not None and not all(scan.is_free(k) for k, _ in one.items):
            one = None
        one = one or _find_in_sentence(scan, start, end)
        if one is not None:
            for k in range(one.start, one.end):
                if scan.owners[k] in {None, "literal"}:
                    scan.consume(k, k + 1, "item")
            found.append(one)
    return sorted(found, key=lambda one: one.start)


def _find_in_sentence(scan: Scan, start: int, end: int) -> ItemList | None:
    """Find items of a sentence that are counted in it, or of which a word such as `各` speaks."""
    each = [k for k in range(start, end) if scan.has(k, "join.for_each")]
    for group in _group_segments(scan, start, end):
        items = _trim_items(scan, group)
        if items is None:
            continue
        first, last = items[0][0], items[-1][1]
        outside = [*range(start, first), *range(last, end)]
        is_each = any(k in outside for k in each)
        counted = any(read_quantity(scan, k)[0] == len(items) for k in outside)
        if is_each or counted:
            return ItemList(first, last, tuple(items), is_each=is_each)
    return None


def _group_segments(scan: Scan, start: int, end: int) -> list[list[tuple[int, int]]]:
    """Split a sentence at commas and conjunctions; group what only those of lists set apart."""
    groups: list[list[tuple[int, int]]] = [[]]
    first = k = start
    while k < end:
        joined = k > first and _is_and(scan, k)
        listed = k > first and _is_list_mark(scan, k)
        if joined or listed or (k > first and scan.breaks[k]):
            groups[-1].append((first, k))
            if not (joined or listed):
                groups.append([])
            first = k + joined
        k += 1
    groups[-1].append((first, end))
    return [group for group in groups if len(group) > 1]


def _is_list_mark(scan: Scan, k: int) -> bool:
    gap = scan.gap(k).strip()
    quoted = scan.owners[k] == scan.owners[k - 1] == "literal"
    return gap in _MARKS or (
        quoted and len(gap) > 1 and not gap.strip(_QUOTE_MARKS + "".join(_MARKS))
    )


def _is_and(scan: Scan, k: int) -> bool:
    """Tell whether a character joins two nouns, and is no part of a longer word."""
    alone = all(phrase.end == k + 1 for phrase in scan.phrases(k))
    return scan.is_free(k) and scan.word(k) in _ANDS and alone and not scan.breaks[k]


def _trim_items(scan: Scan, group: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
    """Cut the words around a list off its first and its last item; none if it is no list."""
    items: list[tuple[int, int]] = []
    for n, (first, end) in enumerate(group):
        start = first if items else _find_first(scan, first, end)
        last = _find_last(scan, start, end, is_end=n + 1 == len(group))
        if _is_item(scan, start, last):
            items.append((start, last))
            if last == end:
                continue
        if len(items) > 1:
            break
        items.clear()
    return items if len(items) > 1 else None


def _find_first(scan: Scan, start: int, end: int) -> int:
    """Return where the first item begins, after the words that lead to it."""
    first = start
    for k in range(start, end - 1):
        led = [one.end for one in scan.phrases(k) if one.category.startswith(_LEADING)]
        if scan.lexicon.code == "ja":
            led = [k + 1] if scan.word(k) != "の" and _is_particle(scan, k, end) else []
        elif scan.word(k) in _PREPOSITIONS:
            led.append(k + 1)
        after = max(led, default=0) if scan.word(k) != "的" else 0
        if first <= k and first < after < end:
            first = after
    return first


def _find_last(scan: Scan, start: int, end: int, *, is_end: bool) -> int:
    """Return where an item ends: at the segment's end, or before what is asked for of it."""
    link = None
    for k in range(start + 1, end):
        if not scan.is_free(k):
            continue
        if scan.word(k) in {"の", "的"}:
            link = k if link is None and _is_particle(scan, k, end) else link
            continue
        if scan.lexicon.code == "ja":
            ends = _is_particle(scan, k, end) or scan.has(k, "join.for_each", "about")
        else:
            ends = scan.word(k) in _ENDS or scan.has(k, *_REQUESTS)
        ends = ends or bool(read_quantity(scan, k)[0])
        if ends:
            return link if link is not None and _names_thing(scan, link + 1, k) else k
    return link if is_end and link is not None and _names_thing(scan, link + 1, end) else end


def _names_thing(scan: Scan, start: int, end: int) -> bool:
    """Tell whether the last of some words is a noun that can be asked for."""
    return any(
        one.end == end and one.category.startswith(_THINGS)
        for k in range(start, end)
        for one in scan.phrases(k)
    )


def _is_particle(scan: Scan, k: int, end: int) -> bool:
    """Tell whether a character is a particle: hiragana after it would be of the same word."""
    if scan.word(k) not in _PARTICLES or scan.owners[k] is not None:
        return False
    if scan.word(k) == "を" or any(one.end > k + 1 for one in scan.phrases(k)):
        return True
    after = scan.word(k + 1) if k + 1 < end else ""
    return not "\u3041" <= after <= "\u3096" or scan.has(k + 1, "join.for_each")


def _is_item(scan: Scan, start: int, end: int) -> bool:
    """Tell whether words name something, and ask for nothing themselves."""
    if not 0 < end - start <= _MAX_ITEM or scan.has(start, "join.for_each"):
        return False
    if _is_quoted(scan, start, end):
        return True
    if any(not scan.is_free(k) for k in range(start, end)):
        return False
    counted = any(
        (found := read_quantity(scan, k))[0] and scan.has(found[1], "counter", "unit.")
        for k in range(start, end)
    )
    words = {scan.word(k) for k in range(start, end)}
    acts = "を" in words or scan.word(end - 1) in {"て", "で"}
    return not (counted or acts or _names_thing(scan, start, end))


def _is_quoted(scan: Scan, start: int, end: int) -> bool:
    return all(scan.owners[k] == "literal" for k in range(start, end))
