"""Functions that workers call in `cpu_steps`; it imports nothing because each worker loads it.
it.
"""

TURNS = 400_000


def count_turns(turns: int) -> int:
    """Count in pure Python, which needs only a processor."""
    counted = 0
    for turn in range(turns):
        counted += turn & 1
    return counted


def reverse_bytes(data: bytes) -> bytes:
    """Return bytes in reverse order, so that the output is as large as the input."""
    return data[::-1]
