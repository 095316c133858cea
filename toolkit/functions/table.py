"""The functions that this process can call for its workflows, by name and by what they are."""

import functools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_FUNCTIONS = 50_000  # as many as fifty workflows of the largest size have nodes
_NO_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class RegisteredFunction:
    """A function and the name and digest that records know it by."""

    name: str
    digest: str
    function: Callable[..., object]

    @classmethod
    def of(cls, function: Callable[..., object], name: str | None = None) -> "RegisteredFunction":
        """Make it of a function, under its own name by default."""
        from toolkit.functions.fingerprints import identify_function  # which most never need

        return cls(name or name_function(function), identify_function(function).digest, function)


class FunctionTable:
    """The functions of this process that a workflow may call: any thread may use it.

    A function that was submitted stands for itself: work that asks for another one of its name
    does not get it. One that was registered by its name stands for every version of that name
    that was there before, too, so that a corrected one takes the place of the one that failed.
    Beyond `MAX_FUNCTIONS` the one that was used least lately is forgotten; what still asks for it
    waits, or fails, as in a process that never had it.

    Attributes:
        account_id: whose process it is: no other account's work calls its functions.
    """

    def __init__(self) -> None:
        self.account_id: str | None = None
        self._lock = threading.Lock()
        self._by_digest: OrderedDict[tuple[str, str], RegisteredFunction] = OrderedDict()
        self._by_name: dict[str, RegisteredFunction] = {}
        self.version = 0  # grows with each function that comes

    def add(self, one: RegisteredFunction) -> None:
        """Add a function that a workflow is about to be submitted with."""
        with self._lock:
            self._keep(one)

    def register(self, one: RegisteredFunction) -> None:
        """Have a function stand for its name, whatever stood for it before."""
        with self._lock:
            for key in [key for key in self._by_digest if key[0] == one.name]:
                del self._by_digest[key]
            self._by_name[one.name] = one
            self._keep(one)

    def _keep(self, one: RegisteredFunction) -> None:
        self._by_digest[one.name, one.digest] = one
        self._by_digest.move_to_end((one.name, one.digest))
        if len(self._by_digest) > MAX_FUNCTIONS:
            self._by_digest.popitem(last=False)
        self.version += 1

    def find(self, name: str, digest: str) -> RegisteredFunction | None:
        """Find the function that a node asks for; none if this process does not have it."""
        with self._lock:
            found = self._by_digest.get((name, digest))
            if found is not None:
                self._by_digest.move_to_end((name, digest))
            return found or self._by_name.get(name)

    def __iter__(self) -> Iterator[RegisteredFunction]:
        """Yield every function, those that were used last at the end."""
        with self._lock:
            return iter(list(self._by_digest.values()))


def name_function(function: Callable[..., object]) -> str:
    """Name a function as its `def` does.

    >>> name_function(len), name_function(lambda: 1), name_function(functools.partial(len, "a"))
    ('len', 'lambda', 'len')
    """
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return _NO_NAME.sub("", str(name)).strip("<>")[:MAX_NAME_CHARS] or "function"
