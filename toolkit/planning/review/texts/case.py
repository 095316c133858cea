"""A text as its checks take it: with its brief, what that demands, and what it was made from."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from toolkit.contract.base import JsonObject
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import Evidence, Inspection
from toolkit.planning.review.issues import Criterion, Remedy, ReviewIssue
from toolkit.planning.review.texts.demands import Demands, Quantity, Unit, read_demands
from toolkit.planning.review.texts.languages import LanguageFinding, detect_text_language
from toolkit.planning.review.texts.word_lists import find_phrase, fold_phrase
from toolkit.review_thresholds import TextThresholds

HEAD_CHARS, TAIL_CHARS = 60_000, 20_000  # of a long text, that are looked at
_OPENING_CHARS, _CLOSING_CHARS = 600, 500
QUOTE_CHARS = 60  # of a text, in a message
_CODE_LINE = re.compile(
    r"[;{}\\]\s*$|^\s*[\[\]{}()<\"'`@$#/]|^\s*(?:def|class|import|from|return|if|for|while|const|let|var|"
    r"function|public|private|try|except|else|elif|with|echo|select|insert|update|create|where)\b|"
    r"\w\([^)]*\)|[\w\])\"']\s*[=<>!+*/|&]=?\s*[\w\[(\"'-]|^\s*[\w-]+:(?:\s|$)|>>>",
    re.I,
)
_CORRECTION = re.compile(
    r"[?؟？.…;,–—-]\s*(?:no|nein|nee|non|não|لا|いや|不|不对|actually|or rather|"
    r"besser|plutôt|mejor|anzi|aliás)\s*[,،、，:]",
    re.I,
)
# Fields of an input that hold what a text is to be made from.
_MATERIAL_FIELDS = ("context", "text", "material", "source")


@dataclass(frozen=True)
class TextCase:
    """A text, and what its checks go by.

    Attributes:
        text: the whole of it.
        look: the evidence of its node.
    """

    text: str
    look: Inspection

    @property
    def item(self) -> Evidence:
        """The evidence of its node."""
        return self.look.item

    @property
    def thresholds(self) -> TextThresholds:
        """The thresholds of the checks."""
        return self.look.thresholds.text

    @cached_property
    def sample(self) -> str:
        """The text, or of a long one its head and its tail."""
        if len(self.text) <= HEAD_CHARS + TAIL_CHARS:
            return self.text
        return f"{self.text[:HEAD_CHARS]}\n{self.text[-TAIL_CHARS:]}"

    @cached_property
    def folded(self) -> str:
        """The sample, folded as phrases are."""
        return fold_phrase(self.sample)

    @cached_property
    def opening(self) -> str:
        """The first lines, folded."""
        return fold_phrase(self.text.strip()[:_OPENING_CHARS])

    @cached_property
    def closing(self) -> str:
        """The last lines, folded."""
        return fold_phrase(self.text.strip()[-_CLOSING_CHARS:])

    @property
    def brief(self) -> str:
        """What the plan asked for; the task's objective where the node has no brief."""
        return self.item.brief or self.look.objective

    @cached_property
    def material(self) -> str:
        """What the text was to be made from; empty if nothing."""
        given = self.item.node.input
        texts = [given.get(name) for name in _MATERIAL_FIELDS]
        found = [text for text in texts if isinstance(text, str)]
        return "\n\n".join([*found, self.item.upstream_text or ""]).strip()

    @cached_property
    def demands(self) -> Demands:
        """What its brief demands."""
        return read_demands(self.brief)

    @cached_property
    def wishes(self) -> Demands:
        """What the task's objective demands, of this text or of another result."""
        return read_demands(self.look.objective)

    @cached_property
    def language(self) -> LanguageFinding:
        """The language that it is in."""
        return detect_text_language(self.sample)

    @cached_property
    def is_code(self) -> bool:
        """True if code, data or mark-up was asked for, and it looks like that."""
        asked = self.asks("code") or self.asks("html") or "json" in self.demands.folded
        return asked and _looks_like_code(self.sample)

    @cached_property
    def is_plain(self) -> bool:
        """True if it is to be spoken or set on a card: what is no word would be read or shown."""
        if any(other.capability.produces.startswith(("audio/", "image/"))
               for other in self.look.dependents):  # fmt: skip
            return True
        return self.demands.asks("plain")

    @cached_property
    def is_spoken(self) -> bool:
        """True if it is to be spoken."""
        spoken = (one.capability.produces.startswith("audio/") for one in self.look.dependents)
        return any(spoken) or self.demands.asks("spoken")

    def asks(self, name: str) -> bool:
        """Tell whether its brief or the objective has a phrase of a word list."""
        return self.demands.asks(name) or self.wishes.asks(name)

    def find_quantity(self, unit: Unit) -> Quantity | None:
        """Find how much of a unit is demanded, by its brief or else by the objective of it."""
        asked = self.demands.quantities.get(unit)
        # "Four questions? No, two will do": what the brief makes of that counts.
        is_plain = self.look.is_only_text and not _CORRECTION.search(self.look.objective)
        if asked is None and is_plain and not self.demands.quantities:
            return self.wishes.quantities.get(unit)
        return asked

    def has_phrase(self, name: str) -> str | None:
        """Find a phrase of a word list in the text."""
        return find_phrase(name, self.folded)

    def report(
        self,
        message: str,
        weight: float = 0.7,
        *,
        blocks: bool = True,
        criterion: Criterion = "objective_alignment",
        instruction: str = "",
        changes: JsonObject | None = None,
        remedy: Remedy = Remedy.RERUN,
    ) -> ReviewIssue:
        """Make an issue of the text; what it is told for a rerun is never told twice."""
        return ReviewIssue(
            self.item.node.id,
            criterion,
            weight,
            message,
            is_blocking=blocks,
            remedy=remedy,
            changes=changes or {},
            instruction=instruction,
        )

    @property
    def is_instructed(self) -> bool:
        """True if its node is told what to write."""
        return find_role_field(self.item.capability, "objective") is not None


def _looks_like_code(text: str) -> bool:
    """Tell whether most lines of a text have the signs of code."""
    lines = [line for line in text.splitlines() if line.strip()]
    signs = sum(_CODE_LINE.search(line) is not None for line in lines)
    return signs * 2 >= len(lines) > 0


TextCheck: TypeAlias = Callable[[TextCase], Iterable[ReviewIssue]]


def quote(text: str) -> str:
    """Quote a part of a text in a message: on one line, cut, without signs that are not seen.

    >>> quote("two\\nlines " + "x" * 90)
    '`two lines xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`'
    """
    line = " ".join(text.split()).replace("`", "'")
    line = "".join(char if char.isprintable() else "�" for char in line)
    return f"`{line[:QUOTE_CHARS]}…`" if len(line) > QUOTE_CHARS else f"`{line}`"
