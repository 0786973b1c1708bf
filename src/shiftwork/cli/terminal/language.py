"""The language of the command line. English is in the code; others are gettext catalogues, domain `shiftwork`.

Everything a person reads goes through `t`, and is translated if LANGUAGE, LC_ALL, LC_MESSAGES or LANG names a language
that has a catalogue. What programs read is never translated: JSON, names, and what the store holds.
"""

import os
from copy import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from gettext import NullTranslations

    import click

DOMAIN: Final = "shiftwork"
LOCALE: Final = Path(__file__).with_name("locale")
_VARIABLES: Final = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_ENGLISH: Final = ("C", "POSIX", "en")


def t(message: str, **values: Any) -> str:
    """Return a message in the reader's language, filled with its values."""
    return _filled(_translated(message), message, values)


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun in the reader's language: "1 job", "3 jobs", "12,000 jobs"."""
    one, many = f"{{n:,}} {noun}", f"{{n:,}} {plural or noun + 's'}"
    own, translations = one if n == 1 else many, catalogue()
    return _filled(translations.ngettext(one, many, n) if translations else own, own, {"n": n})


def localised(command: "click.Command") -> "click.Command":
    """Return a command whose help, with that of its options and subcommands, is in the reader's language."""
    if catalogue() is None:
        return command
    own = copy(command)
    own.help = _translated(own.help or "") or None
    own.params = [_with_help(parameter) for parameter in own.params]
    if members := getattr(own, "commands", None):
        vars(own)["commands"] = {name: localised(member) for name, member in members.items()}
    return own


def _with_help(parameter: "click.Parameter") -> "click.Parameter":
    text = getattr(parameter, "help", None)  # arguments have none
    if not text:
        return parameter
    own = copy(parameter)
    vars(own)["help"] = _translated(text)
    return own


def _translated(message: str) -> str:
    translations = catalogue()
    return translations.gettext(message) if translations and message else message


def _filled(text: str, message: str, values: dict[str, Any]) -> str:
    if not values:
        return text
    try:
        return text.format(**values)
    except (LookupError, ValueError):  # the translation has a hole that the message does not have
        return message.format(**values)


@cache
def catalogue() -> "NullTranslations | None":
    """Return the catalogue of the reader's language; None for English, and for a language that has none."""
    named = next((value for name in _VARIABLES if (value := os.environ.get(name))), "")
    if not named or named.split(":")[0].split(".")[0].split("_")[0] in _ENGLISH:
        return None
    from gettext import find, translation

    return translation(DOMAIN, LOCALE) if find(DOMAIN, LOCALE) else None
