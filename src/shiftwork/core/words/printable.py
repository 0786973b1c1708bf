"""Text from elsewhere, made harmless for terminals and logs: what it cannot do is move the cursor or forge a line."""

import re
from collections.abc import Callable
from typing import Final
from unicodedata import category

CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
"""What no id may contain, as a pattern has it: control characters, line separators, and marks that reverse the
direction of a text. Joiners are not among them: some scripts need them."""
_CONTROL: Final = re.compile(f"[{CONTROLS}\\ud800-\\udfff]")  # and halves of characters, which UTF-8 cannot hold


def control_character(text: str) -> str | None:
    """Return the first character of an id that must not be in one; None if there is none."""
    found = _CONTROL.search(text)
    return None if found is None else found[0]


def wrong_id(text: str) -> str | None:
    """Return what is wrong with an id or a key that people have chosen: it is part of lines, addresses and logs."""
    letter = control_character(text)
    return None if letter is None else f"must not contain control characters such as {letter!r}: {text!r}"


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
