"""Keys in the system's keyring, by the package `keyring` where it is installed and works.

An entry's name holds the address, so that a profile whose file was changed finds no key for the
address that it names then.
"""

import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from toolkit.profiles.secret import Secret

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

T = TypeVar("T")
log = logging.getLogger(__name__)

SERVICE = "capability-toolkit"
NO_KEYRING = "TOOLKIT_NO_KEYRING"
MIN_PRIORITY = 1  # backends below that store nothing, or store in the clear
# A keyring may ask a person to unlock it, perhaps where nobody looks.
NOTICE_S = 3.0  # until a message says what is waited for
MAX_WAIT_S = 60.0  # until it is given up


class NoKeyError(Exception):
    """An error for a key that the keyring does not give; its text is part of a sentence."""


def find_keyring() -> "KeyringBackend | None":
    """Return the system's keyring; none where there is none that is secure."""
    try:
        import keyring

        backend = keyring.get_keyring()
        return backend if backend.priority >= MIN_PRIORITY else None
    except Exception:  # backends and their libraries raise what they like
        return None


def _ask_keyring(what: "Callable[[KeyringBackend], T]") -> T:
    """Call the keyring on a thread that can be abandoned: a prompt of its own may never end.

    Raises:
        NoKeyError: it is switched off, there is none, it fails, or gives no answer in time.
    """
    if os.environ.get(NO_KEYRING, "").strip().lower() not in ("", "0", "false"):
        raise NoKeyError(f"{NO_KEYRING} is set")
    answers: list[T] = []
    answered = threading.Event()

    def carry_out() -> None:
        try:
            backend = find_keyring()
            if backend is not None:
                answers.append(what(backend))
        except Exception as error:  # as above; a keyring that stays locked, say
            log.debug("the keyring fails: %s", type(error).__name__)
        finally:
            answered.set()

    threading.Thread(target=carry_out, name="toolkit-keyring", daemon=True).start()
    if not answered.wait(NOTICE_S):
        log.warning(
            "Waiting for the system's keyring, which may ask to be unlocked; %s=1 does without it.",
            NO_KEYRING,
        )
        if not answered.wait(MAX_WAIT_S - NOTICE_S):
            raise NoKeyError(f"the system's keyring gave no answer in {MAX_WAIT_S:g} s")
    if not answers:
        raise NoKeyError("the system's keyring gives none")
    return answers[0]


def make_entry_name(name: str, base_url: str) -> str:
    """Return the name of a profile's entry."""
    return f"{name} {base_url}"


def store_key(name: str, base_url: str, key: Secret) -> bool:
    """Put a key into the keyring, and tell whether it can be read again."""
    entry, text = make_entry_name(name, base_url), key.get_secret_value()

    def store(backend: "KeyringBackend") -> bool:
        backend.set_password(SERVICE, entry, text)
        return bool(backend.get_password(SERVICE, entry) == text)

    try:
        return _ask_keyring(store)
    except NoKeyError:
        return False


def load_key(name: str, base_url: str) -> Secret:
    """Read a key from the keyring.

    Raises:
        NoKeyError: it is not there, or cannot be read.
    """
    found = _ask_keyring(
        lambda backend: backend.get_password(SERVICE, make_entry_name(name, base_url))
    )
    if not found:
        raise NoKeyError("the system's keyring gives none")
    return Secret(found)


def delete_key(name: str, base_url: str) -> bool:
    """Take a key out of the keyring, and tell whether it is gone."""

    def delete(backend: "KeyringBackend") -> bool:
        if backend.get_password(SERVICE, make_entry_name(name, base_url)) is not None:
            backend.delete_password(SERVICE, make_entry_name(name, base_url))
        return True

    try:
        return _ask_keyring(delete)
    except NoKeyError:
        return False
