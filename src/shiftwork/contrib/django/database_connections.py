"""Django's database connections around each job, as around each request: a broken or expired one is not used again.

A plain function runs in a thread whose connections stay open from job to job. The database calls of a coroutine run in
a thread that belongs to the job alone, so that jobs beside each other neither share a transaction nor wait for each
other's queries.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections, reset_queries

from shiftwork.runtime.context.context import Context


def fresh_connections(_: Context) -> AbstractContextManager[None] | AbstractAsyncContextManager[None]:
    """Return what surrounds one run: in the thread of a plain function, or on the event loop of a coroutine."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _in_this_thread()
    return _in_a_thread_of_its_own()


@contextmanager
def _in_this_thread() -> Iterator[None]:
    reset_queries()
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


@asynccontextmanager
async def _in_a_thread_of_its_own() -> AsyncIterator[None]:
    async with ThreadSensitiveContext():
        try:
            yield
        finally:
            await sync_to_async(connections.close_all)()
