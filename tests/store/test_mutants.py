"""The suite can fail: each of these stores breaks one promise, and the check that guards it notices.

The mutants are those of `tests.mutants.named`, which `make mutants` runs in a copy of the package. Here they are put
into the package of this process, for one check at a time. Those of the stores on servers and in files are soak tests.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

import shiftwork
from shiftwork.store.memory import MemoryStore
from shiftwork.store.postgres.server import functions
from shiftwork.store.redis import lua
from shiftwork.store.sqlite import SqliteStore, sql
from tests.mutants.mutant import Mutant
from tests.mutants.named import NAMED
from tests.mutants.named.memory import MEMORY
from tests.store.conformance import expect, suite
from tests.store.conformance.checks import claim_cost
from tests.store.conformance.suite import CHECKS, check_store, run_check
from tests.store.conftest import on_server
from tests.store.servers.postgres import names, server_url
from tests.store.servers.sessions import end_kept_sessions, keep_sessions

if TYPE_CHECKING:
    from tests.store.conformance.lab import StoreFactory

Patch = pytest.MonkeyPatch
PACKAGE: Final = Path(shiftwork.__file__).parent
CHECK: Final = {check.__name__.removeprefix("check_"): check for check in CHECKS}


@pytest.fixture(scope="module", autouse=True)
def sessions() -> Iterator[None]:
    yield
    end_kept_sessions()


def of_store(name: str) -> list[Any]:
    """The mutants in files of a store, each with a check that has to notice it."""
    return [
        pytest.param(mutant, check, id=f"{mutant.name}-{check}")
        for mutants in NAMED.values()
        for mutant in mutants
        for check in mutant.noticed_by
        if mutant.file.startswith(f"store/{name}/") and check in CHECK
    ]


def healthy() -> Callable[[], MemoryStore]:
    store = MemoryStore()
    return lambda: store


@pytest.mark.parametrize(("mutant", "noticed_by"), of_store("memory"))
async def test_a_broken_promise_is_noticed(mutant: Mutant, noticed_by: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(expect, "PATIENCE", 0.2)
    monkeypatch.setattr(claim_cost, "CROWD", 15_000)  # as in test_conformance
    put_in(mutant, monkeypatch)
    with pytest.raises(AssertionError):
        await run_check(CHECK[noticed_by], healthy)


@pytest.mark.soak
@pytest.mark.parametrize(("mutant", "noticed_by"), of_store("redis"))
async def test_a_rule_repeated_wrongly_in_lua_is_noticed(
    mutant: Mutant, noticed_by: str, valkey_url: str, monkeypatch: Patch
) -> None:
    put_in(mutant, monkeypatch)
    lua._sources.cache_clear()
    lua.script.cache_clear()
    try:
        with pytest.raises(AssertionError):
            await run_check(CHECK[noticed_by], on_server(valkey_url))
    finally:
        lua._sources.cache_clear()
        lua.script.cache_clear()


@pytest.mark.soak
@pytest.mark.parametrize(("mutant", "noticed_by"), of_store("postgres"))
async def test_a_rule_repeated_wrongly_in_a_function_is_noticed(
    mutant: Mutant, noticed_by: str, monkeypatch: Patch
) -> None:
    put_in(mutant, monkeypatch)
    # A changed text is another version of the functions, which lies beside the genuine one.
    wrongly = functions.current.__wrapped__()
    monkeypatch.setattr(functions, "current", lambda: wrongly)
    url = server_url(names()[0])
    factory = on_server(f"{url}{'&' if '?' in url else '?'}schema=mutants")
    keep_sessions(monkeypatch)
    with pytest.raises(AssertionError):
        await run_check(CHECK[noticed_by], factory)


@pytest.mark.soak
@pytest.mark.parametrize(("mutant", "noticed_by"), of_store("sqlite"))
async def test_a_rule_repeated_wrongly_in_sql_is_noticed(
    mutant: Mutant, noticed_by: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    put_in(mutant, monkeypatch)
    for name, statement in sql.statements(sql.read("queries.sql")).items():
        monkeypatch.setitem(sql.SQL, name, statement)
    with pytest.raises(AssertionError):
        await run_check(CHECK[noticed_by], lambda: lambda: SqliteStore(str(tmp_path / "shiftwork.db")))


def put_in(mutant: Mutant, patch: Patch) -> None:
    """Break the package of this process until the test ends: its functions, and what is read of its files."""
    path = PACKAGE / mutant.file
    wrong = mutant.applied_to(path.read_text())
    if path.suffix == ".py":
        module = inspect.getmodule(None, str(path))
        assert module is not None
        codes = codes_of(compile(wrong, str(path), "exec"))
        for function in functions_of(module):
            patch.setattr(function, "__code__", codes[function.__code__.co_qualname])
    else:
        genuine = Path.read_text
        patch.setattr(Path, "read_text", lambda self, **how: wrong if self == path else genuine(self, **how))


def codes_of(code: CodeType) -> dict[str, CodeType]:
    """The code of every function in this code, by its qualified name."""
    found: dict[str, CodeType] = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= {inner.co_qualname: inner} | codes_of(inner)
    return found


def functions_of(holder: ModuleType | type) -> Iterator[FunctionType]:
    """Yield the functions of a module and of its classes."""
    name = holder.__name__ if isinstance(holder, ModuleType) else holder.__module__
    for value in vars(holder).values():
        inner = (
            inspect.unwrap(getattr(value, "fget", value)) if callable(value) or isinstance(value, property) else value
        )
        if isinstance(inner, FunctionType) and inner.__module__ == name:
            yield inner
        elif isinstance(inner, type) and inner.__module__ == name:
            yield from functions_of(inner)


async def test_check_store_names_every_check_that_failed(monkeypatch: Patch) -> None:
    names = ["the_same_id_is_one_job", "a_place_has_one_holder", "every_filter_filters", "no_write_of_a_doc_is_lost"]
    monkeypatch.setattr(suite, "CHECKS", [CHECK[name] for name in names])
    await check_store(healthy)
    for name in ("everybody leads", "the last writer of a doc wins"):
        put_in(next(mutant for mutant in MEMORY if mutant.name == name), monkeypatch)
    with pytest.raises(ExceptionGroup) as caught:
        await check_store(healthy)
    told = "2 of 4 checks failed: check_a_place_has_one_holder, check_no_write_of_a_doc_is_lost"
    assert told in str(caught.value)
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["check_a_place_has_one_holder"], ["check_no_write_of_a_doc_is_lost"]]


async def test_a_store_that_fails_to_open_is_a_failed_check(monkeypatch: Patch) -> None:
    def broken() -> Callable[[], MemoryStore]:
        raise OSError("no room")

    factory: StoreFactory = broken
    monkeypatch.setattr(suite, "CHECKS", [CHECK["the_same_id_is_one_job"]])
    with pytest.raises(ExceptionGroup, match="1 of 1 checks failed"):
        await check_store(factory)
