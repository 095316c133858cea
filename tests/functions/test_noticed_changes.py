"""Cached functions: a change of any value that a function reads is noticed.

After each change, the workflow must return the same value as a plain call.
"""

import colorsys
import importlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolkit import Client, Workflow

PREAMBLE = """
import abc, array, gc, collections, dataclasses, datetime, decimal, enum, functools, operator, types
import typing
import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, computed_field, field_validator
"""

# name: (a cell that defines `call`, a cell that changes something that `call` reads)
CHANGES: dict[str, tuple[str, str]] = {
    "inherited_class_attribute": (
        "class Base:\n    steps = [1]\nclass Rates(Base):\n    pass\n"
        "def call(): return Rates.steps[0]",
        "Base.steps[0] = 2",
    ),
    "metaclass_method": (
        "class Meta(type):\n    def rate(cls): return 1\n"
        "class Rates(metaclass=Meta): pass\ndef call(): return Rates.rate()",
        "def rate(cls): return 2\nMeta.rate = rate",
    ),
    "virtual_subclass": (
        "class Shape(abc.ABC): pass\nclass Square: pass\n"
        "def call(): return isinstance(Square(), Shape)",
        "Shape.register(Square)",
    ),
    "pydantic_constraint": (
        "class Row(BaseModel):\n    n: int = Field(gt=1)\ndef call():\n"
        "    try: return Row(n=5).n\n    except ValueError: return 'refused'",
        "class Row(BaseModel):\n    n: int = Field(gt=7)",
    ),
    "pydantic_validator_mode": (
        "class Row(BaseModel):\n    n: int\n    @field_validator('n', mode='after')\n"
        "    def check(cls, n): return type(n).__name__ == 'str'\n"
        "def call(): return Row(n='1').n",
        "class Row(BaseModel):\n    n: int\n    @field_validator('n', mode='before')\n"
        "    def check(cls, n): return type(n).__name__ == 'str'",
    ),
    "pydantic_config": (
        "class Row(BaseModel):\n    model_config = {'extra': 'ignore'}\n"
        "def call(): return Row(m=1).model_dump()",
        "class Row(BaseModel):\n    model_config = {'extra': 'allow'}",
    ),
    "pydantic_private_value": (
        "class Row(BaseModel):\n    _n: int = 1\nROW = Row()\ndef call(): return ROW._n",
        "ROW._n = 2",
    ),
    "pydantic_field_was_set": (
        "class Row(BaseModel):\n    n: int = 1\nROW = Row()\n"
        "def call(): return ROW.model_dump(exclude_unset=True)",
        "ROW = Row(n=1)",
    ),
    "dataclass_default": (
        "@dataclasses.dataclass\nclass Row:\n"
        "    n: list = dataclasses.field(default_factory=list)\n"
        "def call(): return Row().n",
        "@dataclasses.dataclass\nclass Row:\n"
        "    n: list = dataclasses.field(default_factory=lambda: [1])",
    ),
    "enum_member_value": (
        "class Rate(enum.Enum):\n    LOW = 1\nRATE = Rate.LOW\ndef call(): return RATE.value",
        "class Rate(enum.Enum):\n    LOW = 2\nRATE = Rate.LOW",
    ),
    "int_enum_value": (
        "class Rate(enum.IntEnum):\n    LOW = 1\nRATE = Rate.LOW\ndef call(): return RATE + 0",
        "class Rate(enum.IntEnum):\n    LOW = 2\nRATE = Rate.LOW",
    ),
    "bound_special_method": (
        "STEPS = [1]\nsize = STEPS.__len__\ndef call(): return size()",
        "STEPS.append(1)",
    ),
    "function_attribute": (
        "def rate(): return rate.n\nrate.n = 1\ndef call(): return rate()",
        "rate.n = 2",
    ),
    "instance_whose_class_hides_its_dict": (
        "class Rates:\n    @property\n    def __dict__(self): return {}\n"
        "RATES = Rates()\nRATES.n = 1\ndef call(): return RATES.n",
        "RATES.n = 2",
    ),
    "cached_helper": (
        "@functools.cache\ndef rate(n): return n + 1\ndef call(): return rate(1)",
        "@functools.cache\ndef rate(n): return n + 2",
    ),
    "dispatched_function": (
        "@functools.singledispatch\ndef show(n): return 'any'\ndef call(): return show(1)",
        "@show.register\ndef _(n: int): return 'int'",
    ),
    "int_subclass_with_own_repr": (
        "class Rate(int):\n    def __repr__(self): return 'rate'\nRATE = Rate(1)\n"
        "def call(): return RATE + 0",
        "RATE = Rate(2)",
    ),
    "default_dict_factory": (
        "RATES = collections.defaultdict(lambda: 1)\ndef call(): return dict(RATES).get('a') or "
        "RATES.default_factory()",
        "RATES.default_factory = lambda: 2",
    ),
    "deque_limit": (
        "LAST = collections.deque([1], maxlen=1)\ndef call(): return LAST.maxlen",
        "LAST = collections.deque([1], maxlen=2)",
    ),
    "cached_property_value": (
        "class Rates:\n    @functools.cached_property\n    def n(self): return 1\n"
        "RATES = Rates()\ndef call(): return RATES.n",
        "RATES.n = 2",
    ),
    "partial_method": (
        "class Rates:\n    def get(self, n): return n\n"
        "    one = functools.partialmethod(get, 1)\ndef call(): return Rates().one()",
        "class Rates:\n    def get(self, n): return n\n"
        "    one = functools.partialmethod(get, 2)",
    ),
    "named_tuple_field_order": (
        "Rate = collections.namedtuple('Rate', 'a b')\ndef call(): return Rate(1, 2).a",
        "Rate = collections.namedtuple('Rate', 'b a')",
    ),
    "negative_zero": ("ZERO = 0.0\ndef call(): return str(ZERO)", "ZERO = -0.0"),
    "true_and_one": ("ONE = [1]\ndef call(): return str(ONE)", "ONE = [True]"),
    "own_time_zone": (
        "class Zone(datetime.tzinfo):\n    def __init__(self, h): self.h = h\n"
        "    def utcoffset(self, t): return datetime.timedelta(hours=self.h)\n"
        "    def __repr__(self): return 'Zone()'\n"
        "TIME = datetime.datetime(2026, 1, 1, tzinfo=Zone(1))\ndef call(): return str(TIME)",
        "TIME.tzinfo.h = 2",
    ),
    "aliasing": (
        "ROWS = [[1], [1]]\ndef call():\n    ROWS[0].append(2)\n    n = len(ROWS[1])\n"
        "    ROWS[0].pop()\n    return n",
        "ROWS = [ROWS[0], ROWS[0]]",
    ),
    "global_that_appears": (
        "def call():\n    try: return RATE\n    except NameError: return 0",
        "RATE = 1",
    ),
    "global_over_builtin": ("def call(): return len([1])", "def len(_): return 7"),
    "patched_installed_module": (
        "import colorsys\ndef call(): return colorsys.rgb_to_hsv(0, 0, 0)[2]",
        "colorsys.rgb_to_hsv = lambda *_: [1, 2, 3]",
    ),
    "object_at_a_reused_address": (
        "class Model:\n    __slots__ = ('n', '__weakref__')\n"
        "    def __init__(self, n): self.n = n\nMODEL = Model(1)\ndef call(): return MODEL.n",
        "del MODEL\ngc.collect()\nMODEL = Model(2)",
    ),
    "unknown_object_changes": (
        "import io\nTEXT = io.StringIO('a')\ndef call(): return TEXT.getvalue()",
        "TEXT.write('b')",
    ),
    "array_order": (
        "A = np.array([[1, 2], [3, 4]])\ndef call(): return A.ravel('K').tolist()",
        "A = np.asfortranarray(A)",
    ),
    "structured_array": (
        "A = np.zeros(1, dtype=[('a', 'i4'), ('b', 'i4')])\ndef call(): return list(A.dtype.names)",
        "A = A.view([('b', 'i4'), ('a', 'i4')])",
    ),
    "masked_array": (
        "A = np.ma.array([1, 2], mask=[False, False])\ndef call(): return int(A.sum())",
        "A.mask = [True, False]",
    ),
    "path": (
        "from pathlib import Path\nPLACE = Path('a')\ndef call(): return str(PLACE)",
        "PLACE = Path('b')",
    ),
    "frame_dtype": (
        "F = pd.DataFrame({'a': [1]})\ndef call(): return str(F['a'].dtype)",
        "F = F.astype(float)",
    ),
    "frame_many_rows": (
        "F = pd.DataFrame({'a': range(5000)})\ndef call(): return int(F['a'].sum())",
        "F.loc[2500, 'a'] = -1",
    ),
    "frame_attrs": (
        "F = pd.DataFrame({'a': [1]})\nF.attrs['unit'] = 'm'\ndef call(): return F.attrs['unit']",
        "F.attrs['unit'] = 'km'",
    ),
    "frame_category_order": (
        "F = pd.DataFrame({'a': pd.Categorical(['x', 'y'], categories=['x', 'y'])})\n"
        "def call(): return list(F['a'].cat.categories)",
        "F = pd.DataFrame({'a': pd.Categorical(['x', 'y'], categories=['y', 'x'])})",
    ),
    "frame_object_none_and_nan": (
        "F = pd.DataFrame({'a': pd.Series(['x', None], dtype=object)})\n"
        "def call(): return str(F['a'][1])",
        "F = pd.DataFrame({'a': pd.Series(['x', float('nan')], dtype=object)})",
    ),
    "frame_multi_index_name": (
        "I = pd.MultiIndex.from_tuples([(1, 2)], names=['x', 'y'])\n"
        "F = pd.DataFrame({'a': [1]}, index=I)\n"
        "def call(): return list(F.index.names)",
        "F.index.names = ['x', 'z']",
    ),
    "series_name_type": (
        "S = pd.Series([1], name=1)\ndef call(): return type(S.name).__name__",
        "S.name = '1'",
    ),
    "index_frequency": (
        "I = pd.date_range('2026-01-01', periods=2)\ndef call(): return str(I.freq)",
        "I = pd.DatetimeIndex(list(I))",
    ),
    "range_index_step": (
        "I = pd.RangeIndex(0, 4, 2)\ndef call(): return I.tolist()",
        "I = pd.RangeIndex(0, 4, 3)",
    ),
    "interval_closed": (
        "I = pd.interval_range(0, 2)\ndef call(): return I.closed",
        "I = pd.interval_range(0, 2, closed='left')",
    ),
    "sparse_fill": (
        "S = pd.Series(pd.arrays.SparseArray([0, 0], fill_value=0))\n"
        "def call(): return int(S.sparse.fill_value)",
        "S = pd.Series(pd.arrays.SparseArray([0, 0], fill_value=1))",
    ),
    "time_stamp_unit": (
        "T = pd.Timestamp('2026-01-01').as_unit('s')\ndef call(): return T.unit",
        "T = T.as_unit('ms')",
    ),
}  # fmt: skip

