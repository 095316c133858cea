"""Keep the document that a server answers with at `/openapi.json`, and its copy for readers.

`python -m scripts.openapi` writes both, `--check` only says which is stale and exits with 1.
"""

import json
import sys
from pathlib import Path

from scripts.openapi_document.document import build_openapi

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "openapi.json"
# Made once for all: to make it takes half a second, which nobody's request shall wait for.
SERVED = ROOT / "toolkit" / "server" / "openapi.json"


def main() -> int:
    """Write or check the documents."""
    made = build_openapi()
    wanted = {
        KEPT: json.dumps(made, indent=1, ensure_ascii=False) + "\n",
        # In lines, so that a change shows; without spaces, as it is sent.
        SERVED: json.dumps(made, indent=0, ensure_ascii=False, separators=(",", ":")) + "\n",
    }
    stale = [
        file
        for file, text in wanted.items()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    if stale and "--check" in sys.argv:
        print(f"{', '.join(file.name for file in stale)} is stale, run scripts/fix")
        return 1
    for file in stale:
        file.write_text(wanted[file], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
