"""Checks of a text's signs: garbled ones, hidden ones, and those of keys and passwords."""

import re
import unicodedata
from collections.abc import Iterator

from toolkit.contract.key_shapes import looks_like_key
from toolkit.planning.review.issues import ReviewIssue
from toolkit.planning.review.texts.case import TextCase, quote
from toolkit.planning.review.texts.word_lists import find_phrase

_QUOTED = re.compile(
    r"«[^»\n]*»|“[^”\n]*”|„[^“”\n]*[“”]|\"[^\"\n]*\"|`[^`\n]*`|'[^'\n]*'|「[^」\n]*」"
)
# Letters of Windows-1252 that bytes of UTF-8 become when they are read in it.
_MISREAD_SIGN = re.compile(
    r"[\u0080-\u00ff\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2026"
    r"\u2030\u2039\u203a\u20ac\u2122]"
)
_MIN_ODD, _ODD_SHARE = 12, 0.45  # signs; of all that are no spaces
_MISREAD = re.compile(
    r"[\u0080-\u00ff\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2026"
    r"\u2030\u2039\u203a\u20ac\u2122]{2,}"
)
_STRONG_MISREAD = re.compile(
    r"Ã[\u0080-\u00bf\u0192\u201a-\u201e\u2020-\u2026\u20ac\u0160\u00a0]|â€|Â[\u00a0-\u00bf]|ï»¿|ï¿½"
)
_OTHER_MISREAD = re.compile(r"锟斤拷|烫烫烫|屯屯屯|縺|繧|繝|é¦|ØªØ|Ø§Ù")
# Letters that only look like those of the others: a Cyrillic `а` between Latin ones.
_MIXED = re.compile(r"\b(?=\w*[a-zA-Z])(?=\w*[\u0370-\u03ff\u0400-\u052f])[^\W\d_]{2,40}\b")
_MIN_MIXED, _MIXED_SHARE = 3, 0.1  # words; of all of them
_REPLACED = re.compile(r"\ufffd|(?<=[^\W\d_])\?(?=[^\W\d_])")
_ADDRESSES = re.compile(r"https?://\S+|www\.\S+")
_HIDDEN = re.compile(
    "[\u00ad\u200b\u200e\u200f\u2028\u2029\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)
_HARMFUL_HIDDEN = re.compile("[\u202d\u202e\U000e0020-\U000e007f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TOKEN = re.compile(r"[A-Za-z0-9+/=_\-.]{16,}")
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")
_ASSIGNED = re.compile(
    r"(?:secret|passw(?:or)?d|passwort|passphrase|api[_ -]?key|access[_ -]?key|auth[_ -]?token|"
    r"token|contraseña|senha|mot de passe|kennwort|パスワード|暗証番号|密码|密碼|口令|"
    r"كلمة (?:ال)?(?:سر|مرور))"
    r"[\w ]{0,20}?['\"]?\s{0,3}(?:[:=：]|\b(?:is|ist|est|es|è|é)\b|は|为|是|هي)\s{0,3}['\"]?"
    r"([^\s'\"<>{}$*。，、]{8,})",
    re.I,
)
_IN_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,60}:([^\s/@]{8,80})@", re.I)
_DUMMY = re.compile(
    r"example|your|xxx|placeholder|change|dummy|sample|test|123456|\.\.\.|env|secrets?[._]", re.I
)
_SECRET_PREFIX = re.compile(
    r"^(?:sk[-_]|rk_live_|pk_live_|gh[pousr]_|github_pat_|xox[abpr]-|AIza|AKIA|ASIA|eyJ|gsk_|hf_|"
    r"glpat-|npm_|SG\.|rpa_)"
)
MAX_KEYS = 2_000  # long words of a text, that are looked at


def check_encoding(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that no letters were misread in another encoding, or lost."""
    text = case.sample
    if not text.isascii() and (found := _find_misread(text, case.asks("encoding"))):
        message = f"The text is garbled: {quote(found)}."
        yield case.report(message, 0.8, criterion="technical_success")
        return
    mixed = [] if text.isascii() else _MIXED.findall(text)
    if len(mixed) >= _MIN_MIXED and len(mixed) > _MIXED_SHARE * len(text.split()):
        message = f"Letters of two scripts are in one word: {quote(', '.join(mixed[:4]))}."
        yield case.report(message, 0.8, criterion="technical_success")
        return
    replaced = _REPLACED.findall(_ADDRESSES.sub(" ", _QUOTED.sub(" ", text)))
    if "\ufffd" in replaced or (len(replaced) >= 3 and not case.is_code):
        yield case.report("Letters of the text are lost.", 0.8, criterion="technical_success")


def _find_misread(text: str, is_topic: bool) -> str:
    """Find what was misread; as an example in quotation marks it may be meant."""
    plain = _QUOTED.sub(" ", text)
    found = [match.group() for match in _MISREAD.finditer(plain) if is_misread(match.group())]
    found += _OTHER_MISREAD.findall(plain)
    strong = _STRONG_MISREAD.findall(plain)
    if len(found) >= (3 if is_topic else 2) or (strong and found and not is_topic):
        return found[0]
    # Bytes may be lost on the way; no language has that many of such letters and signs.
    odd = _MISREAD_SIGN.findall(plain)
    if len(odd) >= _MIN_ODD and len(odd) > _ODD_SHARE * len(re.sub(r"\s", "", plain)):
        return "".join(odd[:8])
    # Where nearly all of it is garbled, the quotation marks are no sign of anything.
    return strong[0] if len(strong) > len(text) / 60 and len(strong) > 2 else ""


def is_misread(run: str) -> bool:
    """Tell whether a run of letters is UTF-8 that was read as Windows-1252 or Latin-1.

    >>> is_misread("Ã¼"), is_misread("é»"), is_misread("â€“")
    (True, False, True)
    """
    for encoding in ("cp1252", "latin-1"):
        try:
            repaired = run.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if all(char.isalpha() or unicodedata.category(char)[0] in "PSZ" for char in repaired):
            return True
    return False


def check_hidden(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text is made of signs that are seen."""
    text = case.sample
    hidden = [] if text.isascii() else _HIDDEN.findall(text.removeprefix("\ufeff"))
    harmful = [] if text.isascii() else _HARMFUL_HIDDEN.findall(text)
    if case.language.script not in {"arabic", "hebrew"}:
        harmful += [char for char in hidden if char in "\u200e\u200f"][10:]
    many = len(hidden) > max(4, len(text) * case.thresholds.hidden_share)
    control = _CONTROL.findall(text)
    if many or harmful or control:
        names = {f"U+{ord(char):04X}" for char in (harmful or control or hidden)}
        message = f"The text has signs that are not seen: {', '.join(sorted(names)[:4])}."
        yield case.report(message, 0.6, criterion="technical_success")


def check_secrets(case: TextCase) -> Iterator[ReviewIssue]:
    """Check that a text holds no key or password; none is quoted."""
    kinds = []
    if _PEM.search(case.text):
        kinds.append("a private key")
    tokens = [] if len(case.text) < 16 else _TOKEN.findall(case.text)[:MAX_KEYS]
    if any(_is_secret(token) for token in tokens):
        kinds.append("a key")
    for match in (*_ASSIGNED.finditer(case.sample), *_IN_ADDRESS.finditer(case.sample)):
        value = match.group(1)
        if _is_random(value) and not _DUMMY.search(value) and find_phrase("works", value) is None:
            kinds.append("a password or token")
            break
    if kinds:
        message = f"The text holds {' and '.join(kinds)}."
        yield case.report(message, 0.9, criterion="technical_success",
                          instruction="Leave out keys and passwords.")  # fmt: skip


def _is_secret(token: str) -> bool:
    token = token.strip(".-_=")
    prefixed = _SECRET_PREFIX.match(token)
    if prefixed is None or len(token) < 20 or _DUMMY.search(token):
        return False
    return looks_like_key(token) and _is_random(token[prefixed.end() :])


def _is_random(text: str) -> bool:
    """Tell whether a text looks drawn at random: letters and digits mixed, few of them twice."""
    digits, letters = sum(map(str.isdigit, text)), sum(map(str.isalpha, text))
    return digits >= 2 and letters >= 3 and len(set(text)) >= min(8, 0.4 * len(text))