# Cells that define `call`, which reads values of frequent kinds that do not change.
UNCHANGED: dict[str, str] = {
    "plain_values": "RATES = {'a': [1, (2.5, None)], 'b': {'x', 'y'}}\n"
    "def call(): return len(RATES)",
    "own_instance": "class Rate:\n    def __init__(self): self.n = [1]\n"
    "RATE = Rate()\ndef call(): return RATE.n",
    "pydantic_class": "class Row(BaseModel):\n    n: int = Field(1, gt=0)\n"
    "    names: list[str] | None = None\n    @field_validator('n')\n"
    "    def check(cls, n): return n\n    @computed_field\n    @property\n"
    "    def twice(self) -> int: return 2 * self.n\n"
    "def call(): return Row().model_dump()",
    "slots_dataclass": "@dataclasses.dataclass(slots=True, order=True)\nclass Row:\n"
    "    n: int = 1\nROW = Row()\ndef call(): return ROW.n",
    "flags_combined_in_the_call": "class Rate(enum.Flag):\n    LOW = 1\n    HIGH = 2\n"
    "def call(): return [(Rate.LOW | Rate.HIGH).value, (~Rate.LOW).value]",
    "generic_class": "T = typing.TypeVar('T')\nclass Box(typing.Generic[T]):\n"
    "    def __init__(self, n: T): self.n = n\ndef call(): return Box[int](1).n",
    "protocol": "class Sized(typing.Protocol):\n    def size(self) -> int: ...\n"
    "class Square:\n    def size(self) -> int: return 1\n"
    "def call(item: Sized = Square()): return item.size()",
    "typed_function": "def rate(n: typing.Annotated[int, Field(gt=1)],\n"
    "         m: list[str] | None = None,\n"
    "         f: typing.Callable[[int], str] | None = None) -> typing.Literal['a']: return 'a'\n"
    "def call() -> str: return rate(2)",
    "cached_helper_that_calls_itself": "@functools.cache\n"
    "def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n"
    "def call(): return fibonacci(9)",
    "sentinel": "MISSING = object()\ndef call(n=MISSING): return n is MISSING",
    "lambda_in_set": "RULES = frozenset({len, abs})\ndef call(): return len(RULES)",
    "dispatched_helper": "@functools.singledispatch\ndef show(n): return 'any'\n"
    "@show.register\ndef _(n: int): return 'int'\ndef call(): return show(1)",
    "logger": "import logging\nlog = logging.getLogger('notebook')\n"
    "def call():\n    log.debug('called')\n    return 1",
    "installed_functions": "from json import dumps\nfrom math import sqrt\n"
    "def call(): return [dumps(1), sqrt(4), float(np.mean([1, 2])), int(np.add(1, 2))]",
    "installed_classes": "from collections import Counter\nfrom pathlib import Path\n"
    "COUNTS = Counter('aab')\nROOT = Path('a')\ndef call(): return [COUNTS['a'], str(ROOT)]",
    "array": "A = np.arange(6.0).reshape(2, 3)\ndef call(): return float(A.sum())",
    "frame": "F = pd.DataFrame({'n': [1, 2], 's': ['a', None], 'f': [0.5, float('nan')],\n"
    "                  'b': [True, False], 'o': pd.Series([1, 'a'], dtype=object),\n"
    "                  't': pd.to_datetime(['2026-01-01', None]),\n"
    "                  'z': pd.to_datetime(['2026-01-01', '2026-01-02']).tz_localize('UTC'),\n"
    "                  'c': pd.Categorical(['x', 'y'], ordered=True),\n"
    "                  'i': pd.array([1, None], dtype='Int64'),\n"
    "                  'd': pd.to_timedelta(['1s', '2s']),\n"
    "                  'p': pd.period_range('2026-01', periods=2, freq='M')})\n"
    "def call(): return len(F)",
    "frame_indexes": "F = pd.DataFrame({('a', 'x'): [1], ('a', 'y'): [2]},\n"
    "                 index=pd.date_range('2026-01-01', periods=1))\n"
    "I = pd.interval_range(0, 3)\ndef call(): return len(F) + len(I)",
}  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client with its own engine."""
    with Client.local(tmp_path_factory.mktemp("data"), sandbox=True) as client:
        yield client


def run_cell(space: dict[str, Any], source: str) -> None:
    """Run a cell."""
    exec(compile(source, "<cell>", "exec"), space)


def define(source: str) -> dict[str, Any]:
    """Run a cell in a new namespace, as a new kernel does."""
    space: dict[str, Any] = {"__name__": "__main__"}
    run_cell(space, PREAMBLE + source)
    return space


def define_all() -> dict[str, Callable[..., object]]:
    """Define the functions that do not change, each in its own namespace."""
    return {name: define(source)["call"] for name, source in UNCHANGED.items()}


def run_all(client: Client, functions: Mapping[str, Callable[..., object]]) -> Any:
    """Run a workflow of cached nodes, and return it."""
    wf = Workflow("changes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in functions.items():
            wf.add(name, function, cache=True)
    return client.workflows.submit(wf).wait(progress=False, check=False)


def run(client: Client, function: Callable[..., object]) -> Any:
    """Run a workflow of one cached node, and return the node."""
    return run_all(client, {"call": function})["call"]


States = list[tuple[Any, dict[str, object]]]


@pytest.fixture(scope="module")
def states(client: Client) -> Iterator[States]:
    """The workflow before and after all changes, and the values of plain calls at that time."""
    spaces = {name: define(cell) for name, (cell, _) in CHANGES.items()}
    original = colorsys.rgb_to_hsv

    def call_all() -> tuple[Any, dict[str, object]]:
        workflow = run_all(client, {name: space["call"] for name, space in spaces.items()})
        values = {name: space["call"]() for name, space in spaces.items()}
        return workflow, json.loads(json.dumps(values))

    before = call_all()
    for name, (_, change) in CHANGES.items():
        run_cell(spaces[name], change)
    yield [before, call_all()]
    colorsys.rgb_to_hsv = original


@pytest.mark.parametrize("name", CHANGES)
def test_notices_a_change(states: States, name: str) -> None:
    """Given a change of a value that a cached function reads, then its node notices."""
    (before, values_before), (after, values_after) = states
    assert values_before[name] != values_after[name], "nothing changed"
    assert (before[name].error, after[name].error) == (None, None)
    assert before[name].value == values_before[name]
    assert after[name].value == values_after[name]


@pytest.fixture(scope="module")
def repeats(client: Client) -> list[Any]:
    """The workflows of the unchanged cells, which run twice in each of two namespaces."""
    return [
        run_all(client, functions) for functions in (define_all(), define_all()) for _ in range(2)
    ]


@pytest.mark.parametrize("name", UNCHANGED)
def test_reuses_the_result_of_an_unchanged_function(repeats: list[Any], name: str) -> None:
    """Given cells that run again, also in a new namespace, then the first result is reused."""
    assert [workflow[name].error for workflow in repeats] == [None] * 4
    assert [bool(workflow[name].cached_from) for workflow in repeats[1:]] == [True] * 3
    assert repeats[3][name].value == define(UNCHANGED[name])["call"]()


# A later process runs the unchanged cells, and prints the names of those without a cached result.
LATER = """
import sys
from tests.functions.test_noticed_changes import UNCHANGED, define_all, run_all
from toolkit import Client
with Client.local(sys.argv[1], sandbox=True) as client:
    workflow = run_all(client, define_all())
    print([name for name in UNCHANGED if not workflow[name].cached_from])
