"""A real PgBouncer, if there is one: few connections to the server, pooled by transaction.

It listens on a socket in a folder of its own and on no port, and ends with the test.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.polling import wait_until
from tests.store.servers.postgres import NOBODY, PATIENCE

CONFIGURATION: Final = """
[databases]
{database} = host={host} port={port} dbname={database} user={user} {password}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
logfile = {folder}/log
pidfile = {folder}/pid
"""


def program() -> str | None:
    """Return the program, from PATH or from where Debian puts it."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def pgbouncer(url: str) -> Iterator[str]:
    """Yield the URL of a proxy in front of this server."""
    found = program()
    assert found, "there is no pgbouncer"
    folder = Path(tempfile.mkdtemp(prefix="shiftwork-pgbouncer-"))
    info = conninfo_to_dict(url)
    named = {"database": info["dbname"], "host": info["host"], "port": info.get("port", 5432), "user": info["user"]}
    password = f"password={info['password']}" if "password" in info else ""
    (folder / "ini").write_text(CONFIGURATION.format(folder=folder, password=password, **named))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        shutil.chown(folder, NOBODY, NOBODY)
    process = subprocess.Popen([found, "-q", str(folder / "ini")], stderr=subprocess.DEVNULL, **who)
    reached = f"postgresql://{info['user']}@{quote(str(folder), safe='')}:6432/{info['dbname']}?pooling=transaction"
    try:
        _wait(process, reached.partition("?")[0], folder / "log")
        yield reached
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    def failure() -> str:
        return log.read_text() if log.exists() else "pgbouncer does not start"

    def answers() -> bool:
        assert process.poll() is None, failure()
        with suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=5).close()
            return True
        return False

    wait_until(answers, within=PATIENCE, failure=failure)
