"""The only place that resolves the address and the key of a client.

The first row that applies decides, and its key is used:

| address | key |
|---|---|
| `profile`, given | the profile's |
| `base_url`, given | `TOOLKIT_API_KEY` |
| `TOOLKIT_BASE_URL` | `TOOLKIT_API_KEY` |
| the profile that `TOOLKIT_PROFILE` names | the profile's |
| an embedded engine, if settings name it (commands and magics only) | no key is needed |
| the profile `default` | the profile's |

An explicit key (`api_key`) overrides all of them. A profile's key is sent to no other address.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import httpx

from toolkit.contract.errors import ErrorCode, RequestError, ServiceError
from toolkit.profiles.files import (
    Profile,
    ProfileError,
    format_login_command,
    get_profile_path,
    read_profile,
)
from toolkit.profiles.keyring_store import NoKeyError, load_key
from toolkit.profiles.secret import Secret

BASE_URL_VARIABLE: Final = "TOOLKIT_BASE_URL"
API_KEY_VARIABLE: Final = "TOOLKIT_API_KEY"
PROFILE_VARIABLE: Final = "TOOLKIT_PROFILE"
# The run of a notebook, which a batch sets in the kernels of its workers.
NOTEBOOK_RUN_VARIABLE: Final = "TOOLKIT_NOTEBOOK_RUN"
DEFAULT_PROFILE: Final = "default"

AddressSource = Literal["given", "TOOLKIT_BASE_URL", "profile"]
KeySource = Literal["given", "TOOLKIT_API_KEY", "profile"]
ProfileSource = Literal["given", "TOOLKIT_PROFILE", "default"]


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """The address and the key that a client uses, and the source of each.

    Attributes:
        base_url: address of `/v1`.
        api_key: key of the client, or None if it has no key yet.
        profile: name of the profile that was used.
        data_dir: data directory of an engine in the client's own process.
        cacert: path of a file of additional certificates to trust for the server.
    """

    base_url: str
    address_from: AddressSource = "given"
    api_key: Secret | None = None
    key_from: KeySource | None = None
    profile: str | None = None
    profile_from: ProfileSource | None = None
    data_dir: Path | None = None
    cacert: str | None = None

    @property
    def server(self) -> str:
        """The address without `/v1`, as people give it."""
        return self.base_url.removesuffix("/v1")


def resolve_access(
    base_url: str | None = None, api_key: str | None = None, profile: str | None = None
) -> ServerAccess:
    """Resolve the address and key of a client from its arguments and the environment.

    Raises:
        ServiceError: `UNAVAILABLE` if nothing names a server.
        RequestError: `INVALID_REQUEST` for an invalid address or one that is not the profile's.
            `NOT_FOUND` or `UNAUTHENTICATED` for a profile that cannot be used.
    """
    given_url, given_key = (base_url or "").strip(), (api_key or "").strip()
    selection = choose_profile(given_url, profile)
    if selection is not None:
        name, source = selection
        record = read_profile(name)
        address = parse_address(record.base_url)
        if given_url and parse_address(given_url) != address:
            raise ProfileError(
                ErrorCode.INVALID_REQUEST,
                f"The key of profile `{name}` may be sent only to {record.base_url}: leave out"
                " the base_url or the profile.",
            )
        key = Secret(given_key) if given_key else _load_profile_key(name, record)
        key_from: KeySource = "given" if given_key else "profile"
        return ServerAccess(address, "profile", key, key_from, name, source, cacert=record.cacert)
    url = given_url or os.environ.get(BASE_URL_VARIABLE, "").strip()
    if not url:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "No server is configured: use Client.local() for an engine in this process, name a"
            f" server by base_url= or {BASE_URL_VARIABLE}, or log in once by `toolkit login URL`.",
        )
    text = given_key or os.environ.get(API_KEY_VARIABLE, "").strip()
    return ServerAccess(
        parse_address(url),
        "given" if given_url else BASE_URL_VARIABLE,
        Secret(text) if text else None,
        ("given" if given_key else API_KEY_VARIABLE) if text else None,
    )


def choose_profile(base_url: str | None, profile: str | None) -> tuple[str, ProfileSource] | None:
    """Return the name and source of the profile to use, or None if no profile applies."""
    if profile:
        return profile, "given"
    if (base_url or "").strip() or os.environ.get(BASE_URL_VARIABLE, "").strip():
        return None
    name = os.environ.get(PROFILE_VARIABLE, "").strip()
    if name:
        return name, PROFILE_VARIABLE
    try:
        return (DEFAULT_PROFILE, "default") if get_profile_path(DEFAULT_PROFILE).exists() else None
    except (OSError, RuntimeError):  # a folder that may not be entered, a user without a home
        return None


def names_server(base_url: str | None = None, profile: str | None = None) -> bool:
    """Check whether a client uses a server instead of an embedded engine."""
    selection = choose_profile(base_url, profile)
    if selection is None:
        return bool((base_url or "").strip() or os.environ.get(BASE_URL_VARIABLE, "").strip())
    if selection[1] != "default":
        return True
    from toolkit.settings import Settings

    # A folder's settings or a variable override settings that apply everywhere.
    return not Settings().names_engine()


def parse_address(text: str) -> str:
    """Return the address of `/v1` on a server.

    Raises:
        RequestError: `INVALID_REQUEST` if the text is no address of a server.

    >>> parse_address("HTTPS://Team.example.org:443/")
    'https://team.example.org/v1'
    """
    url = text.strip().rstrip("/")
    try:
        parsed = httpx.URL(url)
        is_address = parsed.scheme in ("http", "https") and bool(parsed.host)
    except httpx.InvalidURL:
        is_address = False
    # Neither error echoes the text, because it may be a key passed by mistake.
    if "://" not in url:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The base_url (or {BASE_URL_VARIABLE}) has no scheme: begin it with http:// or https://,"
            " as in http://127.0.0.1:8000; open a folder by Client.local(folder).",
        )
    if not is_address:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"The base_url (or {BASE_URL_VARIABLE}) is not the address of a server: use an address"
            " such as http://127.0.0.1:8000; open a folder by Client.local(folder).",
        )
    url = str(httpx.URL(str(parsed))).rstrip("/")  # drops the scheme's default port
    return url if url.endswith("/v1") else f"{url}/v1"


def _load_profile_key(name: str, profile: Profile) -> Secret:
    reason = "its file has no key"
    if profile.key_in == "keyring":
        try:
            return load_key(name, profile.base_url)
        except NoKeyError as error:
            reason = str(error)
    elif profile.api_key is not None:
        return profile.api_key
    raise ProfileError(
        ErrorCode.UNAUTHENTICATED,
        f"The profile `{name}` has no key, because {reason}: unlock the keyring, or run"
        f" `{format_login_command(name, profile.base_url)} --key-store file`.",
    )


def make_refused_key_error(access: ServerAccess) -> ProfileError:
    """Make the error for a profile's key that its server no longer accepts."""
    return ProfileError(
        ErrorCode.UNAUTHENTICATED,
        f"{access.server} no longer accepts the key of profile `{access.profile}` (revoked,"
        f" rotated or expired): run `{format_login_command(str(access.profile), access.server)}`"
        " with a new key.",
    )
