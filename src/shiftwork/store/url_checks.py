"""What is checked in the URL of any server, before its driver is imported. No message shows a password."""

import re
from collections.abc import Iterable
from typing import Final

from shiftwork.errors import UnknownStoreError, nearest

_LOGIN: Final = re.compile(r"(?:[^\s@/?#%\x00-\x1f\x7f]|%[0-9A-Fa-f]{2})*")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]?|[^:,\[\]]*)(?::\d*)?")
_ENCODING: Final = "write %25 for %, %40 for @, %2F for /, %3F for ?, %23 for #, %20 for a space"
_SECRET: Final = ("@", "password")


def check_login(scheme: str, rest: str) -> None:
    """Check what follows `scheme://`. Raises `UnknownStoreError` if a password seems to end elsewhere than it does."""
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    login, at, hosts = authority.rpartition("@")
    has_hosts = all(_HOST.fullmatch(host) for host in hosts.split(","))
    ends_later = not at and ("@" in rest.partition("?")[0] or (not has_hosts and "@" in rest))
    if ends_later or (at and not _LOGIN.fullmatch(login)):
        raise UnknownStoreError(
            f"the user name or the password in the {scheme}:// URL has to be percent-encoded: {_ENCODING}"
        )
    if not has_hosts:
        raise UnknownStoreError(
            f"the port in the {scheme}:// URL is not a number; if it is a password, @ and the host follow it"
        )


def unknown_parameter(scheme: str, name: str, known: Iterable[str], *, query: str) -> UnknownStoreError:
    """Return the error for a parameter that does not exist. It may be a part of a password."""
    if any(part in query for part in _SECRET):
        return UnknownStoreError(f"{scheme}:// has an unknown parameter; in a password {_ENCODING}, %26 for &")
    return UnknownStoreError(f"{scheme}:// has no parameter {name!r}; {nearest(name, known)}")
