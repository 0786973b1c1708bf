"""Numbers of things, in words: "1 job", "3 jobs", "12,000 jobs"."""


def counted(n: int, noun: str) -> str:
    """The number and the noun, in the plural unless there is exactly one."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
