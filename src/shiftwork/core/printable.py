"""Text from elsewhere, made harmless for terminals and logs: what it cannot do is move the cursor or forge a line."""

from collections.abc import Callable
from unicodedata import category


def printable(text: str) -> str:
    """Return the text with control characters escaped, and with those that reverse its direction. Lines stay lines."""
    return text if text.isprintable() else _escaped(text, lambda letter: letter.encode("unicode_escape").decode())


def printable_json(text: str) -> str:
    """Return a JSON document with such characters escaped as JSON does it."""
    return text if text.isprintable() else _escaped(text, _as_json)


def _as_json(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    return "".join(letter if _is_harmless(letter) else escape(letter) for letter in text)


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or letter in "\n\t" or category(letter) == "Zs"
