"""Errors of the server and the network as errors of shiftwork, each with its remedy and never with a password."""

import re
from collections.abc import Callable
from typing import Final

from shiftwork.errors import StoreBusyError, StoreError, StoreFullError, StoreUnavailableError
from shiftwork.sentences import sentence

SCRIPTING: Final = ("EVAL", "EVALSHA", "SCRIPT", "SCRIPTING ENGINE")
MakeError = Callable[[str], StoreError]

MESSAGES: Final[dict[str, tuple[MakeError, str]]] = {
    "OOM": (
        StoreFullError,
        "has reached its maxmemory and rejects new jobs. No acknowledged job is lost. Give it more memory",
    ),
    "MISCONF": (
        StoreFullError,
        "cannot write its data to disk, and rejects writes. No acknowledged job is lost. Check its disk and its log",
    ),
    "WRONGPASS": (StoreUnavailableError, "rejects the user name or the password in the URL"),
    "NOAUTH": (StoreUnavailableError, "needs a password: write redis://:password@host, or redis://user:password@host"),
    "NOPERM": (
        StoreUnavailableError,
        "denies rights that shiftwork needs: ACL SETUSER name ~{shiftwork:* &{shiftwork:* +@all -@dangerous +info",
    ),
    "READONLY": (
        StoreUnavailableError,
        "is a read-only replica. Name the primary, or let Sentinel find it: redis+sentinel://host:26379/service/0",
    ),
    "LOADING": (StoreUnavailableError, "has just started and is still loading its data. Try again in a moment"),
    "MASTERDOWN": (StoreUnavailableError, "is a replica that has lost its primary"),
    "CLUSTERDOWN": (StoreUnavailableError, "is part of a cluster that is down. Check CLUSTER INFO on its nodes"),
    "NOREPLICAS": (StoreUnavailableError, "has fewer replicas than min-replicas-to-write asks for"),
    "MAXCLIENTS": (
        StoreUnavailableError,
        "has no connection left: raise its maxclients, or find out which programs have so many (CLIENT LIST)",
    ),
    "BUSY": (StoreBusyError, "is busy with another script. SCRIPT KILL ends it"),
    "ASK": (StoreBusyError, "is moving the slot of this namespace to another node. Try again when that is done"),
    "TRYAGAIN": (StoreBusyError, "is moving the slot of this namespace to another node. Try again when that is done"),
}


def translate(reply: str, place: str) -> StoreError:
    word, _, text = reply.partition(" ")
    if word == "ERR" and "invalid password" in text:
        word = "WRONGPASS"
    if word == "ERR" and "user executing the script can't run" in text:
        word = "NOPERM"
    if word == "ERR" and "max number of clients" in text:
        word = "MAXCLIENTS"
    if word == "ERR" and "without any password configured" in text:
        return StoreUnavailableError(f"the server at {place} has no password, but the URL has one. Remove it.")
    if word == "ERR" and "DB index is out of range" in text:
        return StoreUnavailableError(f"the server at {place} has no database with the number in the URL. Write …/0.")
    missing = re.search(r"un(?:known|supported) command\W+(\w+)|(scripting engine)", text)
    if word == "ERR" and missing:
        return _without(missing[1] or missing[2], place)
    known = next((name for name in MESSAGES if word == name or f"-{name} " in reply or f" {name} " in reply), None)
    if known is None:
        return StoreError(f"the server at {place} replied: {reply}")
    make, message = MESSAGES[known]
    return make(f"the server at {place} {message}. (It replied: {reply})")


def _without(command: str, place: str) -> StoreUnavailableError:
    what = "cannot run Lua scripts" if command.upper() in SCRIPTING else f"has no command {command.upper()}"
    return StoreUnavailableError(
        f"the server at {place} {what}, and shiftwork needs EVAL, EVALSHA, SCRIPT, INFO, TIME and Pub/Sub. If this is "
        "a proxy, name the server behind it; if `rename-command` in its configuration disabled the command, enable it."
    )


def closed_at_login(error: BaseException, place: str) -> StoreUnavailableError:
    """Return the error for a connection that ended during login."""
    return StoreUnavailableError(
        f"no reply to the login from the server at {place}: {error}. If it expects TLS, write rediss://. Check that it "
        "is Redis or Valkey at all, and whether it has reached its maxclients."
    )


def unreachable(error: BaseException, place: str) -> StoreUnavailableError:
    """Return the error for a server that cannot be connected to."""
    if isinstance(error, TimeoutError):
        said = sentence("it does not answer. Check firewalls, and whether the server hangs")
    elif isinstance(error, ConnectionRefusedError):
        said = sentence("nothing listens there. Start the server, or correct host and port in the URL")
    else:
        said = f"{str(error) or type(error).__name__}. Check the host name and the network"
    return StoreUnavailableError(sentence("cannot connect to the server at {host}: {why}.", host=place, why=said))


def lost(error: BaseException, place: str) -> StoreUnavailableError:
    """Return the error for a connection that ended before the reply arrived."""
    return StoreUnavailableError(
        f"no reply from the server at {place}: {error}. The call may have taken effect; repeating it is harmless."
    )
