"""Encryption at rest: which keys jobs are under, and rewriting them under the first key."""

from collections.abc import Callable
from typing import Final

from shiftwork.control.access.audit import Audit
from shiftwork.control.access.store_access import StoreAccess
from shiftwork.core.health.health_values import Finding
from shiftwork.core.values.envelopes import PLAIN
from shiftwork.core.words import counted
from shiftwork.errors import EncryptionKeyError, nearest
from shiftwork.sentences import sentence
from shiftwork.store.sealed.key_ring import keys_in_use, new_key
from shiftwork.store.sealed.store import SealedStore
from shiftwork.transfer.move_record import refuse_to_change
from shiftwork.transfer.rekeying import Census, Rekeyed, Report, count_keys, give_up_key, rekey

MOST_SEALED_COUNTED: Final = 20_000
"""How many jobs the doctor looks into."""


class Encryption:
    """Examines and renews the encryption of a store."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], *, audit: Audit) -> None:
        self._access = access
        self._now = now
        self._audit = audit

    @staticmethod
    def new_key() -> str:
        return new_key()

    async def finding(self) -> Finding:
        """Return what the doctor reports: which key encrypts, and what is under another one or under none."""
        store = await self._access.open()
        in_use = await keys_in_use(store)
        if not isinstance(store, SealedStore):
            return _without_keys(in_use)
        missing = sorted(in_use - {*store.key_ids})
        if missing:
            return _missing(missing)
        return _counted(store.key_ids[0], await count_keys(store, at_most=MOST_SEALED_COUNTED))

    async def rekey(self, report: Report) -> Rekeyed:
        """Encrypt every job with the first key of this process. Nodes may run. Raises `EncryptionKeyError`."""
        store = await self._access.open_to_change()
        if not isinstance(store, SealedStore):
            message = (
                "this process has no encryption keys: set SHIFTWORK_ENCRYPTION_KEYS to the new key and the old ones, "
                "in this order"
            )
            raise EncryptionKeyError(message)
        done = await rekey(store, now=self._now(), report=report)
        message = sentence("{jobs} encrypted with key {key}", jobs=counted(done.rewritten, "job"), key=done.key)
        await self._audit.record("jobs.amended", "rekeyed", message, retired=" ".join(done.retired))
        return done

    async def give_up(self, key: str, report: Report) -> int:
        """Cancel the live jobs whose payload is under a lost key, so that processes without it may start.

        Return how many there were. If the key is found after all, they can be retried.
        """
        store = await self._access.open()
        await refuse_to_change(store)
        if key not in await keys_in_use(store):
            message = f"no job is encrypted with a key {key}; {nearest(key, await keys_in_use(store))}"
            raise EncryptionKeyError(message)
        cancelled = await give_up_key(store, key, now=self._now(), report=report)
        message = sentence("key {key} was given up; {jobs} cancelled", key=key, jobs=counted(cancelled, "job"))
        await self._audit.record("jobs.amended", "cancelled", message, key=key)
        return cancelled


def _without_keys(in_use: set[str]) -> Finding:
    return _missing(sorted(in_use)) if in_use else Finding("off")


def _missing(keys: list[str]) -> Finding:
    return Finding(
        f"jobs are encrypted with key {' and '.join(keys)}, which this process does not have",
        "give it the same keys as the other processes: SHIFTWORK_ENCRYPTION_KEYS",
        "critical",
    )


def _counted(first: str, census: Census) -> Finding:
    among = counted(census.jobs, "job") if census.complete else f"the newest {counted(census.jobs, 'job')}"
    others = {key: n for key, n in census.under.items() if key != first}
    if not others:
        return Finding(f"on: {among}, all under key {first}")
    parts = [f"{n} not encrypted" if key == PLAIN else f"{n} under key {key}" for key, n in sorted(others.items())]
    return Finding(f"on, with key {first}; of {among}, {', '.join(parts)}", "run: shiftwork rekey", "warning")
