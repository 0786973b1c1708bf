"""The facts of `shiftwork.core.workers.admission`, and the states of workers, from the replies of scripts."""

import math
from collections.abc import Sequence
from typing import Any

from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.admission import Facts, Head, Lane, Running
from shiftwork.store.redis.docs import readable, stored


def read_facts(reply: Sequence[Any]) -> Facts:
    gates, breakers, pools, served, lanes = reply
    by_worker = {lane.state.worker: lane for lane in map(_lane, lanes)}
    return Facts(
        lanes=by_worker,
        gates={name: gate for name, gate in readable(stored("gates", gates)).items() if name in by_worker},
        breakers=readable(stored("breaker", breakers)),
        pools=readable(stored("pool", pools)),
        served={pool.decode() for pool in served},
    )


def _lane(reply: Sequence[Any]) -> Lane:
    name, fields, running, eldest, newest, head, retrying, live, ready = reply
    return Lane(
        state=read_state(name.decode(), fields),
        running=running,
        eldest=_running(*eldest) if eldest else None,
        newest_started_at=_number(newest),
        head=_head(*head) if head else None,
        retrying=bool(retrying),
        live=bool(live),
        ready=None if ready == b"" else int(ready),
    )


def _running(id: bytes, instance: bytes, started_at: bytes) -> Running:
    return Running(id.decode(), instance.decode(), float(started_at))


def _head(rank: bytes, id: bytes, since: bytes) -> Head:
    return Head(rank=float(rank), id=id.decode(), since=float(since))


def read_state(worker: str, reply: Sequence[bytes | None]) -> WorkerState:
    """Return a worker's state from the fields that `worker_state.lua` lists."""
    on, why, at, failures, started, ended, success, error, wrong, rate = reply
    return WorkerState(
        worker=worker,
        enabled=on in {None, b"1"},
        reason=_text(why),
        changed_at=_number(at),
        failures=int(_number(failures) or 0),
        last_started=_number(started),
        last_ended=_number(ended),
        last_success=_number(success),
        last_error=_text(error),
        last_error_at=_number(wrong),
        rate_at=_number(rate) or 0.0,
    )


def _number(value: bytes | None) -> float | None:
    try:
        number = float(value or "nan")
    except ValueError:  # damaged: as if it was not there
        return None
    return number if math.isfinite(number) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
