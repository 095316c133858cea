"""The tests."""

import sys

# What jsonschema checks IRIs by takes a second to import, in each process; no schema here has any.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
