"""Numbers with their nouns."""


def counted(n: int, noun: str) -> str:
    """Return "1 job", "32 jobs"; the noun is one that takes an s."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
