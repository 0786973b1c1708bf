"""A store whose values are encrypted keeps every obligation of the contract, as the store inside it does."""

import tracemalloc
from collections.abc import Callable
from typing import Final

import pytest

from shiftwork.store.protocol import Store
from shiftwork.store.sealed.keys import key_ring, new_key
from shiftwork.store.sealed.store import SealedStore, sealed
from shiftwork.testing import CHECKS, Check, StoreFactory, run_check
from shiftwork.testing.checks import crowds
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


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
async def test_store(check: Check, encrypted: StoreFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowds, "CROWD", 1_000)  # the layer adds the same to every call
    await run_check(check, encrypted)


def test_the_layer_has_every_method_of_a_store() -> None:
    assert {name for name in vars(Store) if not name.startswith("_")} <= {*vars(SealedStore), "url"}


def test_a_large_value_is_decrypted_without_a_copy_of_it() -> None:
    ring = key_ring([new_key()])
    value = ring.seal(bytes(1_000_000), "payload", "1")
    tracemalloc.start()
    opened = ring.open(value, "payload", "1")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert opened == bytes(1_000_000)
    assert peak < 1_500_000
