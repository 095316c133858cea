"""A program that maps rows as a cell of a notebook does, at the same time as another one.

Its words are the data directory, and a folder: it puts a file there once it is ready, and begins
with the rows as soon as there is one that is called `go`.
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
