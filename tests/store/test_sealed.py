"""A store whose values are encrypted keeps every obligation of the contract, as the store inside it does."""

import tracemalloc
from collections.abc import Callable
from typing import Final

import pytest

from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.values.envelopes import is_sealed
from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import key_ring, new_key
from shiftwork.store.sealed.store import FORWARDED, SealedStore, sealed
from tests.store.conformance.acts import NOW, add, claim, job
from tests.store.conformance.checks import claim_cost
from tests.store.conformance.lab import StoreFactory
from tests.store.conformance.suite import CHECKS, Check, run_check
from tests.store.conftest import Maker, memory, postgres, sqlite, valkey
from tests.store.servers.postgres import names

INSIDE: Final = (
    memory,
    *(pytest.param(each, marks=pytest.mark.soak) for each in (sqlite, valkey, postgres(names()[0]))),
)


@pytest.fixture(params=INSIDE, ids=lambda made: made.__name__)
def encrypted(request: pytest.FixtureRequest) -> StoreFactory:
    """Makes empty stores that encrypt."""
    made: Maker = request.param
    plain, ring = made(request), key_ring([new_key()])

    def place() -> Callable[[], Store]:
        connect = plain()
        return lambda: sealed(connect(), ring)

    return place


EXACT: Final = {
    "check_the_signals_of_a_job_have_so_many_bytes",
    "check_the_steps_of_a_job_have_so_many_bytes",
    "check_people_see_beginnings_of_steps_and_signals",
    "check_lists_have_beginnings_of_payloads_and_results",
}
"""They count bytes, and encryption adds some."""


@pytest.mark.parametrize(
    "check",
    [one for one in CHECKS if one.__name__ not in EXACT],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
async def test_store(check: Check, encrypted: StoreFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_cost, "CROWD", 1_000)  # the layer adds the same to every call
    await run_check(check, encrypted)


async def test_a_large_value_of_a_list_stays_encrypted_and_a_small_one_is_read(encrypted: StoreFactory) -> None:
    store = encrypted()()
    await store.open()
    await add(store, job("large", payload=b"p" * 5_000), job("small", payload=b"p"))
    claimed = {one.id: one for one in await claim(store, 2)}
    for id, size in (("large", 5_000), ("small", 1)):
        await store.send(id, Signal("go", b"v" * size, NOW), NOW)
        await store.keep_step(id, claimed[id].fence, Step(1, "one", b"r" * size, NOW, NOW))
    found = {one.id: one for one in await store.find(JobFilter())}
    assert found["small"].payload == b"p"
    assert is_sealed(found["large"].payload)
    assert (found["large"].payload_size or 0) > 5_000
    [whole] = await store.find(JobFilter(ids=("large",), whole=True))
    assert whole.payload == b"p" * 5_000
    small, large = await store.parts("small"), await store.parts("large")
    assert (small.steps[0].result, small.signals[0].value) == (b"r", b"v")
    assert is_sealed(large.steps[0].result)
    assert is_sealed(large.signals[0].value)
    page, signal = await store.steps("large", claimed["large"].fence, 0), await store.signal("large", "go")
    assert page is not None
    assert signal is not None
    assert (page.steps[0].result, signal.value) == (b"r" * 5_000, b"v" * 5_000)
    await store.close()


def test_the_layer_has_every_method_of_a_store() -> None:
    methods = {name for name in vars(Store) if not name.startswith("_")}
    assert methods <= {*vars(SealedStore), *FORWARDED, "url"}
    assert methods >= FORWARDED
    assert not FORWARDED & vars(SealedStore).keys()


def test_the_layer_forwards_nothing_else() -> None:
    layer = SealedStore(MemoryStore(), key_ring([new_key()]))
    assert layer.stats == layer.inner.stats
    assert not hasattr(layer, "add_with")
    with pytest.raises(AttributeError, match="SealedStore has no 'sts'"):
        layer.sts  # noqa: B018 - it raises


def test_a_large_value_is_decrypted_without_a_copy_of_it() -> None:
    ring = key_ring([new_key()])
    value = ring.seal(bytes(1_000_000), "payload", "1")
    tracemalloc.start()
    opened = ring.open(value, "payload", "1")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert opened == bytes(1_000_000)
    assert peak < 1_500_000
