"""Examples for `code.yaml`: a line below `ruleid` is found, one below `ok` is left alone."""

import decimal
import importlib
import pkgutil
import re
import string

import yaml

# ruleid: no-unpickling
import pickle

# ruleid: no-unpickling
from marshal import loads

# ruleid: no-template-engines
import jinja2

# ruleid: no-template-engines
from jinja2.sandbox import SandboxedEnvironment

# ruleid: no-template-engines
from string import Template

_EXPORTS = {"Client": "toolkit.local"}


def evaluated(text: str) -> None:
    # ruleid: no-evaluated-code
    eval(text)
    # ruleid: no-evaluated-code
    exec(text)
    # ruleid: no-evaluated-code
    compile(text, "", "exec")
    # ok: no-evaluated-code
    re.compile(text)
    # ok: no-evaluated-code
    runner.exec(text)


def unpickled(frame, path) -> None:
    # ruleid: no-unpickling
    frame.read_pickle(path)
    # ok: no-unpickling
    json.loads(path)


def read(text: str) -> None:
    # ruleid: no-unsafe-yaml
    yaml.load(text)
    # ruleid: no-unsafe-yaml
    yaml.load(text, Loader=yaml.Loader)
    # ruleid: no-unsafe-yaml
    yaml.unsafe_load(text)
    # ok: no-unsafe-yaml
    yaml.load(text, Loader=yaml.SafeLoader)
    # ok: no-unsafe-yaml
    yaml.safe_load(text)


def rendered(text: str) -> None:
    # ruleid: no-template-engines
    string.Template(text)
    # ok: no-template-engines
    f"{text}"


def imported(name: str, resources, module) -> None:
    # ruleid: no-import-of-data
    importlib.import_module(name)
    # ruleid: no-import-of-data
    importlib.import_module(f"toolkit.{name}")
    # ruleid: no-import-of-data
    __import__(name)
    # ruleid: no-import-of-data
    pkgutil.resolve_name(name)
    # ok: no-import-of-data
    importlib.import_module("botocore.auth")
    # ok: no-import-of-data
    importlib.import_module(f"{__name__}.{name}")
    # ok: no-import-of-data
    importlib.import_module(f"{resources.__name__}.{module.name}")
    # ok: no-import-of-data
    importlib.import_module(_EXPORTS[name])


def money(number: float, amount: decimal.Decimal, cost_usd: decimal.Decimal, batch: str) -> None:
    # ruleid: no-inexact-money
    decimal.Decimal(str(number))
    # ruleid: no-inexact-money
    float(cost_usd)
    # ruleid: no-inexact-money
    round(job.cost_usd, 9)
    # ok: no-inexact-money
    to_wire_usd(cost_usd)
    # ok: no-inexact-money
    from_wire_usd(number)
    # ok: no-inexact-money
    float(batch)
