"""The identity that `toolkit whoami` shows: the caller, the address, and where each came from."""

import os
from pathlib import Path
from typing import Any

from toolkit.cli.output import ClientOutput
from toolkit.cli.target import Target

SOURCE_OPTIONS = {"address": "--base-url", "key": "--api-key-env", "profile": "--profile"}


def collect_identity(shell: ClientOutput) -> dict[str, Any]:
    """Ask the service who the caller is, and add where address and key came from.

    `key` is the key's name, `address` is none for an embedded engine, `data_dir` is none for a
    server and for an engine in a temporary folder.
    """
    account, health = shell.read("/account"), shell.client.read("/health", max_wait_s=0.0)
    access, key = shell.client.access, account.get("key") or {}
    here = access.data_dir is not None
    folder, folder_from = _find_data_dir(shell.where, access.data_dir) if here else (None, None)
    return {
        "account": account["email"],
        "account_id": account["id"],
        "key": key.get("name"),
        "key_id": None if here else key.get("id"),
        "last4": key.get("last4"),
        "scopes": key.get("scopes", []),
        "world": "sandbox" if health["sandbox"] else "live",
        "address": None if here else access.server,
        "address_from": None
        if here
        else _format_source("address", access.address_from, access.profile),
        "data_dir": None if folder is None else str(folder),
        "data_dir_from": folder_from,
        "key_from": "this process"
        if here
        else _format_source("key", access.key_from, access.profile),
        "profile": access.profile,
        "profile_from": _format_source("profile", access.profile_from, access.profile),
    }


def _format_source(what: str, source: str | None, profile: str | None) -> str | None:
    """Format a source as one finds it: an option, a variable, or a profile."""
    if source == "given":
        return SOURCE_OPTIONS[what]
    return f"profile {profile}" if source == "profile" else source


def _find_data_dir(where: Target | None, used: Path | None) -> tuple[Path | None, str | None]:
    """Return the folder of the embedded engine and its source; none for a temporary one."""
    from toolkit.settings import Settings

    if where is None or where.data_dir is not None:
        return used, "--data-dir"
    settings = Settings()
    if used is None or used.resolve() != settings.data_dir.resolve():
        return None, None
    if "TOOLKIT_DATA_DIR" in os.environ:
        return used, "TOOLKIT_DATA_DIR"
    return used, "toolkit.toml" if "data_dir" in settings.model_fields_set else "default"
