"""The names that capabilities go by in an objective; the planner collects them for the reader."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

# What the kinds that the reader knows by itself are made from.
KNOWN_FEEDS = frozenset(
    {
        ("research", "text"),
        ("research", "card"),
        ("research", "speech"),
        ("text", "text"),
        ("text", "speech"),
        ("text", "card"),
        ("text", "image"),
        ("image", "card"),
        ("clone", "speech"),
    }
)


@dataclass(frozen=True)
class CapabilityNames:
    """The words of an objective that capabilities claim, beyond those of the reader's lexicons.

    A kind is `text`, `image`, `speech`, `card`, `research` or `clone`; a capability that is none
    of those goes by its id.

    Attributes:
        phrases: kinds by the words that ask for them, such as the keywords of a plugin.
        kinds: every kind that something here makes; what is in `phrases` counts as well.
        fields: input fields by the words that name them: `seed`, `negative prompt`.
        fields_by_kind: the names of the input fields of each kind that an objective may give.
        numbers: the names of those that hold a number.
        choices: the values of each input field that takes one of a few.
        feeds: pairs of kinds, of which the first can be an input of the second.
        needs: pairs of kinds, of which the first cannot be made without the second.

    >>> names = CapabilityNames(phrases={"bird song": "birds.record"})
    >>> names.can_feed("text", "speech"), names.can_feed("speech", "text")
    (True, False)
    """

    phrases: Mapping[str, str] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    fields: Mapping[str, str] = field(default_factory=dict)
    fields_by_kind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()
    choices: Mapping[str, frozenset[str]] = field(default_factory=dict)
    feeds: frozenset[tuple[str, str]] = KNOWN_FEEDS
    needs: frozenset[tuple[str, str]] = frozenset()

    def can_feed(self, producer: str, consumer: str) -> bool:
        """Tell whether what one kind makes can be an input of another."""
        return (producer, consumer) in self.feeds

    @cached_property
    def field_openings(self) -> frozenset[str]:
        """The first words of the names of fields."""
        return frozenset(name.partition(" ")[0] for name in self.fields)

    @cached_property
    def longest_field(self) -> int:
        """Count the words of the longest name of a field."""
        return max((name.count(" ") + 1 for name in self.fields), default=0)

    def find_label(self, words: Sequence[str]) -> tuple[str | None, int]:
        """Find the field that the last of some words name, and how many of them do."""
        for length in range(min(self.longest_field, len(words)), 0, -1):
            name = self.fields.get(" ".join(words[-length:]))
            if name is not None:
                return name, length
        return None, 0

    def requires(self, consumer: str, producer: str) -> bool:
        """Tell whether a kind cannot be made without what another makes."""
        return (consumer, producer) in self.needs
