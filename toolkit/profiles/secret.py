"""A text that is never shown."""


class Secret:
    """A key that prints as stars; only `get_secret_value()` returns its text.

    >>> Secret("sk_live_x"), Secret("sk_live_x").get_secret_value()
    (Secret('**********'), 'sk_live_x')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        """Return the secret as a plain `str`, no longer hidden by stars."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __len__(self) -> int:
        return len(self._text)

    def __repr__(self) -> str:
        return "Secret('**********')" if self._text else "Secret('')"

    def __str__(self) -> str:
        return "**********" if self._text else ""


def find_key_fault(key: Secret) -> str | None:
    """Explain why a key cannot be sent in a header; returns None if it can."""
    text = key.get_secret_value()
    if any(ord(character) < 32 for character in text):
        return "a line end or another control character in it"
    return None if text.isascii() and text.isprintable() else "characters that are not ASCII"
