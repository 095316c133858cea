"""The words of a language, by what an objective means by them.

Each language has one file, `lexicons/<code>.toml`. A key of it holds entries between commas, over
as many lines as they take. Parentheses hold alternatives, the empty one among them:
`(read|reads|reading) aloud, tell(|s|ing) me` stands for six entries. Articles within a phrase are
left out in the file and skipped in an objective. `lies … vor` is a verb whose parts stand apart,
`关于|的` a pair that encloses a topic, `square=square` a phrase and its value. `!kürze` counts only
with its accents, as the same letters without them are another word.
"""

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Literal, cast

from .tokens import ELIDING, WITHOUT_SPACES, Token, fold_text, split_tokens

CODES = ("en", "de", "fr", "es", "it", "pt", "ja", "zh", "ar")
# The prefix of an entry's category for each section of a file; keys of a section follow it.
CATEGORIES = {
    "acts": "act", "things": "thing", "unavailable": "unavailable", "joins": "join",
    "negation": "negation", "units": "unit", "bounds": "bound", "attributes": "attribute",
}  # fmt: skip
WORD_LISTS = {
    "function_words": "function_word", "polite": "polite", "articles": "article", "make": "make",
    "about": "about", "pronouns": "pronoun", "numbers": "number", "counters": "counter",
    "languages": "language", "questions": "question", "facts": "fact", "fillers": "filler",
    "instructions": "instruction", "titles": "title", "creative": "creative",
}  # fmt: skip
VALUED = frozenset({"number", "language", "attribute.theme", "attribute.shape", "attribute.pace",
                    "attribute.format"})  # fmt: skip
VERBS = ("act.", "make")
TA_MARBUTA = "ة"  # folded to ه, which is an enclitic as well
EXACT = "!"
ASK = "ask_"  # begins the keys of what is asked back
MARKED = re.compile(r"!(\w+),?")
GAP = " ... "  # what folding makes of an ellipsis
MAX_GAP = 14  # tokens between the parts of a verb that stand apart
MIN_STEM = 3  # letters of a word without its clitics
MIN_TAIL = 5  # letters of the last part of a compound
CLAUSE_ENDS = frozenset('.,;:!?()"“”„»«…')


