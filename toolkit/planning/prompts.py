"""Prompts for the nodes of a plan: what to write, say and show; used by the planner."""

from toolkit.planning.tokens import singularize

DEFAULT_CARD_WORDS = 30
DEFAULT_SPOKEN_WORDS = 60
# Words that ask for text without saying which form it has.
_FORMLESS_WORDS = frozenset(
    {"summarise", "summarize", "explain", "describe", "write", "draft", "answer", "text", "copy"}
)
_PICTURE_FORMS = {
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


def write_text_prompt(form: str, topic: str, words: int | None, language: str | None) -> str:
    """Write the objective of a text that is one of several requested outputs.

    >>> write_text_prompt("teaser", "tidal power", 20, None)
    'A 20-word teaser about tidal power.'
    """
    return (
        f"{_describe_form(form or 'text', words)} about {topic}{_format_language_clause(language)}."
    )


def write_card_prompt(form: str, topic: str, words: int | None, language: str | None) -> str:
    """Write the objective of a text for a card: short enough to be read at a glance.

    >>> write_card_prompt("", "tidal power", None, None)
    'A 30-word teaser about tidal power, in plain sentences without a heading.'
    """
    head = _describe_form(_choose_form(form, "teaser"), words or DEFAULT_CARD_WORDS)
    adjective = _format_language_adjective(language)
    return f"{head} about {topic}, in plain{adjective} sentences without a heading."


def write_spoken_prompt(form: str, topic: str, words: int | None, language: str | None) -> str:
    """Write the objective of a text that is to be spoken.

    >>> write_spoken_prompt("", "tidal power", None, "French")
    'A 60-word spoken summary about tidal power, in plain French sentences.'
    """
    head = _describe_form(f"spoken {_choose_form(form, 'summary')}", words or DEFAULT_SPOKEN_WORDS)
    return f"{head} about {topic}, in plain{_format_language_adjective(language)} sentences."


def write_image_prompt(form: str, topic: str) -> str:
    """Write the prompt of an image.

    >>> write_image_prompt("photo", "a turbine")
    'A photo of a turbine'
    """
    return f"{_PICTURE_FORMS.get(singularize(form.lower()), 'An illustration')} of {topic}"


def _choose_form(phrase: str, default: str) -> str:
    form = singularize(phrase.lower())
    return default if not form or form in _FORMLESS_WORDS else phrase.lower()


def _describe_form(form: str, words: int | None) -> str:
    if words is not None:
        return f"{'An' if str(words)[0] == '8' or words in {11, 18} else 'A'} {words}-word {form}"
    return f"{'An' if form[0] in 'aeiou' else 'A'} {form}"


def _format_language_clause(language: str | None) -> str:
    return f", in {language}" if language else ""


def _format_language_adjective(language: str | None) -> str:
    return f" {language}" if language else ""
