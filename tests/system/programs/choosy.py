"""An app whose jobs and policies decide on the next attempt, on a pool of each kind."""

import os
from typing import Any

from shiftwork import Context, GiveUp, Retry, RetryAfter, Snooze, WorkerOrchestrator
from shiftwork.handles.worker import Worker

app = WorkerOrchestrator(os.environ["CHOOSY_STORE"])
app.register_pool("coroutines", kind="async", min_workers=1, max_workers=1)
app.register_pool("threads", kind="thread", min_workers=1, max_workers=1)
app.register_pool("apart", kind="process", min_workers=1, max_workers=1, cpu=0.1)


class BusyError(ConnectionError):
    pass


def rule(attempt: int, error: Exception) -> float | None:
    return 0 if attempt < 2 and isinstance(error, BusyError) else None


def act(ctx: Context, how: str) -> int:
    match how:
        case "give up":
            raise GiveUp("the customer is gone")
        case "retry after" if ctx.attempt == 1:
            raise RetryAfter(0)
        case "snooze" if not snoozed(ctx.job_id):
            raise Snooze("10ms")
        case "busy":
            raise BusyError("try again")
        case "wrong":
            raise ValueError("wrong")
        case _:
            return ctx.attempt


def snoozed(job_id: str) -> bool:
    """Whether the job has run before; if not, note that it has now."""
    try:
        with open(f"{os.environ['CHOOSY_FOLDER']}/{job_id}", "x"):  # noqa: PTH123 - short
            return False
    except FileExistsError:
        return True


async def act_in_a_coroutine(ctx: Context, how: str) -> int:
    return act(ctx, how)


POLICIES: dict[str, Any] = {
    "plain": Retry(delays=[0]),
    "on": Retry(delays=[0], on=(ConnectionError,)),
    "never-on": Retry(delays=[0], never_on=(ConnectionError,)),
    "rule": rule,
}
WORKERS: dict[str, Worker[..., Any]] = {
    f"{pool} {policy}": app.register_worker(
        f"{pool} {policy}", function, pool=pool, execution_mode="triggered", max_retries=2, retry=retry
    )
    for pool, function in (("coroutines", act_in_a_coroutine), ("threads", act), ("apart", act))
    for policy, retry in POLICIES.items()
}
