"""Write the document that a server returns at `/openapi.json`, and its copy for readers.

`python -m scripts.openapi` writes both; `--check` only reports stale documents and exits with 1.
"""

import json
import sys
from pathlib import Path

from scripts.openapi_document.document import build_openapi

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "openapi.json"
# Written in advance, because making it takes half a second, which would delay a request.
SERVED = ROOT / "toolkit" / "server" / "openapi.json"


def main() -> int:
    """Write or check the documents."""
    document = build_openapi()
    texts = {
        KEPT: json.dumps(document, indent=1, ensure_ascii=False) + "\n",
        # One line per member, so that changes are visible; without spaces, as it is sent.
        SERVED: json.dumps(document, indent=0, ensure_ascii=False, separators=(",", ":")) + "\n",
    }
    stale = [
        file
        for file, text in texts.items()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    if stale and "--check" in sys.argv:
        print(f"{', '.join(file.name for file in stale)} is stale, run scripts/fix")
        return 1
    for file in stale:
        file.write_text(texts[file], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
