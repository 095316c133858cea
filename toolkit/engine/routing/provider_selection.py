"""A request's selection of the providers, connections and models that may serve it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from toolkit.contract.connections import Connection
from toolkit.contract.jobs import Options
from toolkit.plugins import Model


@dataclass(frozen=True, slots=True)
class ProviderSelection:
    """The names in `options.provider`: of providers or connections, or of models as `name/model`.

    Attributes:
        only: the names that may serve the request; all if empty.
        ignore: the names that may not serve it.
        is_pin: whether `only` is a pin: the single name of a request that never falls back.
    """

    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    is_pin: bool = False

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return the selection in a request's options; it is empty if they name no provider."""
        choice = options.provider
        if choice is None:
            return cls()
        if isinstance(choice, str):
            return cls((choice,), is_pin=True)
        return cls(choice.only or (), choice.ignore)

    def names_provider(self, provider: str, connections: Iterable[Connection]) -> bool:
        """Check whether `only` names a provider, a connection to it, or a model of either."""
        if not self.only:
            return False
        owners = {provider, *(connection.id for connection in connections)}
        return any(name.partition("/")[0] in owners for name in self.only)

    def list_named_models(self, provider: str, connections: Iterable[Connection]) -> list[str]:
        """List the models that `only` names of a provider or its connections, each once."""
        if not self.only:
            return []
        owners = {provider, *(connection.id for connection in connections)}
        parts = (name.partition("/") for name in self.only)
        return list(dict.fromkeys(model for owner, _, model in parts if model and owner in owners))

    def admits_connection(self, connection: Connection) -> bool:
        """Check whether a connection may be used for all, or at least some, of its models."""
        is_listed = not self.only or self.names_provider(connection.provider, [connection])
        return is_listed and {connection.provider, connection.id}.isdisjoint(self.ignore)

    def explain_exclusion(
        self, provider: str, connection: Connection | None, model: Model | None
    ) -> str | None:
        """Explain why a model may not be called through a connection; None if it may be."""
        if not (self.only or self.ignore):
            return None
        owners = [provider] if connection is None else [provider, connection.id]
        names = {*owners, *(f"{owner}/{model.id}" for owner in owners if model is not None)}
        if self.only and names.isdisjoint(self.only):
            return "not in `only`"
        return None if names.isdisjoint(self.ignore) else "excluded by `ignore`"
