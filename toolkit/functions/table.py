"""The functions that this process can call for its workflows, by name and by digest."""

import functools
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from weakref import WeakValueDictionary

MAX_RECENT = 64  # functions that stay although nobody holds them
_NO_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MAX_NAME_CHARS = 200
_CONTENT_DIGITS, _OBJECT_DIGITS = 48, 16


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RegisteredFunction:
    """A function, with the name and digest by which records refer to it.

    The digest has two parts. The first is the same for equal functions, so that the next process
    finds a function that was defined again. The second identifies the object: two functions that
    close over equal lists are two functions.
    """

    name: str
    digest: str
    function: Callable[..., object]

    @classmethod
    def of(cls, function: Callable[..., object], name: str | None = None) -> "RegisteredFunction":
        """Make the entry of a function, under its own name by default."""
        # Imported here because most programs register no function.
        from toolkit.functions.fingerprints import get_token, identify_function

        content = identify_function(function).digest[:_CONTENT_DIGITS]
        digest = content + get_token(function).hex()[:_OBJECT_DIGITS]
        return cls(name or name_function(function), digest, function)


class FunctionTable:
    """The functions of this process that a workflow may call; safe for use by any thread.

    A submitted function serves only work that needs it or an equal function, not another function
    of its name. The table keeps it while a built or running workflow holds it, or while it is
    among the last `MAX_RECENT`, because closed-over values may be large.

    A function registered by its name stays. It replaces every earlier version of that name, so
    that a corrected function replaces a failed function.

    Attributes:
        account_id: id of the process's account; work of other accounts cannot call its functions.
        version: counter that grows with each added function.
    """

    def __init__(self) -> None:
        self.account_id: str | None = None
        self.version = 0
        self._lock = threading.Lock()
        self._by_digest: WeakValueDictionary[tuple[str, str], RegisteredFunction] = (
            WeakValueDictionary()
        )
        self._recent: deque[RegisteredFunction] = deque(maxlen=MAX_RECENT)
        self._by_name: dict[str, RegisteredFunction] = {}

    def add(self, function: RegisteredFunction) -> RegisteredFunction:
        """Add a function before a workflow with the function is submitted.

        Returns:
            The entry to hold as long as the function may be called.
        """
        with self._lock:
            entry = self._by_digest.setdefault((function.name, function.digest), function)
            self._recent.append(entry)
            self.version += 1
            return entry

    def register(self, function: RegisteredFunction) -> None:
        """Register a function by its name, in place of any earlier function of that name."""
        with self._lock:
            for key in [key for key in self._by_digest if key[0] == function.name]:
                del self._by_digest[key]
            self._by_name[function.name] = self._by_digest[function.name, function.digest] = (
                function
            )
            self.version += 1

    def find(self, name: str, digest: str) -> RegisteredFunction | None:
        """Find the function of a node: itself, an equal function, or a function of its name."""
        with self._lock:
            exact = self._by_digest.get((name, digest))
            return exact or self._find_equal(name, digest) or self._by_name.get(name)

    def _find_equal(self, name: str, digest: str) -> RegisteredFunction | None:
        content = digest[:_CONTENT_DIGITS]
        for (other_name, other_digest), registered in reversed(list(self._by_digest.items())):
            if other_name == name and other_digest[:_CONTENT_DIGITS] == content:
                return registered
        return None

    def __iter__(self) -> Iterator[RegisteredFunction]:
        """Yield every function in the table."""
        with self._lock:
            return iter(list(self._by_digest.values()))


def name_function(function: Callable[..., object]) -> str:
    """Return the name from a function's `def`.

    >>> name_function(len), name_function(lambda: 1), name_function(functools.partial(len, "a"))
    ('len', 'lambda', 'len')
    """
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return _NO_NAME.sub("", str(name)).strip("<>")[:MAX_NAME_CHARS] or "function"
