"""The address of a server, parsed from its URL. It owns the forms of a URL, and never shows a password.

redis://user:password@host:6379/0
rediss://host:6380/0?ca_file=/etc/ssl/ca.pem                 TLS
redis+cluster://host:7000,host:7001                          any of its nodes; add ?tls=yes for TLS
redis+sentinel://host:26379,host:26379/service/0             the sentinels, and the name of the service
"""

import ssl
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from shiftwork.errors import UnknownStoreError

SECRET: Final = ("sentinel_password",)
PORTS: Final = {"redis": 6379, "rediss": 6379, "redis+cluster": 6379, "redis+sentinel": 26379}
FORMS: Final = {
    "redis": "write redis://host:6379/0",
    "rediss": "write rediss://host:6379/0",
    "redis+cluster": "write redis+cluster://host:6379,host:6379",
    "redis+sentinel": "write redis+sentinel://host:26379,host:26379/service/0",
}

Node = tuple[str, int]


class RedisAddress(Struct, frozen=True, kw_only=True):
    """Everything that is needed to reach the server."""

    scheme: str
    nodes: tuple[Node, ...]
    username: str | None = None
    password: str | None = None
    db: int = 0
    service: str | None = None
    sentinel_password: str | None = None
    timeout: float = 10.0
    """Seconds without a reply after which the connection is closed."""
    keep: int | None = None
    """How many completed jobs are kept at most; None for no limit."""
    tls: bool = False
    verify: bool = True
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    query: str = ""

    @property
    def url(self) -> str:
        """The URL without its password."""
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        return f"{self.scheme}://{user}{self.place}{self._path}{self.query}"

    @property
    def place(self) -> str:
        """Hosts and ports, for messages."""
        return ",".join(named(node) for node in self.nodes)

    @property
    def _path(self) -> str:
        if self.scheme == "redis+sentinel":
            return f"/{quote(self.service or '', safe='')}/{self.db}"
        return "" if self.scheme == "redis+cluster" else f"/{self.db}"

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context of connections; None without TLS."""
        if not self.tls:
            return None
        context = ssl.create_default_context(cafile=self.ca_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file:
            context.load_cert_chain(self.cert_file, self.key_file)
        return context


def named(node: Node) -> str:
    """Return host and port of a node as text."""
    host, port = node
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(scheme: str, rest: str, options: dict[str, str]) -> RedisAddress:
    """Parse what follows `scheme://`, without the parameters, which are given as options."""
    login, _, located = rest.rpartition("@")
    username, _, password = login.partition(":")
    hosts, _, path = located.partition("/")
    service, db = _path(scheme, path)
    shown = "&".join(f"{name}={quote(value, safe='/')}" for name, value in options.items() if name not in SECRET)
    return RedisAddress(
        scheme=scheme,
        nodes=_nodes(scheme, hosts),
        username=unquote(username) or None,
        password=unquote(password) or None,
        db=db,
        service=service,
        sentinel_password=options.get("sentinel_password"),
        timeout=_timeout(options.get("timeout", "10")),
        keep=_keep(options["keep"]) if "keep" in options else None,
        tls=scheme == "rediss" or options.get("tls") == "yes",
        verify=options.get("verify") != "no",
        ca_file=options.get("ca_file"),
        cert_file=options.get("cert_file"),
        key_file=options.get("key_file"),
        query=f"?{shown}" if shown else "",
    )


def _nodes(scheme: str, hosts: str) -> tuple[Node, ...]:
    nodes = tuple(_node(scheme, host) for host in hosts.split(",") if host)
    if not nodes:
        raise UnknownStoreError(f"a {scheme}:// URL needs a host: {FORMS[scheme]}")
    if len(nodes) > 1 and scheme in ("redis", "rediss"):
        raise UnknownStoreError(
            f"{scheme}:// has one host; for several, {FORMS['redis+cluster']}, or {FORMS['redis+sentinel']}"
        )
    return nodes


def _node(scheme: str, host: str) -> Node:
    name, bracket, port = host.rpartition("]") if host.startswith("[") else ("", "", host)
    if bracket:
        name, port = name[1:], port.removeprefix(":")
    else:
        name, _, port = host.partition(":")
    if not name or (port and not port.isdecimal()):
        raise UnknownStoreError(f"{host!r} is not a host of a {scheme}:// URL: {FORMS[scheme]}")
    return name, int(port) if port else PORTS[scheme]


def _path(scheme: str, path: str) -> tuple[str | None, int]:
    """Return the service and the number of the database."""
    service, db = None, path.strip("/")
    if scheme == "redis+sentinel":
        service, _, db = db.partition("/")
        if not service:
            raise UnknownStoreError(f"a redis+sentinel:// URL needs the name of the service: {FORMS[scheme]}")
        service = unquote(service)
    if db and not db.isdecimal():
        raise UnknownStoreError(f"the database of a {scheme}:// URL is a number: {FORMS[scheme]}")
    if scheme == "redis+cluster" and db not in ("", "0"):
        raise UnknownStoreError("a cluster has only database 0; separate applications by namespace instead")
    return service, int(db or 0)


def _timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UnknownStoreError(f"the parameter 'timeout' must be a number of seconds, not {text!r}")
    return seconds


def _keep(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UnknownStoreError(f"the parameter 'keep' must be a number of completed jobs, not {text!r}")
    return int(text)
