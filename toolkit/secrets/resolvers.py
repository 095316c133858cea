"""Resolvers of pointers: the process's environment, a fixed mapping, and several in turn."""

import os
from collections.abc import Collection, Mapping
from typing import Protocol

from toolkit.contract.errors import ErrorCode, WorkError

# The toolkit's own settings are nobody's provider key.
OWN_PREFIX = "TOOLKIT_"


class SecretResolver(Protocol):
    """Turns a pointer into the secret it names."""

    async def resolve(
        self, connection_type: str, secret_ref: str, granted: Collection[str] = ()
    ) -> str:
        """The secret, never empty.

        Args:
            connection_type: where the pointer leads: `environment` or `aws_secrets_manager`.
            secret_ref: the name there.
            granted: variables that whoever asks may name beside those that all may.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, in the same words whether the name is unknown or not
                allowed.
        """
        ...

    def forget(self, connection_type: str, secret_ref: str) -> None:
        """Drop what may be kept of a secret: a vendor has refused it, so it may be rotated."""
        ...


def unresolved() -> WorkError:
    """The one answer for every pointer that leads nowhere."""
    return WorkError(
        ErrorCode.SECRET_UNRESOLVED,
        "The connection's pointer does not lead to a secret that may be used here.",
    )


class EnvironmentResolver:
    """Reads variables of this process.

    Args:
        allowed: the names that all may have read; none means every one, for an engine whose only
            caller owns the process.
        environ: where to read; the process's environment by default.
    """

    def __init__(
        self, allowed: Collection[str] | None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._allowed = None if allowed is None else frozenset(allowed)
        self._environ = os.environ if environ is None else environ

    async def resolve(
        self, connection_type: str, secret_ref: str, granted: Collection[str] = ()
    ) -> str:
        """The variable's value, read now.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        if connection_type != "environment" or secret_ref.upper().startswith(OWN_PREFIX):
            raise unresolved()
        value = self._environ.get(secret_ref, "").strip()
        open_to_all = self._allowed is None or secret_ref in self._allowed
        if not value or not (open_to_all or secret_ref in granted):
            raise unresolved()
        return value

    def forget(self, connection_type: str, secret_ref: str) -> None:
        """Nothing is kept."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MappingResolver(EnvironmentResolver):
    """Knows only the names it was given, such as the sandbox's own keys."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(allowed=values.keys(), environ=dict(values))


class ChainResolver:
    """Asks one resolver after the other; the first that knows the pointer answers.

    >>> import asyncio
    >>> chain = ChainResolver(MappingResolver({}), MappingResolver({"A_KEY": "sandbox"}))
    >>> asyncio.run(chain.resolve("environment", "A_KEY"))
    'sandbox'
    """

    def __init__(self, *resolvers: SecretResolver) -> None:
        self._resolvers = resolvers

    async def resolve(
        self, connection_type: str, secret_ref: str, granted: Collection[str] = ()
    ) -> str:
        """The secret, from the first resolver that has it.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, the last resolver's.
        """
        failure = unresolved()
        for resolver in self._resolvers:
            try:
                return await resolver.resolve(connection_type, secret_ref, granted)
            except WorkError as error:
                failure = error
        raise failure

    def forget(self, connection_type: str, secret_ref: str) -> None:
        """Have each drop what it keeps."""
        for resolver in self._resolvers:
            resolver.forget(connection_type, secret_ref)

    def __repr__(self) -> str:
        return f"ChainResolver({', '.join(map(repr, self._resolvers))})"
