"""Resolvers for cassettes: one reports each secret, and one returns a placeholder."""

from collections.abc import Callable, Collection

from toolkit.contract.errors import WorkError
from toolkit.secrets.resolvers import SecretResolver


class PlaceholderResolver:
    """A resolver that returns the same placeholder for every pointer: a replay needs no key.

    >>> import asyncio
    >>> asyncio.run(PlaceholderResolver("replayed").resolve("environment", "A_KEY"))
    'replayed'
    """

    def __init__(self, placeholder: str) -> None:
        self._placeholder = placeholder

    async def resolve(
        self,
        connection_type: str,  # noqa: ARG002
        secret_ref: str,  # noqa: ARG002
        granted: Collection[str] = (),  # noqa: ARG002
    ) -> str:
        """Return the placeholder."""
        return self._placeholder

    def invalidate(self, connection_type: str, secret_ref: str) -> None:
        """Do nothing, as nothing is cached."""


class ReportingResolver:
    """A resolver that reports every secret of another, so that it can be kept out of a file.

    Args:
        resolver: the resolver of the secrets.
        tell: called with each one, before it is returned.
        placeholder: returned for a pointer that leads nowhere; None raises an error instead.
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
        """Return the secret, or the placeholder.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, without a placeholder.
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
        """Drop what the other resolver has cached."""
        self._resolver.invalidate(connection_type, secret_ref)
