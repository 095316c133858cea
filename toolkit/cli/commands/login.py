"""The commands `toolkit login`, `logout`, `profiles` and `whoami`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from toolkit.cli import local_completion
from toolkit.cli.options import existing_command
from toolkit.cli.output import ClientOutput, escape_controls, print_json, print_note, print_rows
from toolkit.cli.target import AsJson, Target
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.profiles.files import (
    Profile,
    ProfileError,
    delete_profile,
    get_profile_path,
    iterate_profiles,
    read_profile,
    write_profile,
)
from toolkit.profiles.secret import Secret, find_key_fault

if TYPE_CHECKING:
    from toolkit.contract.account import CallerAccount

KEY_PREFIX = "sk_live_"
PROFILE_COLUMNS = ("active", "name", "base_url", "account", "key_in", "problem")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
SOURCE_OPTIONS = {"address": "--base-url", "key": "--api-key-env", "profile": "--profile"}

ProfileName = Annotated[
    str | None,
    Option(
        "--profile",
        help="Name of the profile; TOOLKIT_PROFILE by default, else `default`.",
        autocompletion=local_completion.profiles,
    ),
]


def login(
    url: Annotated[
        str | None, Argument(help="Address of the server; by default the address of the profile.")
    ] = None,
    profile: ProfileName = None,
    key_store: Annotated[
        Literal["auto", "keyring", "file"],
        Option(help="Storage of the key: the system's keyring, a file, or the first that works."),
    ] = "auto",
    cacert: Annotated[
        Path | None,
        Option(
            help="Trust the certificates in this file (PEM), too, and store its path"
            " in the profile; or set SSL_CERT_FILE."
        ),
    ] = None,
) -> None:
    """Store a server's address and your key for it as a profile, if the server accepts the key.

    The prompt does not show the key; if stdin is no terminal, the key is read from stdin.
    """
    name = _choose_name(profile)
    before = _find_profile(name)
    address = _check_address(name, url, before)
    kept_cacert = before.cacert if before is not None else None
    authority = str(cacert.absolute()) if cacert is not None else kept_cacert
    key = _ask_key(address)
    account = _check_key(address, key, authority)
    record = _make_profile(name, address, key, account, key_store, authority)
    try:
        write_profile(name, record)
    except OSError:
        _delete_entry(name, record)
        raise
    if before is not None and before.key_in == "keyring" and record.key_in == "file":
        _delete_entry(name, before)
    _print_login(name, record, account)


def logout(profile: ProfileName = None) -> None:
    """Forget a profile and its key here; the key itself stays valid until it is revoked."""
    name = _choose_name(profile)
    record = _find_profile(name)
    delete_profile(name)
    if record is None:
        print(f"Logged out: the profile `{name}` is deleted.")
        return
    print(escape_controls(f"Logged out of {record.base_url}: the profile `{name}` is deleted."))
    if not _delete_entry(name, record):
        print_note(
            f"The system's keyring could not be reached: the key of `{name}` is still there."
        )
    if record.key_id:
        print_note(f"The key is still valid; `toolkit keys revoke {record.key_id}` ends it.")


def profiles(as_json: AsJson = False) -> None:
    """List the profiles, and which one is active; keys are not shown."""
    from toolkit.profiles.resolution import PROFILE_VARIABLE, choose_profile, names_server

    choice = choose_profile(None, None) if names_server() else None
    active = choice[0] if choice else None
    rows = []
    for name, record in iterate_profiles():
        row: dict[str, object] = {"name": name, "active": name == active}
        if isinstance(record, Profile):
            row |= record.to_dict()
        else:
            row |= {"problem": record.message}
        rows.append(row)
    if as_json:
        print_json(rows)
    elif rows:
        table = [{**row, "active": "*" if row["active"] else ""} for row in rows]
        columns = [name for name in PROFILE_COLUMNS if any(row.get(name) for row in table)]
        print_rows(table, [name for name in PROFILE_COLUMNS if name in columns])
    else:
        print_note("There are no profiles. Create a profile: `toolkit login URL`.")
    if not _note_override() and active is not None and active not in [row["name"] for row in rows]:
        print_note(f"{PROFILE_VARIABLE} names `{active}`, but there is no such profile.")


@existing_command
def whoami(shell: ClientOutput) -> None:
    """Show the account of the key, its rights, the server, and the source of each of these."""
    shell.print_record(_collect_identity(shell))
    access = shell.client.access
    if access.key_from == "profile" and os.environ.get("TOOLKIT_API_KEY"):
        shell.print_note("TOOLKIT_API_KEY is set and not used: a profile has a key of its own.")


def _collect_identity(shell: ClientOutput) -> dict[str, Any]:
    """Ask the service who the caller is, and add the sources of address and key.

    `key` is the key's name. `address` is None for an embedded engine. `data_dir` is None for a
    server and for an engine in a temporary folder.
    """
    account, health = shell.read("/account"), shell.client.read("/health", max_wait_s=0.0)
    access, key = shell.client.access, account.get("key") or {}
    is_embedded = access.data_dir is not None
    folder, folder_from = (
        _find_data_dir(shell.target, access.data_dir) if is_embedded else (None, None)
    )
    return {
        "account": account["email"],
        "account_id": account["id"],
        "key": key.get("name"),
        "key_id": None if is_embedded else key.get("id"),
        "last4": key.get("last4"),
        "scopes": key.get("scopes", []),
        "world": "sandbox" if health["sandbox"] else "live",
        "address": None if is_embedded else access.server,
        "address_from": None
        if is_embedded
        else _format_source("address", access.address_from, access.profile),
        "data_dir": None if folder is None else str(folder),
        "data_dir_from": folder_from,
        "key_from": "this process"
        if is_embedded
        else _format_source("key", access.key_from, access.profile),
        "profile": access.profile,
        "profile_from": _format_source("profile", access.profile_from, access.profile),
    }


def _format_source(what: str, source: str | None, profile: str | None) -> str | None:
    """Format a source for people: the name of an option, a variable or a profile; None stays."""
    if source == "given":
        return SOURCE_OPTIONS[what]
    return f"profile {profile}" if source == "profile" else source


def _find_data_dir(target: Target | None, folder: Path | None) -> tuple[Path | None, str | None]:
    """Return the embedded engine's folder and its source, or None for a temporary folder."""
    from toolkit.settings import Settings

    if target is None or target.data_dir is not None:
        return folder, "--data-dir"
    settings = Settings()
    if folder is None or folder.resolve() != settings.data_dir.resolve():
        return None, None
    if "TOOLKIT_DATA_DIR" in os.environ:
        return folder, "TOOLKIT_DATA_DIR"
    return folder, "toolkit.toml" if "data_dir" in settings.model_fields_set else "default"


