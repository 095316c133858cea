"""The grammar of an objective: regular expressions over the meanings of its terms.

Each term is written as a group of signs, one for each of its meanings, so a run of terms is a
string. In a rule, `<act|thing !own>` stands for a term that is an act or a thing, and is not "own".
`<!mark>` stands for a term that is no mark, and `<>` for any term. Loops are possessive or have one
way to match, so the time is linear.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from toolkit.planning.keywords.words import Term

# Names of several meanings.
_CLASSES = {
    "SMALL": "mark|polite|and|then",  # asks for nothing
    "JOINT": "comma|colon|dash|and|then",
    "COUNT": "number|numbers",
    "OWN": "unknown|literal|thing|number",  # the end of a topic
    "MEDIA": "thing:image|thing:speech|thing:card|thing:clone|act:draw|act:speak",
    "STRONG": "self|act|missing|not|thing|article|number|unknown|detail|literal|artifact|about",
}
_SMALL = "<SMALL !act|thing>{0,24}+"
_WEAK = "(?:<mark|polite|only|into|languages !act|thing>|<!STRONG>){0,24}+"
_LEAD = "<unknown|act|detail !thing|missing|into|languages>{0,4}+"  # describes the noun behind it
_NAMED = f"(?:<make|article|number>{_WEAK}){{0,4}}+{_LEAD}"
_ORDER = "<unknown|make><refer|definite|article>"  # an act that nobody knows: "have it framed"
_JOINT = (  # a further act or thing begins behind it
    f"(?:<JOINT>{_SMALL}(?!<with>)(?={_WEAK}(?:<act|self>|<thing !unit>|<make|article>{_NAMED}"
    f"<thing !unit>|{_NAMED}<missing|not !thing>))|<and|then>{_SMALL}(?={_ORDER})"
    f"|(?:<JOINT>{_SMALL})?<with>(?={_WEAK}(?:<article>?<act:speak>"
    f"|{_NAMED}<thing|missing !thing:text|thing:research>)))"
)
_RULES = {
    # The clauses of an objective.
    "given": "(?P<before>(?=<!colon>*<act:rework|act:speak|ask:open>)<!colon|literal>*"
    "<act|about|refer|function|thing !colon>(?=<colon>)|(?=<ask>)(?=<!question>*<refer>)"
    "<!question|colon>*(?=<question><!make|act|missing>*$))"
    "(?P<mark><colon|question>)(?P<given><!COUNT><!literal>*)$",
    "sentence": "(?P<clause><!stop|question>*<stop|question>*)",
    "question": "<SMALL>*(?P<ask><ask>)<>*<question>",
    "clause": f"(?P<joint>(?:{_JOINT})?)(?P<clause><>(?:(?!{_JOINT})<>)*)",
    # The wish of a clause.
    "nothing": "<SMALL|function|make>*$",
    "denial": "(?P<after><!not>+)(?P<not><not>)<mark|polite>*$",
    "opening": f"(?P<before>{_WEAK})(?:(?P<self><self>)|(?P<act><act>)|(?P<not><not !thing>)"
    f"|(?:(?:<article|number>{_WEAK})++{_LEAD}(?!<thing>))?(?P<missing><missing>)"
    f"|(?P<noun>(?:<article|number>{_WEAK})*+{_LEAD}<thing>*)(?P<thing><thing>))(?P<after>.*)$",
    "object": "(?P<before><!thing|about|with|mark|literal|and>{0,8}<thing>*)<thing>",
    "order": _ORDER,
    "detail": f"<>*?<detail|unit|only|not|literal|number>|(?!{_ORDER})<!make|act|thing>*+$",
    # The parts of a clause.
    "absent": "<!about|literal|missing>*+(?P<missing><missing>)",
    "noted": "(?P<noted><about>*+<!about|literal>*)",
    "goes_on": "<!unknown|mark|about|literal|with|and>*<unknown>",
    "about": "<!about>*<about><article|function|about !thing>*+(?P<topic>(?:<!mark>|<dash>)*<OWN>)",
    "unknown": "<!unknown>*(?P<topic><unknown>(?:(?:<!mark>|<dash>)*<OWN>)?)",
    "labelled": "(?:(?P<label><fields !literal>)<!literal|fields>*+)?(?P<literal><literal>)",
    "mention": "<about !onto>(?:<!onto|SMALL>|<SMALL>(?!<MEDIA>))*+|(?P<mention><MEDIA>)",
}
# Rules for nouns before the words that describe them, and for verbs at the end of a clause.
_ORDERS: Mapping[str, Mapping[str, str]] = {
    "last": {},
    "first": {"mention": "(?P<mention><MEDIA>)"},
    "verb": {
        "opening": _RULES["opening"]
        .replace(_WEAK, "<!self|act|missing|not|thing>*+")
        .replace("(?P<after>.*)$", "(?P<after>(?:<>*<!unknown|mark|polite>)?<mark|polite>*)$")
    },
}
_SIGNS: dict[str, str] = {}


def compile_rule(rule: str) -> re.Pattern[str]:
    """Compile a rule of the grammar to a regular expression over the signs of terms."""
    rule = re.sub("|".join(_CLASSES), lambda name: _CLASSES[name[0]], rule)
    return re.compile(re.sub("(?<!P)<([^<>! ]*) ?!?([^<>]*)>", _write_group, rule))


def _write_group(group: re.Match[str]) -> str:
    """Write the expression for a term that has one of some signs, and none of others."""
    signs, bars = (
        "".join(_SIGNS.setdefault(name, chr(0x100 + len(_SIGNS))) for name in names.split("|"))
        for names in group.groups()
    )
    filler = f"[^ {bars}]*"
    return f"(?:{filler}[{signs}]{filler} )" if group[1] else f"(?:{filler} )"


GRAMMARS = {
    order: {name: compile_rule(rule) for name, rule in {**_RULES, **changes}.items()}
    for order, changes in _ORDERS.items()
}


class Chunk:
    """A run of terms of an objective, which is true unless it is empty.

    Attributes:
        signs: the signs of each term, with a space at its end.
    """

    def __init__(self, terms: Sequence[Term] = (), signs: str | None = None) -> None:
        self.terms = terms
        self.signs = "".join(map(_write_signs, terms)) if signs is None else signs

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def first(self) -> Term:
        """The first term; without any, a term without meanings."""
        return self.terms[0] if self.terms else Term("", 0, 0)

    @property
    def span(self) -> tuple[int, int]:
        """The start and the end of the terms in the objective; zeros without terms."""
        return self.first.start, self.terms[-1].end if self.terms else 0

    def has(self, *meanings: str) -> bool:
        """Return True if one of the terms has one of these meanings."""
        return any(not term.meanings.keys().isdisjoint(meanings) for term in self.terms)

    def match(self, rule: re.Pattern[str]) -> Mapping[str, "Chunk"]:
        """Match a rule at the start; return a chunk for each group, all empty without a match."""
        match = rule.match(self.signs)
        return self._cut_groups(match) if match else defaultdict(Chunk)

    def find_all(self, rule: re.Pattern[str]) -> Iterator[Mapping[str, "Chunk"]]:
        """Find the chunks of the groups of each match of a rule."""
        return map(self._cut_groups, rule.finditer(self.signs))

    def _cut_groups(self, match: re.Match[str]) -> Mapping[str, "Chunk"]:
        groups = defaultdict[str, Chunk](Chunk, all=self)
        for name, signs in match.groupdict().items():
            if signs:
                first = self.signs.count(" ", 0, match.start(name))
                groups[name] = Chunk(self.terms[first : first + signs.count(" ")], signs)
        return groups


def _write_signs(term: Term) -> str:
    names = [*term.meanings, *(f"{name}:{value}" for name, value in term.meanings.items())]
    return "".join(_SIGNS.get(name, "") for name in names or ["unknown"]) + " "
