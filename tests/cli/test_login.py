"""Profiles: written by `toolkit login`, used by commands, clients and magics."""

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
from typer.testing import Result

from tests.cli.conftest import EMAIL
from tests.cli.test_completion import get_completions
from tests.conftest import Server
from tests.support.commands import run_toolkit
from toolkit import Client, RequestError, ServiceError, ToolkitError

Login = Callable[..., Result]
ELSEWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the keyring of the user who runs the tests."""
    monkeypatch.setattr("toolkit.profiles.keyring_store.find_keyring", lambda: None)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def toolkit(*line: str, key: str | None = None) -> Result:
    """Run a command, with a key on its stdin; check that no output shows a key."""
    result = run_toolkit(*line, input=key)
    if isinstance(result.exception, ToolkitError):
        assert len(str(result.exception).splitlines()) == 1
        frames = "".join(traceback.format_exception(result.exception))
        assert not (key and key.startswith("sk")) or key.strip() not in frames
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "sk_live_" not in result.output.replace("with sk_live_,", "")
    return result


def get_output(result: Result) -> str:
    """Return the output of a command, or its error."""
    is_error = isinstance(result.exception, ToolkitError)
    return str(result.exception) if is_error else result.output


@pytest.fixture
def login(config: Path, service: Server, key: str) -> Login:
    """Log in at the server."""

    def log_in(*options: str, url: str | None = None, other_key: str | None = None) -> Result:
        return toolkit("login", url or service.url, *options, key=f"{other_key or key}\n")

    return log_in


def test_login_serves_commands_and_clients(
    login: Login, service: Server, key: str, config: Path
) -> None:
    """Given a login, then commands, clients and `whoami` use it, and only the owner can read it."""
    result = login()
    assert result.exit_code == 0, get_output(result)
    assert f"Logged in at {service.url} as {EMAIL}" in result.stdout
    path = config / "default.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(config.stat().st_mode) == 0o700
    assert [profile.name for profile in config.iterdir()] == ["default.json"]
    access = json.loads(toolkit("whoami", "--json").stdout)
    assert (access["account"], access["address"], access["world"]) == (
        EMAIL,
        service.url,
        "sandbox",
    )
    assert access["scopes"] == ["read", "write", "admin"]
    assert (access["profile"], access["profile_from"]) == ("default", "default")
    assert (access["address_from"], access["key_from"]) == ("profile default",) * 2
    assert access["last4"] == key[-4:]
    with Client() as client:
        assert client.account.get().email == EMAIL
        for text in (repr(client), repr(client.access), str(vars(client._http))):
            assert key not in text


def test_whoami_names_the_key(login: Login, service: Server, key: str) -> None:
    """Given a key with a name and a scope, then `whoami` reports both."""
    with Client(service.url, key) as client:
        night_key = client.api_keys.create(name="nightly", scopes=["read"])
    assert "nightly (read)" in login("--profile", "night", other_key=night_key.api_key).stdout
    access = json.loads(toolkit("whoami", "--profile", "night", "--json").stdout)
    assert (access["key"], access["key_id"], access["scopes"]) == (
        "nightly",
        night_key.id,
        ["read"],
    )
    assert (access["profile_from"], access["key_from"]) == ("--profile", "profile night")
    assert "nightly" in toolkit("whoami", "--profile", "night").stdout


def test_whoami_names_the_data_directory(config: Path) -> None:
    """Given no login, then `whoami` reports the data directory, its source, and the sandbox."""
    access = json.loads(toolkit("whoami", "--sandbox", "--json").stdout)
    assert (access["world"], access["address"], access["profile"]) == ("sandbox", None, None)
    assert access["data_dir"] is None
    toolkit("run", "composition.layout", "title=Tea", "--data-dir", "here", "--sandbox", "-q")
    access = json.loads(toolkit("whoami", "--data-dir", "here", "--sandbox", "--json").stdout)
    assert (access["data_dir_from"], access["world"]) == ("--data-dir", "sandbox")
    assert access["data_dir"].endswith("here")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n", "No key was given"),
        ("sk-proj-c0ffee5d41402abc4b2a76\n", "was not sent"),
        ("sk_live_" + "x" * 43 + "\n", "rejected the key"),
    ],
)
def test_rejects_an_invalid_key(config: Path, service: Server, text: str, says: str) -> None:
    """Given no key, another service's key or an unknown key, then nothing is stored."""
    result = toolkit("login", service.url, key=text)
    assert result.exit_code == 1
    assert says in get_output(result)
    assert text.strip() == "" or text.strip() not in get_output(result)
    assert not config.exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://secret@a.test", "only scheme"),
        ("https://a.test/?token=secret", "only scheme"),
        ("a.test", "no scheme"),
    ],
)
def test_rejects_an_address_with_more_than_an_origin(config: Path, url: str, says: str) -> None:
    """Given an address with a secret, or without a scheme, then the error does not repeat it."""
    result = toolkit("login", url, key="sk_live_x\n")
    assert says in get_output(result)
    assert "secret" not in get_output(result)


