"""Hard checks of texts: they are certain of their findings, so no judge overrules them."""

import re
import unicodedata
from collections.abc import Iterator

from toolkit.contract.base import JsonObject
from toolkit.contract.key_shapes import looks_like_key
from toolkit.media.text_parts import count_characters, count_words, fold, read_json, split_lines
from toolkit.planning.capability_kinds import is_field_valid
from toolkit.planning.review.evidence import Remedy, ReviewIssue
from toolkit.planning.review.phrases import compile_phrases, match_source_head
from toolkit.planning.review.text_case import SHORT_CHARACTERS, TextCase, TextCheck, quote

MAX_PARSED = 200_000  # characters of JSON that are parsed
_MIN_LOST, _MIN_MIXED, _MIXED_SHARE = 3, 3, 0.1  # letters; words; of all words
MAX_KEYS = 2_000  # maximum number of long words that are checked
_MIN_BODY_WORDS, _MIN_BODY_CHARS = 3, 6  # of the body of a card
# Marks of turns and roles in the prompts of models, which no text for people has.
CONTROL_MARK = re.compile(
    r"<\|[a-z_]{2,20}\|>|\[/?INST\]|<</?SYS>>|</?s>|</?material-[0-9a-f]{6,}>"
    r"|###\s*(?:Instruction|Response|System)\b|<(?:/?)(?:system|assistant|user|prompt|instructions|"
    r"thinking|think|scratchpad|tool_call|function_calls)>"
)
# Names that programs give to an absent value, or a placeholder alone.
_NOTHING = re.compile(
    r"\W*(?:n/a|none|null|undefined|nil|nan|(?<!\w)[\[<【]+[^\[\]<>【】\"\d]{1,80}[\]>】]+)\W*",
    re.I,
)
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_QUOTED = re.compile(r"«[^»\n]*»|“[^”\n]*”|„[^“”\n]*[“”]|\"[^\"\n]*\"|`[^`\n]*`|「[^」\n]*」")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s)\]>,;\"”]+")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_\-.]{16,}")
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")
_SECRET_PREFIX = re.compile(
    r"^(?:sk[-_]|rk_live_|pk_live_|gh[pousr]_|github_pat_|xox[abpr]-|AIza|AKIA|ASIA|eyJ|gsk_|hf_|"
    r"glpat-|npm_|SG\.|rpa_)"
)
_ASSIGNED = re.compile(
    r"(?:secret|passw(?:or)?d|passwort|passphrase|api[_ -]?key|access[_ -]?key|auth[_ -]?token|"
    r"token|contraseña|senha|mot de passe|kennwort|パスワード|密码|密碼|口令|"
    r"كلمة (?:ال)?(?:سر|مرور))"
    r"[\w ]{0,20}?['\"]?\s{0,3}(?:[:=：]|\b(?:is|ist|est|es|è|é)\b|は|为|是|هي)\s{0,3}['\"]?"
    r"([^\s'\"<>{}$*。，、]{8,})"
    r"|\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,60}:([^\s/@]{8,80})@",
    re.I,
)
_DUMMY = re.compile(
    r"example|your|xxx|placeholder|change|dummy|sample|test|123456|\.\.\.|env|secrets?[._]", re.I
)
_CITATION = re.compile(r"\[\d{1,2}\]|\([A-Z]\w+[^()]{0,40}\d{4}\)|\bdoi:|\b10\.\d{4,9}/\S+")
_MATERIAL_TITLE = re.compile(r"^([^\n:]{3,60}):", re.M)
_NAMED = re.compile(r"\d{4}|\b[A-Z]\w+ [A-Z]\w+|[»“”\"«]")
# Letters of Windows-1252 and Latin-1 that bytes of UTF-8 become when they are read in these.
_MISREAD = re.compile(
    r"[\u0080-\u00ff\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2026"
    r"\u2030\u2039\u203a\u20ac\u2122]{2,}"
)
_OTHER_MISREAD = re.compile(r"锟斤拷|烫烫烫|屯屯屯|縺|繧|繝")
_LOST_LETTER = re.compile(r"(?<=[^\W\d_])\?(?=[^\W\d_])")
_MIXED = re.compile(r"\b(?=\w*[a-zA-Z])(?=\w*[\u0370-\u03ff\u0400-\u052f])[^\W\d_]{2,40}\b")
_HIDDEN = re.compile("[\u00ad\u200b\u2028\u2029\u2060-\u2064\ufeff]")
_HARMFUL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202d\u202e\U000e0020-\U000e007f]")
_FEW_HIDDEN, _MAX_HIDDEN_SHARE = 4, 0.02  # invisible signs that are not harmful


