"""Methods that take the options of a run show each of them, as if they were written out."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast, get_type_hints

from toolkit.client._wire.messages import drop_none
from toolkit.contract.run_options import RUN_OPTIONS, RunOptions, WorkOptions
from toolkit.contract.short_tracebacks import ArgumentError
from toolkit.contract.suggestions import explain_unknown

F = TypeVar("F", bound=Callable[..., object])
# Since Python 3.13 the compiler removes the common indentation of a docstring.
_MARK = re.compile(r"^( *)\*\*options: options of a run\.\n", re.MULTILINE)


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
    """Make a function show the keyword arguments that it takes as a mapping.

    Args:
        hints: type of each argument.
        words: description of each argument.
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
        options: keyword arguments of a call.
        names: names of the known options.
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
    """Collect the options that were given, for a body.

    Args:
        options: keyword arguments of a call.
        cache: the client's own choice, used if the caller omitted the option.
        names: names of the options of the call.

    Raises:
        TypeError: an option is unknown.
    """
    check_options(options, names)
    return drop_none(cache=cache) | drop_none(**options)
