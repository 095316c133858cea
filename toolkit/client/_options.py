"""Options and filters as keyword arguments: shown in signatures and docstrings, and checked."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import wraps
from typing import Any, Final, TypedDict, TypeVar, cast, get_type_hints

from toolkit.client._wire.messages import drop_none
from toolkit.contract.run_options import PROVIDER_LISTS, RUN_OPTIONS, RunOptions, WorkOptions
from toolkit.contract.short_tracebacks import ArgumentError
from toolkit.contract.suggestions import explain_unknown

F = TypeVar("F", bound=Callable[..., object])
# Since Python 3.13 the compiler removes the common indentation of a docstring.
_MARK = re.compile(r"^( *)\*\*options: options of a run\.\n", re.MULTILINE)
_FILTER_MARK = re.compile(r"^( *)\*\*filters: those of a list\.\n", re.MULTILINE)
WORK_FILTERS: Final[dict[str, str]] = {
    "capability": "capability of the work or of one of its nodes: a name, or `name@version`",
    "provider": "provider that served the work or one of its nodes",
    "status": "status of the work",
    "tag": "tag of the work, or several tags that it must all have",
    "since": "created at this time or later; a time without a zone is UTC",
    "until": "created before this time",
    "min_cost_usd": "minimum cost in US dollars",
    "max_cost_usd": "maximum cost in US dollars",
    "q": "text in the input, ignoring case",
}
"""The description of each filter, by name."""


def document_options(kind: type[RunOptions] | type[WorkOptions]) -> Callable[[F], F]:
    """Make a function with `**options` show each option in its signature and its docstring.

    Notebooks and editors that inspect a live object use these for completion and help.

    Args:
        kind: the options that it takes; the docstring has a line `**options: options of a run.`

    >>> @document_options(RunOptions)
    ... def ask(name: str, **options: object) -> None: ...
    >>> list(inspect.signature(ask).parameters)[:3]
    ['name', 'optimize_for', 'provider']
    """

    def decorate(function: F) -> F:
        return show_keywords(function, get_type_hints(kind), RUN_OPTIONS, _MARK)

    return decorate


def show_keywords(
    function: F, hints: Mapping[str, object], words: Mapping[str, str], mark: re.Pattern[str]
) -> F:
    """Show the names behind `**options` in the signature and docstring of a function.

    Args:
        mark: line of its docstring that the descriptions replace.
    """
    signature = inspect.signature(function)
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    keywords = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in hints.items()
    ]
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters, *keywords]
    )
    lines = "".join(rf"\g<1>{name}: {words[name]}.\n" for name in hints)
    function.__doc__ = mark.sub(lines, function.__doc__ or "")
    return function


def start_capability(id: str, one_of: Sequence[str] = ()) -> Callable[[F], F]:
    """Make a method start a run of a capability with the given fields.

    An error names the wrong argument, and suggests the right name. Fields that have their defaults
    are not sent.

    Args:
        id: id of the capability; the method's arguments are its fields, `version` and `options`.
        one_of: fields of which one is required.

    >>> class Calls:
    ...     @start_capability("llm.generate")
    ...     def ask(self, *, objective: str) -> None: ...
    >>> Calls().ask(objectiv="x")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    toolkit.contract.short_tracebacks.ArgumentError: there is no field `objectiv`; ...
    """

    def decorate(call: F) -> F:
        parameters = [
            parameter
            for parameter in inspect.signature(call).parameters.values()
            if parameter.name != "self"
        ]
        defaults = {parameter.name: parameter.default for parameter in parameters}
        needed = [
            parameter.name for parameter in parameters if parameter.default is parameter.empty
        ]

        @wraps(call)
        def start(*owner: Any, **arguments: object) -> object:
            for name in arguments:
                if name not in defaults:
                    raise ArgumentError(explain_unknown("field", name, list(defaults)))
            if len(owner) > 1:
                raise ArgumentError(f"give each field by its name, as in {parameters[0].name}=…")
            missing = [name for name in needed if name not in arguments]
            if one_of and not arguments.keys() & one_of:
                raise ArgumentError(f"give `{'` or `'.join(one_of)}`")
            if missing:
                fault = f"give `{'` and `'.join(missing)}`; there are {', '.join(defaults)}"
                raise ArgumentError(fault)
            version, options = arguments.pop("version", None), arguments.pop("options", None)
            fields = {
                name: arguments[name]
                for name, default in defaults.items()
                # The type must be equal, too, because a service does not accept `True` for 1.
                if name in arguments
                and (type(arguments[name]), arguments[name]) != (type(default), default)
            }
            return owner[0]._start(id, fields, version, options)

        return cast("F", start)

    return decorate


def check_arguments(hint: str) -> Callable[[F], F]:
    """Make a call report wrong arguments in one line, with a hint.

    Args:
        hint: the call to use instead.

    >>> @check_arguments("give two")
    ... def add(a: int, b: int) -> int: ...
    >>> add(1, 2, 3)
    Traceback (most recent call last):
    toolkit.contract.short_tracebacks.ArgumentError: too many positional arguments: give two
    """

    def decorate(call: F) -> F:
        signature = inspect.signature(call)

        @wraps(call)
        def checked(*args: object, **kwargs: object) -> object:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ArgumentError(f"{error}: {hint}") from None
            return call(*args, **kwargs)

        return cast("F", checked)

    return decorate


def check_options(
    options: Mapping[str, object],
    names: Collection[str] = RUN_OPTIONS,
    hint: str = "",
    what: str = "option",
) -> None:
    """Reject unknown options, as Python rejects an argument that a function does not have.

    Args:
        hint: further text for the error.
        what: the word for an option.

    Raises:
        TypeError: there is no such option.

    >>> check_options({"optimise_for": "cost"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    toolkit.contract.short_tracebacks.ArgumentError: there is no option `optimise_for`; ...
    """
    for name in options:
        if name not in names:
            raise ArgumentError(explain_unknown(what, name, names) + hint)


def collect_options(
    options: RunOptions | WorkOptions,
    cache: bool | None = None,
    names: Collection[str] = RUN_OPTIONS,
) -> dict[str, object]:
    """Collect the given options for a request; `only` and `ignore` become lists of providers.

    Args:
        cache: the client's own choice, used if the caller omitted the option.

    Raises:
        TypeError: an option is unknown, or two options contradict each other.
    """
    check_options(options, names)
    return drop_none(cache=cache) | join_lists(drop_none(**options))


def join_lists(options: dict[str, object]) -> dict[str, object]:
    """Write `only` and `ignore` as the option `provider` of a body.

    Raises:
        TypeError: `provider` is given as well.

    >>> join_lists({"ignore": "openai"})
    {'provider': {'ignore': ['openai']}}
    """
    values = {name: options[name] for name in PROVIDER_LISTS if name in options}
    if not values:
        return options
    if "provider" in options:
        raise ArgumentError(
            f"`{next(iter(values))}` and `provider` both choose the provider: give only one of them"
        )
    lists = {
        name: [value] if isinstance(value, str) else list(cast("Sequence[str]", value))
        for name, value in values.items()
    }
    return {k: v for k, v in options.items() if k not in lists} | {"provider": lists}


class WorkFilters(TypedDict, total=False):
    """The conditions that each item of a list meets; a filter of None is ignored."""

    capability: str | None
    provider: str | None
    status: str | None
    tag: str | Sequence[str] | None
    since: datetime | date | str | None
    until: datetime | date | str | None
    min_cost_usd: float | None
    max_cost_usd: float | None
    q: str | None


def document_filters(function: F) -> F:
    """Make a function with `**filters` show each filter, as `document_options` shows options."""
    return show_keywords(function, get_type_hints(WorkFilters), WORK_FILTERS, _FILTER_MARK)


def make_list_query(filters: WorkFilters) -> dict[str, str]:
    """Make the part of a query that filters work.

    Raises:
        TypeError: there is no such filter.

    >>> make_list_query({"tag": ["a", "b"], "since": date(2026, 11, 20)})
    {'tag': 'a,b', 'since': '2026-11-20'}
    """
    check_options(filters, WORK_FILTERS, what="filter")
    values = cast("Mapping[str, object]", filters)
    return {name: _write_value(value) for name, value in values.items() if value is not None}


def _write_value(value: object) -> str:
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return (
        str(value) if isinstance(value, str) or not isinstance(value, Sequence) else ",".join(value)
    )
