"""Words of a text with their places and the keys that they are looked up by."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

# Accents are dropped; the voicing marks of Japanese kana (U+3099, U+309A) tell words apart.
MARKS = re.compile(
    "[\u0300-\u036f\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\u0640]"
)
LETTERS = str.maketrans(
    {
        **dict(zip("æœøłđı", ("ae", "oe", "o", "l", "d", "i"), strict=True)),
        **dict(zip("ىةٱگکی", "يهاككي", strict=True)),
        **dict.fromkeys("’‘ʼ′`´＇", "'"),
        **dict.fromkeys("‐‑‒–—−", "-"),
        **{chr(0x660 + digit): str(digit) for digit in range(10)},
        **{chr(0x6F0 + digit): str(digit) for digit in range(10)},
    }
)
WITHOUT_SPACES = frozenset({"ja", "zh"})
ELIDING = frozenset({"fr", "it"})
IDEOGRAPH = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
)
LETTER = r"[^\W\d_]"
REST = "(?:[^\\W_]|[\u0300-\u036f\u064b-\u065f\u0670])*"
NUMBER = r"\d+(?:[.,:٫]\d+)*"
TIMES = r"[xX×](?=\d)"  # 1200x630 is three words, as 1200 x 630 is
MARK = r"\.{2,}|[^\w\s]|_"
HYPHENS = frozenset("-‐‑")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a punctuation mark of a text.

    Attributes:
        text: as it is written.
        key: the same, folded, as lexicons have it.
        start, end: its place in the text, in characters.
    """

    text: str
    key: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether it is a word or a number, and no punctuation mark."""
        return self.text[0].isalnum()

    @property
    def is_number(self) -> bool:
        """Whether it is written in digits."""
        return self.key[:1].isdigit()


def fold_text(text: str) -> str:
    """Fold case, accents and the spellings of one letter, so that texts can be compared.

    Example:
        >>> fold_text("Café Straße ÉCRIS")
        'cafe strasse ecris'
    """
    folded = MARKS.sub("", unicodedata.normalize("NFKD", text)).casefold()
    folded = MARKS.sub("", unicodedata.normalize("NFKD", folded)).translate(LETTERS)
    return unicodedata.normalize("NFC", folded)


fold_word = lru_cache(maxsize=4096)(fold_text)


@lru_cache(maxsize=16)
def compile_tokens(code: str) -> re.Pattern[str]:
    """The pattern of the tokens of a language."""
    if code in WITHOUT_SPACES:
        other = f"(?![{IDEOGRAPH}])"
        word = f"[{IDEOGRAPH}][\u3099\u309a\uff9e\uff9f]?"
        word += f"|{other}{LETTER}(?:{other}[^\\W_]|[\u0300-\u036f])*"
    elif code in ELIDING:
        word = f"{LETTER}{REST}['’](?={LETTER}|$)|{LETTER}{REST}"
    else:
        word = f"{LETTER}{REST}(?:['’]{LETTER}{REST})?"
    return re.compile(f"{NUMBER}|{TIMES}|{word}|{MARK}|\\S")


def split_tokens(text: str, code: str = "en") -> list[Token]:
    """Split a text into words, numbers and punctuation marks.

    A hyphen within a word is no token, so that "voice-over" is looked up as "voice over" is;
    languages without spaces have a token for each character, and for each word in Latin letters.

    Args:
        text: what is to be split.
        code: of its language.

    Example:
        >>> [token.key for token in split_tokens("A 50-word blurb, s'il te plaît", "fr")]
        ['a', '50', 'word', 'blurb', ',', "s'", 'il', 'te', 'plait']
    """
    tokens = []
    for found in compile_tokens(code).finditer(text):
        start, end = found.span()
        if text[start] in HYPHENS and is_within_word(text, start):
            continue
        tokens.append(Token(found[0], fold_word(found[0]), start, end))
    return tokens


def is_within_word(text: str, place: int) -> bool:
    """Tell whether the mark at a place joins two parts of one word, as in "50-word"."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    return before.isalnum() and after.isalnum() and not (before.isdigit() and after.isdigit())
