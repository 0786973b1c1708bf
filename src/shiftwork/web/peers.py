"""Which user of this machine holds the other end of a loopback connection.

Linux lists every TCP socket with its owner in /proc/net. Elsewhere a user may look into their own processes, so the
socket is found there, or it belongs to another user. What cannot be found out is not ours.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

from msgspec import Struct

Place = tuple[str, int]
"""A host, as a number, and a port."""
Address = IPv4Address | IPv6Address
Key = tuple[Address | None, int]
Ends = tuple[Key, Key]
"""The client's end of a connection, and ours."""

TABLES: Final = Path("/proc/net")
"""Where Linux lists sockets, in the files `tcp` and `tcp6`."""
_ESTABLISHED: Final = "01"
_ROOT: Final = 0
_UNMAPPED: Final = Path("/proc/sys/kernel/overflowuid")


class SocketRow(Struct, frozen=True):
    """The owner of a socket, as the kernel lists it."""

    uid: int
    inode: int


def is_loopback(address: str) -> bool:
    parsed = _parsed(address)
    return parsed is not None and parsed.is_loopback


def is_our_own(client: Place, server: Place) -> bool:
    """Return whether our user, or root, holds the client's end of a connection on this machine."""
    if TABLES.exists():
        return _is_trusted(_owner(client, server))
    return held_by_our_processes(client, server)


def held_by_our_processes(client: Place, server: Place) -> bool:
    """Return whether one of our user's processes holds the client's end: without /proc, all others are hidden."""
    import psutil  # noqa: PLC0415 - Linux does without

    ours, wanted = os.geteuid(), (_key(client), _key(server))
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().effective != ours:
                continue
            connected = (each for each in process.net_connections("tcp") if each.status == psutil.CONN_ESTABLISHED)
            if wanted in {(_key(each.laddr), _key(each.raddr)) for each in connected}:
                return True
    return False


def _is_trusted(uid: int | None) -> bool:
    if uid is None or uid not in {os.geteuid(), _ROOT}:
        return False
    try:
        # Users that our namespace does not know all appear as this one.
        return uid != int(_UNMAPPED.read_text())
    except (OSError, ValueError):
        return True


def _owner(client: Place, server: Place) -> int | None:
    """Return the user who holds the client's socket; None if that is unknown.

    The kernel shows a socket that nothing holds as root's, and a socket may be closed while its row is being written.
    So an owner counts only if the socket is connected, has an inode, and looks the same a second time.
    """
    first = _row(client, server)
    return first.uid if first is not None and first == _row(client, server) else None


def _row(client: Place, server: Place) -> SocketRow | None:
    wanted = _key(client), _key(server)
    for name in ("tcp", "tcp6"):
        with suppress(OSError), (TABLES / name).open() as table:
            for row in _rows(table, wanted):
                return row
    return None


def _rows(lines: Iterable[str], wanted: Ends) -> Iterator[SocketRow]:
    port = f":{wanted[0][1]:04X} "
    for line in lines:
        if port not in line:  # most lines, at little cost
            continue
        _, local, remote, state, _, _, _, uid, _, inode, *_ = line.split()
        if state == _ESTABLISHED and int(inode) and (_place(local), _place(remote)) == wanted:
            yield SocketRow(int(uid), int(inode))


def _place(text: str) -> Key:
    """Return address and port from the kernel's form: words of four bytes in the machine's order, in hexadecimal."""
    host, _, port = text.partition(":")
    words = (int(host[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(host), 8))
    return _plain(ip_address(b"".join(words))), int(port, 16)


def _key(place: Place) -> Key:
    host, port = place[:2]
    return _parsed(host), port


def _parsed(text: str) -> Address | None:
    try:
        return _plain(ip_address(text.partition("%")[0]))
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 one, if there is one."""
    return getattr(address, "ipv4_mapped", None) or address
