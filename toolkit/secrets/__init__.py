"""From a pointer to the secret it names, at the moment a vendor is called."""

from toolkit.secrets.resolvers import EnvironmentResolver, MappingResolver, SecretResolver

__all__ = ["EnvironmentResolver", "MappingResolver", "SecretResolver"]
