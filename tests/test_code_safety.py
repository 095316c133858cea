"""Stored or received data never becomes code (promise P26): a check of the sources."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.source_trees import PACKAGE, parse_folder

RUNS = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}
# These only write, as in `from marshal import dumps`.
WRITES = {"dump", "dumps"}
TEMPLATES = {"jinja2", "mako", "chevron", "pystache", "django"}
SAFE = {"safe_load", "safe_load_all"}
IMPORTS = {"import_module", "resolve_name", "run_module", "run_path"}


def list_faults(tree: ast.Module) -> list[str]:
    """List the forbidden calls and imports of a module, by line."""
    return [f"{node.lineno}: {what}" for node, what in _find_faults(tree)]


def _find_faults(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield from ((node, why) for why in _find_imports(alias.name, ""))
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    yield from ((node, why) for why in _find_imports(module, alias.name))
            case ast.Call(func=ast.Name(id=name)) if name in RUNS:
                yield node, f"{name}() runs data"
            case ast.Call(func=ast.Attribute(attr="Template")):
                yield node, "a template"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="yaml"), attr=how)) if (
                "load" in how and how not in SAFE and not _is_safe(node)
            ):
                yield node, f"yaml.{how}() makes objects of any class"
            case ast.Call(func=ast.Name(id=how) | ast.Attribute(attr=how), args=[name, *_]) if (
                how in IMPORTS and not _is_ours(name)
            ):
                yield node, f"{how}() of a name that is not constant"


def _find_imports(module: str, name: str) -> Iterator[str]:
    top = module.partition(".")[0]
    if top in UNPICKLES and name not in WRITES:
        yield f"{top} runs what it reads"
    if top in TEMPLATES or (module, name) == ("string", "Template"):
        yield f"{top} renders templates"


def _is_safe(call: ast.Call) -> bool:
    loaders = [
        ast.unparse(argument) for argument in (*call.args[1:], *(k.value for k in call.keywords))
    ]
    return any(loader in ("yaml.SafeLoader", "yaml.CSafeLoader", "_Loader") for loader in loaders)


def _is_ours(name: ast.expr) -> bool:
    """Return whether a module's name is a constant, from a table, or below one of our packages."""
    match name:
        case ast.Constant():
            return True
        case ast.Subscript(value=ast.Name(id=table)):
            return table.isupper()
        case ast.JoinedStr(values=[ast.FormattedValue(value=package), ast.Constant(value="."), *_]):
            return ast.unparse(package).rpartition(".")[2] == "__name__"
    return False


@pytest.mark.parametrize(
    "text",
    [
        "eval(text)",
        "exec(text)",
        "compile(text, '', 'exec')",
        "__import__(name)",
        "import pickle",
        "from marshal import loads",
        "import shelve as kept",
        "from jinja2.sandbox import SandboxedEnvironment",
        "from string import Template",
        "string.Template(text)",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.full_load(text)",
        "yaml.unsafe_load(text)",
        "import_module(name)",
        "importlib.import_module(f'toolkit.{name}')",
        "pkgutil.resolve_name(name)",
    ],
)
def test_check_finds_forbidden_code(text: str) -> None:
    """Given a forbidden line, when it is checked, then it is found."""
    assert len(list_faults(ast.parse(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "re.compile(text)",
        "yaml.safe_load(text)",
        "yaml.load(text, Loader=yaml.SafeLoader)",
        "import_module('botocore.auth')",
        "import_module(f'{__name__}.{name}')",
        "import_module(_EXPORTS[name])",
        "import json",
    ],
)
def test_check_accepts_safe_code(text: str) -> None:
    """Given a safe line, when it is checked, then nothing is found."""
    assert list_faults(ast.parse(text)) == []


def test_package_never_runs_data() -> None:
    """Given every module of the package, then none runs, unpickles, renders or imports data."""
    modules = parse_folder(PACKAGE)
    assert len(modules) > 200
    faults = {
        path.relative_to(PACKAGE).as_posix(): at_fault
        for path, tree in modules.items()
        if (at_fault := list_faults(tree))
    }
    # The user who starts the batch names the modules that kernels import in advance, in their
    # shell.
    assert [line.partition(": ")[2] for line in faults.pop("batch/kernel/_zygote.py")] == [
        "import_module() of a name that is not constant"
    ] * 2
    # The parent of a worker process names the function to call, from its own functions.
    assert [line.partition(": ")[2] for line in faults.pop("workers/serialization.py")] == [
        "import_module() of a name that is not constant"
    ]
    # The module of a client's area has the name of the attribute that holds the area.
    assert [line.partition(": ")[2] for line in faults.pop("client/_client_base.py")] == [
        "import_module() of a name that is not constant"
    ]
    assert faults == {}