def check_emptiness(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text has a word or an emoji, and is not just `n/a` or a placeholder."""
    text = CONTROL_MARK.sub("", case.text)
    says = any(char.isalnum() or _EMOJI.match(char) for char in text)
    if says and not _NOTHING.fullmatch(text):
        return
    message = "The text is empty." if not case.text.strip() else "The text has no word."
    yield case.report(message, 1.0, criterion="output_completeness")


def check_card_body(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text for the body of a card has a few words at least, or is in the objective."""
    is_shown = any(
        "text_boxes" in dependent.capability.output_model.model_fields
        and "body" not in dependent.node.input
        for dependent in case.look.dependents
    )
    words = count_words(case.text)
    few = words < _MIN_BODY_WORDS if words else count_characters(case.text) < _MIN_BODY_CHARS
    if is_shown and few and fold(case.text).strip(" .!…。！") not in fold(case.look.objective):
        yield case.report(
            f"The body of the card says nothing: {quote(case.text)}.",
            0.9,
            criterion="output_completeness",
            instruction="Write at least one whole sentence.",
        )


def check_truncation(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that the model did not stop because it reached its limit of tokens."""
    item = case.item
    if (item.output or {}).get("finish_reason") != "length":
        return
    changes: JsonObject = {}
    allowed = item.capability.input_model.model_fields
    if "max_tokens" in allowed:
        now = item.node.input.get("max_tokens", allowed["max_tokens"].default)
        doubled = now * 2 if isinstance(now, int) else 0
        fields = {**item.node.input, "max_tokens": doubled}
        is_valid = is_field_valid(item.capability, fields, "max_tokens")
        changes = {"max_tokens": doubled} if is_valid else {}
    yield case.report(
        "The text is cut off.",
        criterion="output_completeness",
        changes=changes,
        remedy=Remedy.RERUN if changes else Remedy.NONE,
    )


def check_json(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is JSON if its node asks for JSON, with the members its schema requires."""
    schema, expect = case.item.node.input.get("output_schema"), case.item.node.expect
    is_asked = isinstance(schema, dict) or (expect is not None and expect.format == "json")
    if not is_asked or len(case.text) > MAX_PARSED:
        return
    try:
        value = read_json(case.text)
    except (ValueError, RecursionError):
        yield case.report(
            f"The text is no JSON: {quote(case.text)}.",
            0.9,
            criterion="technical_success",
            instruction="Answer with valid JSON only.",
        )
        return
    required = schema.get("required") if isinstance(schema, dict) else None
    if isinstance(required, list):
        members = value if isinstance(value, dict) else {}
        absent = [str(name) for name in required if name not in members]
        if absent:
            message = f"The JSON lacks `{absent[0]}`."
            yield case.report(message, 0.8, criterion="technical_success")


def check_encoding(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that no letters are garbled or lost, and that no word mixes letters of two scripts."""
    plain = _QUOTED.sub(" ", case.sample)
    text = plain if len(plain) * 2 > len(case.sample) else case.sample  # an example may be quoted
    text = _ADDRESS.sub(" ", text)
    garbled = find_garbled(text)
    min_runs = 1 if len(text) < SHORT_CHARACTERS else 2
    mixed = find_mixed_words(text)
    if len(garbled) >= min_runs:
        message = f"The text is garbled: {quote(garbled[0])}."
        yield case.report(message, 0.8, criterion="technical_success")
    elif len(mixed) >= max(_MIN_MIXED, _MIXED_SHARE * len(text.split())):
        message = f"Letters of two scripts are in one word: {quote(', '.join(mixed[:4]))}."
        yield case.report(message, 0.8, criterion="technical_success")
    elif "\ufffd" in text or (count_lost_letters(text) >= _MIN_LOST and not case.is_data):
        yield case.report("Letters of the text are lost.", 0.8, criterion="technical_success")


def check_hidden(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text has no harmful invisible signs, and few others."""
    hidden = find_hidden_signs(case.sample)
    if hidden:
        names = sorted({f"U+{ord(char):04X}" for char in hidden})
        message = f"The text has invisible characters: {', '.join(names[:4])}."
        yield case.report(message, 0.6, criterion="technical_success")


def check_secrets(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text holds no key or password; the message does not quote it."""
    tokens = _TOKEN.findall(case.text)[:MAX_KEYS] if len(case.text) >= 16 else []
    values = [value or in_url for value, in_url in _ASSIGNED.findall(case.sample)]
    if (
        _PEM.search(case.text)
        or any(map(_is_secret, tokens))
        or any(_is_random(value) and not _DUMMY.search(value) for value in values)
    ):
        yield case.report(
            "The text holds a key or a password.",
            0.9,
            criterion="technical_success",
            instruction="Leave out keys and passwords.",
        )


def _is_secret(token: str) -> bool:
    token = token.strip(".-_=")
    prefix = _SECRET_PREFIX.match(token)
    if prefix is None or len(token) < 20 or _DUMMY.search(token):
        return False
    return looks_like_key(token) and _is_random(token[prefix.end() :])


def _is_random(text: str) -> bool:
    """Return whether a text looks random: letters and digits mixed, few of them twice."""
    digits, letters = sum(map(str.isdigit, text)), sum(map(str.isalpha, text))
    return digits >= 2 and letters >= 3 and len(set(text)) >= min(8, 0.4 * len(text))


def check_sources(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text names sources if its brief asks for them, and no invented address."""
    if case.is_data or not _asks_for_sources(fold(case.brief)):
        return
    allowed = {_cut_address(address) for address in _ADDRESS.findall(case.material)}
    cited = {_cut_address(address) for address in _ADDRESS.findall(case.text)}
    if allowed and cited and not any(part in address for part in cited for address in allowed):
        message = f"The text cites an address that is not in the material: {quote(min(cited))}."
        yield case.report(message, instruction="Cite the addresses of the material alone.")
    elif not (cited or (not allowed and _names_source(case))):
        message = "The text names no source, though its brief asks for them."
        yield case.report(message, instruction="Name each source with its address at the end.")


def _asks_for_sources(brief: str) -> bool:
    """Return whether a brief asks to name sources; a spring, "a source at 200 m", is none."""
    verbs, heads = (compile_phrases(name).pattern for name in ("source_verbs", "source_heads"))
    phrase = rf"(?:{verbs})\W+(?:\w+\W+){{0,3}}?(?:{heads})(?!\s+(?:of\b|code\b|a \d))"
    return bool(compile_phrases("sources").search(brief) or re.search(phrase, brief))


def _cut_address(address: str) -> str:
    """Return an address in lower case, without scheme, `www.` and the punctuation after it."""
    return re.sub(r"^(?:https?://)?(?:www\.)?", "", address.lower()).rstrip("/.,;:!?*_'")


def _names_source(case: TextCase) -> bool:
    """Return whether a text names a source without an address: in brackets, or in a list."""
    lines = split_lines(case.sample)
    titles = [fold(title) for title in _MATERIAL_TITLE.findall(case.material)]
    if _CITATION.search(case.text):
        return True
    for i, line in enumerate(lines):
        if match_source_head(line):
            listed = " ".join([line.partition(":")[2], *lines[i + 1 :]])
            if _NAMED.search(listed) or any(title in fold(listed) for title in titles):
                return True
    return False


TEXT_CHECKS: tuple[TextCheck, ...] = (
    check_emptiness, check_card_body, check_truncation, check_json, check_encoding, check_hidden,
    check_secrets, check_sources,
)  # fmt: skip


def find_garbled(text: str) -> list[str]:
    """Find the runs of letters that were read in another encoding than they were written in.

    >>> find_garbled("Der WÃ¼rfel â€“ und Stéphane»")
    ['Ã¼', 'â€“']
    """
    runs = [match.group() for match in _MISREAD.finditer(text)]
    return [run for run in runs if _is_misread(run)] + _OTHER_MISREAD.findall(text)


def _is_misread(run: str) -> bool:
    """Return whether a run of letters is UTF-8 that was read as Windows-1252 or Latin-1."""
    for encoding in ("cp1252", "latin-1"):
        try:
            repaired = run.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if all(char.isalpha() or unicodedata.category(char)[0] in "PSZ" for char in repaired):
            return True
    return False


def count_lost_letters(text: str) -> int:
    """Count the question marks that stand for a letter inside of a word.

    >>> count_lost_letters("Gr??e aus M?nchen?")
    1
    """
    return len(_LOST_LETTER.findall(text))


def find_mixed_words(text: str) -> list[str]:
    """Find words that mix Latin letters with Greek or Cyrillic letters."""
    return [] if text.isascii() else _MIXED.findall(text)


def find_hidden_signs(text: str) -> list[str]:
    """Find invisible signs: harmful signs always, other signs if they are many.

    A byte-order mark at the start of the text is ignored.
    """
    hidden = _HIDDEN.findall(text.removeprefix("\ufeff"))
    is_many = len(hidden) > max(_FEW_HIDDEN, len(text) * _MAX_HIDDEN_SHARE)
    return [*_HARMFUL.findall(text), *(hidden if is_many else [])]
