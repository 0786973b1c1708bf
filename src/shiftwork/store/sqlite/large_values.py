"""What belongs to a job beside its row: values that are too large for it, and rows of other tables."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from shiftwork.store.sqlite.file.session import SqliteSession, as_list

INLINE_BYTES: Final = 1024
"""Larger payloads and results have tables of their own, because every change of status rewrites the job's row."""
PARTS: Final = ("payloads", "results", "attempts", "needs", "tags", "steps", "signals")
"""The tables whose rows end with their job, in the order of `parts_in_use`."""
DoomedJob = tuple[int, int, int, int, int | None]
"""A job to be deleted: its own number, and those of its pool, its worker, its status and its flow."""


def replace_payload(session: SqliteSession, seq: int, payload: bytes) -> None:
    """Replace a job's payload."""
    small = len(payload) <= INLINE_BYTES
    session.run("change_payload", (payload if small else None, seq))
    session.run("drop_payload", (seq,))
    if not small:
        session.run("add_payload", (seq, payload))


def replace_result(session: SqliteSession, seq: int, result: bytes) -> None:
    """Replace a job's result."""
    small = len(result) <= INLINE_BYTES
    session.run("change_result", (result if small else None, seq))
    session.run("drop_result", (seq,))
    if not small:
        session.run("add_result", (seq, result))


def delete(session: SqliteSession, doomed: Iterable[DoomedJob]) -> int:
    """Delete these jobs and everything that belongs to them. Returns how many."""
    doomed = list(doomed)
    for (pool, worker, status, flow), n in Counter(job[1:] for job in doomed).items():
        session.count(pool, worker, flow, status, -n)
    seqs = (as_list(seq for seq, *_ in doomed),)
    session.run("delete_jobs", seqs)
    for part, used in zip(PARTS, session.run("parts_in_use").fetchone(), strict=True):
        if used:
            session.run(f"delete_{part}", seqs)
    if any(flow is not None for *_, flow in doomed):
        session.flush()  # a flow ends with its last job, and begins anew if it gets another one
    return len(doomed)
