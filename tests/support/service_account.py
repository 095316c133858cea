"""A service account of Google Cloud with a key of its own, made for the tests that sign in."""

import json
from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

EMAIL = "tester@sandbox.iam.gserviceaccount.com"


@cache
def make_key() -> rsa.RSAPrivateKey:
    """Make the key of the account."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


@cache
def write_account(**changes: str) -> str:
    """Write the account's JSON, as Google Cloud's console does, with some members changed."""
    pem = make_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "project_id": "sandbox-project",
        "private_key_id": "5d41402abc4b2a76b9719d911017c592",
        "private_key": pem.decode(),
        "client_email": EMAIL,
        "client_id": "100000000000000000001",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    return json.dumps(account | changes, indent=2)


def write_public_key() -> bytes:
    """Write the public key of the account."""
    return (
        make_key()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
