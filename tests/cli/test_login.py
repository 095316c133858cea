"""Profiles: kept by `toolkit login`, used by commands, clients and magics alike."""

import atexit
import json
import os
import pty
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.conftest import EMAIL
from tests.cli.test_completion import get_completions
from tests.conftest import Server
from toolkit import Client, RequestError, ServiceError, ToolkitError
from toolkit.cli import app

Login = Callable[..., Result]
ELSEWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a keyring."""
    monkeypatch.setattr("toolkit.profiles.keyring_store.find_keyring", lambda: None)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def toolkit(*line: str, given: str | None = None) -> Result:
    """Carry a command out, its error on stderr as a person sees it, and no key anywhere."""
    done = CliRunner().invoke(app, line, input=given)
    told = done.output
    if isinstance(done.exception, ToolkitError):
        told = str(done.exception)
        assert len(told.splitlines()) == 1
        frames = "".join(traceback.format_exception(done.exception))
        assert not (given and given.startswith("sk")) or given.strip() not in frames
    elif done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert "sk_live_" not in done.output.replace("with sk_live_,", "")
    done.told = told  # type: ignore[attr-defined]
    return done


def get_output(done: Result) -> str:
    """Return the output of a command, its error included."""
    return str(done.told)  # type: ignore[attr-defined]


@pytest.fixture
def login(config: Path, service: Server, key: str) -> Login:
    """Logs in at the server."""

    def log_in(*options: str, url: str | None = None, given: str | None = None) -> Result:
        return toolkit("login", url or service.url, *options, given=f"{given or key}\n")

    return log_in


def test_who_is_logged_in_works_on_the_server(
    login: Login, service: Server, key: str, config: Path
) -> None:
    """Given a login, then commands, clients and `whoami` use it, and its file is the owner's."""
    done = login()
    assert done.exit_code == 0, get_output(done)
    assert f"Logged in at {service.url} as {EMAIL}" in done.stdout
    kept = config / "default.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(config.stat().st_mode) == 0o700
    assert [path.name for path in config.iterdir()] == ["default.json"]
    shown = json.loads(toolkit("whoami", "--json").stdout)
    assert (shown["account"], shown["address"], shown["world"]) == (EMAIL, service.url, "sandbox")
    assert shown["scopes"] == ["read", "write", "admin"]
    assert (shown["profile"], shown["profile_from"]) == ("default", "default")
    assert (shown["address_from"], shown["key_from"]) == ("profile default",) * 2
    assert shown["last4"] == key[-4:]
    with Client() as client:
        assert client.account.get().email == EMAIL
        for text in (repr(client), repr(client.access), str(vars(client._http))):
            assert key not in text


def test_a_key_is_named_by_whoami(login: Login, service: Server, key: str) -> None:
    """Given a key with a name and a scope, then `whoami` tells both."""
    with Client(service.url, key) as client:
        made = client.api_keys.create(name="nightly", scopes=["read"])
    assert "nightly (read)" in login("--profile", "night", given=made.api_key).stdout
    shown = json.loads(toolkit("whoami", "--profile", "night", "--json").stdout)
    assert (shown["key"], shown["key_id"], shown["scopes"]) == ("nightly", made.id, ["read"])
    assert (shown["profile_from"], shown["key_from"]) == ("--profile", "profile night")
    assert "nightly" in toolkit("whoami", "--profile", "night").stdout


def test_an_engine_right_here_is_told_as_such(config: Path) -> None:
    """Given no login, then `whoami` tells the folder, whoever named it, and the sandbox."""
    shown = json.loads(toolkit("whoami", "--sandbox", "--json").stdout)
    assert (shown["world"], shown["address"], shown["profile"]) == ("sandbox", None, None)
    assert shown["data_dir"] is None
    toolkit("run", "composition.layout", "title=Tea", "--data-dir", "here", "--sandbox", "-q")
    shown = json.loads(toolkit("whoami", "--data-dir", "here", "--sandbox", "--json").stdout)
    assert (shown["data_dir_from"], shown["world"]) == ("--data-dir", "sandbox")
    assert shown["data_dir"].endswith("here")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("\n", "No key was given"),
        ("sk-proj-c0ffee5d41402abc4b2a76\n", "was not sent"),
        ("sk_live_" + "x" * 43 + "\n", "rejected the key"),
    ],
)
def test_a_key_that_is_none_is_not_kept(
    config: Path, service: Server, given: str, says: str
) -> None:
    """Given nothing, another service's key or an unknown one, then nothing is kept."""
    done = toolkit("login", service.url, given=given)
    assert done.exit_code == 1
    assert says in get_output(done)
    assert given.strip() == "" or given.strip() not in get_output(done)
    assert not config.exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://secret@a.test", "only scheme"),
        ("https://a.test/?token=secret", "only scheme"),
        ("a.test", "no scheme"),
    ],
)
def test_an_address_holds_nothing_else(config: Path, url: str, says: str) -> None:
    """Given an address with a secret in it, or none, then it is refused and not repeated."""
    done = toolkit("login", url, given="sk_live_x\n")
    assert says in get_output(done)
    assert "secret" not in get_output(done)


