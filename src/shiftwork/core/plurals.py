"""Numbers of things, in words: "1 job", "3 jobs", "12,000 jobs"."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return the number with its noun, in the plural unless there is exactly one."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {plural or noun + 's'}"
