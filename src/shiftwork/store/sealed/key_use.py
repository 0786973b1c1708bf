"""Which keys the values in a store are encrypted with. Processes agree on them before they change anything.

A process publishes the id of its first key before it encrypts with it, unless a live node lacks that key. A process
that lacks a published key must not claim jobs, which it could not run, nor add jobs, which it would leave readable or
encrypt with a key that others lack.
"""

from collections.abc import Collection

from shiftwork.core.doc_kinds import ENCRYPTION
from shiftwork.core.values.envelopes import CIPHER, KeyInUse
from shiftwork.errors import EncryptionKeyError
from shiftwork.store.abilities import key_ids
from shiftwork.store.docs import change, read_all
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import FILE_VARIABLE, KEYS_VARIABLE


async def keys_in_use(store: Store) -> set[str]:
    """Return the ids of the keys that jobs may be encrypted with."""
    return {id for id, use in (await read_all(store, ENCRYPTION)).items() if not use.retired}


async def agree_on_keys(store: Store, in_use: Collection[str]) -> None:
    """Publish the key that this process encrypts with. Raises `EncryptionKeyError` if it lacks one that is in use."""
    refuse_missing_keys(store, in_use)
    ours = key_ids(store)
    if ours and ours[0] not in in_use:
        await _refuse_blind_nodes(store, ours[0])
        await change(store, ENCRYPTION, ours[0], lambda _: KeyInUse(CIPHER))


def refuse_missing_keys(store: Store, in_use: Collection[str]) -> None:
    """Raise `EncryptionKeyError` if this process lacks a key that is in use."""
    ours = key_ids(store)
    missing = sorted({*in_use} - {*ours})
    if missing:
        has = f"has only {' and '.join(ours)}" if ours else "has no keys"
        message = (
            f"jobs in {store.url} are encrypted with key {' and '.join(missing)}, and this process {has}. Give it the "
            f"same keys as the other processes: {KEYS_VARIABLE}, {FILE_VARIABLE}, or "
            "WorkerOrchestrator(encryption_keys=…)"
        )
        raise EncryptionKeyError(message)


async def _refuse_blind_nodes(store: Store, key: str) -> None:
    """Raise if a live node could not run jobs that are encrypted with this key."""
    now = await store.server_time()
    for known in await store.instances():
        machine = known.beat.machine
        if machine is not None and known.expires_at > now and key not in machine.keys:
            message = (
                f"node {known.beat.node} on {machine.host} does not have encryption key {key}, and could not run what "
                f"this process adds. Give it the key behind its others and restart it, or stop it; if it is gone, its "
                f"lease ends in {known.expires_at - now:.0f} s"
            )
            raise EncryptionKeyError(message)
