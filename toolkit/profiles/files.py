"""Profile files: a file for each profile, readable by its owner only, written atomically."""

import json
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.suggestions import truncate_text
from toolkit.profiles.secret import Secret

FOLDER_VARIABLE = "TOOLKIT_CONFIG_DIR"
APP_FOLDER = "capability-toolkit"
SUFFIX = ".json"
OTHERS_MODE_BITS = 0o077  # the permissions of group and others on a file
# In lower case, as some file systems ignore case.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class ProfileError(RequestError):
    """An error for a profile that cannot be used; its message includes the next step."""

    def _format_hint(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A stored profile: a server's address, and the key of an account there.

    Attributes:
        base_url: address of the server that issued the key, without `/v1`.
        key_in: place of the key: the system's keyring, or this file.
        account: account of the key.
        key_id: id of the key.
        api_key: the key, if it is in this file.
        cacert: path of a file of additional certificates to trust for the server.
    """

    base_url: str
    key_in: Literal["keyring", "file"]
    account: str | None = None
    key_id: str | None = None
    api_key: Secret | None = None
    cacert: str | None = None

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Make a profile from a file's content; members that a later version added are ignored.

        Raises:
            ValueError: the content is no profile.
        """
        record = json.loads(content)
        if not isinstance(record, dict):
            raise ValueError("is not an object")
        members: dict[str, Any] = {
            attribute.name: record.get(attribute.name) for attribute in fields(cls)
        }
        if not all(value is None or isinstance(value, str) for value in members.values()):
            raise ValueError("has a member that is not a text")
        if members["base_url"] is None or members["key_in"] not in ("keyring", "file"):
            raise ValueError("has no address or no place of the key")
        if members["api_key"] is not None:
            members["api_key"] = Secret(members["api_key"])
        return cls(**members)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile without its key."""
        record = asdict(self)
        del record["api_key"]
        return record

    def to_bytes(self) -> bytes:
        """Return the content of its file, including the key."""
        record = {name: value for name, value in self.to_dict().items() if value is not None}
        if self.api_key is not None:
            record["api_key"] = self.api_key.get_secret_value()
        return json.dumps(record, indent=2, ensure_ascii=False).encode() + b"\n"


def get_config_folder() -> Path:
    """Return the folder of profiles in the user's configuration."""
    override = os.environ.get(FOLDER_VARIABLE)
    if override:
        return Path(override) / "profiles"
    home = os.environ.get("APPDATA") if os.name == "nt" else os.environ.get("XDG_CONFIG_HOME")
    # Relative base directories are ignored (XDG Base Directory Specification).
    root = Path(home) if home and Path(home).is_absolute() else Path("~/.config").expanduser()
    return root / APP_FOLDER / "profiles"


def get_profile_path(name: str) -> Path:
    """Return the file of a profile.

    Raises:
        ProfileError: `INVALID_REQUEST` for an invalid name.
    """
    if not _NAME.fullmatch(name):  # not echoed, because it may be a key passed by mistake
        raise ProfileError(
            ErrorCode.INVALID_REQUEST,
            "The name of a profile has up to 64 lower-case letters, digits, dots, dashes and"
            " underscores, such as `team`: `toolkit profiles` lists the existing profiles.",
        )
    return get_config_folder() / f"{name}{SUFFIX}"


def list_profile_names() -> list[str]:
    """List the names of all profiles, even unreadable ones; empty if the folder is unreadable."""
    try:
        names = [path.name.removesuffix(SUFFIX) for path in get_config_folder().glob(f"*{SUFFIX}")]
    except (OSError, RuntimeError):  # a folder that may not be listed, a user without a home
        return []
    return sorted(name for name in names if _NAME.fullmatch(name))


def read_profile(name: str) -> Profile:
    """Read the profile of a name from its file.

    Raises:
        ProfileError: `NOT_FOUND` with similar names. `UNAUTHENTICATED` for a file that cannot be
            read, that others may read, or that holds no profile.
    """
    path = get_profile_path(name)
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & OTHERS_MODE_BITS:
                raise ProfileError(
                    ErrorCode.UNAUTHENTICATED,
                    f"Other users may read {path} (mode {mode & 0o777:o}), so its key is not used:"
                    f" run `chmod 600 {path}`, and log in with a new key if others have read it.",
                )
            content = file.read()
    except FileNotFoundError:
        raise _make_missing_error(name) from None
    except OSError as error:
        raise ProfileError(
            ErrorCode.UNAUTHENTICATED,
            f"{path} cannot be read ({error.strerror}): correct its owner and mode (`chown`,"
            f" `chmod 600`), or delete it and run `{format_login_command(name)}`.",
        ) from None
    try:
        return Profile.of(content)
    except (ValueError, RecursionError):
        raise ProfileError(
            ErrorCode.UNAUTHENTICATED,
            f"{path} is not a valid profile: run `{format_login_command(name)}` to replace it.",
        ) from None


def _make_missing_error(name: str) -> ProfileError:
    from difflib import get_close_matches

    near = get_close_matches(name, list_profile_names(), n=3, cutoff=0.5)
    suggestion = (
        f"did you mean {' or '.join(f'`{candidate}`' for candidate in near)}? " if near else ""
    )
    return ProfileError(
        ErrorCode.NOT_FOUND,
        f"There is no profile `{truncate_text(name, 100)}`: {suggestion}`toolkit profiles` lists"
        f" the existing profiles, `{format_login_command(name)}` creates it.",
    )


def format_login_command(name: str, base_url: str = "URL") -> str:
    """Return the command that gives a profile its key."""
    return f"toolkit login {base_url} --profile {name}"


def write_profile(name: str, profile: Profile) -> Path:
    """Write a profile atomically, readable by its owner only, and return the path of its file.

    Raises:
        OSError: the file cannot be written.
    """
    path = get_profile_path(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = path.with_name(f".{name}.{secrets.token_hex(8)}.partial")
    try:
        # Created with its mode, so that others can never read it, not even briefly.
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(profile.to_bytes())
            file.flush()
            os.fsync(file.fileno())
        return partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def delete_profile(name: str) -> None:
    """Delete the file of a profile.

    Raises:
        ProfileError: `NOT_FOUND`.
    """
    try:
        get_profile_path(name).unlink()
    except FileNotFoundError:
        raise _make_missing_error(name) from None


def iterate_profiles() -> Iterator[tuple[str, Profile | ProfileError]]:
    """Yield each profile with its name; if a profile cannot be used, yield its error instead."""
    for name in list_profile_names():
        try:
            yield name, read_profile(name)
        except ProfileError as error:
            yield name, error
