"""Adding jobs: those that many callers of one event loop add are sent in batches; and jobs as bytes for the scripts.

While one batch is under way, the next one gathers. A lone caller waits for nothing but the server: its job is sent at
once, and the reply goes straight to its future. If it is a plain one, as most are, it has a script of its own.

This module owns the size of a batch, and which caller gets which part of the reply. What a new job becomes on the
server is in `scripts/add.lua`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final

from hiredis import ReplyError
from msgspec import msgpack

from shiftwork.core.jobs.needs import needs_of
from shiftwork.core.jobs.transitions import NUMBERS
from shiftwork.core.model.jobs import Added, JobStatus, NewJob
from shiftwork.errors import FlowError, LifecycleError
from shiftwork.store.redis.lua import NEW, OWN_ARGUMENTS, STATE, brief
from shiftwork.store.redis.rows import never_changes_of
from shiftwork.store.redis.server.client import RedisClient, RedisConnection, SentCommand
from shiftwork.store.redis.server.pipeline import ConnectionLostError

FULL_BATCH: Final = 500
FULL_BATCH_BYTES: Final = 1_000_000
"""A batch of this size is sent at once, so that the server works while the next one gathers."""

LEAST_SHARE: Final = 16
"""With at least this many callers, half of them share a batch: the server works while the others prepare their jobs."""

MAX_SCRIPT_JOBS: Final = 20_000
MAX_SCRIPT_BYTES: Final = 64_000_000
"""More jobs than this are split over several scripts, so that other scripts can run in between, and no call comes near
a gigabyte, the server's limit for one client. Jobs that belong together are never split, so that all of them are added,
or none: a larger flow is rejected."""

NewRows = Sequence[tuple[Any, ...]]
Caller = tuple[asyncio.Future[list[Any]], int]

_encode: Final = msgpack.Encoder().encode
_new: Final = attrgetter(*NEW[: NEW.index("created_at")])
_QUEUED: Final = NUMBERS[JobStatus.QUEUED]
_NONE: Final = float("nan")


class BatchReply(asyncio.Future[Any]):
    """The reply to a batch. The callers get their parts at once, not in the next iteration of the event loop."""

    def __init__(self, arrived: Callable[["BatchReply"], None], *, at_once: bool) -> None:
        super().__init__()
        self._arrived = arrived
        self.at_once = at_once
        """Whether the batch is sent now, not at the end of this loop iteration."""
        self.sent: SentCommand | None = None
        """The command that it answers, until it arrives."""

    def set_result(self, result: Any) -> None:
        super().set_result(result)
        self._arrived(self)

    def set_exception(self, exception: type | BaseException) -> None:
        super().set_exception(exception)
        self.get_loop().call_soon(self._arrived, self)  # not while the connection is being closed


class AddBatcher:
    """Gathers the jobs that callers of one event loop add, and sends them in batches."""

    def __init__(
        self,
        client: RedisClient,
        connection: RedisConnection,
        *,
        send: Callable[[NewRows, Sequence[bytes], BatchReply], SentCommand],
        receive: Callable[[list[Any]], list[Any]],
    ) -> None:
        self._client = client
        self._send_batch = send
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._is_scheduled = False
        self._awaited = 0
        """How many callers wait for the replies that are under way."""
        self._alone = False
        """Whether the last batch was sent for its first caller, without waiting for others."""
        self._callers: list[Caller] = []
        self._rows: list[tuple[Any, ...]] = []
        self._behind: list[bytes] = []
        self._bytes = 0
        connection.before_send = self.send

    @property
    def idle(self) -> bool:
        """Whether no job is gathered or under way."""
        return not (self._under_way or self._is_scheduled or self._callers)

    async def add_alone(self, sent: SentCommand) -> Any:
        """Wait for the reply to a job that was sent by itself; jobs that follow gather meanwhile."""
        self._under_way += 1
        self._awaited += 1
        self._alone = True
        try:
            return await sent.reply
        except (ConnectionLostError, ReplyError):
            return await self._client.reply(sent)
        finally:
            self._under_way -= 1
            self._awaited -= 1
            if self._under_way == 0 and self._callers:
                self._schedule()

    def add(self, rows: NewRows, behind: Sequence[bytes]) -> Awaitable[list[Any]]:
        """Add these rows to the batch, and return a future of the part of the reply that belongs to them."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        self._callers.append((future, len(rows)))
        self._rows += rows
        self._behind += behind
        self._bytes += sum(map(len, behind))
        is_full = len(self._rows) >= FULL_BATCH or self._bytes >= FULL_BATCH_BYTES
        if is_full or len(self._callers) >= max(LEAST_SHARE, self._awaited):
            self._send_now()
        elif self._under_way == 0 and not self._is_scheduled:
            self._send_now()
            self._alone = True
        elif self._alone:
            # Callers that were woken together add their jobs in the same loop iteration: the first is sent at once, and
            # the others follow it together.
            self._schedule()
        return future

    def send(self, *, at_once: bool = False) -> None:
        """Send the batch, because another command follows that must not overtake it."""
        if not self._callers:
            return
        callers, self._callers = self._callers, []
        rows, self._rows = self._rows, []
        behind, self._behind, self._bytes = self._behind, [], 0
        reply = BatchReply(partial(self._arrived, callers), at_once=at_once)
        try:
            reply.sent = self._send_batch(rows, behind, reply)
        except LifecycleError as error:  # the store was closed meanwhile
            for future, _ in callers:
                if not future.done():
                    future.set_exception(error)
            return
        self._under_way += 1
        self._awaited += len(callers)
        self._alone = False

    def _schedule(self) -> None:
        """Send the batch at the end of this loop iteration."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._send_now)

    def _send_now(self) -> None:
        self._is_scheduled = False
        self.send(at_once=True)

    def _arrived(self, callers: list[Caller], reply: BatchReply) -> None:
        self._under_way -= 1
        self._awaited -= len(callers)
        sent, reply.sent = reply.sent, None  # they refer to each other
        if sent is not None and reply.exception() is not None:
            again = asyncio.ensure_future(self._client.reply(sent))
            again.add_done_callback(partial(self._distribute, callers))
        else:
            self._distribute(callers, reply)
        if self._under_way == 0 and (self._callers or len(callers) > 1):
            self._schedule()  # not at once: the callers that were woken together may have more jobs

    def _distribute(self, callers: list[Caller], reply: asyncio.Future[Any]) -> None:
        if reply.cancelled():
            for future, _ in callers:
                future.cancel()
            return
        error, answers, at = reply.exception(), [], 0
        if error is None:
            [answers] = self._receive(reply.result())
        for future, n in callers:
            if future.done():  # its caller was cancelled
                pass
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(answers[at : at + n])
            at += n


def in_parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Yield the jobs in parts that one script can add."""
    begin = size = 0
    for at, job in enumerate(jobs):
        if at - begin >= MAX_SCRIPT_JOBS or (size and size + len(job.payload) > MAX_SCRIPT_BYTES):
            yield jobs[begin:at]
            begin, size = at, 0
        size += len(job.payload)
    if begin < len(jobs):
        yield jobs[begin:]


