"""Keys in the system's keyring, through the package `keyring` if it is installed and works.

An entry's name includes the address. A profile whose file was changed to another address
therefore finds no key.
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
# A keyring may ask a person to unlock it, perhaps in a window that nobody sees.
NOTICE_S = 3.0  # seconds before a warning names the keyring as the reason for the wait
MAX_WAIT_S = 60.0  # seconds before the call is abandoned


class NoKeyError(Exception):
    """An error for a key that the keyring does not return; its text is part of a sentence."""


def find_keyring() -> "KeyringBackend | None":
    """Return the system's keyring, or None if there is no secure keyring."""
    try:
        import keyring

        backend = keyring.get_keyring()
        return backend if backend.priority >= MIN_PRIORITY else None
    except Exception:  # backends and their libraries raise errors of any type
        return None


def _ask_keyring(action: "Callable[[KeyringBackend], T]") -> T:
    """Call the keyring on a thread that can be abandoned, because its prompt may never end.

    Raises:
        NoKeyError: the keyring is switched off, missing, failing, or too slow to answer.
    """
    if os.environ.get(NO_KEYRING, "").strip().lower() not in ("", "0", "false"):
        raise NoKeyError(f"{NO_KEYRING} is set")
    answers: list[T] = []
    answer_event = threading.Event()

    def carry_out() -> None:
        try:
            backend = find_keyring()
            if backend is not None:
                answers.append(action(backend))
        except Exception as error:  # as above; for example, the keyring stays locked
            log.debug("the keyring failed: %s", type(error).__name__)
        finally:
            answer_event.set()

    threading.Thread(target=carry_out, name="toolkit-keyring", daemon=True).start()
    if not answer_event.wait(NOTICE_S):
        log.warning(
            "Waiting for the system's keyring, which may need to be unlocked: set %s=1 to skip it.",
            NO_KEYRING,
        )
        if not answer_event.wait(MAX_WAIT_S - NOTICE_S):
            raise NoKeyError(f"the system's keyring gave no answer in {MAX_WAIT_S:g} s")
    if not answers:
        raise NoKeyError("the system's keyring cannot be used")
    return answers[0]


def make_entry_name(name: str, base_url: str) -> str:
    """Return the name of a profile's entry in the keyring."""
    return f"{name} {base_url}"


def store_key(name: str, base_url: str, key: Secret) -> bool:
    """Store a key in the keyring, and return whether it can be read back."""
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
        NoKeyError: the key is missing or cannot be read.
    """
    password = _ask_keyring(
        lambda backend: backend.get_password(SERVICE, make_entry_name(name, base_url))
    )
    if not password:
        raise NoKeyError("the system's keyring has no entry for it")
    return Secret(password)


def delete_key(name: str, base_url: str) -> bool:
    """Delete a key from the keyring, and return whether it is gone."""

    def delete(backend: "KeyringBackend") -> bool:
        if backend.get_password(SERVICE, make_entry_name(name, base_url)) is not None:
            backend.delete_password(SERVICE, make_entry_name(name, base_url))
        return True

    try:
        return _ask_keyring(delete)
    except NoKeyError:
        return False
