"""From a pointer to the secret it names, at the moment a vendor is called.

A resolver is asked each time and keeps nothing: a rotated key works at once, and no secret lives
longer than the call it is for.
"""

from toolkit.secrets.aws import SecretsManagerResolver
from toolkit.secrets.resolvers import (
    ChainResolver,
    EnvironmentResolver,
    MappingResolver,
    SecretResolver,
)

__all__ = [
    "ChainResolver",
    "EnvironmentResolver",
    "MappingResolver",
    "SecretResolver",
    "SecretsManagerResolver",
]
