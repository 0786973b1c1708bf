"""Each fault of a server has an error of its own, with the remedy and without the password."""

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftwork.errors import SchemaVersionError, StoreError, StoreFullError, StoreUnavailableError, UnknownStoreError
from shiftwork.store.abilities import try_room
from shiftwork.store.redis.server.address import parse
from shiftwork.store.redis.server.faults import translate
from shiftwork.store.urls import open_store
from tests.ports import free_port
from tests.store.conformance.acts import NOW, add, claim, finish, job, succeeded
from tests.store.proxy import Proxy
from tests.store.servers.redis import DURABLE, Server, namespace


async def refusal(url: str, namespace: str = "default") -> str:
    store = open_store(url, namespace=namespace)
    with pytest.raises(StoreUnavailableError) as caught:
        await store.open()
    await store.close()
    return str(caught.value)


@pytest.fixture(scope="module")
def guarded(valkey_program: Path) -> Iterator[Server]:
    """Yield a server with a password, and with a user who may not run scripts."""
    poor = "user poor on >secret ~* &* +@all -@scripting"
    with Server(valkey_program, "--requirepass", "secret", config=poor) as server:
        yield server


async def test_a_wrong_password(guarded: Server) -> None:
    at = f"127.0.0.1:{guarded.port}"
    assert "rejects the user name or the password" in await refusal(f"redis://:not-this-secret@{at}/0")
    assert "secret" not in await refusal(f"redis://:not-this-secret@{at}/0")
    assert "needs a password" in await refusal(f"redis://{at}/0")
    store = open_store(f"redis://:secret@{at}/0", namespace=namespace())
    await store.open()
    await add(store, job("1"))
    assert store.url == f"redis://{at}/0"
    await store.close()


async def test_a_user_who_may_not_run_scripts(guarded: Server) -> None:
    message = await refusal(f"redis://poor:secret@127.0.0.1:{guarded.port}/0")
    assert "denies rights that shiftwork needs" in message
    assert "secret" not in message


async def test_a_password_that_the_server_does_not_have(valkey_server: Server) -> None:
    message = await refusal(f"redis://:secret@127.0.0.1:{valkey_server.port}/0")
    assert "has no password" in message or "rejects" in message


async def test_nothing_listens_there() -> None:
    assert "nothing listens there" in await refusal(f"redis://127.0.0.1:{free_port()}/0")
    assert "Check the host name" in await refusal("redis://no.such.host.invalid/0")


async def test_a_server_that_hangs() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert "no reply" in await refusal(f"redis://127.0.0.1:{port}/0?timeout=0.05")
    server.close()


async def test_a_database_that_does_not_exist(valkey_server: Server) -> None:
    assert "no database with the number" in await refusal(f"redis://127.0.0.1:{valkey_server.port}/999")


async def test_a_replica(valkey_program: Path, valkey_server: Server) -> None:
    with Server(valkey_program, "--replicaof", "127.0.0.1", f"{valkey_server.port}") as replica:
        assert "is a read-only replica" in await refusal(replica.url)


async def test_keys_of_another_version(valkey_server: Server) -> None:
    valkey_server.ask("SET", "{shiftwork:other}:version", "99")
    store = open_store(valkey_server.url, namespace="other")
    with pytest.raises(SchemaVersionError, match="its keys have version 99, ours have 2"):
        await store.open()
    await store.close()


async def test_a_full_server_refuses_new_jobs_and_works_off_the_others(valkey_program: Path) -> None:
    with Server(valkey_program, *DURABLE) as server:
        store = open_store(server.url)
        await store.open()
        await add(store, *(job(f"{n}") for n in range(50)))
        await try_room(store)
        server.ask("CONFIG", "SET", "maxmemory", "1mb")
        for refused in (store.add([job("one too many")], NOW), try_room(store)):
            with pytest.raises(StoreFullError, match="No acknowledged job is lost"):
                await refused
        assert (await store.stats(NOW)).pools["p"].queued == 50
        while claimed := await claim(store):
            await finish(store, *(succeeded(one, keep_until=NOW) for one in claimed))
        assert await store.prune(100, NOW) == 50
        server.ask("CONFIG", "SET", "maxmemory", "0")
        await try_room(store)
        assert await store.events() == []
        await add(store, job("one too many"))
        await store.close()


