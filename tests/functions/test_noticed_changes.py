"""Changes of what a cached function reads: each is noticed, and what did not change is found again.

The judge is Python: after a change, the workflow has to return what a plain call returns.
"""

import colorsys
import importlib
import json
import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
    "class_docstring": (
        "class Rates:\n    'one'\ndef call(): return Rates.__doc__",
        "Rates.__doc__ = 'two'",
    ),
    "virtual_subclass": (
        "class Shape(abc.ABC): pass\nclass Square: pass\n"
        "def call(): return isinstance(Square(), Shape)",
        "Shape.register(Square)",
    ),
    "pydantic_default": (
        "class Row(BaseModel):\n    n: int = 1\ndef call(): return Row().n",
        "class Row(BaseModel):\n    n: int = 2",
    ),
    "pydantic_default_factory": (
        "class Row(BaseModel):\n    n: list[int] = Field(default_factory=lambda: [1])\n"
        "def call(): return Row().n",
        "class Row(BaseModel):\n    n: list[int] = Field(default_factory=lambda: [2])",
    ),
    "pydantic_annotation": (
        "class Row(BaseModel):\n    n: int\ndef call(): return Row(n='1').model_dump()",
        "class Row(BaseModel):\n    n: str",
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
    "enum_value": (
        "class Rate(enum.Enum):\n    LOW = 1\ndef call(): return Rate.LOW.value",
        "class Rate(enum.Enum):\n    LOW = 2",
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
    "wrapper_with_state": (
        "class Scaled:\n    def __init__(self, function, factor):\n"
        "        functools.update_wrapper(self, function)\n        self.factor = factor\n"
        "    def __call__(self, n): return self.__wrapped__(n) * self.factor\n"
        "twice = Scaled(lambda n: n, 2)\ndef call(): return twice(3)",
        "twice.factor = 5",
    ),
    "function_attribute": (
        "def rate(): return rate.n\nrate.n = 1\ndef call(): return rate()",
        "rate.n = 2",
    ),
    "function_docstring": (
        "def rate(): 'one'\ndef call(): return rate.__doc__",
        "rate.__doc__ = 'two'",
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
    "partial_of_method": (
        "RATES = {'a': 1}\nget = functools.partial(RATES.get, 'a')\ndef call(): return get()",
        "RATES['a'] = 2",
    ),
    "int_subclass_with_own_repr": (
        "class Rate(int):\n    def __repr__(self): return 'rate'\nRATE = Rate(1)\n"
        "def call(): return RATE + 0",
        "RATE = Rate(2)",
    ),
    "list_subclass_slot": (
        "class Steps(list):\n    __slots__ = ('unit',)\nSTEPS = Steps([1])\nSTEPS.unit = 'a'\n"
        "def call(): return STEPS.unit",
        "STEPS.unit = 'b'",
    ),
    "default_dict_factory": (
        "RATES = collections.defaultdict(lambda: 1)\ndef call(): return dict(RATES).get('a') or "
        "RATES.default_factory()",
        "RATES.default_factory = lambda: 2",
    ),
    "ordered_dict_order": (
        "RATES = collections.OrderedDict(a=1, b=2)\ndef call(): return list(RATES)",
        "RATES.move_to_end('a')",
    ),
    "deque_limit": (
        "LAST = collections.deque([1], maxlen=1)\ndef call(): return LAST.maxlen",
        "LAST = collections.deque([1], maxlen=2)",
    ),
    "dict_order": (
        "RATES = {'a': 1, 'b': 2}\ndef call(): return list(RATES)",
        "RATES['a'] = RATES.pop('a')",
    ),
    "cached_property": (
        "class Rates:\n    @functools.cached_property\n    def n(self): return 1\n"
        "def call(): return Rates().n",
        "class Rates:\n    @functools.cached_property\n    def n(self): return 2",
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
    "named_tuple_default": (
        "class Rate(typing.NamedTuple):\n    n: int = 1\ndef call(): return Rate().n",
        "class Rate(typing.NamedTuple):\n    n: int = 2",
    ),
    "named_tuple_field_order": (
        "Rate = collections.namedtuple('Rate', 'a b')\ndef call(): return Rate(1, 2).a",
        "Rate = collections.namedtuple('Rate', 'b a')",
    ),
    "negative_zero": ("ZERO = 0.0\ndef call(): return str(ZERO)", "ZERO = -0.0"),
    "true_and_one": ("ONE = [1]\ndef call(): return str(ONE)", "ONE = [True]"),
    "decimal_places": (
        "ONE = decimal.Decimal('1.0')\ndef call(): return str(ONE)",
        "ONE = decimal.Decimal('1.00')",
    ),
    "time_zone": (
        "ZONE = datetime.timezone(datetime.timedelta(hours=1))\n"
        "def call(): return str(datetime.datetime(2026, 1, 1, tzinfo=ZONE))",
        "ZONE = datetime.timezone(datetime.timedelta(hours=2))",
    ),
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
    "array": ("A = np.arange(3)\ndef call(): return int(A.sum())", "A[0] = 5"),
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
    "frame_one_of_many_columns": (
        "F = pd.DataFrame([range(150)], columns=[f'c{n}' for n in range(150)])\n"
        "def call(): return list(F.columns)",
        "F.columns = [f'c{n}' if n != 70 else 'other' for n in range(150)]",
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
    "frame_category_ordered": (
        "F = pd.DataFrame({'a': pd.Categorical(['x'])})\n"
        "def call(): return bool(F['a'].cat.ordered)",
        "F['a'] = F['a'].cat.as_ordered()",
    ),
    "frame_unused_category": (
        "F = pd.DataFrame({'a': pd.Categorical(['x'])})\n"
        "def call(): return len(F['a'].cat.categories)",
        "F['a'] = F['a'].cat.add_categories(['z'])",
    ),
    "frame_object_none_and_nan": (
        "F = pd.DataFrame({'a': pd.Series(['x', None], dtype=object)})\n"
        "def call(): return str(F['a'][1])",
        "F = pd.DataFrame({'a': pd.Series(['x', float('nan')], dtype=object)})",
    ),
    "frame_time_unit": (
        "F = pd.DataFrame({'t': pd.to_datetime(['2026-01-01']).as_unit('s')})\n"
        "def call(): return str(F['t'].dtype)",
        "F['t'] = F['t'].dt.as_unit('ms')",
    ),
    "frame_time_zone": (
        "F = pd.DataFrame({'t': pd.to_datetime(['2026-01-01']).tz_localize('UTC')})\n"
        "def call(): return str(F['t'][0])",
        "F['t'] = F['t'].dt.tz_convert('Europe/Berlin')",
    ),
    "frame_missing_integer": (
        "F = pd.DataFrame({'a': pd.array([1, None], dtype='Int64')})\n"
        "def call(): return int(F['a'].isna().sum())",
        "F = pd.DataFrame({'a': pd.array([1, 1], dtype='Int64')})",
    ),
    "frame_multi_index_name": (
        "I = pd.MultiIndex.from_tuples([(1, 2)], names=['x', 'y'])\n"
        "F = pd.DataFrame({'a': [1]}, index=I)\n"
        "def call(): return list(F.index.names)",
        "F.index.names = ['x', 'z']",
    ),
    "frame_column_order": (
        "F = pd.DataFrame({'a': [1], 'b': [1]})\ndef call(): return list(F)",
        "F = F[['b', 'a']]",
    ),
    "series_name": (
        "S = pd.Series([1], name='a')\ndef call(): return S.name",
        "S.name = 'b'",
    ),
    "series_name_type": (
        "S = pd.Series([1], name=1)\ndef call(): return type(S.name).__name__",
        "S.name = '1'",
    ),
    "index_name": (
        "I = pd.Index([1], name='a')\ndef call(): return I.name",
        "I.name = 'b'",
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

# Cells that define `call`, which reads what is often read; none of it changes.
UNCHANGED: dict[str, str] = {
    "plain_values": "RATES = {'a': [1, (2.5, None)], 'b': {'x', 'y'}}\n"
    "def call(): return len(RATES)",
    "own_class": "class Rates:\n    steps = [1]\n    def n(self): return self.steps\n"
    "def call(): return Rates().n()",
    "own_instance": "class Rate:\n    def __init__(self): self.n = [1]\n"
    "RATE = Rate()\ndef call(): return RATE.n",
    "cached_property": "class Rates:\n    @functools.cached_property\n    def n(self): return 1\n"
    "def call(): return Rates().n",
    "pydantic_class": "class Row(BaseModel):\n    n: int = Field(1, gt=0)\n"
    "    names: list[str] | None = None\n    @field_validator('n')\n"
    "    def check(cls, n): return n\n    @computed_field\n    @property\n"
    "    def twice(self) -> int: return 2 * self.n\n"
    "def call(): return Row().model_dump()",
    "pydantic_instance": "class Row(BaseModel):\n    n: int = 1\nROW = Row()\n"
    "def call(): return ROW.n",
    "dataclass": "@dataclasses.dataclass(frozen=True)\nclass Row:\n    n: int = 1\n"
    "    tags: list = dataclasses.field(default_factory=list)\nROW = Row()\n"
    "def call(): return ROW.n",
    "slots_dataclass": "@dataclasses.dataclass(slots=True, order=True)\nclass Row:\n"
    "    n: int = 1\nROW = Row()\ndef call(): return ROW.n",
    "enum": "class Rate(enum.Enum):\n    LOW = 1\n    HIGH = (1, 2)\nRATE = Rate.LOW\n"
    "def call(): return [RATE.value, len(Rate)]",
    "flag": "class Rate(enum.Flag):\n    LOW = enum.auto()\n    HIGH = enum.auto()\n"
    "RATE = Rate.LOW | Rate.HIGH\ndef call(): return RATE.value",
    "flags_combined_in_the_call": "class Rate(enum.Flag):\n    LOW = 1\n    HIGH = 2\n"
    "def call(): return [(Rate.LOW | Rate.HIGH).value, (~Rate.LOW).value]",
    "named_tuple": "class Rate(typing.NamedTuple):\n    n: int = 1\nRATE = Rate()\n"
    "def call(): return RATE.n",
    "abstract_class": "class Shape(abc.ABC):\n    @abc.abstractmethod\n    def size(self): ...\n"
    "class Square(Shape):\n    def size(self): return 1\n"
    "def call(): return isinstance(Square(), Shape) and Square().size()",
    "generic_class": "T = typing.TypeVar('T')\nclass Box(typing.Generic[T]):\n"
    "    def __init__(self, n: T): self.n = n\ndef call(): return Box[int](1).n",
    "protocol": "class Sized(typing.Protocol):\n    def size(self) -> int: ...\n"
    "class Square:\n    def size(self) -> int: return 1\n"
    "def call(item: Sized = Square()): return item.size()",
    "typed_function": "def rate(n: typing.Annotated[int, Field(gt=1)],\n"
    "         m: list[str] | None = None,\n"
    "         f: typing.Callable[[int], str] | None = None) -> typing.Literal['a']: return 'a'\n"
    "def call() -> str: return rate(2)",
    "cached_helper": "@functools.lru_cache(maxsize=3)\ndef rate(n): return n + 1\n"
    "def call(): return rate(1)",
    "cached_helper_that_calls_itself": "@functools.cache\n"
    "def fibonacci(n): return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n"
    "def call(): return fibonacci(9)",
    "sentinel": "MISSING = object()\ndef call(n=MISSING): return n is MISSING",
    "lambda_in_set": "RULES = frozenset({len, abs})\ndef call(): return len(RULES)",
    "dispatched_helper": "@functools.singledispatch\ndef show(n): return 'any'\n"
    "@show.register\ndef _(n: int): return 'int'\ndef call(): return show(1)",
    "bound_method": "RATES = {'a': 1}\nget = RATES.get\ndef call(): return get('a')",
    "logger": "import logging\nlog = logging.getLogger('notebook')\n"
    "def call():\n    log.debug('called')\n    return 1",
    "installed_modules": "import json, os.path, math, re\nWORD = re.compile('a+')\n"
    "def call(): return [json.loads('1'), math.pi > 3, os.path.join('a', 'b'), bool(WORD)]",
    "installed_functions": "from json import dumps\nfrom math import sqrt\n"
    "def call(): return [dumps(1), sqrt(4), float(np.mean([1, 2])), int(np.add(1, 2))]",
    "installed_classes": "from collections import Counter\nfrom pathlib import Path\n"
    "COUNTS = Counter('aab')\nROOT = Path('a')\ndef call(): return [COUNTS['a'], str(ROOT)]",
    "context_manager": "import contextlib\n@contextlib.contextmanager\ndef opened():\n    yield 1\n"
    "def call():\n    with opened() as n: return n",
    "array": "A = np.arange(6.0).reshape(2, 3)\ndef call(): return float(A.sum())",
    "array_of_objects": "A = np.array([1, 'a', None], dtype=object)\ndef call(): return len(A)",
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
    "series": "S = pd.Series(['a', 'b'], name='s')\ndef call(): return S.name",
}  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of its own engine."""
    with Client.local(tmp_path_factory.mktemp("data"), sandbox=True) as made:
        yield made


def run_cell(space: dict[str, Any], source: str) -> None:
    """Run a cell."""
    exec(compile(textwrap.dedent(source), "<cell>", "exec"), space)


def define(source: str) -> dict[str, Any]:
    """Run a cell in a new namespace, as a new kernel does."""
    space: dict[str, Any] = {"__name__": "__main__"}
    run_cell(space, PREAMBLE)
    run_cell(space, source)
    return space


def define_all() -> dict[str, Callable[..., object]]:
    """The functions of the cells that do not change, each in a namespace of its own."""
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


@dataclass
class Change:
    """The value of a node before and after a change, and what a plain call returned then."""

    node_before: Any
    value_before: object
    node_after: Any
    value_after: object


@pytest.fixture(scope="module")
def changes(client: Client) -> Iterator[dict[str, Change]]:
    """All changes, each in a namespace of its own."""
    spaces = {name: define(before) for name, (before, _) in CHANGES.items()}
    original = colorsys.rgb_to_hsv
    before = run_all(client, {name: space["call"] for name, space in spaces.items()})
    values = {name: as_json(space["call"]()) for name, space in spaces.items()}
    for name, (_, change) in CHANGES.items():
        run_cell(spaces[name], change)
    after = run_all(client, {name: space["call"] for name, space in spaces.items()})
    yield {
        name: Change(before[name], values[name], after[name], as_json(space["call"]()))
        for name, space in spaces.items()
    }
    colorsys.rgb_to_hsv = original


def as_json(value: object) -> object:
    """Return a value as a node passes it on."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", CHANGES)
def test_notices_a_change(changes: dict[str, Change], name: str) -> None:
    """Given a change in what a cached function reads, then the node returns what a call returns."""
    change = changes[name]
    assert change.value_before != change.value_after, "the change is none"
    assert (change.node_before.error, change.node_after.error) == (None, None)
    assert change.node_before.value == change.value_before
    assert change.node_after.value == change.value_after


@pytest.fixture(scope="module")
def repeats(client: Client) -> list[Any]:
    """The cells that do not change, each run twice in two namespaces: one after the other."""
    found = []
    for _ in range(2):
        functions = define_all()
        found += [run_all(client, functions) for _ in range(2)]
    return found


@pytest.mark.parametrize("name", UNCHANGED)
def test_finds_the_result_of_an_unchanged_function(repeats: list[Any], name: str) -> None:
    """Given cells that are run again, also in a new namespace, then the first result is taken."""
    assert [one[name].error for one in repeats] == [None] * 4
    assert [bool(one[name].cached_from) for one in repeats[1:]] == [True] * 3
    assert repeats[3][name].value == define(UNCHANGED[name])["call"]()


# What a later process does with the unchanged cells: it prints those whose result it does not find.
LATER = """
import sys
from tests.functions.test_noticed_changes import UNCHANGED, define_all, run_all
from toolkit import Client
with Client.local(sys.argv[1], sandbox=True) as client:
    done = run_all(client, define_all())
    print([name for name in UNCHANGED if not done[name].cached_from])
"""


@pytest.mark.usefixtures("fork_programs")
def test_finds_unchanged_results_in_a_new_process(tmp_path: Path) -> None:
    """Given results of the unchanged cells, then another process calls none of them."""
    with Client.local(tmp_path, sandbox=True) as client:
        run_all(client, define_all())
    command = [sys.executable, "-c", LATER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_a_module_counts_as_it_is_loaded(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a module that is edited, then its new code counts once it is loaded, and not before."""
    file = tmp_path / "own_rates.py"
    file.write_text("RATE = 1\ndef scale(n): return n * RATE\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delitem(sys.modules, "own_rates", raising=False)
    space: dict[str, Any] = {"__name__": "__main__"}
    run_cell(space, "import own_rates\ndef call(): return own_rates.scale(3)")
    assert run(client, space["call"]).value == 3
    file.write_text("RATE = 20\ndef scale(n): return n * RATE\n")
    assert run(client, space["call"]).value == space["call"]() == 3
    importlib.reload(space["own_rates"])
    node = run(client, space["call"])
    assert (node.value, node.cached_from) == (60, None)
    space["own_rates"].RATE = 5
    assert run(client, space["call"]).value == 15
    del sys.modules["own_rates"]


def test_an_import_within_a_function_counts(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a function that imports a module of the caller's, then a change of it is noticed."""
    file = tmp_path / "own_steps.py"
    file.write_text("STEPS = [1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    space: dict[str, Any] = {"__name__": "__main__"}
    run_cell(space, "def call():\n    from own_steps import STEPS\n    return len(STEPS)")
    assert [run(client, space["call"]).value for _ in range(2)] == [1, 1]
    sys.modules["own_steps"].STEPS.append(2)
    assert run(client, space["call"]).value == 2
    del sys.modules["own_steps"]


def test_a_change_during_a_call_is_noticed(client: Client, tmp_path: Path) -> None:
    """Given a value that changes while a function runs, then its result is not kept for either."""
    space: dict[str, Any] = {"__name__": "__main__"}
    run_cell(
        space,
        "RATE = 1\ndef call(gate):\n    with open(gate) as file: file.read()\n    return RATE",
    )
    gates = [tmp_path / "first", tmp_path / "second"]
    gates[1].write_text("")
    os.mkfifo(gates[0])
    wf = Workflow("changing")
    wf.add("call", space["call"], gate=str(gates[0]), cache=True)
    handle = client.workflows.submit(wf)
    with gates[0].open("w"):
        space["RATE"] = 2
    assert handle.wait(progress=False)["call"].value == 2
    space["RATE"] = 1
    gates[0].unlink()
    gates[0].write_text("")
    wf = Workflow("changed back")
    wf.add("call", space["call"], gate=str(gates[0]), cache=True)
    node = client.workflows.submit(wf).wait(progress=False)["call"]
    assert (node.value, node.cached_from) == (1, None)


def test_a_call_may_fill_a_cached_property(tmp_path: Path) -> None:
    """Given a `cached_property` that a call fills, then a new kernel finds the result."""
    source = (
        "class Rates:\n    @functools.cached_property\n    def n(self): return [1]\n"
        "RATES = Rates()\ndef call(): return RATES.n"
    )
    for is_cached in (False, True):
        with Client.local(tmp_path, sandbox=True) as client:
            node = run(client, define(source)["call"])
            assert (node.value, bool(node.cached_from)) == ([1], is_cached)


def test_warns_once_of_what_cannot_be_digested(client: Client) -> None:
    """Given a function that reads several opaque objects, then one warning names all of them."""
    space: dict[str, Any] = {"__name__": "__main__"}
    run_cell(space, "import threading\nA, B = threading.Lock(), iter([1])\ndef call(): A, B")
    with pytest.warns(UserWarning, match="cannot see into") as caught:
        Workflow("opaque").add("call", space["call"], cache=True)
    assert len(caught) == 1
    assert "`A` (lock)" in str(caught[0].message)
    assert "`B` (list_iterator)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_filled_cache_of_an_earlier_state_counts_as_new(client: Client) -> None:
    """Given a `functools.cache` filled before its function changed, then it hides no change."""
    space = define("RATE = 1\n@functools.cache\ndef rate(): return RATE\ndef call(): return rate()")
    assert run(client, space["call"]).value == 1
    space["RATE"] = 2
    assert run(client, space["call"]).value == 1  # what the cache of the kernel has
    space["rate"].cache_clear()
    assert run(client, space["call"]).value == 2


def test_equal_functions_are_each_called(client: Client) -> None:
    """Given functions that close over equal lists, then each reads its own, also if it changes."""

    def make(steps: list[int]) -> Callable[[], int]:
        return lambda: sum(steps)

    first, second = [1], [1]
    wf = Workflow("equal")
    wf.add("first", make(first), cache=True)
    wf.add("second", make(second), cache=True)
    second.append(5)
    done = client.workflows.submit(wf).wait(progress=False)
    assert (done["first"].value, done["second"].value) == (1, 6)
