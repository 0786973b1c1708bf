"""Seeing what a running job is doing, from any process that can reach the store. It only asks; its node answers."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress

from shiftwork.control.operations import Operations
from shiftwork.core.model import Event, JobRecord, JobStatus
from shiftwork.core.stack_requests import StackReply, StackRequest
from shiftwork.errors import JobStateError, NodeSilentError, StoreError
from shiftwork.runtime.node.stack_requests import (
    REPLY_SECONDS,
    Requests,
    change_stack_requests,
    read_stack_requests,
)
from shiftwork.store.protocol import Bell, Store
from shiftwork.views.stack import JobStack


class Inspector:
    """Asks the node that has the job."""

    def __init__(self, store: Store, operations: Operations, now: Callable[[], float]) -> None:
        self._store = store
        self._operations = operations
        self._now = now

    async def stack(self, job_id: str, patience: float = REPLY_SECONDS) -> tuple[JobStack, Event]:
        """The stack of a running job, and that somebody looked."""
        record = await self._operations.job(job_id)
        _refuse_unless_running(record, "is")
        seen = await self._ask(record, patience)
        message = f"somebody looked at what job {record.id} of {record.worker} is doing"
        event = await self._operations.record("job.inspected", record.id, message, worker=record.worker)
        return JobStack(job_id=record.id, at=seen.at, instance=seen.instance, pid=seen.pid, stack=seen.stack), event

    async def _ask(self, record: JobRecord, patience: float) -> StackReply:
        key = secrets.token_hex(8)
        bell = self._store.listen({"state"})
        request = StackRequest(job=record.id, fence=record.fence, asked_at=self._now())
        try:
            await change_stack_requests(self._store, self._now(), lambda requests: {**requests, key: request})
            seen = await self._answer(key, bell, patience)
        finally:
            bell.close()
            with suppress(StoreError):  # it is thrown away after a while
                await change_stack_requests(self._store, self._now(), lambda requests: _without(requests, key))
        if seen is None:
            await self._explain_silence(record, patience)
        assert seen is not None  # noqa: S101 - the line above has raised
        return seen

    async def _answer(self, key: str, bell: Bell, patience: float) -> StackReply | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while not bell.closed:
                    request = (await read_stack_requests(self._store)).get(key)
                    if request is not None and request.reply is not None:
                        return request.reply
                    await bell.wait()
        return None

    async def _explain_silence(self, before: JobRecord, patience: float) -> None:
        record = await self._operations.job(before.id)
        _refuse_unless_running(record, "has ended, or is to run again: it is")
        message = (
            f"job {record.id}: the node of {record.instance} did not answer within {patience:g} s; "
            "`shiftwork nodes` shows whether it is there. If it is gone, its jobs run again when their lease ends; "
            "if it hangs, restart it"
        )
        raise NodeSilentError(message)


def _refuse_unless_running(record: JobRecord, verb: str) -> None:
    if record.status is not JobStatus.PROCESSING:
        message = (
            f"job {record.id} {verb} {record.status}, and only a running job has a stack; "
            f"`shiftwork explain {record.id}` tells more"
        )
        raise JobStateError(message)


def _without(requests: Requests, key: str) -> dict[str, StackRequest]:
    return {other: request for other, request in requests.items() if other != key}