# ── TLS ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Create a self-signed certificate for 127.0.0.1, and its key."""
    program = shutil.which("openssl")
    assert program, "there is no openssl"
    made, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    asked = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    subprocess.run([program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *asked], check=True, capture_output=True)
    return made, key


@pytest.mark.needs("openssl")
async def test_tls(valkey_url: str, valkey_server: Server, certificate: tuple[Path, Path]) -> None:
    made, key = certificate
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made, key)
    async with Proxy(valkey_server.port, context) as proxy:
        at = f"127.0.0.1:{proxy.port}"
        for trusted in (f"ca_file={made}", "verify=no"):
            store = open_store(f"rediss://{at}/0?{trusted}", namespace=namespace())
            await store.open()
            await add(store, job("1"))
            assert len(await claim(store)) == 1
            await store.close()
        assert "certificate" in await refusal(f"rediss://{at}/0")


# ── sentinel ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_sentinel_names_the_server(valkey_program: Path, valkey_url: str, valkey_server: Server) -> None:
    watched = f"sentinel monitor shop 127.0.0.1 {valkey_server.port} 1"
    with Server(valkey_program, "--sentinel", config=watched) as sentinel:
        sentinels = f"127.0.0.1:{free_port()},127.0.0.1:{sentinel.port}"
        store = open_store(f"redis+sentinel://{sentinels}/shop/0", namespace=namespace())
        await store.open()
        await add(store, job("1"))
        assert len(await claim(store)) == 1
        await store.close()
        assert "does not know the service 'shpo'" in await refusal(f"redis+sentinel://127.0.0.1:{sentinel.port}/shpo/0")


# ── URLs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://", "needs a host: write redis://host:6379/0"),
        ("redis://host:port/0", "the port in the redis:// URL is not a number"),
        ("redis://host/name", "the database of a redis:// URL is a number"),
        ("redis://one,two/0", "has one host; for several, write redis+cluster://"),
        ("redis+cluster://host:7000/1", "a cluster has only database 0"),
        ("redis+sentinel://host:26379", "needs the name of the service"),
        ("redis://user:secret@host/0?timout=3", "did you mean 'timeout'?"),
        ("redis://user:secret@host/0?timeout=never", "must be a number of seconds, not 'never'"),
        ("redis://host/0?tls=maybe", "it is one of yes, no"),
        ("redis+clutser://host", "did you mean 'redis+cluster'?"),
    ],
)
def test_malformed_urls_are_refused_with_the_right_form(url: str, told: str) -> None:
    with pytest.raises(UnknownStoreError) as caught:
        open_store(url)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host", "redis://host:6379/0"),
        ("redis://[::1]:7000/2", "redis://[::1]:7000/2"),
        ("rediss://us%40er:sec%3Aret@host/1?verify=no", "rediss://us%40er@host:6379/1?verify=no"),
        ("redis+cluster://:secret@a:7000,b", "redis+cluster://a:7000,b:6379"),
        ("redis+sentinel://a,b:1/shop/3?sentinel_password=secret", "redis+sentinel://a:26379,b:1/shop/3"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert open_store(url).url == shown


def test_a_login_is_unquoted() -> None:
    address = parse("redis", "us%40er:sec%3Aret@host/1", {})
    assert (address.username, address.password) == ("us@er", "sec:ret")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name == "hiredis" or name.startswith("shiftwork.store.redis"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "hiredis", None)
    with pytest.raises(UnknownStoreError, match=r"pip install 'shiftwork\[redis\]'"):
        open_store("redis://host/0")


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        ("ERR max number of clients reached", StoreUnavailableError, "raise its maxclients"),
        (
            "ERR The user executing the script can't run this command or subcommand script: ba3f, on @user_script:23.",
            StoreUnavailableError,
            "denies rights that shiftwork needs: ACL SETUSER",
        ),
        ("ERR something else", StoreError, "replied: ERR something else"),
    ],
)
def test_a_reply_has_its_remedy(reply: str, kind: type[StoreError], words: str) -> None:
    error = translate(reply, "here")
    assert type(error) is kind
    assert words in str(error)