def test_a_profile_is_of_one_address(login: Login, service: Server) -> None:
    """Given a profile, then it is renewed by its name alone, and not moved to another address."""
    login("--profile", "team")
    moved = login("--profile", "team", url=ELSEWHERE)
    assert f"belongs to {service.url}" in get_output(moved)
    with Client(service.url, "") as nobody:
        other = nobody.account.create("bob@example.org").api_key
    renewed = toolkit("login", "--profile", "team", given=other)
    assert "bob@example.org" in renewed.stdout
    assert "Give the server's address" in get_output(
        toolkit("login", "--profile", "new", given="sk_live_x")
    )


def test_profiles_are_listed_without_keys(
    login: Login, service: Server, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given profiles, then the active one is marked, and one that cannot be used says why."""
    assert "toolkit login" in get_output(toolkit("profiles"))
    assert json.loads(toolkit("profiles", "--json").stdout) == []
    login()
    assert "--profile team" in get_output(login("--profile", "team"))
    (config / "team.json").chmod(0o640)
    (config / "torn.json").write_text('{"base_url": "x", "api_key": "sk_live_x"', encoding="utf-8")
    (config / "torn.json").chmod(0o600)
    rows = {row["name"]: row for row in json.loads(toolkit("profiles", "--json").stdout)}
    assert [name for name, row in rows.items() if row["active"]] == ["default"]
    assert (rows["default"]["base_url"], rows["default"]["key_in"]) == (service.url, "file")
    assert "chmod 600" in rows["team"]["problem"]
    assert "toolkit login" in rows["torn"]["problem"]
    monkeypatch.setenv("TOOLKIT_PROFILE", "torn")
    assert [line.split()[:2] for line in toolkit("profiles").stdout.splitlines()][-1] == [
        "*",
        "torn",
    ]
    monkeypatch.setenv("TOOLKIT_BASE_URL", service.url)
    assert "overrides every profile" in get_output(toolkit("profiles"))


def test_what_cannot_be_used_is_told_with_the_next_step(login: Login, config: Path) -> None:
    """Given a missing, an open, a torn and an unreadable profile, then one line tells each."""
    login("--profile", "team")
    for name, says in (("taem", "did you mean `team`?"), ("Team", "lower-case")):
        assert says in get_output(toolkit("whoami", "--profile", name))
        with pytest.raises(RequestError, match=says.replace("?", r"\?")):
            Client(profile=name)
    kept = config / "team.json"
    for mode in (0o640, 0o604, 0o620):
        kept.chmod(mode)
        assert f"chmod 600 {kept}" in get_output(toolkit("runs", "--profile", "team"))
    kept.chmod(0o600)
    kept.write_text("{}", encoding="utf-8")
    assert "toolkit login URL --profile team" in get_output(toolkit("runs", "--profile", "team"))
    kept.unlink()
    kept.mkdir()
    assert "cannot be read (Is a directory)" in get_output(toolkit("runs", "--profile", "team"))


def test_a_revoked_key_says_how_to_log_in_again(login: Login, service: Server, key: str) -> None:
    """Given a key that was revoked, then one line names the profile and the command."""
    with Client(service.url, key) as client:
        made = client.api_keys.create(name="brief")
    login("--profile", "team", given=made.api_key)
    with Client(service.url, key) as client:
        client.api_keys.delete(made.id)
    said = get_output(toolkit("runs", "--profile", "team"))
    assert f"`toolkit login {service.url} --profile team`" in said
    with Client(profile="team") as client, pytest.raises(RequestError) as refused:
        client.runs.list()
    assert str(refused.value) == said
    assert refused.value.request_id


def test_logging_out_forgets_the_key_here(login: Login, config: Path) -> None:
    """Given a logout, then nothing is left, and it is told how the key is ended."""
    login()
    done = toolkit("logout")
    assert "toolkit keys revoke key_" in get_output(done)
    assert list(config.iterdir()) == []
    assert "There is no profile" in get_output(toolkit("logout"))
    with pytest.raises(ServiceError, match="toolkit login"):
        Client()


@pytest.mark.parametrize(
    ("given", "environ", "address", "source"),
    [
        ({"profile": "team"}, {"TOOLKIT_BASE_URL": ELSEWHERE, "TOOLKIT_API_KEY": "sk_live_v"},
         "served", ("profile", "profile")),
        ({"base_url": ELSEWHERE}, {"TOOLKIT_PROFILE": "team"}, ELSEWHERE, ("given", None)),
        ({"base_url": ELSEWHERE}, {"TOOLKIT_API_KEY": "sk_live_v"}, ELSEWHERE,
         ("given", "TOOLKIT_API_KEY")),
        ({}, {"TOOLKIT_BASE_URL": ELSEWHERE, "TOOLKIT_PROFILE": "team"}, ELSEWHERE,
         ("TOOLKIT_BASE_URL", None)),
        ({}, {"TOOLKIT_PROFILE": "team", "TOOLKIT_API_KEY": "sk_live_v"}, "served",
         ("profile", "profile")),
        ({}, {}, "served", ("profile", "profile")),
        ({"api_key": "sk_live_g", "profile": "team"}, {}, "served", ("profile", "given")),
    ],
)  # fmt: skip
def test_the_first_that_names_a_server_decides(
    login: Login,
    service: Server,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    environ: dict[str, str],
    address: str,
    source: tuple[str, str | None],
) -> None:
    """Given several that name a server, then the table of docs decides, for address and key."""
    login()
    login("--profile", "team")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with Client(**given) as client:  # type: ignore[arg-type]
        access = client.access
    assert access.server == (service.url if address == "served" else address)
    assert (access.address_from, access.key_from) == source
    sent = access.api_key and access.api_key.get_secret_value()
    assert (sent == key) == (source[1] == "profile")


def test_a_key_goes_to_its_own_address_alone(login: Login, service: Server) -> None:
    """Given a profile beside another address, then it is refused; beside its own, it is used."""
    login("--profile", "team")
    with pytest.raises(RequestError, match="may be sent only to"):
        Client(ELSEWHERE, profile="team")
    done = toolkit("runs", "--profile", "team", "--base-url", ELSEWHERE)
    assert "may be sent only to" in get_output(done)
    with Client(f"{service.url}/v1/", profile="team") as client:
        assert client.account.get().email == EMAIL
    assert toolkit("runs", "--profile", "team", "--data-dir", "here").exit_code == 2


@pytest.mark.parametrize("nearer", ["TOOLKIT_SANDBOX", "TOOLKIT_DATA_DIR", "toolkit.toml"])
def test_a_folder_of_ones_own_is_nearer_than_the_default(
    login: Login, monkeypatch: pytest.MonkeyPatch, nearer: str
) -> None:
    """Given settings that name an engine right here, then only a profile that is named is used."""
    login()
    if nearer == "toolkit.toml":
        Path("toolkit.toml").write_text('data_dir = "mine"\n', encoding="utf-8")
    else:
        monkeypatch.setenv(nearer, {"TOOLKIT_SANDBOX": "true"}.get(nearer, "mine"))
    assert json.loads(toolkit("whoami", "--json").stdout)["address"] is None
    assert json.loads(toolkit("profiles", "--json").stdout)[0]["active"] is False
    monkeypatch.setenv("TOOLKIT_PROFILE", "default")
    assert json.loads(toolkit("whoami", "--json").stdout)["profile_from"] == "TOOLKIT_PROFILE"


def test_a_shell_is_offered_profiles(login: Login) -> None:
    """Given the beginning of a name, then profiles complete it."""
    login("--profile", "team")
    login("--profile", "night")
    assert get_completions("runs list --profile te") == ["team"]


def test_a_notebook_uses_the_same_profiles(
    login: Login, service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a login, then the first magic, and `%connect --profile`, use it."""
    from IPython.core.interactiveshell import InteractiveShell

    login("--profile", "team")
    shell = InteractiveShell()
    try:
        shell.run_cell("%load_ext toolkit").raise_error()
        chosen: Any = shell.run_cell("%connect --profile team").result
        assert chosen.access.server == service.url
        del shell.user_ns["toolkit_client"]
        monkeypatch.setenv("TOOLKIT_PROFILE", "team")
        shell.run_cell("%capabilities").raise_error()
        assert shell.user_ns["toolkit_client"].access.profile == "team"
        chosen.close()
        shell.user_ns["toolkit_client"].close()
    finally:
        shell.atexit_operations()
        atexit.unregister(shell.atexit_operations)


@pytest.mark.usefixtures("fork_programs")
def test_a_key_is_typed_without_being_shown(config: Path, service: Server, key: str) -> None:
    """Given a terminal, then the key is asked for, and nothing of it is shown."""
    terminal, typed_at = pty.openpty()
    line = [sys.executable, "-m", "toolkit", "login", service.url, "--profile", "team"]
    asking = subprocess.Popen(
        line, stdin=typed_at, stdout=subprocess.PIPE, stderr=typed_at, start_new_session=True
    )
    os.close(typed_at)
    shown = b""
    while b"Key for" not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, f"{key}\n".encode())
    out, _ = asking.communicate()
    os.set_blocking(terminal, False)
    with suppress(OSError):  # nothing more was shown
        shown += os.read(terminal, 65536)
    os.close(terminal)
    assert asking.returncode == 0
    assert EMAIL in out.decode()
    assert key.encode() not in shown + out
    assert (config / "team.json").exists()
