"""Errors that a notebook shows as a short, complete message with the line that led to it.

ShortTraceback               the short form of the toolkit's errors in IPython
├── ArgumentError            a call has an unknown argument; a `TypeError`
├── UnknownAttributeError    nothing has this name; an `AttributeError`
├── UnknownNodeError         a graph has no such node; a `KeyError`
└── MissingLibraryError      something optional is not installed; an `ImportError`
"""

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from toolkit.contract.key_shapes import looks_like_key
from toolkit.contract.suggestions import explain_unknown, suggest_name, truncate_text

PACKAGE = __name__.partition(".")[0]
MAX_LINE_CHARACTERS = 120
# The names that IPython and ipykernel give to the code of cells.
_CELL_MARKS = ("<ipython-input-", "ipykernel_")


class PicklableError(BaseException):
    """A mixin for exceptions whose constructor takes more than the `args` of the exception.

    By default pickle calls the class with `args`, which fails for such a constructor, or loses its
    arguments. A pool whose worker sent the exception then hangs, or reports another exception.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_error, (type(self), self.args, self._list_members())

    def _list_members(self) -> dict[str, Any]:
        """Return the attributes by name, notes included; tracebacks and causes do not travel."""
        return dict(vars(self))


def _rebuild_error(
    kind: type[PicklableError], args: tuple[Any, ...], members: dict[str, Any]
) -> PicklableError:
    error = kind.__new__(kind)
    error.args = args
    for name, value in members.items():
        setattr(error, name, value)
    return error


class ShortTraceback(PicklableError):  # noqa: N818 - a mixin
    """A mixin of errors whose message says all that a person needs: no traceback is shown."""

    def _list_lines(self) -> list[str]:
        """List the lines below the headline of the message."""
        return []

    def _make_headline(self) -> str:
        return str(self)

    def _render_traceback_(self) -> list[str]:
        """Return IPython's text instead of a traceback: the message, and the caller's line."""
        lines = [f"{type(self).__name__}: {self._make_headline()}", *self._list_lines()]
        notes = getattr(self, "__notes__", [])
        line = None if notes else find_cell_line(self.__traceback__)
        if line is not None:
            lines.append(format_code_line(*line))
        return [*lines, *notes]


class ArgumentError(ShortTraceback, TypeError):
    """A call has an argument that the function does not have."""


class UnknownAttributeError(ShortTraceback, AttributeError):
    """An object has no attribute of this name; the closest name is found when this is shown."""

    def __init__(self, owner: object, name: str, elsewhere: Iterable[str] = ()) -> None:
        super().__init__(name=name, obj=owner)
        self.elsewhere = elsewhere  # names of inner objects that may have been meant

    def __reduce__(self) -> tuple[Any, ...]:
        # The object may hold an engine; its message is all that another process needs.
        return _restore_unknown_attribute, (str(self), self.name)

    def __str__(self) -> str:
        if self.args:
            return str(self.args[0])
        names = [name for name in dir(self.obj) if not name.startswith("_")]
        hint = suggest_name(self.name, [*names, *self.elsewhere])
        return f"`{type(self.obj).__name__}` has no `{self.name}`; {hint}"


class HasKnownNames:
    """An object that suggests the closest name for an unknown attribute."""

    def _list_names_elsewhere(self) -> Iterable[str]:
        """List names of inner objects that may have been meant."""
        return ()

    if not TYPE_CHECKING:  # mypy reports unknown names by itself

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):
                raise AttributeError(name)
            raise UnknownAttributeError(self, name, self._list_names_elsewhere())


class UnknownNodeError(ShortTraceback, KeyError):
    """A graph has no node of this id."""

    def __init__(self, node_id: object, node_ids: Iterable[str]) -> None:
        super().__init__(node_id)
        self.node_ids = list(node_ids)

    def __str__(self) -> str:
        return explain_unknown("node", self.args[0], self.node_ids)


class MissingLibraryError(ShortTraceback, ImportError):
    """An optional library is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed: `pip install {name}`", name=name)

    def _list_members(self) -> dict[str, Any]:
        return {**super()._list_members(), "name": self.name, "msg": self.msg}


def _restore_unknown_attribute(message: str, name: str) -> UnknownAttributeError:
    error = UnknownAttributeError(None, name)
    error.args = (message,)
    return error


def format_code_line(place: str, code: str) -> str:
    """Format a line of a caller's code below an error; without the code, if it may contain a key.

    >>> format_code_line("line 3 of the cell", "    wf.add('a')")
    "  line 3 of the cell: wf.add('a')"
    """
    code = truncate_text(code.strip(), MAX_LINE_CHARACTERS)
    words = "".join(c if c.isalnum() or c in "_-" else " " for c in code).split()
    if not code or any(looks_like_key(word) for word in words):
        return f"  {place}"
    return f"  {place}: {code}"


def find_cell_line(traceback: TracebackType | None) -> tuple[str, str] | None:
    """Find the line of a cell that led to an error: the last before this package's own code.

    Returns None outside of a notebook, and for a magic, whose line of code is IPython's own.

    Returns:
        the place of the line, and the line itself.
    """
    location: tuple[str, int, str] | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == PACKAGE:
            break
        if any(mark in code.co_filename for mark in _CELL_MARKS):
            location = code.co_filename, traceback.tb_lineno, code.co_name
        traceback = traceback.tb_next
    if location is None:
        return None
    import linecache  # which an error alone needs

    file, number, name = location
    text = linecache.getline(file, number)
    if text.startswith("get_ipython()."):
        return None
    inside = "" if name.startswith("<") else f", in {name}"
    return f"line {number} of the cell{inside}", text
