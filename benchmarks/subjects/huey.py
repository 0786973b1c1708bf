"""Huey, with the best reasonable settings for each store: no results, the shortest delays, as many threads as help.

It has the same durability as the others, but neither lease nor fence: jobs it has taken and not run are lost.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from huey import Huey, PostgresHuey, RedisHuey
from huey.storage import SqliteStorage

from benchmarks.subjects.subject import CALLERS, Subject


class OnHuey(Subject):
    threads: ClassVar[int]

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._huey = self.queue()
        self._consumer: Any = None
        self._ran: Callable[[], None] | None = None
        lock = threading.Lock()

        def noop() -> None:
            with lock:
                if self._ran is not None:
                    self._ran()

        self._noop = self._huey.task()(noop)

    def queue(self) -> Any:
        """The queue at the URL."""
        raise NotImplementedError

    async def open(self) -> None:
        """Huey connects when it is used."""

    async def add(self) -> None:
        self._noop()

    async def add_many(self, n: int) -> None:
        """Huey cannot add several jobs at once."""
        for _ in range(n):
            self._noop()

    async def add_together(self, n: int) -> None:
        """Huey's callers are threads."""

        def caller(_: int) -> None:
            for _ in range(n // CALLERS):
                self._noop()

        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(caller, range(CALLERS)))

    async def start(self, ran: Callable[[], None]) -> None:
        self._ran = ran
        self._consumer = self._huey.create_consumer(
            workers=self.threads, periodic=False, initial_delay=0.001, backoff=1.05, max_delay=0.005
        )
        self._consumer.start()

    async def close(self) -> None:
        if self._consumer is not None:
            self._consumer.stop(graceful=True)


class NormalStorage(SqliteStorage):  # type: ignore[misc, unused-ignore]
    """With synchronous=NORMAL. Huey's own setting has only FULL, which is slower, and OFF, which is less durable."""

    def _create_connection(self) -> Any:
        db = super()._create_connection()
        db.execute("PRAGMA synchronous = NORMAL")
        return db


class OnSqlite(OnHuey):
    threads = 1

    def queue(self) -> Any:
        path = self.url.removeprefix("sqlite:///")
        return Huey("bench", storage_class=NormalStorage, filename=path, results=False, timeout=60)


class OnRedis(OnHuey):
    threads = 2

    def queue(self) -> Any:
        return RedisHuey("bench", url=self.url, results=False)


class OnPostgres(OnHuey):
    threads = 4

    def queue(self) -> Any:
        return PostgresHuey("bench", dsn=self.url, results=False)
