"""Resolvers of pointers: the environment, a fixed mapping, a chain, and one for cassettes."""

import os
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from toolkit.contract.errors import ErrorCode, WorkError

# Variables of the toolkit's own settings are no provider's key.
SETTINGS_PREFIX = "TOOLKIT_"


class SecretResolver(Protocol):
    """A reader of secrets by pointers: the kind of place, and the name of the secret there."""

    async def resolve(
        self, connection_type: str, secret_ref: str, granted: Collection[str] = ()
    ) -> str:
        """Return the secret that a pointer names; it is empty only if the server needs none.

        Args:
            connection_type: place of the secret: `environment` or `aws_secrets_manager`.
            secret_ref: name of the secret in that place.
            granted: names of further variables that this caller may read.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, with the same text for unknown and forbidden names.
        """
        ...

    def invalidate(self, connection_type: str, secret_ref: str) -> None:
        """Drop a cached secret that a vendor refused, because it may be rotated."""
        ...


def make_unresolved_error() -> WorkError:
    """Make the error for a pointer that leads nowhere; its text is always the same."""
    return WorkError(
        ErrorCode.SECRET_UNRESOLVED,
        "The connection's pointer does not lead to a secret that may be used here.",
    )


class EnvironmentResolver:
    """A resolver that reads variables of this process.

    Args:
        allowed: names of the variables that all callers may use. None means all variables, for an
            engine whose only caller owns the process.
        environ: variables to read from; the process's environment by default.
        optional: names of variables that may be empty, because local servers need no key.
    """

    def __init__(
        self,
        allowed: Collection[str] | None,
        environ: Mapping[str, str] | None = None,
        optional: Collection[str] = (),
    ) -> None:
        self._allowed = None if allowed is None else frozenset(allowed)
        self._optional = frozenset(optional)
        self._environ = os.environ if environ is None else environ

    async def resolve(
        self, connection_type: str, secret_ref: str, granted: Collection[str] = ()
    ) -> str:
        """Return the variable's current value; "" for an optional variable that is not set.

        Raises:
            WorkError: `SECRET_UNRESOLVED`.
        """
        if connection_type != "environment" or secret_ref.upper().startswith(SETTINGS_PREFIX):
            raise make_unresolved_error()
        value = self._environ.get(secret_ref, "").strip()
        open_to_all = self._allowed is None or secret_ref in self._allowed
        is_set = bool(value) or secret_ref in self._optional
        if not is_set or not (open_to_all or secret_ref in granted):
            raise make_unresolved_error()
        return value

    def invalidate(self, connection_type: str, secret_ref: str) -> None:
        """Do nothing, as nothing is cached."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class MappingResolver(EnvironmentResolver):
    """A resolver of `environment` pointers to the given names only, such as the sandbox's keys."""

    def __init__(self, values: Mapping[str, str], optional: Collection[str] = ()) -> None:
        super().__init__(allowed=values.keys(), environ=dict(values), optional=optional)


class ChainResolver:
    """A resolver that asks others in order; the first that knows the pointer answers.

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
        """Return the secret of the first resolver that has it.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, the last resolver's.
        """
        failure: WorkError | None = None
        for resolver in self._resolvers:
            try:
                return await resolver.resolve(connection_type, secret_ref, granted)
            except WorkError as error:
                failure = error
        raise failure or make_unresolved_error()

    def invalidate(self, connection_type: str, secret_ref: str) -> None:
        """Drop the secret from each resolver's cache."""
        for resolver in self._resolvers:
            resolver.invalidate(connection_type, secret_ref)

    def __repr__(self) -> str:
        return f"ChainResolver({', '.join(map(repr, self._resolvers))})"


class ReportingResolver:
    """A resolver that reports every secret of another, so that a cassette is kept free of it.

    Args:
        tell: function that is called with each secret before it is returned.
        placeholder: value returned for a pointer that leads nowhere; None raises an error instead.
    """

    def __init__(
        self, resolver: SecretResolver, tell: Callable[[str], None], placeholder: str | None = None
    ) -> None:
        self._resolver = resolver
        self._report = tell
        self._placeholder = placeholder

    async def resolve(
        self, connection_type: str, secret_ref: str, granted: Collection[str] = ()
    ) -> str:
        """Report and return the secret; for a pointer that leads nowhere, return the placeholder.

        Raises:
            WorkError: `SECRET_UNRESOLVED` if there is no placeholder.
        """
        try:
            secret = await self._resolver.resolve(connection_type, secret_ref, granted)
        except WorkError:
            if self._placeholder is None:
                raise
            return self._placeholder
        self._report(secret)
        return secret

    def invalidate(self, connection_type: str, secret_ref: str) -> None:
        """Drop the secret from the other resolver's cache."""
        self._resolver.invalidate(connection_type, secret_ref)
