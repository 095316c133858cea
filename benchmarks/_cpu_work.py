"""Functions that workers call in `cpu_steps`; it imports nothing, as each of them imports it."""

TURNS = 400_000


def count_turns(turns: int) -> int:
    """Count in pure Python, which takes a processor and nothing else."""
    counted = 0
    for turn in range(turns):
        counted += turn & 1
    return counted


def reverse_bytes(data: bytes) -> bytes:
    """Return bytes in the other direction: as much goes back as came."""
    return data[::-1]
