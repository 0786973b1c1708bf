"""What the server or the network says, as one of our errors, with the remedy. Never with a password."""

import re
from collections.abc import Callable
from typing import Final

from shiftwork.errors import StoreBusyError, StoreError, StoreFullError, StoreUnavailableError

SCRIPTING: Final = ("EVAL", "EVALSHA", "SCRIPT", "SCRIPTING ENGINE")
Made = Callable[[str], StoreError]

WORDS: Final[dict[str, tuple[Made, str]]] = {
    "OOM": (
        StoreFullError,
        "has reached its maxmemory and takes no more jobs. Nothing acknowledged was lost. Give it more memory",
    ),
    "MISCONF": (
        StoreFullError,
        "cannot write its data to disk, and takes no more. Nothing acknowledged was lost. Look at its disk and log",
    ),
    "WRONGPASS": (StoreUnavailableError, "refuses the user name or the password in the URL"),
    "NOAUTH": (StoreUnavailableError, "wants a password: write redis://:password@host, or redis://user:password@host"),
    "NOPERM": (
        StoreUnavailableError,
        "denies this user what shiftwork needs: ACL SETUSER name ~{shiftwork:* &{shiftwork:* +@all -@dangerous +info",
    ),
    "READONLY": (
        StoreUnavailableError,
        "is a read-only replica. Name the primary, or let Sentinel find it: redis+sentinel://host:26379/service/0",
    ),
    "LOADING": (StoreUnavailableError, "has just started and is still loading its data. Try again in a moment"),
    "MASTERDOWN": (StoreUnavailableError, "is a replica that has lost its primary"),
    "CLUSTERDOWN": (StoreUnavailableError, "is part of a cluster that is down. Look at CLUSTER INFO on its nodes"),
    "NOREPLICAS": (StoreUnavailableError, "has fewer replicas than min-replicas-to-write asks for"),
    "BUSY": (StoreBusyError, "is busy with somebody's script. SCRIPT KILL ends it"),
    "ASK": (StoreBusyError, "is moving the slot of this namespace to another node. Try again when that is done"),
    "TRYAGAIN": (StoreBusyError, "is moving the slot of this namespace to another node. Try again when that is done"),
}


def translate(answer: str, place: str) -> StoreError:
    """An error answer of the server at this place."""
    word, _, text = answer.partition(" ")
    if word == "ERR" and "invalid password" in text:
        word = "WRONGPASS"
    if word == "ERR" and "without any password configured" in text:
        return StoreUnavailableError(f"the server at {place} has no password set, and the URL has one. Leave it out.")
    if word == "ERR" and "DB index is out of range" in text:
        return StoreUnavailableError(f"the server at {place} has no database of the number in the URL. Write …/0.")
    missing = re.search(r"un(?:known|supported) command\W+(\w+)|(scripting engine)", text)
    if word == "ERR" and missing:
        return _without(missing[1] or missing[2], place)
    known = next((name for name in WORDS if word == name or f"-{name} " in answer or f" {name} " in answer), None)
    if known is None:
        return StoreError(f"the server at {place} answered: {answer}")
    made, told = WORDS[known]
    return made(f"the server at {place} {told}. (It said: {answer})")


def _without(command: str, place: str) -> StoreUnavailableError:
    what = "cannot run Lua scripts" if command.upper() in SCRIPTING else f"has no command {command.upper()}"
    return StoreUnavailableError(
        f"the server at {place} {what}, and shiftwork needs EVAL, EVALSHA and SCRIPT, INFO, TIME and Pub/Sub. If that "
        "is a proxy, name the server behind it; if `rename-command` in its configuration took it away, give it back."
    )


def hung_up(error: BaseException, place: str) -> StoreUnavailableError:
    """The connection ended before we were let in."""
    return StoreUnavailableError(
        f"no answer from the server at {place}, which was asked to let us in: {error}. If it speaks TLS, write "
        "rediss://; see that it is Redis or Valkey at all."
    )


def unreachable(error: BaseException, place: str) -> StoreUnavailableError:
    """The server cannot be connected to."""
    if isinstance(error, TimeoutError):
        said = "it does not answer. Look for a firewall, or a server that hangs"
    elif isinstance(error, ConnectionRefusedError):
        said = "nothing listens there. Start the server, or correct host and port in the URL"
    else:
        said = f"{str(error) or type(error).__name__}. Look at the host name and the network"
    return StoreUnavailableError(f"cannot connect to the server at {place}: {said}.")


def lost(error: BaseException, place: str) -> StoreUnavailableError:
    """The connection ended before the answer came."""
    return StoreUnavailableError(
        f"no answer from the server at {place}: {error}. What was asked may have happened; asking again is harmless."
    )
