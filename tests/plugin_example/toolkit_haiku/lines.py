"""Functions for a worker process, which imports this module, so the module imports nothing."""


def first_lines(text: str, count: int) -> list[str]:
    """Return the first lines of a text that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip()][:count]
