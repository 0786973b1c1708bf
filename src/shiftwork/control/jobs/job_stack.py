"""Reading the stack of a running job from any process that reaches the store: its node is asked, and replies."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress

from shiftwork.core.jobs.transitions import status_word
from shiftwork.core.model.doc_types import StackReply, StackRequest
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.errors import JobStateError, NodeSilentError, StoreError
from shiftwork.runtime.node.stack_responder import REPLY_SECONDS, Requests, change_stack_requests, read_stack_requests
from shiftwork.sentences import sentence
from shiftwork.store.protocol import Bell, Store
from shiftwork.views.instances import JobStack


async def read_stack(
    store: Store,
    record: JobRecord,
    now: Callable[[], float],
    *,
    reread: Callable[[str], Awaitable[JobRecord]],
) -> JobStack:
    """Return the stack of a running job. `reread` reads the job again if its node does not reply in time."""
    _refuse_unless_running(record)
    seen = await _ask(store, record, now)
    if seen is None:
        raise _silent(await reread(record.id))
    return JobStack(job_id=record.id, at=seen.at, instance=seen.instance, pid=seen.pid, stack=seen.stack)


async def _ask(store: Store, record: JobRecord, now: Callable[[], float]) -> StackReply | None:
    key = secrets.token_hex(8)
    bell = store.listen({"state"})
    request = StackRequest(job=record.id, fence=record.fence, asked_at=now())
    try:
        await change_stack_requests(store, now(), lambda requests: {**requests, key: request})
        return await _reply(store, key, bell)
    finally:
        bell.close()
        with suppress(StoreError):  # the request expires by itself
            await change_stack_requests(store, now(), lambda requests: _without(requests, key))


async def _reply(store: Store, key: str, bell: Bell) -> StackReply | None:
    with suppress(TimeoutError):
        async with asyncio.timeout(REPLY_SECONDS):
            while not bell.closed:
                request = (await read_stack_requests(store)).get(key)
                if request is not None and request.reply is not None:
                    return request.reply
                await bell.wait()
    return None


def _silent(record: JobRecord) -> NodeSilentError:
    _refuse_unless_running(record, ended=True)
    message = sentence(
        "job {id}: the node of {instance} did not reply within {n} s; `shiftwork nodes` shows whether it "
        "is alive. If it is gone, its jobs run again when their lease ends; if it hangs, restart it",
        id=record.id,
        instance=record.instance,
        n=f"{REPLY_SECONDS:g}",
    )
    return NodeSilentError(message)


def _refuse_unless_running(record: JobRecord, *, ended: bool = False) -> None:
    if record.status is not JobStatus.PROCESSING:
        state = status_word(record.status)
        message = sentence(
            "job {id} is {state}, and only a running job has a stack; see: shiftwork explain {what}",
            id=record.id,
            state=state,
            what=record.id,
        )
        if ended:
            message = sentence(
                "job {id} has ended, or is to run again: it is {state}, and only a running job has a stack; see: "
                "shiftwork explain {what}",
                id=record.id,
                state=state,
                what=record.id,
            )
        raise JobStateError(message)


def _without(requests: Requests, key: str) -> dict[str, StackRequest]:
    return {other: request for other, request in requests.items() if other != key}