def _choose_name(option: str | None) -> str:
    from toolkit.profiles.resolution import DEFAULT_PROFILE, PROFILE_VARIABLE

    name = option or os.environ.get(PROFILE_VARIABLE, "").strip() or DEFAULT_PROFILE
    get_profile_path(name)  # rejects an invalid name
    return name


def _find_profile(name: str) -> Profile | None:
    """Read a profile. Returns None if it is unusable, because the caller replaces or deletes it."""
    try:
        return read_profile(name)
    except ProfileError:
        return None


def _check_address(name: str, url: str | None, before: Profile | None) -> str:
    """Return the address to log in at, without `/v1`.

    Raises:
        RequestError: `INVALID_REQUEST` if the address is missing, invalid, or has a user, query or
        fragment; `CONFLICT` if the profile belongs to another address.
    """
    import httpx

    from toolkit.profiles.resolution import parse_address

    if url is None:
        if before is None:
            raise ProfileError(
                ErrorCode.INVALID_REQUEST,
                "Give the server's address: `toolkit login https://toolkit.example.org`.",
            )
        return before.base_url
    address = parse_address(url).removesuffix("/v1")
    parsed = httpx.URL(address)
    if parsed.userinfo or parsed.query or parsed.fragment:  # not echoed: it may be a secret
        raise ProfileError(
            ErrorCode.INVALID_REQUEST,
            "The address has a user, password, query or fragment: give only scheme, host and path.",
        )
    if before is not None and parse_address(before.base_url) != parse_address(address):
        raise ProfileError(
            ErrorCode.CONFLICT,
            f"The profile `{name}` belongs to {before.base_url}: name another"
            f" profile with --profile, or run `toolkit logout --profile {name}`"
            " first.",
        )
    if parsed.scheme == "http" and parsed.host not in LOOPBACK_HOSTS:
        print_note(
            f"The connection to {parsed.host} is not encrypted, so others can read"
            " the key: use https://."
        )
    return address


