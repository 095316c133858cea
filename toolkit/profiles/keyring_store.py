"""Keys in the system's keyring, by the package `keyring` where it is installed and works.

An entry's name holds the address, so that a profile whose file was changed finds no key for the
address that it names then.
"""

from typing import TYPE_CHECKING

from pydantic import SecretStr

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE = "capability-toolkit"
RECOMMENDED = 1  # backends below that keep nothing, or in the clear


def find_keyring() -> "KeyringBackend | None":
    """Return the system's keyring; none where there is none that keeps secrets."""
    try:
        import keyring

        backend = keyring.get_keyring()
        return backend if backend.priority >= RECOMMENDED else None
    except Exception:  # backends and their libraries raise what they like
        return None


def entry_name(name: str, base_url: str) -> str:
    """Return the name of a profile's entry."""
    return f"{name} {base_url}"


def store_key(name: str, base_url: str, key: SecretStr) -> bool:
    """Put a key into the keyring, and tell whether it can be read again."""
    backend = find_keyring()
    if backend is None:
        return False
    entry = entry_name(name, base_url)
    try:
        backend.set_password(SERVICE, entry, key.get_secret_value())
        return backend.get_password(SERVICE, entry) == key.get_secret_value()
    except Exception:  # as above; a keyring that stays locked, say
        return False


def load_key(name: str, base_url: str) -> SecretStr | None:
    """Read a key from the keyring; none where it is not there, or cannot be read."""
    backend = find_keyring()
    try:
        found = backend.get_password(SERVICE, entry_name(name, base_url)) if backend else None
    except Exception:  # as above
        return None
    return SecretStr(found) if found else None


def delete_key(name: str, base_url: str) -> bool:
    """Take a key out of the keyring, and tell whether it is gone."""
    backend = find_keyring()
    if backend is None:
        return False
    try:
        if backend.get_password(SERVICE, entry_name(name, base_url)) is not None:
            backend.delete_password(SERVICE, entry_name(name, base_url))
    except Exception:  # as above
        return False
    return True
