"""Prompts for the nodes of a plan: what to write, say and show; used by the planner."""

from toolkit.engine._tokens import singular

CARD_WORDS = 30
SPOKEN_WORDS = 60
# Words that ask for text without saying which form it has.
_FORMLESS = frozenset(
    {"summarise", "summarize", "explain", "describe", "write", "draft", "answer", "text", "copy"}
)
_PICTURES = {
    "photo": "A photo",
    "photograph": "A photo",
    "painting": "A painting",
    "drawing": "A drawing",
    "draw": "A drawing",
    "sketch": "A sketch",
    "logo": "A logo",
    "icon": "An icon",
    "artwork": "An artwork",
}


def text_brief(form: str, topic: str, words: int | None, language: str | None) -> str:
    """Write the objective of a text that is one of several requested outputs.

    >>> text_brief("teaser", "tidal power", 20, None)
    'A 20-word teaser about tidal power.'
    """
    return f"{_headed(form or 'text', words)} about {topic}{_in(language)}."


def card_brief(form: str, topic: str, words: int | None, language: str | None) -> str:
    """Write the objective of a text for a card: short enough to be read at a glance.

    >>> card_brief("", "tidal power", None, None)
    'A 30-word teaser about tidal power, in plain sentences without a heading.'
    """
    head = _headed(_form(form, "teaser"), words or CARD_WORDS)
    return f"{head} about {topic}, in plain{_of(language)} sentences without a heading."


def spoken_brief(form: str, topic: str, words: int | None, language: str | None) -> str:
    """Write the objective of a text that is to be spoken.

    >>> spoken_brief("", "tidal power", None, "French")
    'A 60-word spoken summary about tidal power, in plain French sentences.'
    """
    head = _headed(f"spoken {_form(form, 'summary')}", words or SPOKEN_WORDS)
    return f"{head} about {topic}, in plain{_of(language)} sentences."


def image_brief(form: str, topic: str) -> str:
    """Write the prompt of an image.

    >>> image_brief("photo", "a turbine")
    'A photo of a turbine'
    """
    return f"{_PICTURES.get(singular(form.lower()), 'An illustration')} of {topic}"


def _form(phrase: str, default: str) -> str:
    form = singular(phrase.lower())
    return default if not form or form in _FORMLESS else phrase.lower()


def _headed(form: str, words: int | None) -> str:
    if words is not None:
        return f"{'An' if str(words)[0] == '8' or words in {11, 18} else 'A'} {words}-word {form}"
    return f"{'An' if form[0] in 'aeiou' else 'A'} {form}"


def _in(language: str | None) -> str:
    return f", in {language}" if language else ""


def _of(language: str | None) -> str:
    return f" {language}" if language else ""
