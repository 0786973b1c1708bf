"""Huey, with the best reasonable settings for each store: no results, the shortest delays, as many threads as help.

It has the same durability as the others, but neither lease nor fence: jobs it has taken and not run are lost.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from huey import Huey, PostgresHuey, RedisHuey
from huey.storage import SqliteStorage

from benchmarks.plan import SLOTS
from benchmarks.subjects.subject import CALLERS, Subject


class OnHuey(Subject):
    """Its consumer is threads of this process."""

    threads: ClassVar[int]

    def __init__(self, url: str, *, seconds: float = 0.0) -> None:
        super().__init__(url, seconds=seconds)
        self._huey = self.queue()
        self._consumer: Any = None
        self._ran: Callable[[], None] | None = None
        lock = threading.Lock()

        def job() -> None:
            if seconds:
                time.sleep(seconds)
            with lock:
                if self._ran is not None:
                    self._ran()

        self._job = self._huey.task()(job)

    def queue(self) -> Any:
        """The queue at the URL."""
        raise NotImplementedError

    async def open(self) -> None:
        """Huey connects when it is used."""

    async def add(self) -> None:
        self._job()

    def add_blocking(self) -> None:
        self._job()

    async def add_many(self, n: int) -> None:
        """Huey cannot add several jobs at once."""
        for _ in range(n):
            self._job()

    async def add_together(self, n: int) -> None:
        """Huey's callers are threads."""

        def caller(_: int) -> None:
            for _ in range(n // CALLERS):
                self._job()

        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(caller, range(CALLERS)))

    async def start(self, ran: Callable[[], None]) -> None:
        self._ran = ran
        self._consumer = self._huey.create_consumer(
            workers=SLOTS if self.seconds else self.threads,
            periodic=False,
            initial_delay=0.001,
            backoff=1.05,
            max_delay=0.005,
            check_worker_health=False,
        )
        self._consumer.start()

    async def close(self) -> None:
        """Huey has nothing to close."""


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
