"""Say how large an environment is, and what makes it so: Binder's images are kept small."""

import sys
import sysconfig
from collections import Counter
from pathlib import Path

MAX_SHOWN = 8


def measure_sizes(folder: Path) -> Counter[str]:
    """Sum up the bytes below a folder, by its direct members."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            found[path.relative_to(folder).parts[0]] += path.stat().st_size
    return found


def main() -> None:
    """Print the size of the environment, and of its largest packages."""
    packages = measure_sizes(Path(sysconfig.get_path("purelib")))
    whole = sum(measure_sizes(Path(sys.prefix)).values())
    print(f"{sys.prefix}: {whole / 1e6:.0f} MB, packages {packages.total() / 1e6:.0f} MB")
    for name, size in packages.most_common(MAX_SHOWN):
        print(f"{size / 1e6:8.1f} MB  {name}")


if __name__ == "__main__":
    main()
