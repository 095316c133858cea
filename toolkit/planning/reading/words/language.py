"""The language that an objective is written in."""

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache

from .lexicon import CODES, expand_entries, load_lexicon, read_lexicon
from .tokens import WITHOUT_SPACES, fold_text, split_tokens

LATIN = tuple(code for code in CODES if code not in {*WITHOUT_SPACES, "ar"})
KANA = re.compile("[\u3041-\u30fa\u30fc-\u30ff\uff66-\uff9d]")
HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
ARABIC_WORD = re.compile("[\u0620-\u065f\u066e-\u06d3]+")
QUOTED = re.compile(
    r"«[^»]*»|»[^«]*«|“[^”]*”|„[^“”]*[“”]|\"[^\"]*\"|「[^」]*」|『[^』]*』|《[^》]*》"
    r"|(?<!\w)[‘'](?:[^‘’']|['’](?=\w))*[’'](?!\w)"
)
ID = re.compile(r"\b\w*[_\d]\w*", re.ASCII)
WORD = re.compile(r"[^\W\d_]+(?:['’](?=[^\W\d_]))?")
LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]{2,}")
# Letters that only some of the languages in Latin letters have.
LETTERS = {"ß": "de", "ä": "de", "ö": "de", "ü": "de es fr pt", "ñ": "es", "¿": "es", "¡": "es",
           "ã": "pt", "õ": "pt", "ç": "fr pt", "ê": "fr pt", "â": "fr pt", "ô": "fr pt",
           "è": "fr it", "ù": "fr it", "ò": "it", "ì": "it", "à": "fr it pt", "î": "fr",
           "û": "fr", "œ": "fr", "á": "es pt", "í": "es pt", "ó": "es pt",
           "ú": "es pt",
           # Romance languages have these in names and words from elsewhere only.
           "k": "de en", "w": "de en"}  # fmt: skip
FOLDED_WEIGHT = 0.5  # of a function word without its accents
VOCABULARY_WEIGHT = 0.5  # of any other word of a lexicon
ARTICLE_WEIGHT = 0.3  # of an article above that
CLEAR_MARGIN = 1.5  # between the first two languages by function words alone


def detect_language(objective: str) -> str:
    """Tell the language of an objective: by its script, then by function words and letters.

    What is quoted does not count unless all is, as it may be of another language. Of an objective
    in a language without a lexicon, the nearest is told; few of its words are understood then.

    Example:
        >>> detect_language("Write an ad with the line «Le goût de la mer»")
        'en'
    """
    outside = ID.sub(" ", QUOTED.sub(" ", objective))
    text = outside if any(character.isalpha() for character in outside) else objective
    return detect_script(text) or detect_latin(text)


def detect_script(text: str) -> str | None:
    """The language that the script of a text tells; none where most words are in Latin letters.

    A character of Chinese or Japanese counts as half a word.
    """
    kana, han, arabic = (len(units.findall(text)) for units in (KANA, HAN, ARABIC_WORD))
    latin = len(LATIN_WORD.findall(text))
    if arabic > max(latin, (kana + han) / 2):
        return "ar"
    if kana + han >= 2 * latin and kana + han:
        return "ja" if kana else "zh"
    return None


def detect_latin(text: str) -> str:
    """The language in Latin letters that most words of a text speak for."""
    scores: dict[str, float] = dict.fromkeys(LATIN, 0.0)
    weights = weigh_function_words()
    words = [word.lower().replace("’", "'") for word in WORD.findall(text)]
    for word in words:
        for code, weight in weights.get(word, {}).items():
            scores[code] += weight
    for letter in text.lower():
        for code in LETTERS.get(letter, "").split():
            scores[code] += 1 / len(LETTERS[letter].split())
    most, second = sorted(scores.values(), reverse=True)[:2]
    if most - second < CLEAR_MARGIN:
        add_vocabulary(scores, text, most - CLEAR_MARGIN)
    return max(scores, key=lambda code: scores[code])


def add_vocabulary(scores: dict[str, float], text: str, least: float) -> None:
    """Add what the other words of a text say for the languages that have a score at least."""
    for code in LATIN:
        if scores[code] > least:
            lexicon = load_lexicon(code)
            for token in split_tokens(text, code):
                if lexicon.is_known(token.key):
                    scores[code] += VOCABULARY_WEIGHT
                if token.key in lexicon.articles:
                    scores[code] += ARTICLE_WEIGHT


@lru_cache(maxsize=1)
def weigh_function_words() -> Mapping[str, Mapping[str, float]]:
    """What each function word says for each language; less where several have it."""
    weights: dict[str, dict[str, float]] = {}
    for code in LATIN:
        head = tomllib.loads(read_lexicon(code).partition("\npolite = ")[0])
        for word in expand_entries(head["function_words"].lower().replace("’", "'")):
            weights.setdefault(word, {})[code] = 1.0
            weights.setdefault(fold_text(word), {}).setdefault(code, FOLDED_WEIGHT)
    return {
        word: {code: weight / len(by_code) for code, weight in by_code.items()}
        for word, by_code in weights.items()
    }
