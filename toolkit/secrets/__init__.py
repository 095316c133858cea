"""From a pointer to the secret it names, at the moment a vendor is called.

A resolver is asked each time. What it has to fetch from elsewhere it may keep for a minute, and
forgets when a vendor refuses it, so that a rotated key works at once.
"""

from toolkit.secrets.aws import SecretsManagerResolver
from toolkit.secrets.cassettes import PlaceholderResolver, TellingResolver
from toolkit.secrets.resolvers import (
    OWN_PREFIX,
    ChainResolver,
    EnvironmentResolver,
    MappingResolver,
    SecretResolver,
)

__all__ = [
    "OWN_PREFIX",
    "ChainResolver",
    "EnvironmentResolver",
    "MappingResolver",
    "PlaceholderResolver",
    "SecretResolver",
    "SecretsManagerResolver",
    "TellingResolver",
]