def _ask_key(address: str) -> Secret:
    """Ask for the key on the terminal, without showing it, or read it from stdin.

    Raises:
        RequestError: `UNAUTHENTICATED` without a key, and for a key of another service.
    """
    from getpass import getpass

    is_terminal = sys.stdin.isatty()
    key = Secret((getpass(f"Key for {address}: ") if is_terminal else sys.stdin.readline()).strip())
    text = key.get_secret_value()
    if not text:
        raise ProfileError(
            ErrorCode.UNAUTHENTICATED,
            "No key was given: type it when asked, or send it to stdin"
            " (`toolkit login URL < key.txt`).",
        )
    # A key of another service must not travel to this service.
    if not text.startswith(KEY_PREFIX) or find_key_fault(key) is not None:
        raise ProfileError(
            ErrorCode.UNAUTHENTICATED,
            "This is not a key of this service, whose keys begin with"
            f" {KEY_PREFIX}, so it was not sent: copy it again.",
        )
    return key


def _check_key(address: str, key: Secret, cacert: str | None) -> "CallerAccount":
    """Ask the server for the account of a key.

    Raises:
        RequestError: `UNAUTHENTICATED` if the server rejects the key.
        ServiceError: `UNAVAILABLE` if the server cannot be reached.
    """
    from toolkit.client import Client

    with Client(address, key.get_secret_value(), max_wait_s=0, cacert=cacert) as client:
        try:
            return client.account.get()
        except RequestError as error:
            if error.code is not ErrorCode.UNAUTHENTICATED or error.message != error.code.hint:
                raise
            raise ProfileError(
                ErrorCode.UNAUTHENTICATED,
                f"{address} rejected the key (mistyped, revoked or expired), so"
                " nothing was stored: copy the key again, or create a new key with"
                " `toolkit keys create`.",
            ) from None


def _make_profile(
    name: str,
    address: str,
    key: Secret,
    account: "CallerAccount",
    key_store: str,
    cacert: str | None,
) -> Profile:
    """Put the key into the keyring if that is selected and works; make the profile.

    Raises:
        RequestError: `INVALID_REQUEST` if the keyring was selected and does not work.
    """
    from toolkit.profiles.keyring_store import store_key

    in_keyring = key_store != "file" and store_key(name, address, key)
    if key_store == "keyring" and not in_keyring:
        raise ProfileError(
            ErrorCode.INVALID_REQUEST,
            "The system's keyring does not work here: install"
            " capability-toolkit[keyring] and unlock it, or use --key-store file.",
        )
    return Profile(
        base_url=address,
        account=account.email,
        key_id=account.key.id,
        key_in="keyring" if in_keyring else "file",
        api_key=None if in_keyring else key,
        cacert=cacert,
    )


def _delete_entry(name: str, record: Profile) -> bool:
    from toolkit.profiles.keyring_store import delete_key

    return record.key_in != "keyring" or delete_key(name, record.base_url)


def _print_login(name: str, record: Profile, account: "CallerAccount") -> None:
    from toolkit.profiles.resolution import choose_profile

    key = account.key
    suffix = f" with the key {key.name or key.id} ({', '.join(key.scopes)})"
    print(escape_controls(f"Logged in at {record.base_url} as {account.email}{suffix}."))
    place = "the system's keyring" if record.key_in == "keyring" else str(get_profile_path(name))
    print(escape_controls(f"The key of the profile `{name}` is stored in {place}."))
    choice = choose_profile(None, None)
    if choice is None or choice[0] != name:
        print_note(f"Use it with --profile {name}, or TOOLKIT_PROFILE={name}.")
    _note_override()


def _note_override() -> bool:
    """Print a note if a variable overrides profiles; return whether it does."""
    from toolkit.profiles.resolution import BASE_URL_VARIABLE

    if not os.environ.get(BASE_URL_VARIABLE):
        return False
    print_note(
        f"{BASE_URL_VARIABLE} is set, and overrides every profile that --profile does not name."
    )
    return True
