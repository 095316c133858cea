"""Resolvers around a resolver, for cassettes: one tells of each secret, one has none to tell."""

from collections.abc import Callable, Collection

from toolkit.contract.errors import WorkError
from toolkit.secrets.resolvers import SecretResolver


class PlaceholderResolver:
    """Gives every pointer the same placeholder, and reads nothing: what is replayed needs no key.

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
        """The placeholder."""
        return self._placeholder

    def forget(self, connection_type: str, secret_ref: str) -> None:
        """Nothing is kept."""


class TellingResolver:
    """Tells of every secret that another resolver gives, so that it can be kept out of a file.

    Args:
        resolver: knows the secrets.
        tell: is told each one, before whoever asked has it.
        placeholder: given for a pointer that leads nowhere; none lets that fail.
    """

    def __init__(
        self, resolver: SecretResolver, tell: Callable[[str], None], placeholder: str | None = None
    ) -> None:
        self._resolver = resolver
        self._tell = tell
        self._placeholder = placeholder

    async def resolve(
        self, connection_type: str, secret_ref: str, granted: Collection[str] = ()
    ) -> str:
        """The secret, or the placeholder.

        Raises:
            WorkError: `SECRET_UNRESOLVED`, without a placeholder.
        """
        try:
            secret = await self._resolver.resolve(connection_type, secret_ref, granted)
        except WorkError:
            if self._placeholder is None:
                raise
            return self._placeholder
        self._tell(secret)
        return secret

    def forget(self, connection_type: str, secret_ref: str) -> None:
        """Have the other drop what it keeps."""
        self._resolver.forget(connection_type, secret_ref)