@dataclass(frozen=True, slots=True)
class Entry:
    """What a phrase of an objective can mean.

    Attributes:
        category: `act.write`, `thing.text`, `unavailable.send`, `make`, `join.and`, …
        value: of an entry that has one: the number, the code of a language, the shape; of an
            `about` that encloses its topic, what closes it; of a verb, the pronoun that it ends in.
        length: of the phrase, in tokens.
        is_ambiguous: whether it can be a verb and a noun.
        particle: the index of the token that ends a verb whose parts stand apart.
        is_tail: whether it is only the last part of a compound, or a word without its clitics.
    """

    category: str
    value: str
    length: int
    is_ambiguous: bool = False
    particle: int | None = None
    is_tail: bool = False


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of one language.

    Attributes:
        code: of the language.
        word_order: whether a topic stands after the word that introduces it, or before.
        quotes: the marks that open and close a quotation.
        meanings: the categories and values of each phrase, by its key.
        longest: the number of tokens of the longest phrase that begins with a word.
        particles: the later parts of the verbs that begin with a word, and their categories.
        ambiguous: the phrases that are verb and noun.
        articles: words that are skipped within a phrase.
        conjunction: the one that is written as one with the word after it.
        proclitics, enclitics: what can be written as one with a word.
        definite: the ends of proclitics that only a noun follows.
        endings: what a word ends in before an enclitic, and without it.
        spellings: other ways to write a letter, and the letter.
        has_compounds: whether the last part of a word says what it is.
        short_tails: words of fewer letters that are the last part of others.
        compound_stops: words whose last part does not.
        inflections: endings of moods that phrases leave out, and those of the infinitive.
        complements: conjunctions that open what somebody wishes for.
        courtesy: endings of the verbs that wish: conditionals.
        own_subjects, own_endings: words and endings by which somebody says to do a thing himself.
        questions: what is asked back, by what is not clear; `{phrase}` stands for words.
    """

    code: str
    word_order: Literal["about-after", "about-before"]
    quotes: tuple[tuple[str, str], ...]
    meanings: Mapping[str, Sequence[tuple[str, str]]]
    longest: Mapping[str, int]
    particles: Mapping[str, Sequence[tuple[str, str]]]
    ambiguous: frozenset[str]
    articles: frozenset[str]
    proclitics: tuple[str, ...] = ()
    conjunction: str = ""
    enclitics: tuple[str, ...] = ()
    definite: tuple[str, ...] = ()
    endings: tuple[tuple[str, str], ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    has_compounds: bool = False
    short_tails: frozenset[str] = frozenset()
    compound_stops: frozenset[str] = frozenset()
    inflections: tuple[tuple[str, str], ...] = ()
    complements: frozenset[str] = frozenset()
    courtesy: tuple[str, ...] = ()
    own_subjects: tuple[str, ...] = ()
    own_endings: tuple[str, ...] = ()
    questions: Mapping[str, str] = field(default_factory=dict)

    @property
    def separator(self) -> str:
        """What stands between the words of a phrase in its key."""
        return "" if self.code in WITHOUT_SPACES else " "

    def is_known(self, key: str) -> bool:
        """Tell whether a word, or one that begins a phrase, is in the lexicon."""
        return key in self.meanings or key in self.longest

    def split_conjunctions(self, tokens: Sequence[Token]) -> list[Token]:
        """Split off the conjunctions that are written as one with a known word: `وصورة`."""
        if not self.conjunction:
            return list(tokens)
        split: list[Token] = []
        for token in tokens:
            size = len(self.conjunction)
            rest = Token(token.text[size:], token.key[size:], token.start + size, token.end)
            is_joined = token.key.startswith(self.conjunction) and len(rest.key) >= MIN_STEM
            if is_joined and not self.is_known(token.key) and self.find_entries([rest], 0):
                split.append(Token(token.text[:size], token.key[:size], token.start, rest.start))
                token = rest
            split.append(token)
        return split

    def find_entries(self, tokens: Sequence[Token], i: int) -> list[Entry]:
        """List what the phrases that start at a token can mean, the longest first."""
        found: list[Entry] = []
        for key in self.list_keys(tokens[i]):
            found += self.match_phrases(tokens, i, key, is_tail=key != tokens[i].key)
            if any(entry.category not in {"function_word", "pronoun"} for entry in found):
                break
        found += self.match_separated(tokens, i)
        if not found and self.has_compounds:
            found = self.match_tail(tokens[i].key)
        if not found:
            found = self.match_inflected(tokens[i].key)
        # A verb whose second part is there is that verb, and not the first part's.
        found.sort(key=lambda entry: (-entry.length, entry.particle is None))
        return found

    def match_phrases(
        self, tokens: Sequence[Token], i: int, first: str, *, is_tail: bool = False
    ) -> Iterator[Entry]:
        """Find the phrases that start at a token, read by one of its keys."""
        most = self.longest.get(first if self.separator else first[:1], 0)
        is_noun = is_tail and self.is_definite(tokens[i], first)
        clitic = self.find_enclitic(tokens[i].key, first) if is_tail else ""
        paths = [first]
        for j in range(i, len(tokens)):
            if j > i:
                key = tokens[j].key
                skipped = paths if key in self.articles else []
                paths = [
                    path + self.separator + variant
                    for path in paths
                    for variant in self.list_keys(tokens[j])
                ]
                paths = [path for path in paths if self.count_units(path) <= most]
                # Without doubles, a row of articles would have ever more of them.
                paths = list(dict.fromkeys([*paths, *skipped]))
            if not paths or not most:
                return
            if j > i and tokens[j].key in self.articles:
                matched = [path for path in paths if path.endswith(self.separator + tokens[j].key)]
            else:
                matched = paths
            for path in matched:
                is_ambiguous = path in self.ambiguous and not clitic
                for category, value in self.meanings.get(path, ()):
                    if not (is_noun and category.startswith(VERBS)):
                        yield Entry(
                            category, value or clitic, j - i + 1, is_ambiguous, is_tail=is_tail
                        )
            if j - i > 12:
                return

    def count_units(self, path: str) -> int:
        """Count the words of a phrase, or its characters where words are not set apart."""
        return path.count(" ") + 1 if self.separator else len(path)

    def match_separated(self, tokens: Sequence[Token], i: int) -> Iterator[Entry]:
        """Find the verbs whose second part ends the clause: "lies den Text vor"."""
        for first in self.list_keys(tokens[i]):
            for particle, category in self.particles.get(first, ()):
                for j in range(i + 1, min(len(tokens), i + MAX_GAP)):
                    if tokens[j].text in CLAUSE_ENDS:
                        break
                    if tokens[j].key == particle and self.ends_clause(tokens, j):
                        yield Entry(category, "", 1, particle=j)
                        break

    def ends_clause(self, tokens: Sequence[Token], j: int) -> bool:
        """Tell whether nothing of its clause follows a token."""
        if j + 1 == len(tokens) or not tokens[j + 1].is_word:
            return True
        meanings = self.meanings.get(tokens[j + 1].key, ())
        return any(category.startswith(("join.and", "join.then")) for category, _ in meanings)

    def match_tail(self, key: str) -> list[Entry]:
        """Find what the last part of a compound word means, the longest part first."""
        if key in self.compound_stops:
            return []
        for cut in range(3, len(key)):
            tail = key[cut:]
            if len(tail) < MIN_TAIL and tail not in self.short_tails:
                continue
            found = [
                Entry(category, value, 1, is_tail=True)
                for category, value in self.meanings.get(tail, ())
                if category.startswith(("thing.", "creative", "unavailable."))
            ]
            if found:
                return found
        return []

    def match_inflected(self, key: str) -> list[Entry]:
        """Find the verb that a word is a mood of, by its infinitive: `redactaran`, `scriveste`."""
        for ending, infinitive in self.inflections:
            stem = key.removesuffix(ending)
            if stem == key or len(stem) < MIN_STEM:
                continue
            found = [
                Entry(category, value, 1)
                for category, value in self.meanings.get(stem + infinitive, ())
                if category.startswith((*VERBS, "unavailable."))
            ]
            if found:
                return found
        return []

    def list_keys(self, token: Token) -> list[str]:
        """List what a word is looked up by: as it is, spelled otherwise, without its clitics."""
        keys = [token.key]
        if not token.text.isascii() and (exact := EXACT + token.text.lower()) in self.meanings:
            keys.insert(0, exact)
        for written, letter in self.spellings:
            if written in token.key:
                keys += (EXACT + token.key.replace(written, letter),
                         token.key.replace(written, fold_text(letter)))  # fmt: skip
        for clitic in self.proclitics:
            if token.key.startswith(clitic) and len(token.key) - len(clitic) >= MIN_STEM:
                keys.append(token.key[len(clitic) :])
        if self.enclitics and not token.text.endswith(TA_MARBUTA):
            for start in tuple(keys):
                keys += self.drop_enclitics(start)
        return keys

    def drop_enclitics(self, key: str) -> Iterator[str]:
        """List the known words that a word can be without a pronoun at its end."""
        for clitic in self.enclitics:
            stem = key.removesuffix(clitic)
            if stem != key and len(stem) >= MIN_STEM:
                for lost, ending in (("", ""), *self.endings):
                    word = stem.removesuffix(lost) + ending
                    if stem.endswith(lost) and self.is_known(word):
                        yield word

    def find_enclitic(self, key: str, stem: str) -> str:
        """The pronoun that a word ends in besides a known word; empty where none does."""
        return next(
            (
                clitic
                for clitic in self.enclitics
                if key.endswith(clitic)
                and stem in self.drop_enclitics(key)
                and key.removesuffix(clitic)[:-1] in stem
            ),
            "",
        )

    def is_definite(self, token: Token, key: str) -> bool:
        """Tell whether a word was an article and a noun before its clitics were dropped."""
        before, found, _ = token.key.rpartition(key)
        return bool(found) and before.endswith(self.definite) if self.definite else False


def expand_entries(text: str) -> Iterator[str]:
    """Spell out the entries of a key, with each of their alternatives.

    Example:
        >>> list(expand_entries("read(|s) aloud, say"))
        ['read aloud', 'reads aloud', 'say']
    """
    for entry in split_entries(text):
        if "(" not in entry:
            yield entry
            continue
        parts = re.split(r"[()]", entry)
        choices = [part.split("|") if at % 2 else [part] for at, part in enumerate(parts)]
        yield from (" ".join("".join(chosen).split()) for chosen in itertools.product(*choices))


def split_entries(text: str) -> Iterator[str]:
    """Split the text of a key at its commas and line ends."""
    for line in text.split("\n"):
        for entry in line.split(", "):
            if entry := entry.strip(" ,"):
                yield entry


@lru_cache(maxsize=len(CODES))
def load_lexicon(code: str) -> Lexicon:
    """Load the words of a language.

    Args:
        code: one of `CODES`; English is taken for others.
    """
    return build_lexicon(tomllib.loads(read_lexicon(code if code in CODES else "en")))


def read_lexicon(code: str) -> str:
    """Read the file of a language."""
    source = resources.files(__package__) / "lexicons" / f"{code}.toml"
    return source.read_text(encoding="utf-8")


def list_texts(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """List the categories of a lexicon's file, and the text of each."""
    for name, value in data.items():
        if isinstance(value, dict):
            for key, text in cast("dict[str, str]", value).items():
                category = f"{CATEGORIES.get(name, name)}.{key}"
                yield ("creative" if category == "thing.creative" else category), text
        elif name in WORD_LISTS:
            yield WORD_LISTS[name], cast("str", value)


