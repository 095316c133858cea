"""Search the files in git for secrets, except for those that are known to be false alarms.

`python scripts/leaks.py` records all findings as known; `--check` prints new findings and exits
with 1. Line numbers are not compared, so a known finding may move within its file.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings

ROOT = Path(__file__).parent.parent
BASELINE = ROOT / ".secrets.baseline"
# The file has hundreds of hashes; scripts/lock.py checks that it has nothing else.
LOCK = ROOT / "requirements.lock"
# Tests name their invented secrets with this word; tests are still searched for real secrets.
NAMED = "Secret Keyword"
# Pictures and sounds in a notebook, because their bytes look random, as a key does.
MEDIA = re.compile(r'(?<="(?:image|audio)/\w{3}": ")[^"]+|(?<=;base64,)[A-Za-z0-9+/=]+')


def find_secrets() -> dict[str, list[str]]:
    """Return the kinds and hashes of possible secrets, by file."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = [
        name for name in listed.stdout.split("\n") if name not in ("", BASELINE.name, LOCK.name)
    ]
    notebooks = [name for name in names if name.endswith(".ipynb")]
    with TemporaryDirectory() as bare, default_settings():
        for name in notebooks:
            twin = Path(bare, name)
            twin.parent.mkdir(parents=True, exist_ok=True)
            twin.write_text(MEDIA.sub("", Path(ROOT, name).read_text(encoding="utf-8")))
        secrets = [
            *_scan_files(ROOT, [name for name in names if name not in notebooks]),
            *_scan_files(Path(bare), notebooks),
        ]
    findings: dict[str, list[str]] = {}
    for name, kind, hashed in secrets:
        if not (name.startswith("tests/") and kind == NAMED):
            findings.setdefault(name, []).append(f"{kind}: {hashed}")
    return {name: sorted(set(hashes)) for name, hashes in sorted(findings.items())}


def _scan_files(root: Path, names: list[str]) -> list[tuple[str, str, str]]:
    secrets = SecretsCollection(root=str(root))
    secrets.scan_files(*names)
    return [(name, secret.type, secret.secret_hash) for name, secret in secrets]


def main() -> int:
    """Write the baseline, or check against it."""
    present = find_secrets()
    if "--check" not in sys.argv:
        BASELINE.write_text(json.dumps(present, indent=1) + "\n", encoding="utf-8")
        return 0
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    new = {
        (name, entry.partition(":")[0])
        for name, entries in present.items()
        for entry in set(entries) - set(baseline.get(name, []))
    }
    for name, kind in sorted(new):
        print(f"{name}: {kind}; if it is no secret, run python scripts/leaks.py")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
