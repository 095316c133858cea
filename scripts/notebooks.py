"""Keep notebooks clean: fixed cell ids, no papermill metadata, no widget state, no machine paths.

`python scripts/notebooks.py` cleans, `--check` only says what is not clean and exits with 1.
"""

import json
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def cleaned(notebook: dict) -> dict:
    """The notebook as it is committed."""
    for i, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{i:02d}"
        tags = cell["metadata"].get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main() -> int:
    """Clean or check every notebook."""
    stale = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        wanted = json.dumps(cleaned(json.loads(text)), indent=1, ensure_ascii=False) + "\n"
        if wanted != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(wanted, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print("not clean, run scripts/fix: " + ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