def build_lexicon(data: Mapping[str, object]) -> Lexicon:
    """Index the words of a lexicon's file by their keys."""
    code = cast("str", data["code"])
    separator = "" if code in WITHOUT_SPACES else " "
    meanings: dict[str, list[tuple[str, str]]] = {}
    particles: dict[str, list[tuple[str, str]]] = {}
    for category, text in list_texts(data):
        valued = category in VALUED
        for entry in expand_entries(fold_plain(text)):
            phrase, value = entry, ""
            if valued:
                phrase, _, value = entry.rpartition("=")
            elif category == "about" and "|" in entry:
                phrase, value = entry.split("|")
            elif GAP in entry:
                first, second = entry.split(GAP)
                particles.setdefault(first, []).append((second, category))
                continue
            key = make_key(phrase, code, separator)
            known = meanings.setdefault(key, [])
            if (category, value) not in known:
                known.append((category, value))
        for word in MARKED.findall(text):
            meanings.setdefault(EXACT + word, []).append((category, ""))
    longest: dict[str, int] = {}
    for key in meanings:
        first = key.partition(" ")[0] if separator else key[:1]
        size = key.count(" ") + 1 if separator else len(key)
        if size > longest.get(first, 0):
            longest[first] = size
    return Lexicon(
        code=code,
        word_order=cast("Literal['about-after', 'about-before']", data["word_order"]),
        quotes=tuple((left, right) for left, right in cast("list[list[str]]", data["quotes"])),
        meanings=meanings,
        longest=longest,
        particles=particles,
        ambiguous=list_keys_of(data, "ambiguous", code),
        articles=list_keys_of(data, "skipped", code),
        proclitics=tuple(list_words(data, "proclitics")),
        conjunction=cast("str", data.get("conjunction", "")),
        enclitics=tuple(list_words(data, "enclitics")),
        definite=tuple(list_words(data, "definite")),
        endings=tuple(list_pairs(data, "endings")),
        spellings=tuple(list_pairs(data, "spellings")),
        has_compounds=bool(data.get("has_compounds", False)),
        short_tails=list_keys_of(data, "short_tails", code),
        compound_stops=list_keys_of(data, "compound_stops", code),
        inflections=tuple(sorted(list_pairs(data, "inflections"), key=lambda pair: -len(pair[0]))),
        complements=list_keys_of(data, "complements", code),
        courtesy=list_spelled(data, "courtesy"),
        own_subjects=list_spelled(data, "own_subjects"),
        own_endings=list_spelled(data, "own_endings"),
        questions={
            name.removeprefix(ASK): cast("str", text)
            for name, text in data.items()
            if name.startswith(ASK)
        },
    )