def check_size(jobs: Sequence[NewJob]) -> None:
    """Raise if jobs that belong together do not fit into one script: then some might be added without the others."""
    size = sum(len(job.payload) for job in jobs)
    if len(jobs) > MAX_SCRIPT_JOBS or size > MAX_SCRIPT_BYTES:
        message = (
            f"{len(jobs):,} jobs with {size:,} bytes of payload cannot be added to Redis in one step: at most "
            f"{MAX_SCRIPT_JOBS:,} jobs and {MAX_SCRIPT_BYTES:,} bytes can. Pass references to large values, or let a "
            "job of the flow add the rest while it runs"
        )
        raise FlowError(message)


def new_jobs(jobs: Sequence[NewJob], now: float) -> tuple[list[tuple[Any, ...]], list[bytes]]:
    """Return jobs as rows for `added_together`, and their payloads."""
    rows, payloads = [], []
    for job in jobs:
        job.id.encode()  # an id that cannot be sent fails here, not for all jobs of the batch
        rows.append((*_new(job), now, never_changes_of(job, now), _extra(job)))
        payloads.append(job.payload)
    return rows, payloads


def added_together(
    rows: Sequence[tuple[Any, ...]], payloads: Sequence[bytes], by: tuple[str, int] | tuple[()] = ()
) -> tuple[bytes, list[bytes]]:
    """Return the rows of a batch as arguments of `add`, and the bytes that follow them.

    `by` is the id and the fence of the running job that adds them, if one does.
    """
    first = OWN_ARGUMENTS + len(payloads) + 1
    if len(rows) == 1:
        [(*row, info, extra)] = rows
        if extra is None:
            return _encode((1, (*row, first), *by)), [*payloads, info]
        return _encode((1, (*row, first, first + 1), *by)), [*payloads, info, extra]
    *given, infos, extras = zip(*rows, strict=True)
    at = {info: first + n for n, info in enumerate(dict.fromkeys(infos))}
    given.append(tuple(map(at.__getitem__, infos)))
    if extras.count(None) < len(extras):
        for extra in dict.fromkeys(filter(None, extras)):
            at[extra] = first + len(at)
        given.append(tuple(map(at.get, extras)))
    return _encode((len(rows), [brief(column) for column in given], *by)), [*payloads, *at]


def one_plain(job: NewJob, now: float) -> tuple[bytes, ...] | None:
    """Return a job as arguments of `add_one_fast`; None if it is not plain (`parts/add_fast.lua`)."""
    run_at, head_start = job.run_at, job.head_start
    if job.unique_key is not None or job.key is not None or not run_at <= now or _extra(job) is not None:
        return None
    return (
        job.id.encode(),
        STATE.pack(_QUEUED, 0, 0, 0, 0, 0.0, run_at, head_start, _NONE, _NONE),
        never_changes_of(job, now),
        job.payload,
        job.worker.encode(),
        job.pool.encode(),
        repr(now).encode(),
        repr(run_at - head_start).encode(),
    )


def answered(new: Sequence[NewJob], answers: list[Any]) -> list[Added]:
    """Return what happened to each job, from the reply of `add`."""
    if not answers:
        return [Added(job.id, created=True) for job in new]
    return [
        Added(one.decode(), created=False) if isinstance(one, bytes) else Added(job.id, created=one == 1)
        for job, one in zip(new, answers, strict=True)
    ]


def _extra(job: NewJob) -> bytes | None:
    """Return the optional fields of a new job, packed in the order of `EXTRA`; None if it has none."""
    if job.flow is None and not job.tags and not job.needs and job.parent is None and job.expires_at is None:
        return None
    return _encode((job.flow, job.tags, needs_of(job), job.parent, job.expires_at))
