"""Encrypting what is stored with the first key of the ring, while nodes run.

Jobs are read in pages, as they are stored; each value that is plain or under another key is encrypted again, and
written only where it has not changed since (`Store.rewrite`). So no run, fence or attempt is touched, and an
interrupted rewrite is continued by starting it again: what is under the first key already is left alone.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from math import inf, nextafter
from typing import Final

from msgspec import Struct

from shiftwork.core.doc_kinds import ENCRYPTION, SCHEDULE_PART, STORED_SCHEDULE
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import Cancel, JobFilter
from shiftwork.core.model.jobs import JobRecord, Rewrite
from shiftwork.core.schedules.stored import schedules_kind
from shiftwork.core.values.envelopes import CIPHER, PLAIN, KeyInUse, is_outdated, is_sealed, key_of, keys_in
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store
from shiftwork.store.schedules import read_index
from shiftwork.store.sealed.key_ring import keys_in_use
from shiftwork.store.sealed.store import SealedStore

REKEYED_AT_A_TIME: Final = 200
"""How many jobs are in memory at a time; each may have a megabyte of payload."""
PASSES: Final = 5
"""How often jobs that have changed in the meantime are looked for again."""

Report = Callable[[str, int, int], None]
"""Called with the current step, how many jobs it has handled, and how many there are (0 if that is not known)."""


class Census(Struct, frozen=True):
    """How many jobs there are under which key. A job counts under each key that one of its values is encrypted with."""

    jobs: int
    under: Mapping[str, int]
    """By key id; `PLAIN` for jobs with a value that is not encrypted."""
    complete: bool = True
    """Whether every job was counted."""


class Rekeyed(Struct, frozen=True, kw_only=True):
    """What `rekey` did."""

    key: str
    """The key that everything is encrypted with now."""
    jobs: int
    rewritten: int
    unreadable: int
    """How many jobs have a value whose key is missing here, or that was changed. They stay as they are."""
    changing: int
    """How many jobs changed whenever they were to be written. Running it again finishes them."""
    retired: tuple[str, ...] = ()
    """The keys that no job needs."""
    lagging: tuple[str, ...] = ()
    """The nodes that still encrypt with another key."""


async def count_keys(store: SealedStore, *, at_most: int | None = None, report: Report | None = None) -> Census:
    """Count the jobs under each key: all, or the newest."""
    under: Counter[str] = Counter()
    jobs = 0
    async for page in _pages(store.inner):
        for job in page:
            under.update(keys_in(job))
        jobs += len(page)
        if report is not None:
            report("counting", jobs, 0)
        if at_most is not None and jobs >= at_most:
            return Census(jobs, under, complete=False)
    return Census(jobs, under)


async def rekey(store: SealedStore, *, now: float, report: Report) -> Rekeyed:
    """Encrypt every job with the first key, and retire the keys that no job and no node needs."""
    total = (await count_keys(store, report=report)).jobs
    rewritten = 0
    done = _Pass()
    for _ in range(PASSES):
        done = await _rewrite_all(store, total, report)
        rewritten += done.rewritten
        if not done.rewritten and not done.changing:
            break
    schedules = await _rewrite_schedules(store)
    first, *_ = store.key_ids
    lagging = await _lagging(store, first, now)
    nothing_left = not done.changing and not done.rewritten
    retired = await _retire(store, {first, *done.needed, *schedules, *lagging.values()}) if nothing_left else ()
    return Rekeyed(
        key=first,
        jobs=done.jobs,
        rewritten=rewritten,
        unreadable=done.unreadable,
        changing=done.changing,
        retired=retired,
        lagging=tuple(sorted(lagging)),
    )


async def give_up_key(store: Store, key: str, *, now: float, report: Report) -> int:
    """Cancel the live jobs whose payload is under a lost key, retire the key, and return how many jobs there were."""
    bare = store.inner if isinstance(store, SealedStore) else store
    reason = f"its payload is encrypted with key {key}, which is lost"
    done = cancelled = 0
    async for page in _pages(bare):
        lost = [job.id for job in page if job.status.live and is_sealed(job.payload) and key_of(job.payload) == key]
        cancelled += sum(one.ok for one in await bare.amend(lost, Cancel(reason), now)) if lost else 0
        done += len(page)
        report("cancelling", done, 0)
    await change(bare, ENCRYPTION, key, lambda _: KeyInUse(CIPHER, retired=True))
    return cancelled


class _Pass:
    """What one look at all jobs found and did."""

    def __init__(self) -> None:
        self.jobs = self.rewritten = self.unreadable = self.changing = 0
        self.needed: set[str] = set()
        """The keys of values that cannot be decrypted here."""


async def _rewrite_all(store: SealedStore, total: int, report: Report) -> _Pass:
    done = _Pass()
    async for page in _pages(store.inner):
        rewrites = [rewrite for job in page if (rewrite := _rewrite(store, job, done)) is not None]
        written = await store.inner.rewrite(rewrites) if rewrites else []
        done.rewritten += sum(written)
        done.changing += written.count(False)
        done.jobs += len(page)
        report("rewriting", done.jobs, max(total, done.jobs))
    return done


def _rewrite(store: SealedStore, job: JobRecord, done: _Pass) -> Rewrite | None:
    """Return how to encrypt a job with the first key; None if that is done, or cannot be."""
    keys = keys_in(job)
    outdated = is_outdated(job)
    if keys <= {store.key_ids[0]} and not outdated:
        return None
    opened = store.sealer.open_record(job)
    locked = keys_in(opened) - {PLAIN}
    done.unreadable += bool(locked)
    done.needed |= locked
    is_done = keys <= {store.key_ids[0], *locked} and (not outdated or is_outdated(opened))
    return None if is_done else Rewrite(job, store.sealer.seal_record(opened))


async def _rewrite_schedules(store: SealedStore) -> set[str]:
    """Encrypt the payloads of stored schedules with the first key; return the keys of those that are not readable."""
    locked: set[str] = set()
    for part in await read_index(store):
        done = False
        while not done:  # until nothing has changed it meanwhile
            docs = await store.inner.docs(schedules_kind(part))
            opened = [store.sealer.open_doc(doc) for doc in docs]
            locked |= {key for doc in opened for key in _keys_of_schedules(doc)} - {PLAIN}
            keys = {key for doc in docs for key in _keys_of_schedules(doc)}
            done = keys <= {store.key_ids[0], *locked} or all(await store.put(opened))
    return locked


def _keys_of_schedules(doc: Doc) -> set[str]:
    part = SCHEDULE_PART.decode(doc.body) or {}
    schedules = (STORED_SCHEDULE.decode(body) for body in part.values())
    payloads = (schedule.job.payload for schedule in schedules if schedule is not None)
    return {key_of(payload) if is_sealed(payload) else PLAIN for payload in payloads}


async def _pages(store: Store) -> AsyncIterator[Sequence[JobRecord]]:
    """Yield all jobs, whole, newest first."""
    page = await store.find(JobFilter(limit=REKEYED_AT_A_TIME))
    while page:
        last = page[-1]
        found = await store.get([job.id for job in page], whole=True)
        yield [job for job in found if job is not None]
        if len(page) < REKEYED_AT_A_TIME:
            return
        page = await store.find(JobFilter(limit=REKEYED_AT_A_TIME, after=last.id))
        if not page and (await store.get([last.id]))[0] is None:
            # Paging after a deleted job finds nothing: continue from its time. Seeing a job twice is harmless.
            page = await store.find(JobFilter(limit=REKEYED_AT_A_TIME, created_before=nextafter(last.created_at, inf)))


async def _lagging(store: SealedStore, first: str, now: float) -> dict[str, str]:
    """Return the live nodes that encrypt with another key, and which."""
    live = (known.beat for known in await store.instances() if known.expires_at > now)
    return {
        beat.node: beat.machine.keys[0] if beat.machine.keys else PLAIN
        for beat in live
        if beat.machine is not None and beat.machine.keys[:1] != (first,)
    }


async def _retire(store: SealedStore, needed: set[str]) -> tuple[str, ...]:
    retired = sorted(await keys_in_use(store) - needed)
    for id in retired:
        await change(store, ENCRYPTION, id, lambda _: KeyInUse(CIPHER, retired=True))
    return tuple(retired)
