"""Texts that a model wrote."""

from toolkit.display.records.markdown import render_markdown


class GeneratedText(str):
    """A text whose Markdown a notebook shows; HTML in it is shown as text, a picture as a link."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render_markdown(self)


def find_text(output: object) -> GeneratedText | None:
    """Find the text in what a capability answered; none where there is none."""
    text = output.get("text") if isinstance(output, dict) else None
    return GeneratedText(text) if isinstance(text, str) else None
