"""Resolution of pointers to the secrets they name, at the moment a vendor is called.

A resolver is called each time. It may cache what it fetches from elsewhere for a minute, and
invalidates it when a vendor refuses it, so that a rotated key works at once.
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
