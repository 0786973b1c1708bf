"""A URL leads to a store, or to an error that says what to write instead."""

import subprocess
import sys
from pathlib import Path

import pytest

from shiftwork.errors import UnknownStoreError
from shiftwork.store.memory import MemoryStore
from shiftwork.store.sqlite.store import SqliteStore
from shiftwork.store.urls import open_store


def refusal(url: str) -> str:
    with pytest.raises(UnknownStoreError) as caught:
        open_store(url)
    return str(caught.value)


def test_memory_is_new_each_time() -> None:
    assert isinstance(open_store("memory://"), MemoryStore)
    assert open_store("memory://") is not open_store("memory://")


def test_memory_is_shared_by_name_and_namespace() -> None:
    one = open_store("memory://shared")
    assert one.url == "memory://shared"
    assert open_store("memory://shared") is one
    assert open_store("MEMORY://shared") is one
    assert open_store("memory://other") is not one
    assert open_store("memory://shared", namespace="other") is not one


@pytest.mark.parametrize("url", ["sqlite:///some.db", "sqlite:////tmp/some.db", "sqlite:///a/b c.db?synchronous=full"])
def test_sqlite_is_constructed_and_not_opened(url: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, dict[str, str]]] = []
    monkeypatch.setattr(SqliteStore, "__init__", lambda _, path, **options: made.append((path, options)))
    open_store(url, namespace="ours")
    path = url.removeprefix("sqlite:///").partition("?")[0]
    options = {"synchronous": "full"} if "?" in url else {}
    assert made == [(path, {"namespace": "ours", **options})]


def test_the_short_form_of_postgresql_is_accepted() -> None:
    assert open_store("postgres://user:secret@host/db").url == "postgresql://user@host/db"


def test_drivers_are_imported_only_when_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shiftwork.store.sqlite.store", None)
    open_store("memory://")
    with pytest.raises(ImportError):
        open_store("sqlite:///some.db")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("sqlit:///a.db", "did you mean 'sqlite'?"),
        ("postgre://user:secret@host/db", "did you mean 'postgresql'?"),
        ("postgresql+asyncpg://user:secret@host/db", "did you mean 'postgresql'? The driver is chosen for you"),
        ("mysql://user:secret@host/db", "unknown store scheme 'mysql'"),
        ("sqlite://foo.db", "for the file 'foo.db', write sqlite:///foo.db"),
        ("sqlite://user:secret@host/foo.db", "write sqlite:///relative.db or sqlite:////absolute.db"),
        ("sqlite://", "write sqlite:///relative.db or sqlite:////absolute.db"),
        ("sqlite:///", "write sqlite:///relative.db or sqlite:////absolute.db"),
        ("sqlite:////", "write sqlite:///relative.db or sqlite:////absolute.db"),
        ("sqlite:///folder/", "a SQLite URL must name a file"),
        ("sqlite:///?synchronous=full", "a SQLite URL must name a file"),
        ("sqlite:///:memory:", "write memory://"),
        ("sqlite:///a.db?synchronus=full", "did you mean 'synchronous'?"),
        ("sqlite:///a.db?synchronous=maybe", "it is one of off, normal, full, extra"),
        ("sqlite:///a.db?synchronous=off&synchronous=full", "given twice"),
        ("memory://?synchronous=full", "memory:// has no parameter 'synchronous'"),
        ("shiftwork.db", "for a SQLite file, write sqlite:///shiftwork.db"),
        ("sqlite:shiftwork.db", "for a SQLite file, write sqlite:///shiftwork.db"),
        ("user:secret@host/db", "there are: memory, postgresql, redis, redis+cluster, redis+sentinel, rediss, sqlite"),
        ("", "the store's URL is empty"),
    ],
)
def test_malformed_urls_are_refused_with_the_right_form(url: str, told: str) -> None:
    message = refusal(url)
    assert told in message
    assert "secret" not in message


PROCESS_OF_A_NODE = """
import asyncio
import sys
from unittest.mock import Mock
from shiftwork.runtime.processes.messages import Setup
from shiftwork.serve.spawned import _begin

def there():
    return "shiftwork.store.postgres.store" in sys.modules

asyncio.run(_begin(Mock(), Setup(app="shop:app", role="shared", now=0.0, path=[])))
before = there()
import shop
print(before, shop.app.control.store.url, there())
"""


def test_a_process_that_runs_jobs_imports_the_driver_when_a_job_uses_the_store(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        'from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator("postgresql://u:p@h/d")'
    )
    command = [sys.executable, "-c", PROCESS_OF_A_NODE]
    said = subprocess.run(command, cwd=tmp_path, check=True, text=True, stdout=subprocess.PIPE).stdout
    assert said.split() == ["False", "postgresql://u@h/d", "True"]
