"""The tests."""

import sys

# jsonschema imports this module to check IRIs, which takes a second per process; no schema here has
# IRIs.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
