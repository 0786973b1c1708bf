"""Many calls at once, through several handles and threads: everything in one call happens at once, or not at all."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import Claimed
from shiftwork.store.protocol import Store
from tests.store.conformance.acts import NOW, add, beat, claim, claim_one, finish, gate, job, succeeded
from tests.store.conformance.expect import equal, holds
from tests.store.conformance.lab import Lab

THREADS = 4
WORKERS = ("w", "v", "a", "b")


async def in_threads(lab: Lab, work: Callable[[Store, int], Awaitable[None]]) -> None:
    """Run the work in threads, each with an event loop and a handle of its own; the last two share a handle."""
    stores = [lab.store, *[await lab.another() for _ in range(THREADS - 2)]]
    start = threading.Barrier(THREADS)

    async def begin(number: int) -> None:
        start.wait()
        await work(stores[min(number, THREADS - 2)], number)

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, begin(number)) for number in range(THREADS)))


class OverlapRecorder:
    """Records which jobs run at the same time, from all threads, and which of them must not."""

    def __init__(self, rivals: Callable[[Claimed, Claimed], bool]) -> None:
        self.overlaps: list[tuple[str, str]] = []
        self.seen: Counter[str] = Counter()
        self._rivals = rivals
        self._running: dict[str, Claimed] = {}
        self._lock = threading.Lock()

    def starts(self, claimed: Claimed) -> None:
        with self._lock:
            self.seen[claimed.id] += 1
            self.overlaps += [(one.id, claimed.id) for one in self._running.values() if self._rivals(one, claimed)]
            self._running[claimed.id] = claimed

    def ends(self, claimed: Claimed) -> None:
        with self._lock:
            del self._running[claimed.id]


async def _work_off(store: Store, instance: str, recorder: OverlapRecorder, total: int) -> None:
    """Claim and finish until all jobs have been seen."""
    while len(recorder.seen) < total:
        taken = await claim(store, 3, instance=instance, workers=WORKERS)
        for claimed in taken:
            recorder.starts(claimed)
        await asyncio.sleep(0)
        for claimed in taken:
            recorder.ends(claimed)
            await finish(store, succeeded(claimed, waited=0.5, marks="w6 r0"))


async def check_every_job_is_claimed_once_by_tasks(lab: Lab) -> None:
    stores = [lab.store, await lab.another(), await lab.another()]
    await add(lab.store, *(job(f"{n:03}", WORKERS[n % 4]) for n in range(300)))
    claimed: list[Claimed] = []

    async def take(number: int) -> None:
        while taken := await claim(stores[number % 3], 1 + number % 4, instance=f"i{number}", workers=WORKERS):
            claimed.extend(taken)

    await asyncio.gather(*(take(number) for number in range(12)))
    equal(sorted(one.id for one in claimed), [f"{n:03}" for n in range(300)], "claimed")
    equal(len({one.fence for one in claimed}), 300, "fences")


async def check_every_job_is_run_once_by_threads(lab: Lab) -> None:
    total = 200
    await add(lab.store, *(job(f"{n:03}", WORKERS[n % 4]) for n in range(total)))
    recorder = OverlapRecorder(lambda one, other: one.id == other.id)
    await in_threads(lab, lambda store, number: _work_off(store, f"i{number}", recorder, total))
    equal((len(recorder.seen), max(recorder.seen.values())), (total, 1), "jobs seen, and how often at most")
    equal(recorder.overlaps, [], "overlaps")
    numbers = (await lab.store.stats(NOW)).pools["p"]
    equal((numbers.marks, numbers.wait_seconds), ({"w6": total, "r0": total}, total / 2), "what was counted of them")


async def check_conflicts_never_overlap(lab: Lab) -> None:
    total = 80
    await gate(lab.store, "a", conflicts=("b",))
    await gate(lab.store, "b", conflicts=("a",))
    await beat(lab.store, "i0", ttl=1_000)
    await add(lab.store, *(job(f"{n:03}", "aabb"[n % 4]) for n in range(total)))
    recorder = OverlapRecorder(lambda one, other: {one.worker, other.worker} == {"a", "b"})
    await in_threads(lab, lambda store, number: _work_off(store, f"i{number}", recorder, total))
    equal(recorder.overlaps, [], "overlaps")


async def check_keys_never_overlap(lab: Lab) -> None:
    total = 80
    await add(lab.store, *(job(f"{n:03}", key=f"{n // 4 % 3}") for n in range(total)))
    recorder = OverlapRecorder(lambda one, other: int(one.id) // 4 % 3 == int(other.id) // 4 % 3)
    await in_threads(lab, lambda store, number: _work_off(store, f"i{number}", recorder, total))
    equal(recorder.overlaps, [], "overlaps")


async def check_the_same_job_is_added_once(lab: Lab) -> None:
    created: list[str] = []

    async def add_all(store: Store, number: int) -> None:
        for n in range(20):
            same_id, same_key = await store.add([job(f"{n}"), job(f"{n} {number}", "v", unique_key=f"{n}")], NOW)
            created.extend(["id"] * same_id.created + ["key"] * same_key.created)

    await in_threads(lab, add_all)
    equal(Counter(created), {"id": 20, "key": 20}, "how many were new")
    equal(len(await lab.store.find(JobFilter(limit=1_000))), 40, "jobs")


async def check_the_same_outcome_is_accepted_once(lab: Lab) -> None:
    await add(lab.store, *(job(f"{n:02}") for n in range(20)))
    outcomes = [succeeded(claimed) for claimed in await claim(lab.store, 20)]
    accepted: list[bool] = []

    async def tell(store: Store, _: int) -> None:
        for one in outcomes:
            accepted.extend((await store.finish([one], NOW)).accepted)

    await in_threads(lab, tell)
    equal(sum(accepted), 20, "outcomes accepted")
    equal((await lab.store.stats(NOW)).pools["p"].completed, 20, "jobs counted as completed")


async def check_a_place_has_one_holder(lab: Lab) -> None:
    held: list[int] = []

    async def hold(store: Store, number: int) -> None:
        held.extend([n for n in range(20) if await store.hold(f"{n}", f"{number}", 1, 10, NOW)])

    await in_threads(lab, hold)
    equal(sorted(held), list(range(20)), "places, as often as they have a holder")


async def check_no_write_of_a_doc_is_lost(lab: Lab) -> None:
    async def count_up(store: Store, _: int) -> None:
        await asyncio.gather(_add_five(store), _add_five(store))

    await in_threads(lab, count_up)
    [doc] = await lab.store.docs("counter")
    equal((doc.body, doc.version), (b"%d" % (10 * THREADS), 10 * THREADS), "the counter, and its version")


async def _add_five(store: Store) -> None:
    for _ in range(5):
        while not await _add_one(store):
            pass


async def _add_one(store: Store) -> bool:
    docs = await store.docs("counter")
    await asyncio.sleep(0)
    doc = docs[0] if docs else Doc("counter", "c", b"0")
    [written] = await store.put([Doc("counter", "c", b"%d" % (int(doc.body) + 1), doc.version)])
    return written


async def check_a_lost_job_is_taken_once(lab: Lab) -> None:
    await add(lab.store, *(job(f"{n:02}") for n in range(40)))
    await claim(lab.store, 40, instance="gone")
    await beat(lab.store, *(f"r{number}" for number in range(THREADS)))
    taken: list[str] = []

    async def reap(store: Store, number: int) -> None:
        while records := await store.reap(f"r{number}", 3, NOW):
            taken.extend(record.id for record in records)

    await in_threads(lab, reap)
    equal(sorted(taken), [f"{n:02}" for n in range(40)], "taken")


async def check_a_batch_is_seen_whole_or_not_at_all(lab: Lab) -> None:
    size, batches = 25, 12
    torn: list[int] = []

    async def write_or_read(store: Store, number: int) -> None:
        if number == 0:
            for batch in range(batches):
                await store.add([job(f"{batch:02} {n:02}") for n in range(size)], NOW)
            return
        found = 0
        while found < size * batches:
            found = len(await store.find(JobFilter(limit=1_000)))
            if found % size:
                torn.append(found)
                return

    await in_threads(lab, write_or_read)
    equal(torn, [], "jobs seen in the middle of a batch")


async def check_calls_of_one_loop_keep_their_order_under_load(lab: Lab) -> None:
    async def in_order(store: Store, number: int) -> None:
        for n in range(15):
            id = f"{number} {n}"
            added, claimed = await asyncio.gather(
                store.add([job(id, id)], NOW), store.claim(f"i{number}", "p", 1, NOW, [id])
            )
            holds(added[0].created and [one.id for one in claimed.jobs] == [id], f"{id} is added and then claimed")

    await in_threads(lab, in_order)


async def check_a_claim_that_was_made_survives_its_caller(lab: Lab) -> None:
    """A caller that is cancelled in the middle of a call leaves a store that works."""
    other = await lab.another()
    await add(lab.store, *(job(f"{n}") for n in range(10)))
    for _ in range(5):
        call = asyncio.ensure_future(other.claim("gone", "p", 1, NOW, ["w"]))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await beat(lab.store, "r")
    lost = [record.id for record in await lab.store.reap("r", 10, NOW)]
    rest = [claimed.id for claimed in await claim(lab.store)]
    equal(sorted(lost + rest), [f"{n}" for n in range(10)], "jobs that were claimed, by the one or the other")
    await add(other, job("last"))
    await claim_one(other, "last")
