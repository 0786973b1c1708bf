"""Brings a file from version 1 to version 2, in the transaction of the caller.

Processes of version 1 would lose signals there, so none of their nodes may be live. Chains that broke before the
upgrade are not marked as broken: what waits behind them waits for a retry, as it did.
"""

import time
from collections import defaultdict
from collections.abc import Iterator

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.beginnings import read_signal, read_step
from shiftwork.core.jobs.durable import taken
from shiftwork.core.model.job_parts import Wait
from shiftwork.store.docs import outlived
from shiftwork.store.sqlite.file.driver import Connection
from shiftwork.store.sqlite.sql import script

_LIVE = "SELECT name FROM instances WHERE beat IS NOT NULL AND lost = 0 AND expires_at > ? ORDER BY name"


def upgrade(db: Connection, path: str) -> None:
    """Upgrade the file. Raises `SchemaVersionError` while a node of the older version is live."""
    live = [name for (name,) in db.execute(_LIVE, (time.time(),))]
    if live:
        raise outlived(path, ", ".join(live))
    for statement in script("upgrade.sql"):
        db.execute(statement)
    db.executemany("DELETE FROM signals WHERE no = ?", list(_taken(db)))
    db.executemany("UPDATE jobs SET wait = ? WHERE seq = ?", list(_waits(db)))


def _taken(db: Connection) -> Iterator[tuple[int]]:
    """Yield the numbers of the signals that a wait has taken."""
    sent = defaultdict[int, list[tuple[int, bytes]]](list)
    for no, job, body in db.execute("SELECT no, job, body FROM signals ORDER BY job, number"):
        sent[job].append((no, body))
    for job, signals in sent.items():
        steps = db.execute("SELECT body FROM steps WHERE job = ? ORDER BY number", (job,))
        places = taken((read_step(body) for (body,) in steps), [read_signal(body) for _, body in signals])
        yield from ((signals[place][0],) for place in places)


def _waits(db: Connection) -> Iterator[tuple[bytes, int]]:
    """Yield what jobs wait for, by their numbers: the first signal of those that are left."""
    for seq, body in db.execute("SELECT seq, wait FROM jobs WHERE wait IS NOT NULL"):
        try:
            wait = msgpack.decode(body, type=Wait)
        except (MsgspecError, TypeError):
            continue  # damaged: it waits for its time alone
        yield msgpack.encode(replace(wait, nth=1)), seq