def test_profile_belongs_to_one_address(login: Login, service: Server) -> None:
    """Given a profile, then a login by its name renews it, and no login moves it elsewhere."""
    login("--profile", "team")
    moved = login("--profile", "team", url=ELSEWHERE)
    assert f"belongs to {service.url}" in get_output(moved)
    with Client(service.url, "") as client:
        bobs_key = client.account.create("bob@example.org").api_key
    renewed = toolkit("login", "--profile", "team", key=bobs_key)
    assert "bob@example.org" in renewed.stdout
    assert "Give the server's address" in get_output(
        toolkit("login", "--profile", "new", key="sk_live_x")
    )


def test_lists_profiles_without_keys(
    login: Login, service: Server, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given profiles, then the list marks the active profile, and explains unusable profiles."""
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
    last_line = toolkit("profiles").stdout.splitlines()[-1]
    assert last_line.split()[:2] == ["*", "torn"]
    monkeypatch.setenv("TOOLKIT_BASE_URL", service.url)
    assert "overrides every profile" in get_output(toolkit("profiles"))


def test_explains_an_unusable_profile(login: Login, config: Path) -> None:
    """Given a missing, open, torn or unreadable profile, then one line names the next step."""
    login("--profile", "team")
    for name, says in (("taem", "did you mean `team`?"), ("Team", "lower-case")):
        assert says in get_output(toolkit("whoami", "--profile", name))
        with pytest.raises(RequestError, match=says.replace("?", r"\?")):
            Client(profile=name)
    path = config / "team.json"
    for mode in (0o640, 0o604, 0o620):
        path.chmod(mode)
        assert f"chmod 600 {path}" in get_output(toolkit("runs", "--profile", "team"))
    path.chmod(0o600)
    path.write_text("{}", encoding="utf-8")
    assert "toolkit login URL --profile team" in get_output(toolkit("runs", "--profile", "team"))
    path.unlink()
    path.mkdir()
    assert "cannot be read (Is a directory)" in get_output(toolkit("runs", "--profile", "team"))


def test_revoked_key_names_the_login_command(login: Login, service: Server, key: str) -> None:
    """Given a revoked key, then one line names the profile and the command."""
    with Client(service.url, key) as client:
        brief = client.api_keys.create(name="brief")
        login("--profile", "team", other_key=brief.api_key)
        client.api_keys.delete(brief.id)
    message = get_output(toolkit("runs", "--profile", "team"))
    assert f"`toolkit login {service.url} --profile team`" in message
    with Client(profile="team") as client, pytest.raises(RequestError) as error_info:
        client.runs.list()
    assert str(error_info.value) == message
    assert error_info.value.request_id


def test_logout_deletes_the_key(login: Login, config: Path) -> None:
    """Given a logout, then no profile is left, and the output names the next command."""
    login()
    result = toolkit("logout")
    assert "toolkit keys revoke key_" in get_output(result)
    assert list(config.iterdir()) == []
    assert "There is no profile" in get_output(toolkit("logout"))
    with pytest.raises(ServiceError, match="toolkit login"):
        Client()


@pytest.mark.parametrize(
    ("arguments", "environ", "address", "source"),
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
def test_address_and_key_follow_the_documented_order(
    login: Login,
    service: Server,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, str],
    environ: dict[str, str],
    address: str,
    source: tuple[str, str | None],
) -> None:
    """Given several sources of an address and a key, then the order of the docs decides."""
    login()
    login("--profile", "team")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with Client(**arguments) as client:  # type: ignore[arg-type]
        access = client.access
    assert access.server == (service.url if address == "served" else address)
    assert (access.address_from, access.key_from) == source
    sent = access.api_key and access.api_key.get_secret_value()
    assert (sent == key) == (source[1] == "profile")


def test_sends_a_key_only_to_its_own_address(login: Login, service: Server) -> None:
    """Given a profile and another address, then the request is rejected; its own address works."""
    login("--profile", "team")
    with pytest.raises(RequestError, match="may be sent only to"):
        Client(ELSEWHERE, profile="team")
    result = toolkit("runs", "--profile", "team", "--base-url", ELSEWHERE)
    assert "may be sent only to" in get_output(result)
    with Client(f"{service.url}/v1/", profile="team") as client:
        assert client.account.get().email == EMAIL
    assert toolkit("runs", "--profile", "team", "--data-dir", "here").exit_code == 2


@pytest.mark.parametrize("nearer", ["TOOLKIT_SANDBOX", "TOOLKIT_DATA_DIR", "toolkit.toml"])
def test_local_settings_override_the_default_profile(
    login: Login, monkeypatch: pytest.MonkeyPatch, nearer: str
) -> None:
    """Given settings of a local engine, then only a profile that is named is used."""
    login()
    if nearer == "toolkit.toml":
        Path("toolkit.toml").write_text('data_dir = "mine"\n', encoding="utf-8")
    else:
        monkeypatch.setenv(nearer, {"TOOLKIT_SANDBOX": "true"}.get(nearer, "mine"))
    assert json.loads(toolkit("whoami", "--json").stdout)["address"] is None
    assert json.loads(toolkit("profiles", "--json").stdout)[0]["active"] is False
    monkeypatch.setenv("TOOLKIT_PROFILE", "default")
    assert json.loads(toolkit("whoami", "--json").stdout)["profile_from"] == "TOOLKIT_PROFILE"


def test_completes_profile_names(login: Login) -> None:
    """Given the start of a name, then profiles complete it."""
    login("--profile", "team")
    login("--profile", "night")
    assert get_completions("runs list --profile te") == ["team"]


def test_notebook_uses_profiles(
    login: Login, service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a login, then the first magic, and `%connect --profile`, use it."""
    from IPython.core.interactiveshell import InteractiveShell

    login("--profile", "team")
    shell = InteractiveShell()
    try:
        shell.run_cell("%load_ext toolkit").raise_error()
        client: Any = shell.run_cell("%connect --profile team").result
        assert client.access.server == service.url
        del shell.user_ns["toolkit_client"]
        monkeypatch.setenv("TOOLKIT_PROFILE", "team")
        shell.run_cell("%capabilities").raise_error()
        assert shell.user_ns["toolkit_client"].access.profile == "team"
        client.close()
        shell.user_ns["toolkit_client"].close()
    finally:
        shell.atexit_operations()
        atexit.unregister(shell.atexit_operations)


@pytest.mark.usefixtures("fork_programs")
def test_terminal_does_not_show_a_typed_key(config: Path, service: Server, key: str) -> None:
    """Given a terminal, then the key is typed at a prompt, and no part of it is shown."""
    terminal, typed_at = pty.openpty()
    line = [sys.executable, "-m", "toolkit", "login", service.url, "--profile", "team"]
    process = subprocess.Popen(
        line, stdin=typed_at, stdout=subprocess.PIPE, stderr=typed_at, start_new_session=True
    )
    os.close(typed_at)
    screen = b""
    while b"Key for" not in screen:
        screen += os.read(terminal, 1024)
    os.write(terminal, f"{key}\n".encode())
    out, _ = process.communicate()
    os.set_blocking(terminal, False)
    with suppress(OSError):  # nothing more was shown
        screen += os.read(terminal, 65536)
    os.close(terminal)
    assert process.returncode == 0
    assert EMAIL in out.decode()
    assert key.encode() not in screen + out
    assert (config / "team.json").exists()
