"""Texts that a model wrote."""

from toolkit.display.records.media import make_safe_markdown


class GeneratedText(str):
    """A text, which a notebook shows as Markdown; pictures and HTML in it are shown as text."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return make_safe_markdown(self)


def find_text(output: object) -> GeneratedText | None:
    """Find the text in what a capability answered; none where there is none."""
    text = output.get("text") if isinstance(output, dict) else None
    return GeneratedText(text) if isinstance(text, str) else None
