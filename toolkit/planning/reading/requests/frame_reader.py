"""Acts that nothing here does, by the construction that asks for them."""

from toolkit.planning.reading.requests.mentions import UNAVAILABLE_IDS, UnavailableMention
from toolkit.planning.reading.requests.request_state import RequestState
from toolkit.planning.reading.spans.scan import Break
from toolkit.planning.reading.words.frames import load_frames

# Words that passes before this one read, and that ask for nothing themselves.
_MASKED = frozenset({"literal", "instruction", "negation"})


def find_framed_acts(state: RequestState) -> None:
    """Find acts such as `shoot Ann a message`, and drop what their words were taken for."""
    frames = load_frames(state.scan.lexicon.code)
    if not frames:
        return
    _drop_worded(state)
    scan, text = state.scan, _mask_words(state)
    known = {(one.key, one.start) for one in state.unavailable}
    for start, end in scan.find_sentences():
        last = scan.tokens[end - 1].end
        for k in _list_openings(state, start, end):
            place = scan.tokens[k].start
            for frame in frames:
                found = frame.pattern.match(text, place, last)
                if found is None or UNAVAILABLE_IDS[frame.key] in scan.names.kinds:
                    continue
                stop = next((n for n in range(k, end) if scan.tokens[n].start >= found.end()), end)
                if frame.is_told and _is_worded(state, k, stop):
                    continue
                if (frame.key, k) not in known:
                    state.unavailable.append(UnavailableMention(frame.key, k, stop))
                state.mentions[:] = [one for one in state.mentions if not k <= one.start < stop]
                break


def _drop_worded(state: RequestState) -> None:
    """Drop acts that a text does where one is asked for beside them.

    `Invite the street, wording only` is done by words, and of `promote the new line with a slogan`
    what comes after the verb says what is to be made.
    """
    scan = state.scan
    for one in list(state.unavailable):
        if one.key == "handle":
            needless = _is_worded(state, one.start, one.end, first=one.end)
        else:
            says = scan.word(one.start) in state.grammar.telling and one.end == one.start + 1
            to_asker = scan.word(one.end) in state.grammar.addressers
            says = says or _opens_title(state, one)
            needless = says and not to_asker and _is_worded(state, one.start, one.end)
        if needless:
            state.unavailable.remove(one)


def _opens_title(state: RequestState, one: UnavailableMention) -> bool:
    """Tell whether an act may be a noun that opens a title: `email etiquette in five bullets`."""
    scan, k = state.scan, one.end
    if one.end != one.start + 1 or not scan.breaks[one.start] or k >= len(scan) or scan.breaks[k]:
        return False
    joined = any(scan.has(n, "join.and") for n in range(k, scan.find_sentence_end(k)))
    bare = not scan.has(k, "article", "pronoun", "number", "function_word")
    return bare and not joined and scan.tokens[k].text.islower()


def _mask_words(state: RequestState) -> str:
    """Blank out the words of the objective that are quoted, or not wanted."""
    text = list(state.scan.objective)
    for token, owner in zip(state.scan.tokens, state.scan.owners, strict=True):
        if owner in _MASKED:
            text[token.start : token.end] = "█" * (token.end - token.start)
    return "".join(text)


def _list_openings(state: RequestState, start: int, end: int) -> list[int]:
    """List the words of a sentence that a request can begin with."""
    scan = state.scan
    found = []
    for k in range(start, end):
        if scan.owners[k] in _MASKED or (k > start and scan.owners[k - 1] == "negation"):
            continue
        opens = k == start or bool(scan.breaks[k]) or scan.has(k - 1, "join.and", "join.then")
        polite = any(
            phrase.category == "polite" and phrase.end == k
            for n in range(max(start, k - 6), k)
            for phrase in scan.phrases(n)
        )
        if opens or (polite and scan.gap(k) != "-"):
            found.append(k)
    return found


def _is_worded(state: RequestState, start: int, end: int, first: int = 0) -> bool:
    """Tell whether a sentence asks for a work, or a length, outside of some of its words.

    Args:
        state: what was found.
        start: the first of those words.
        end: where they end.
        first: where to look from, in that sentence.
    """
    scan = state.scan
    opens, last = start, scan.find_sentence_end(start)
    while opens > 0 and scan.breaks[opens] < Break.SENTENCE:
        opens -= 1
    beside = {k for k in range(max(opens, first), last) if not start <= k < end}
    measured = any(scan.owners[k] == "measure" for k in beside)
    return measured or any(one.form and one.start in beside for one in state.mentions)
