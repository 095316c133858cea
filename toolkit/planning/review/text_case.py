"""The argument of the checks of texts: a text with its brief and its material."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from toolkit.contract.base import JsonObject
from toolkit.media.text_parts import fold
from toolkit.planning.capability_kinds import find_role_field
from toolkit.planning.review.evidence import Criterion, Evidence, Inspection, Remedy, ReviewIssue

HEAD_CHARS, TAIL_CHARS = 60_000, 20_000  # of a long text: the parts that are checked
QUOTE_CHARS = 60  # of a text, in a message
MAX_FOREIGN_SHARE = 0.3  # of the sentences of a text, in other languages
SHORT_CHARACTERS = 400  # a shorter text fails at one garbled place, a longer text at two
# Fields of an input that hold the material of a text.
_MATERIAL_FIELDS = ("context", "text", "material", "source")
_DATA_FORMATS = frozenset(("json", "csv", "html"))
_CODE_LINE = re.compile(
    r"[;{}\\]\s*$|^\s*[\[\]{}()<@$/]|\w\([^)]*\)|[\w\])]\s*[=<>]=?\s*[\w\[(\"']|"
    r"^\s*(?:def|class|import|from|return|if|for|while|const|let|function|select|insert)\b",
    re.I,
)


@dataclass(frozen=True)
class TextCase:
    """A text with the data that its checks need."""

    text: str
    look: Inspection

    @property
    def item(self) -> Evidence:
        """The request and the result of the node that wrote the text."""
        return self.look.item

    @cached_property
    def sample(self) -> str:
        """The text, or the head and the tail of a long text."""
        if len(self.text) <= HEAD_CHARS + TAIL_CHARS:
            return self.text
        return f"{self.text[:HEAD_CHARS]}\n{self.text[-TAIL_CHARS:]}"

    @cached_property
    def folded(self) -> str:
        """The sample in lower case and without accents, as phrases are compared."""
        return fold(self.sample)

    @property
    def brief(self) -> str:
        """The instruction to the node that wrote the text, or the task's objective without one."""
        return self.item.brief or self.look.objective

    @cached_property
    def material(self) -> str:
        """The material that the text was to be made from; may be empty."""
        fields = self.item.node.input
        values = [fields.get(name) for name in _MATERIAL_FIELDS]
        texts = [value for value in values if isinstance(value, str)]
        return "\n\n".join([*texts, self.item.upstream_text or ""]).strip()

    @cached_property
    def is_data(self) -> bool:
        """True if the text is data, mark-up or code, and no prose."""
        expect = self.item.node.expect
        if "output_schema" in self.item.node.input:
            return True
        if expect is not None and expect.format in _DATA_FORMATS:
            return True
        lines = [line for line in self.sample.splitlines() if line.strip()]
        return sum(_CODE_LINE.search(line) is not None for line in lines) * 2 >= len(lines) > 1

    @cached_property
    def is_shown(self) -> bool:
        """True if the text is spoken or set on a card, where mark-up would be read out or shown."""
        return any(
            dependent.capability.produces.startswith(("audio/", "image/"))
            for dependent in self.look.dependents
        )

    @property
    def is_instructed(self) -> bool:
        """True if the text's node takes an objective to write by."""
        return find_role_field(self.item.capability, "objective") is not None

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
        """Make an issue about the text, which blocks the result by default."""
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


TextCheck: TypeAlias = Callable[[TextCase], Iterable[ReviewIssue]]


def quote(text: str) -> str:
    """Quote the beginning of a text for a message: on one line, with invisible signs replaced.

    >>> quote("two\\nlines " + "x" * 90)
    '`two lines xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`'
    """
    line = " ".join(text.split()).replace("`", "'")
    line = "".join(char if char.isprintable() else "�" for char in line)
    return f"`{line[:QUOTE_CHARS]}…`" if len(line) > QUOTE_CHARS else f"`{line}`"
