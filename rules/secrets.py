"""Examples for `secrets.yaml`: a line below `ruleid` is found, one below `ok` is left alone."""

import hashlib
import hmac


def compared(given: str, api_key: str, row, digest: str, kind: str) -> None:
    # ruleid: no-plain-comparison-of-secrets
    given == api_key
    # ruleid: no-plain-comparison-of-secrets
    digest != given
    # ruleid: no-plain-comparison-of-secrets
    row["digest"] == given
    # ruleid: no-plain-comparison-of-secrets
    given == row.secret
    # ruleid: no-plain-comparison-of-secrets
    sha.hexdigest() == given
    # ok: no-plain-comparison-of-secrets
    hmac.compare_digest(given, digest)
    # ok: no-plain-comparison-of-secrets
    kind == "bearer"
    # ok: no-plain-comparison-of-secrets
    hashlib.sha256(content).hexdigest() != row.sha256