def fold_plain(text: str) -> str:
    """Fold the entries of a key but those that count only with their accents."""
    return fold_text(MARKED.sub("", text) if EXACT in text else text)


def make_key(phrase: str, code: str, separator: str) -> str:
    """Make the key of a folded phrase, as the tokens of an objective make it."""
    if phrase.isalpha() or (separator and phrase.replace(" ", "").isalpha()):
        return phrase
    if separator and phrase.replace(" ", "").replace("-", "").replace("'", "").isalpha():
        # Split without the tokens' pattern, which takes long for thousands of phrases.
        words = phrase.replace("-", " ")
        return " ".join((words.replace("'", "' ") if code in ELIDING else words).split())
    return separator.join(token.key for token in split_tokens(phrase, code))


def list_words(data: Mapping[str, object], name: str) -> list[str]:
    """List the words of a key that has a language's grammar; none where it is not there."""
    return list(expand_entries(fold_text(cast("str", data.get(name, "")))))


def list_spelled(data: Mapping[str, object], name: str) -> tuple[str, ...]:
    """List the words of a key as they are spelled, with their accents."""
    return tuple(expand_entries(cast("str", data.get(name, ""))))


def list_pairs(data: Mapping[str, object], name: str) -> Iterator[tuple[str, str]]:
    """List the pairs `a=b` of a key that has a language's grammar."""
    for entry in expand_entries(cast("str", data.get(name, ""))):
        left, _, right = entry.partition("=")
        yield fold_text(left), right


def list_keys_of(data: Mapping[str, object], name: str, code: str) -> frozenset[str]:
    """The keys of the phrases of one list."""
    separator = "" if code in WITHOUT_SPACES else " "
    return frozenset(make_key(word, code, separator) for word in list_words(data, name))
