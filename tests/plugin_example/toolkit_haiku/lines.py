"""Functions for a worker process, which imports this module: so it imports little itself."""


def first_lines(text: str, count: int) -> list[str]:
    """Return the first lines of a text that say something."""
    return [line.strip() for line in text.splitlines() if line.strip()][:count]
