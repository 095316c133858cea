"""Templating: look up notebook variables in the text of a magic; nothing is evaluated."""

import re
from collections.abc import Mapping
from typing import Any

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.suggestions import ask_meant

_BRACES = re.compile(r"\{\{|\}\}|\{([^\W\d]\w*)\}")
_WHOLE_NAME = re.compile(r"\{([^\W\d]\w*)\}")


def fill_text(text: str, variables: Mapping[str, Any]) -> str:
    """Replace `{name}` in a text by the variable's value; `{{` and `}}` are braces.

    Braces around other text, as in JSON, stay unchanged.

    >>> fill_text('On {topic}: {{topic}}, {"a": 1}', {"topic": "tea"})
    'On tea: {topic}, {"a": 1}'

    Raises:
        RequestError: `INVALID_REQUEST` if a name has no variable.
    """

    def replace_match(match: "re.Match[str]") -> str:
        if match[1] is None:
            return match[0][0]
        return str(_look_up_variable(match[1], variables))

    return _BRACES.sub(replace_match, text)


def fill_values(value: Any, variables: Mapping[str, Any]) -> Any:
    """Fill in every text of a JSON value; a text that is `{name}` becomes the value itself.

    >>> fill_values({"steps": "{n}", "prompt": "{n} boats"}, {"n": 4})
    {'steps': 4, 'prompt': '4 boats'}

    Raises:
        RequestError: `INVALID_REQUEST` if a name has no variable.
    """
    if isinstance(value, str):
        match = _WHOLE_NAME.fullmatch(value)
        return _look_up_variable(match[1], variables) if match else fill_text(value, variables)
    if isinstance(value, dict):
        return {name: fill_values(member, variables) for name, member in value.items()}
    if isinstance(value, list):
        return [fill_values(member, variables) for member in value]
    return value


def _look_up_variable(name: str, variables: Mapping[str, Any]) -> Any:
    if name not in variables:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"There is no variable `{name}`; define it, or write {{{{{name}}}}} for the braces."
            f" {ask_meant(name, (word for word in variables if word[0] != '_'))}".rstrip(),
        )
    return variables[name]
