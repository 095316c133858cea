"""Who a command speaks as, and where: what `toolkit whoami` shows."""

import os
from pathlib import Path

from toolkit.cli.options import Where
from toolkit.cli.output import Shell
from toolkit.contract.account import Scope
from toolkit.contract.base import Record

OPTIONS = {"address": "--base-url", "key": "--api-key-env", "profile": "--profile"}


class Identity(Record):
    """Who, where, and where each came from.

    Attributes:
        key: its name, where it has one.
        address: of the server; none for an engine right here.
        data_dir: of that engine; none for one that leaves nothing.
        world: `sandbox` or `live`.
    """

    account: str
    account_id: str
    key: str | None
    key_id: str | None
    last4: str | None
    scopes: list[Scope]
    world: str
    address: str | None
    address_from: str | None
    data_dir: Path | None
    data_dir_from: str | None
    key_from: str | None
    profile: str | None
    profile_from: str | None


def identity_of(shell: Shell) -> Identity:
    """Ask the service who the caller is, and add where address and key came from."""
    account, health = shell.client.account.get(), shell.client.health()
    access, key = shell.client.access, account.key
    here = access.data_dir is not None
    folder, folder_from = _data_dir(shell.where, access.data_dir) if here else (None, None)
    return Identity(
        account=account.email,
        account_id=account.id,
        key=key.name if key else None,
        key_id=key.id if key and not here else None,
        last4=key.last4 if key else None,
        scopes=key.scopes if key else [],
        world="sandbox" if health.sandbox else "live",
        address=None if here else access.server,
        address_from=None if here else _spelled("address", access.address_from, access.profile),
        data_dir=folder,
        data_dir_from=folder_from,
        key_from="this process" if here else _spelled("key", access.key_from, access.profile),
        profile=access.profile,
        profile_from=_spelled("profile", access.profile_from, access.profile),
    )


def _spelled(what: str, source: str | None, profile: str | None) -> str | None:
    """Name a source as one finds it: an option, a variable, or a profile."""
    if source == "given":
        return OPTIONS[what]
    return f"profile {profile}" if source == "profile" else source


def _data_dir(where: Where | None, used: Path | None) -> tuple[Path | None, str | None]:
    """Return the folder of an engine right here, and who named it; none for a passing one."""
    from toolkit.settings import Settings

    if where is None or where.data_dir is not None:
        return used, "--data-dir"
    settings = Settings()
    if used is None or used.resolve() != settings.data_dir.resolve():
        return None, None
    if "TOOLKIT_DATA_DIR" in os.environ:
        return used, "TOOLKIT_DATA_DIR"
    return used, "toolkit.toml" if "data_dir" in settings.model_fields_set else "default"
