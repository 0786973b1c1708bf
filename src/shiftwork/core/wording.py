"""Numbers in sentences."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 job`, `3,000 jobs`, `2 crashes`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {plural or noun + 's'}"
