"""Storing what jobs carry in other bytes. What becomes of a job is for `shiftwork.core.values.rewriting` to decide."""

from collections.abc import Sequence

from msgspec import msgpack

from shiftwork.core.model.job import JobRecord, Rewrite
from shiftwork.core.values.rewriting import is_written, rewritten
from shiftwork.store.sqlite.file.session import SqliteSession, as_list
from shiftwork.store.sqlite.large_values import replace_payload, replace_result
from shiftwork.store.sqlite.rows import Unreadable, detailed, read_rows


def rewrite(session: SqliteSession, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Rewrite these jobs, and return for each whether all of it was written."""
    return [_rewrite(session, one) for one in rewrites]


def _rewrite(session: SqliteSession, one: Rewrite) -> bool:
    broken = Unreadable()
    rows = read_rows(session, "records_of_ids", (session.namespace, as_list([one.before.id])))
    found = zip(rows, detailed(session, rows, broken, whole=True), strict=True)
    for seq, job in found:
        if seq not in broken:
            after = rewritten(job, one)
            _write(session, seq, job, after)
            return is_written(after, one)
    return False


def _write(session: SqliteSession, seq: int, before: JobRecord, after: JobRecord) -> None:
    if after.payload != before.payload:
        replace_payload(session, seq, after.payload)
    if after.result is not None and after.result != before.result:
        replace_result(session, seq, after.result)
    progress = None if after.progress is None else msgpack.encode(after.progress)
    session.run("change_texts", (after.error, progress, seq))
    for was, attempt in zip(before.attempts, after.attempts, strict=True):
        if attempt != was:
            session.run("change_attempt", (msgpack.encode(attempt), seq, msgpack.encode(was)))
    for step, other in zip(before.steps, after.steps, strict=True):
        if other != step:
            session.run("change_step", (msgpack.encode(other), seq, step.number))
    for signal, said in zip(before.signals, after.signals, strict=True):
        if said != signal:
            session.run("change_signal", (msgpack.encode(said), len(said.value), seq, msgpack.encode(signal)))