"""


@pytest.mark.usefixtures("fork_programs")
def test_reuses_unchanged_results_in_a_new_process(tmp_path: Path) -> None:
    """Given results of the unchanged cells, then another process calls none of them."""
    with Client.local(tmp_path, sandbox=True) as client:
        run_all(client, define_all())
    command = [sys.executable, "-c", LATER, str(tmp_path)]
    assert subprocess.check_output(command, text=True) == "[]\n"


def test_notices_edited_code_once_it_is_loaded(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a module that is edited, then its new code counts after a reload, not before."""
    file = tmp_path / "own_rates.py"
    file.write_text("RATE = 1\ndef scale(n): return n * RATE\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own_rates", raising=False)
    space = define("import own_rates\ndef call(): return own_rates.scale(3)")
    assert run(client, space["call"]).value == 3
    file.write_text("RATE = 20\ndef scale(n): return n * RATE\n")
    assert run(client, space["call"]).value == space["call"]() == 3
    importlib.reload(space["own_rates"])
    node = run(client, space["call"])
    assert (node.value, node.cached_from) == (60, None)
    space["own_rates"].RATE = 5
    assert run(client, space["call"]).value == 15
    del sys.modules["own_rates"]


def test_notices_a_change_of_a_module_imported_in_a_function(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a function that imports the caller's own module, then a change of it is noticed."""
    file = tmp_path / "own_steps.py"
    file.write_text("STEPS = [1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    space = define("def call():\n    from own_steps import STEPS\n    return len(STEPS)")
    assert [run(client, space["call"]).value for _ in range(2)] == [1, 1]
    sys.modules["own_steps"].STEPS.append(2)
    assert run(client, space["call"]).value == 2
    del sys.modules["own_steps"]


def test_does_not_cache_the_result_of_a_call_with_a_change(client: Client, tmp_path: Path) -> None:
    """Given a value that changes while a function runs, then the result is not cached."""
    space = define(
        "RATE = 1\ndef call(gate):\n    with open(gate) as file: file.read()\n    return RATE"
    )
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    wf = Workflow("changing")
    wf.add("call", space["call"], gate=str(gate), cache=True)
    handle = client.workflows.submit(wf)
    with gate.open("w"):
        space["RATE"] = 2
    assert handle.wait(progress=False)["call"].value == 2
    space["RATE"] = 1
    gate.unlink()
    gate.write_text("")
    node = client.workflows.submit(wf).wait(progress=False)["call"]
    assert (node.value, node.cached_from) == (1, None)


def test_ignores_a_cached_property_that_a_call_fills(tmp_path: Path) -> None:
    """Given a `cached_property` that a call fills, then a new kernel reuses the result."""
    source = (
        "class Rates:\n    @functools.cached_property\n    def n(self): return [1]\n"
        "RATES = Rates()\ndef call(): return RATES.n"
    )
    for is_cached in (False, True):
        with Client.local(tmp_path, sandbox=True) as client:
            node = run(client, define(source)["call"])
            assert (node.value, bool(node.cached_from)) == ([1], is_cached)


def test_warns_once_of_opaque_objects() -> None:
    """Given a function that reads several opaque objects, then one warning names all of them."""
    space = define("import threading\nA, B = threading.Lock(), iter([1])\ndef call(): A, B")
    with pytest.warns(UserWarning, match="cannot see into") as caught:
        Workflow("opaque").add("call", space["call"], cache=True)
    assert len(caught) == 1
    assert "`A` (lock)" in str(caught[0].message)
    assert "`B` (list_iterator)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_ignores_a_stale_functools_cache(client: Client) -> None:
    """Given a `functools.cache` filled before its function changed, then it hides no change."""
    space = define("RATE = 1\n@functools.cache\ndef rate(): return RATE\ndef call(): return rate()")
    assert run(client, space["call"]).value == 1
    space["RATE"] = 2
    assert run(client, space["call"]).value == 1  # from the kernel's `functools.cache`
    space["rate"].cache_clear()
    assert run(client, space["call"]).value == 2


def test_equal_functions_read_their_own_values(client: Client) -> None:
    """Given functions that close over equal lists, then each reads its own changed list."""

    def make(steps: list[int]) -> Callable[[], int]:
        return lambda: sum(steps)

    first, second = [1], [1]
    wf = Workflow("equal")
    wf.add("first", make(first), cache=True)
    wf.add("second", make(second), cache=True)
    second.append(5)
    workflow = client.workflows.submit(wf).wait(progress=False)
    assert (workflow["first"].value, workflow["second"].value) == (1, 6)
