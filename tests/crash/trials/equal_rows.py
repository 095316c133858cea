"""A program that maps rows like a cell of a notebook, at the same time as a second process.

Its arguments are the data directory and a folder. It creates a file in the folder when it is ready,
and begins when the folder has a file named `go`.
"""

import os
import sys
from pathlib import Path

from tests.support.timing import wait_until
from toolkit import Client

ROWS = 19


def main(data_dir: str, folder: Path) -> None:
    """Map rows that are the same in each process."""
    rows = [{"topic": f"harbour {n}"} for n in range(ROWS)]
    with Client.local(data_dir, sandbox=True) as client:
        (folder / str(os.getpid())).touch()
        wait_until((folder / "go").exists)
        frame = client.map(
            "llm.generate",
            rows,
            objective="A line on {topic}",
            progress=False,
            options={"provider": "minimax", "cache": True},
        )
    assert list(frame["status"]) == ["completed"] * ROWS, frame


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
