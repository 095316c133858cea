"""Resolution of pointers to the secrets they name, at the moment a vendor is called.

A resolver is called each time. It may cache a fetched secret for a minute. It drops a cached
secret that a vendor refuses, so that a rotated key works at once.
"""

from toolkit.secrets.aws import SecretsManagerResolver
from toolkit.secrets.resolvers import (
    SETTINGS_PREFIX,
    ChainResolver,
    EnvironmentResolver,
    MappingResolver,
    ReportingResolver,
    SecretResolver,
)

__all__ = [
    "SETTINGS_PREFIX",
    "ChainResolver",
    "EnvironmentResolver",
    "MappingResolver",
    "ReportingResolver",
    "SecretResolver",
    "SecretsManagerResolver",
]
