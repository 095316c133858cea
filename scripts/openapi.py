"""Keep `docs/openapi.json`: the document that a server answers with at `/openapi.json`.

`python scripts/openapi.py` writes it, `--check` only says that it is stale and exits with 1.
"""

import json
import sys
from pathlib import Path

from toolkit.server.app import document

KEPT = Path(__file__).parent.parent / "docs" / "openapi.json"


def main() -> int:
    """Write or check the document."""
    wanted = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
    if KEPT.exists() and KEPT.read_text(encoding="utf-8") == wanted:
        return 0
    if "--check" in sys.argv:
        print("docs/openapi.json is stale, run scripts/fix")
        return 1
    KEPT.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
